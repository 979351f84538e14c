"""Divides inputs into tasks: units of work for any process, each with a mark when done.

A task is a run of neighbouring files. It writes a folder of its own, which is complete when it has
the mark, a file with the checksums of the others. Tasks are independent, so they may run in any
order, on any machine, and more than once. The process that finds all marks checks the files and
combines them, in the order of the tasks. The folder may be shared with others, so anything in it
except the regular files that tasks write is an error.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from bytepair.corpus.files import Input
from bytepair.errors import InUseError, ShardError, warn
from bytepair.files.outputs import check_alone, remove_own
from bytepair.files.safe import check_own_folder, check_regular
from bytepair.shards import manifest, writer
from bytepair.shards.manifest import DamageError


def run_on_ray(
    items: Iterable[Any], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """Call a function for each item, on any worker."""
    from bytepair._internal.extras import ray

    packed = [{"item": pickle.dumps(item)} for item in items]
    if not packed:
        return

    def call(row: dict[str, Any]) -> dict[str, Any]:
        function(pickle.loads(row["item"]), *arguments)
        return {"is_done": True}

    data = ray.data.from_items(packed, override_num_blocks=len(packed)).map(call)
    if not sys.stderr.isatty():  # where Ray Data shows no bars, it logs its progress
        logging.getLogger("ray.data").setLevel(logging.WARNING)
    if (done := len(data.take_all())) != len(packed):
        raise ShardError(f"Ray has run {done} of {len(packed)} tasks")


T = TypeVar("T")

#: The approximate number of bytes of the files of a task.
TASK_BYTES: Final = 1 << 27
MARK: Final = "mark.json"
#: The names of the folders of tasks and of the record of their job, as a regular expression.
ROOT_NAMES: Final = rf"[0-9]{{6,}}|{re.escape(manifest.JOB)}"

#: The variables of job arrays: the rank, the lowest rank, the highest rank, the number of ranks.
_ARRAYS: Final = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", None),
    ("SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", None),
    ("LSB_JOBINDEX", None, "LSB_JOBINDEX_END", None),
    ("AWS_BATCH_JOB_ARRAY_INDEX", None, None, "AWS_BATCH_JOB_ARRAY_SIZE"),
    ("SLURM_PROCID", None, None, "SLURM_NTASKS"),
    ("RANK", None, None, "WORLD_SIZE"),
)


@dataclass(frozen=True)
class Task:
    """A run of files: the number of the task, its inputs, and the number of the first of them."""

    number: int
    files: list[Input]
    first_input: int = 0

    @property
    def end(self) -> int:
        """The number of the input behind its own."""
        return self.first_input + len(self.files)


def split(files: list[Input], task_bytes: int = TASK_BYTES) -> list[Task]:
    """Group neighbouring files into tasks, by their sizes alone.

    Example:
        >>> from bytepair.corpus.files import Input
        >>> files = [Input(name, size, None, name) for name, size in [("a", 5), ("b", 6), ("c", 9)]]
        >>> [[file.name for file in task.files] for task in split(files, 10)]
        [['a', 'b'], ['c']]
    """
    groups: list[list[Input]] = []
    size = task_bytes
    for file in files:
        if size >= task_bytes:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.size
    firsts = itertools.accumulate(map(len, groups), initial=0)
    return [Task(*of) for of in zip(itertools.count(), groups, firsts, strict=False)]


def place(
    rank: int | None, world_size: int | None, environment: Mapping[str, str] | None = None
) -> tuple[int, int]:
    """The rank of this process and the number of processes, as passed or from a job array.

    Args:
        rank: from 0; None means that of the environment.
        world_size: the number of processes; None means that of the environment.
        environment: the environment variables; None means those of this process.

    Raises:
        ShardError: if it is not known, or the rank is out of range.

    Example:
        >>> from bytepair.distributed import place
        >>> array = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "1"}
        >>> place(None, None, {**array, "SLURM_ARRAY_TASK_MAX": "8"})
        (2, 8)
    """
    variables = os.environ if environment is None else environment
    for name, lowest, highest, number in _ARRAYS:
        if not re.fullmatch("[0-9]+", variables.get(name, "")):
            continue
        first = _number(variables, lowest, "1" if highest else "0")
        rank = _number(variables, name) - first if rank is None else rank
        if world_size is None and highest and highest in variables:
            world_size = _number(variables, highest) - first + 1
        if world_size is None and number and number in variables:
            world_size = _number(variables, number)
        break
    if rank is None or world_size is None:
        raise ShardError("the rank and the number of ranks are unknown", hint="pass both")
    if not 0 <= rank < world_size:
        raise ShardError(
            f"rank {rank} is not below world_size {world_size}, or is negative", option="rank"
        )
    return rank, world_size


def _number(variables: Mapping[str, str], name: str | None, default: str = "") -> int:
    text = variables.get(name or "", default)
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ShardError(f"the environment has {name}={text!r}, which is no number")
    return int(text)


@dataclass(frozen=True)
class TaskFolder:
    """The folder of the tasks of a job, in the folder to which the record of its inputs refers."""

    root: Path
    job: dict[str, Any]  # what determines the results
    name: str  # of the file that a task writes

    def begin(self) -> None:
        """Create the folder for this job, or join it; any number of ranks may call this."""
        check_own_folder(self.root)
        self.root.mkdir(parents=True, exist_ok=True)
        writer.check_contents(self.root, ROOT_NAMES)
        path = self.root / manifest.JOB
        while not path.exists():  # if several ranks begin at once, one writes it
            with suppress(InUseError), manifest.locked(self.root):
                if path.exists():
                    break
                if folders := self._folders():
                    text = f"{folders[0]} is there without a {manifest.JOB}; move it elsewhere"
                    raise ShardError(text)
                manifest.write_json(path, self.job)
        if self._record() != json.loads(json.dumps(self.job)):  # equal, but not the same
            manifest.write_json(path, self.job)

    def _record(self) -> dict[str, Any]:
        """The recorded job of the folder; a `ShardError` if it is another one."""
        before = manifest.read_json(self.root / manifest.JOB, self.root, manifest.parse_job)
        writer.check_job(self.root, before, self.job)
        return before

    def _folders(self) -> list[Path]:
        return [path for path in self.root.iterdir() if re.fullmatch("[0-9]{6,}", path.name)]

    @property
    def _task_names(self) -> str:
        return f"{re.escape(self.name)}|{re.escape(MARK)}"

    def of(self, task: Task) -> Path:
        """The folder of a task."""
        return self.root / f"{task.number:06}"

    def is_done(self, *work: Task) -> bool:
        """Whether every one of these tasks has its mark."""
        return all((self.of(task) / MARK).exists() for task in work)

    def mark(self, task: Task, parse: Callable[[Any], T]) -> T:
        """What the mark of a task says."""
        return manifest.read_json(self.of(task) / MARK, self.of(task), parse)

    def run(self, task: Task, work: Callable[[Path], dict[str, Any]]) -> None:
        """Run a task unless it is done.

        `work` writes the given file, and returns what the mark says besides its checksum.
        """
        folder = self.of(task)
        writer.check_contents(folder, self._task_names)
        if self.is_done(task):
            return
        with manifest.locked(folder):
            self._record()  # the folder may have changed hands since this rank began
            if not self.is_done(task):
                check_alone(folder / self.name)
                values = work(folder / self.name)
                part = asdict(writer.part_of(folder, self.name))
                manifest.write_json(folder / MARK, {**values, "part": part})

    def redo_broken(self, work: list[Task], redo: Callable[[Task], None]) -> None:
        """Run the tasks of this job again whose files are not as their marks say."""
        self._record()
        for task in work:
            if wrong := self._wrong(task):
                folder = self.of(task)
                warn(f"{folder} is not as it was written: {wrong}; it is written again")
                remove_own(folder / MARK)
                redo(task)

    def _wrong(self, task: Task) -> str:
        """What is wrong with the result of a task; empty if it is whole."""
        folder = self.of(task)
        writer.check_contents(folder, self._task_names)
        for name in (self.name, MARK):
            check_regular(folder / name)
        try:
            part = self.mark(task, lambda mark: manifest.parse_part(mark.get("part")))
            if part.file != self.name or part.offset:
                return f"{MARK} does not name the file {self.name}"
            return writer.wrong_part(folder, part, end=part.bytes)
        except FileNotFoundError as error:
            return f"{error.filename} is gone"
        except DamageError as error:
            return f"{MARK} is damaged: {error}"

    def clear(self) -> None:
        """Remove the files of the tasks and their folders, unless they are those of another job.

        All is done then, so it is a warning if they belong to another user and cannot be removed.
        """
        check_own_folder(self.root)
        path = self.root / manifest.JOB
        if not path.exists():
            with suppress(OSError):  # a killed run may have left it empty
                self.root.rmdir()
            return
        before = manifest.read_json(path, self.root, manifest.parse_job)
        if writer.differing(before, self.job):
            return
        writer.check_contents(self.root, ROOT_NAMES)
        try:
            for folder in self._folders():
                writer.remove_folder(folder, self._task_names)
            writer.remove_folder(self.root, re.escape(manifest.JOB))
        except PermissionError as error:
            warn(f"the result is whole, but {self.root} cannot be removed: {error.strerror}")


@dataclass(frozen=True)
class Ranks:
    """Who runs tasks: this process, with its rank as in `place`, or a Ray cluster."""

    rank: int | None
    world_size: int | None
    ray: bool

    def __post_init__(self) -> None:
        if not self.ray:
            return
        if self.rank is not None or self.world_size is not None:
            raise ShardError(
                "Ray needs no ranks: pass either ray, or rank and world_size", option="ray"
            )
        from bytepair._internal.extras import ray  # noqa: F401 - said before the work

    def threads(self, threads: int | None) -> int | None:
        """The number of threads of a task; Ray gives each one core."""
        return threads or 1 if self.ray else threads

    def run(
        self, folder: TaskFolder, work: list[Task], function: Callable[..., object], *more: Any
    ) -> bool:
        """Run the tasks that these ranks have to do, and return whether all tasks are done then.

        `function` is called with a task, the folder and `more`, all of which can be sent.
        """
        mine = work
        if not self.ray:
            rank, world_size = place(self.rank, self.world_size)
            mine = work[rank::world_size]
        if mine:
            folder.begin()
        if self.ray:
            left = [task for task in work if not folder.is_done(task)]
            run_on_ray(left, function, (folder, *more))
        else:
            for task in mine:
                function(task, folder, *more)
        return folder.is_done(*work)
