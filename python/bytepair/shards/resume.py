"""A folder and a job in, the state of the work out: which shards are there, and which are whole.

A finished run has a manifest, an unfinished one has marks. Since a shard depends only on the
documents up to its end, the shards of a run are also those of a run with more inputs behind them,
but for the last one, which ended because the documents did.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from bytepair._internal.names import check_own_folder, check_regular
from bytepair._internal.progress import Bar
from bytepair.corpus.inputs import INPUTS, is_interleaved, shared
from bytepair.errors import ShardError
from bytepair.formats.names import FILE_NAME
from bytepair.shards import manifest
from bytepair.shards.layout import LAYOUTS, layout
from bytepair.shards.manifest import Manifest, Shard
from bytepair.shards.whole import wrong_shards

#: The input and the row of a document.
DocumentPlace: TypeAlias = tuple[int, int]

#: The first document.
START: Final[DocumentPlace] = (0, 0)


@dataclass(frozen=True)
class FolderState:
    """What a folder holds of a job.

    Attributes:
        shards: the shards that need not be written again.
        dropped: the shard after these, which is written again with all that follows.
        manifest: the manifest, if the run of this very job has finished.
        damage: what is wrong with the shards that are not whole, by number.
    """

    shards: list[Shard] = field(default_factory=list)
    dropped: list[Shard] = field(default_factory=list)
    manifest: Manifest | None = None
    damage: dict[int, list[str]] = field(default_factory=dict)

    @property
    def following(self) -> DocumentPlace | None:
        """The document with which the shard after these begins; None if there is none."""
        return self.shards[-1].following if self.shards else START


def state_of(folder: Path, job: dict[str, Any], *, ignore: str = manifest.PROGRESS) -> FolderState:
    """The shards that an earlier run has written for a job, unchecked; nothing is changed.

    Args:
        folder: the folder.
        job: the job.
        ignore: the name of a file that may be in a new folder.

    Raises:
        ShardError: if the folder has other content, or that of another job.
    """
    check_own_folder(folder / manifest.PROGRESS)
    try:
        return _state_of(folder, job, ignore)
    except FileNotFoundError:  # another process has just made a manifest of the marks
        return _state_of(folder, job, ignore)


def _state_of(folder: Path, job: dict[str, Any], ignore: str) -> FolderState:
    if not folder.is_dir():
        return FolderState()
    if (folder / manifest.NAME).exists():
        whole = Manifest.load(folder)
        if _is_extended(folder, whole.job, job):
            return FolderState(whole.shards[:-1], whole.shards[-1:])
        _check_job(folder, whole.job, job)
        return FolderState(whole.shards, manifest=whole)
    path = folder / manifest.PROGRESS / manifest.JOB
    before = manifest.read_json(path, folder) if path.exists() else {}
    shards = manifest.load_marks(folder)
    if not shards:
        # Nothing is finished, so nothing can be lost.
        if manifest.differing(before, job, folder) and not _is_prefix(folder, before, job):
            _check_empty(folder, ignore, before)
        return FolderState()
    dropped: list[Shard] = []
    if _is_extended(folder, before, job) and shards[-1].following is None:
        dropped.append(shards.pop())
    elif not (_is_prefix(folder, before, job) and _is_within(folder, before, job, shards)):
        _check_job(folder, before, job)
    try:
        manifest.check_order(job, shards)
    except (KeyError, TypeError, ValueError) as error:
        raise manifest.damaged(path.parent, error, folder) from error
    return FolderState(shards, dropped)


def _is_prefix(folder: Path, before: dict[str, Any], job: dict[str, Any]) -> bool:
    """Whether two jobs differ at most in that one has more inputs behind those of the other."""
    wrong = manifest.differing(before, job, folder)
    if wrong and wrong != [INPUTS]:
        return False
    counts = len(before.get(INPUTS) or ()), len(job[INPUTS])
    return 0 < shared(before, job, folder) == min(counts)


def _is_extended(folder: Path, before: dict[str, Any], job: dict[str, Any]) -> bool:
    """Whether a job has more inputs, behind those of an earlier one, and is otherwise the same."""
    return _is_prefix(folder, before, job) and len(before[INPUTS]) < len(job[INPUTS])


def _is_within(
    folder: Path, before: dict[str, Any], job: dict[str, Any], shards: list[Shard]
) -> bool:
    """Whether all documents of some shards, and the next one, are in inputs that two jobs share."""
    after = shards[-1].following
    return after is not None and after[0] < shared(before, job, folder)


def _check_job(folder: Path, before: dict[str, Any], job: dict[str, Any]) -> None:
    """Raise a `ShardError` that names what differs between two jobs, and the way out."""
    wrong = manifest.differing(before, job, folder)
    if wrong == [INPUTS] and is_interleaved(before, job, folder):
        new = job[INPUTS][shared(before, job, folder)][0]
        raise ShardError(
            f"{folder} belongs to a run with different inputs: {new} is new, and inputs that are "
            "in the shards come after it, so these would change; to add new inputs, pass them "
            "after the old ones, or choose another folder"
        )
    manifest.check_job(folder, before, job, folder)


def temporary_files(folder: Path, job: dict[str, Any], shards: int) -> list[Path]:
    """The incomplete files of killed runs of a job, of which so many shards were finished."""
    if job.get("format") not in LAYOUTS:
        return []
    names = layout(job["format"]).names(shards + 1)
    return [path for path in folder.iterdir() if manifest.is_temporary(path.name, names)]


def _check_empty(folder: Path, ignore: str, before: dict[str, Any]) -> None:
    """Raise a `ShardError` if a folder has more than a killed run of the job `before` left."""
    own = {path.name for path in temporary_files(folder, before, 0)}
    own |= {manifest.PROGRESS, manifest.LOCK, ignore}
    others = sorted({path.name for path in folder.iterdir()} - own)
    if FILE_NAME in others:
        raise ShardError(
            f"{folder} is not empty: it has shards, but no {manifest.NAME}",
            hint="remove the folder and start again, or choose another folder",
        )
    if others:
        raise ShardError(
            f"{folder} is not empty (it has {others[0]!r})", hint="choose another folder"
        )


def checked(folder: Path, job: dict[str, Any], state: FolderState, bar: Bar) -> FolderState:
    """Read the files of all shards; the first that is not whole is left out with all behind it."""
    damage: dict[int, list[str]] = {}
    recorded = [*state.shards, *state.dropped]
    for shard, wrong in wrong_shards(folder, recorded, is_finished=state.manifest is not None):
        bar.update("check", shard.number + 1, len(recorded), "shards")
        if wrong and shard not in state.dropped:
            damage[shard.number] = wrong
    state = replace(state, damage=damage)
    first = min(damage, default=None)
    return state if first is None else replace(state, shards=state.shards[:first], manifest=None)


def begin(folder: Path, job: dict[str, Any], state: FolderState) -> None:
    """Make a folder, which is locked, that of an unfinished run with the shards that it keeps."""
    progress = folder / manifest.PROGRESS
    check_own_folder(progress)
    progress.mkdir(exist_ok=True)
    number = len(state.shards)
    while (path := manifest.mark_path(folder, number)).exists():
        path.unlink()
        number += 1
    _remove_temporary(folder, progress / manifest.JOB, number)
    manifest.write_json(progress / manifest.JOB, job)
    name = layout(job["format"]).joined_file
    if name is not None and (folder / name).exists():
        check_regular(folder / name)
        (folder / name).replace(folder / manifest.partial(name))
    if (folder / manifest.NAME).exists():
        for shard in state.shards:
            manifest.save_mark(folder, shard)
        (folder / manifest.NAME).unlink()


def _remove_temporary(folder: Path, record: Path, shards: int) -> None:
    """Remove the incomplete files of the run whose job is recorded; shards of one file stay."""
    before = manifest.read_json(record, folder) if record.exists() else {}
    for path in temporary_files(folder, before, shards):
        if path.name != manifest.partial(layout(before["format"]).joined_file or ""):
            path.unlink()
