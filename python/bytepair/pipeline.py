"""All steps from a corpus to verified token shards, in one folder.

    out/
    ├── pipeline.json     the inputs and options, and the checksums of the next three
    ├── counts.parquet    the pretoken counts of the corpus
    ├── tokenizer/        tokenizer.bytepair
    ├── evaluation.md     the evaluation of the tokenizer
    └── shards/           token shards and their manifest

Each step writes its file atomically. A later run skips the step, unless its options have changed,
or its file is missing or damaged.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair import _core
from bytepair._internal.names import check_own_folder
from bytepair._internal.progress import Callback
from bytepair.corpus.files import Files, Input, resolve_files
from bytepair.corpus.inputs import recorded
from bytepair.corpus.source import Limits, Source
from bytepair.corpus.splits import hold_out
from bytepair.errors import ShardError
from bytepair.files.safe import write_whole
from bytepair.formats.names import FILE_NAME
from bytepair.shards.job import ShardOptions
from bytepair.tokenizer import Tokenizer, load
from bytepair.training.counting import count
from bytepair.training.counts import load_counts
from bytepair.training.options import TrainOptions
from bytepair.training.trainer import check, train

if TYPE_CHECKING:
    from bytepair.shards import Report

JOB: Final = "pipeline.json"
#: The key of the checksums there.
SUMS: Final = "sums"
#: The files of each step, in order. `pipeline.json` stores the options of each under its name.
MADE: Final = {
    "counts": ("counts.parquet", "counts.checkpoint"),
    "tokenizer": ("tokenizer", "evaluation.md"),
    "shards": ("shards",),
}
#: The results with checksums in `pipeline.json`; the shards have a manifest of their own.
SUMMED: Final = ("counts.parquet", "tokenizer", "evaluation.md")


@dataclass(frozen=True)
class Result:
    """The result of a pipeline.

    Attributes:
        tokenizer: the trained tokenizer.
        report: the result of verifying the shards; `report.manifest` describes them.
        seconds: the duration of each step, without steps that an earlier run completed.
    """

    tokenizer: Tokenizer
    report: Report
    seconds: dict[str, float]


def run_pipeline(
    source: Source,
    out: str | os.PathLike[str],
    training: TrainOptions = TrainOptions(),  # noqa: B008 - it is frozen
    sharding: ShardOptions = ShardOptions(bos=True),  # noqa: B008
    *,
    pattern: str | Sequence[str] = "nanochat",
    max_chars: int | None = None,
    doc_cap: int | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Result:
    """Count, train, evaluate, save, shard and verify. Call it again to resume.

    All options are checked before any text is read. If an option has changed since an earlier run,
    the steps that depend on it are run again, with a warning; all other results are checked and
    kept. What is missing or damaged is made again, with a warning.

    Args:
        source: files, as in `corpus.read_documents`.
        out: the output folder: new, empty, or from an earlier run on the same inputs.
        training: the options of `bytepair.train`.
        sharding: the options of `bytepair.shards.write`; `column`, `errors`, `split`, `hold_out`
            and `max_document_bytes` also apply to counting. Damaged parquet, which sharding can
            skip, is an error while counting.
        pattern: the split pattern: a name in `bytepair.PATTERNS` or a regular expression.
        max_chars: train on at most this many characters; all text is sharded.
        doc_cap: train on at most this many characters of each document.
        memory_limit: as in `bytepair.count`.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: as in `bytepair.train`.

    Raises:
        CorpusError: if the source cannot be read.
        PatternError: if the pattern is neither a name nor a regular expression.
        ShardError: if the folder contains a pipeline of other inputs, or another run is using it.
        VocabularyError: if the vocabulary size is too small for the special tokens.

    Example:
        >>> import bytepair, tempfile
        >>> options = bytepair.TrainOptions(vocab_size=1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.run_pipeline(bytepair.sample.paths(), folder, options)
        >>> bool(made.report), made.report.manifest.documents, list(made.seconds)
        (True, 61, ['count', 'train', 'evaluate', 'shard', 'verify'])
    """
    from bytepair import shards
    from bytepair.shards import manifest

    counting = {
        "pattern": _core.pattern(pattern), "max_chars": max_chars, "doc_cap": doc_cap,
        "column": sharding.column, "errors": sharding.errors,
        "split": sharding.split, "hold_out": sharding.hold_out,
    }  # fmt: skip
    limits = {"memory_limit": memory_limit, "max_document_bytes": sharding.max_document_bytes}
    holdout = hold_out(sharding.hold_out, sharding.split)
    folder = Path(out)
    source = _without_results(resolve_files(source, sharding.split, holdout), folder)
    files = _checked(source, folder, training, sharding, counting)
    job = {
        **recorded(files, folder),
        "counts": {**counting, "unicode": _core.UNICODE_VERSION},
        "tokenizer": asdict(training),
        "shards": asdict(sharding),
    }
    common: dict[str, Any] = {"threads": threads, "progress": progress}
    seconds: dict[str, float] = {}

    def step(name: str, run: Callable[[], Any]) -> Any:
        started = time.monotonic()
        result = run()
        seconds[name] = round(time.monotonic() - started, 3)
        return result

    with manifest.locked(folder):
        _begin(folder, job)
        tok = _trained(folder, files, step, training, {**counting, **limits}, common)
        _save_sums(folder, job)
        if not (folder / "evaluation.md").exists():
            step("evaluate", lambda: _evaluate(tok, folder / "evaluation.md"))
            _save_sums(folder, job)
        _check_shards(folder / "shards")
        step("shard", lambda: shards.write(
            source, tok, folder / "shards", **common, **asdict(sharding)
        ))  # fmt: skip
        report = step("verify", lambda: shards.verify(folder / "shards", progress=progress))
    return Result(tok, report, seconds)


def _checked(
    source: Source,
    folder: Path,
    training: TrainOptions,
    sharding: ShardOptions,
    counting: dict[str, Any],
) -> list[Input]:
    """Check the options of all steps before the first one; return the inputs."""
    from bytepair.shards.job import make_job
    from bytepair.shards.layout import layout

    Limits(counting["max_chars"], counting["doc_cap"])
    check(training, counting["pattern"])
    # A tokenizer of single bytes and the special tokens stands in for the one to be trained.
    bare = replace(training, vocab_size=training.smallest, initial_tokens=())
    nothing = _core.Counts.from_items([], counting["pattern"])
    files = make_job(source, Tokenizer(_core.train(nothing, bare)), sharding, folder).files
    layout(sharding.format).dtype(training.vocab_size - 1)
    return files


def _without_results(source: Files, folder: Path) -> Files:
    """The files of a source that an earlier run of the pipeline has not written."""
    results = [(folder / name).resolve() for step in MADE.values() for name in step]
    files = [
        file for file in source.files
        if file.cloud is not None
        or not {path := Path(file.path).resolve(), *path.parents}.intersection(results)
    ]  # fmt: skip
    return replace(source, files=files)


def _begin(folder: Path, job: dict[str, Any]) -> None:
    """Prepare the folder: remove results of the same inputs with other options."""
    from bytepair.shards import manifest

    path = folder / JOB
    if path.exists():
        before = manifest.read_json(path, folder)
        sums = before.pop(SUMS, {})
        same = {key: job[key] for key in MADE}
        manifest.check_job(folder, {**before, **same}, job, folder)
        removed = _remove(folder, manifest.differing(before, job, folder))
        for name in SUMMED:
            if name in sums and name not in removed:
                _check(folder, name, sums[name])
    else:
        own = (f".{JOB}", manifest.LOCK)
        others = [file.name for file in folder.iterdir() if not file.name.startswith(own)]
        if others:
            raise ShardError(
                f"{folder} is not empty (it contains {min(others)!r})", hint="choose another folder"
            )
    _save_sums(folder, job)


def _file(folder: Path, name: str) -> Path:
    """The file of a result."""
    return folder / name / FILE_NAME if name == "tokenizer" else folder / name


def _save_sums(folder: Path, job: dict[str, Any]) -> None:
    """Write the job and the checksums of the results that exist."""
    from bytepair.shards import manifest
    from bytepair.shards.whole import part_of

    paths = {name: _file(folder, name) for name in SUMMED}
    sums = {n: asdict(part_of(p.parent, p.name)) for n, p in paths.items() if p.is_file()}
    manifest.write_json(folder / JOB, {**job, SUMS: sums})


def _check(folder: Path, name: str, sums: Any) -> None:
    """Remove a result that is not as it was written, so that it is made again."""
    from bytepair.shards.manifest import damaged, part_from_json
    from bytepair.shards.whole import wrong_parts

    try:
        part = part_from_json(sums, folder / JOB)
    except (KeyError, TypeError) as error:
        raise damaged(folder / JOB, repr(error), folder) from error
    path = _file(folder, name)
    place = path.resolve()  # it may have been moved to another disk and linked
    if wrong := wrong_parts(place.parent, [replace(part, file=place.name)]):
        warnings.warn(
            f"{folder} is not as it was written: {wrong[0]}; {name} is written again", stacklevel=5
        )
        check_own_folder(path.parent)
        path.unlink(missing_ok=True)


def _check_shards(folder: Path) -> None:
    """Remove the shards if their manifest is missing or damaged, so that all are made again."""
    from bytepair.shards import manifest

    check_own_folder(folder)
    if not folder.exists() or (folder / manifest.PROGRESS).exists():
        return
    path = folder / manifest.NAME
    try:
        if path.exists():
            manifest.Manifest.load(folder)
            return
    except manifest.DamageError:
        pass
    warnings.warn(f"{path} is missing or damaged; all shards are written again", stacklevel=4)
    shutil.rmtree(folder)


def _remove(folder: Path, changed: list[str]) -> list[str]:
    """Remove the results of the first step with changed options, and of all later steps.

    Returns their names.
    """
    first = next((number for number, step in enumerate(MADE) if step in changed), len(MADE))
    names = [name for step in list(MADE)[first:] for name in MADE[step]]
    there = [name for name in names if (folder / name).exists()]
    if there:
        warnings.warn(
            f"the options of {' and '.join(changed)} have changed since the previous run: "
            f"{', '.join(there)} in {folder} will be replaced",
            stacklevel=5,
        )
    for name in there:
        path = folder / name
        is_folder = path.is_dir() and not path.is_symlink()
        shutil.rmtree(path) if is_folder else path.unlink()
    return names


def _trained(
    folder: Path,
    files: list[Input],
    step: Callable[[str, Callable[[], Any]], Any],
    training: TrainOptions,
    counting: dict[str, Any],
    common: dict[str, Any],
) -> Tokenizer:
    """Load the tokenizer of an earlier run, or train it on existing or new counts."""
    home = folder / "tokenizer"
    path, checkpoint = folder / "counts.parquet", folder / "counts.checkpoint"
    if not path.exists():
        source = Files(files)
        new_counts = step(
            "count", lambda: count(source, checkpoint=checkpoint, **counting, **common)
        )
        new_counts.save(path)
    checkpoint.unlink(missing_ok=True)
    if (home / FILE_NAME).exists():
        return load(home)
    counts = load_counts(path, pattern=counting["pattern"])
    tok: Tokenizer = step("train", lambda: train(counts, **asdict(training), **common))
    tok.save(home, overwrite=True)  # the folder belongs to this pipeline
    return tok


def _evaluate(tokenizer: Tokenizer, path: Path) -> None:
    """Write the evaluation of the tokenizer, without other tokenizers, which need a network."""
    from bytepair import evaluate

    evaluation = evaluate.measure(tokenizer, against=[])
    write_whole(path, evaluate.to_markdown(evaluation).encode())
