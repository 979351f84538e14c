"""This file divides inputs into tasks: units of work for any process, each with a mark when done.

A task is a run of neighbouring files. It writes a folder of its own, which is complete when it has
the mark, a file with the checksums of the others. Tasks are independent, so they may run in any
order, on any machine, and more than once. The process that finds all marks checks the files and
combines them, in the order of the tasks. The folder may be shared with others, so its files are
those that tasks write, regular ones, or an error names what else is there.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bytepair.corpus.files import Input
from bytepair.distributed import on_ray
from bytepair.errors import ShardError, warn
from bytepair.files.outputs import check_alone, remove_own
from bytepair.files.safe import check_own_folder, check_regular
from bytepair.shards import manifest, state
from bytepair.shards.manifest import DamageError, Fields, ShardPart

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
    """A run of files.

    Attributes:
        number: the number of the task.
        files: its inputs.
        first_input: the number of its first file among all inputs.
    """

    number: int
    files: list[Input]
    first_input: int = 0

    def folder(self, root: Path) -> Path:
        """The folder of its results."""
        return root / f"{self.number:06}"

    def is_done(self, root: Path) -> bool:
        """Whether its mark exists."""
        return (self.folder(root) / MARK).exists()


def split(files: list[Input], task_bytes: int = TASK_BYTES) -> list[Task]:
    """Group neighbouring files into tasks, by their sizes alone.

    Example:
        >>> from bytepair.corpus.files import Input
        >>> from bytepair.distributed.tasks import split
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
    return [
        Task(number, group, first)
        for number, (group, first) in enumerate(zip(groups, firsts, strict=False))
    ]


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
        if not variables.get(name, "").isdigit():
            continue
        first = int(variables.get(lowest or "", "1" if highest else "0"))
        rank = int(variables[name]) - first if rank is None else rank
        if world_size is None and highest is not None and highest in variables:
            world_size = int(variables[highest]) - first + 1
        if world_size is None and number is not None and number in variables:
            world_size = int(variables[number])
        break
    if rank is None or world_size is None:
        raise ShardError("the rank and the number of ranks are unknown", hint="pass both")
    if not 0 <= rank < world_size:
        raise ShardError(
            f"rank {rank} is not below world_size {world_size}, or is negative", option="rank"
        )
    return rank, world_size


@dataclass(frozen=True)
class Ranks:
    """Who runs tasks: this process, with its rank, or a Ray cluster.

    Attributes:
        rank: as in `place`.
        world_size: as in `place`.
        ray: whether it is a Ray cluster.

    Raises:
        ShardError: if both are given.
        ImportError: if Ray is not installed.
        ConnectionError: if the Ray cluster does not answer.
    """

    rank: int | None
    world_size: int | None
    ray: bool

    def __post_init__(self) -> None:
        """Check this before anything is read or written."""
        if not self.ray:
            return
        if self.rank is not None or self.world_size is not None:
            raise ShardError(
                "Ray needs no ranks: pass either ray, or rank and world_size", option="ray"
            )
        on_ray.check()

    def threads(self, threads: int | None) -> int | None:
        """The number of threads of a task; Ray gives each one core."""
        return threads or 1 if self.ray else threads

    def run(
        self,
        root: Path,
        job: dict[str, Any],
        work: list[Task],
        function: Callable[..., object],
        *arguments: Any,
    ) -> bool:
        """Run the tasks that these ranks have to do, and return whether all tasks are done then.

        Args:
            root: the folder of the results.
            job: the job, as `begin` takes it.
            work: the tasks of all ranks.
            function: runs a task; it is called with it and with `arguments`.
            arguments: values that can be sent to other processes.
        """
        mine = work
        if not self.ray:
            rank, world_size = place(self.rank, self.world_size)
            mine = work[rank::world_size]
        if mine:
            begin(root, job)
        if self.ray:
            on_ray.results([task for task in work if not task.is_done(root)], function, arguments)
        else:
            for task in mine:
                function(task, *arguments)
        return all_done(root, work)


def begin(root: Path, job: dict[str, Any]) -> None:
    """Create the folder of the tasks of a job; any number of ranks may call this.

    Args:
        root: the folder, in the folder to which the record of the inputs refers.
        job: the job.

    Raises:
        ShardError: if the folder belongs to another job, or has other content.
    """
    check_own_folder(root)
    root.mkdir(parents=True, exist_ok=True)
    # Listed before the job file is looked for: another rank writes that file before its tasks.
    folders = _folders(root)
    state.check_contents(root, ROOT_NAMES)
    path = root / manifest.JOB
    if path.exists():
        state.check_job(root, manifest.read_job(path, root), job, root.parent)
    elif folders:
        raise ShardError(f"{folders[0]} is there without a {manifest.JOB}; move it elsewhere")
    manifest.write_json(path, job)


def _pattern(names: Sequence[str]) -> str:
    """The names of the files of a task, as a regular expression."""
    return "|".join(map(re.escape, (*names, MARK)))


def _folders(root: Path) -> list[Path]:
    """The folders of tasks, in whatever state."""
    return [path for path in root.iterdir() if re.fullmatch("[0-9]{6,}", path.name)]


def run(
    root: Path,
    tasks: list[Task],
    names: Sequence[str],
    work: Callable[[Task, Path], dict[str, Any]],
) -> None:
    """Run the tasks that are not done, one after the other.

    Args:
        root: the folder of the results.
        tasks: the tasks.
        names: the names of the files that a task writes.
        work: runs one task, writes these files into the given folder, and returns what the mark
            says besides their checksums.

    Raises:
        ShardError: if another process is running one of them, or there are other files.
    """
    for task in tasks:
        folder = task.folder(root)
        state.check_contents(folder, _pattern(names))
        if task.is_done(root):
            continue
        with manifest.locked(folder):
            if not task.is_done(root):
                for name in names:
                    check_alone(folder / name)
                values = work(task, folder)
                parts = [asdict(state.part_of(folder, name)) for name in names]
                manifest.write_json(folder / MARK, {**values, "parts": parts})


def all_done(root: Path, tasks: list[Task]) -> bool:
    """Whether every task has its mark."""
    return all(task.is_done(root) for task in tasks)


def mark_of(task: Task, root: Path) -> Fields:
    """The mark of a task."""
    return Fields.read(task.folder(root) / MARK, task.folder(root))


def redo_broken(
    root: Path, tasks: list[Task], names: Sequence[str], redo: Callable[[Task], None]
) -> None:
    """Run the tasks again whose files, of these names, are not as their marks say.

    Raises:
        ShardError: if one of them is a link, a folder, a pipe or a device.
    """
    for task in tasks:
        folder = task.folder(root)
        if wrong := _wrong(task, root, names):
            warn(f"{folder} is not as it was written: {wrong}; it is written again")
            remove_own(folder / MARK)
            redo(task)


def _wrong(task: Task, root: Path, names: Sequence[str]) -> str:
    """What is wrong with the results of a task; empty if they are whole."""
    folder = task.folder(root)
    state.check_contents(folder, _pattern(names))
    for name in (*names, MARK):
        check_regular(folder / name)
    try:
        parts = [ShardPart.read(part) for part in mark_of(task, root).objects("parts")]
        if [part.file for part in parts] != list(names) or any(part.offset for part in parts):
            return f"{MARK} does not name the files {', '.join(names)}"
        wrong = [state.wrong_part(folder, part, end=part.bytes) for part in parts]
        return "; ".join(filter(None, wrong))
    except FileNotFoundError as error:
        return f"{error.filename} is gone"
    except DamageError as error:
        return f"{MARK} is damaged: {error}"


def clear(root: Path, job: dict[str, Any], names: Sequence[str]) -> None:
    """Remove the files of the tasks and their folders, unless they are those of another job.

    All is done then, so it is a warning if they belong to another user and cannot be removed.

    Raises:
        ShardError: if there are files that no task writes.
        OSError: if one of the files is a link, a pipe, a folder or has a second name.
    """
    check_own_folder(root)
    path = root / manifest.JOB
    if not path.exists() or state.differing(manifest.read_job(path, root), job, root.parent):
        return
    state.check_contents(root, ROOT_NAMES)
    try:
        for folder in _folders(root):
            state.remove_folder(folder, _pattern(names))
        state.remove_folder(root, re.escape(manifest.JOB))
    except PermissionError as error:
        warn(f"the result is whole, but {root} cannot be removed: {error.strerror}")
