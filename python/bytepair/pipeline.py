"""A corpus in; counts, a tokenizer, its figures, and verified token shards out: all in one folder.

    out/
    ├── pipeline.json     what was asked for
    ├── counts.parquet    the pretokens of the corpus
    ├── tokenizer/        tokenizer.bytepair
    ├── evaluation.md     the figures of the tokenizer
    └── shards/           token shards and their manifest

Each step leaves its file, whole, and is not done again by the next run, unless its options are
others then.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair import _core
from bytepair._internal.progress import Callback
from bytepair.corpus.source import Files, Input, Limits, Source
from bytepair.errors import ShardError
from bytepair.formats.files import FILE_NAME, write_whole
from bytepair.shards.job import ShardOptions
from bytepair.tokenizer import Tokenizer, load
from bytepair.training.counting import count
from bytepair.training.counts import load_counts
from bytepair.training.options import TrainOptions
from bytepair.training.trainer import check, train

if TYPE_CHECKING:
    from bytepair.shards import Report

JOB: Final = "pipeline.json"
#: What each step leaves, in order; the options of each stand under its name in the job.
MADE: Final = {
    "counts": ("counts.parquet", "counts.checkpoint"),
    "tokenizer": ("tokenizer", "evaluation.md"),
    "shards": ("shards",),
}


@dataclass(frozen=True)
class Result:
    """What a pipeline made.

    Attributes:
        tokenizer: the tokenizer.
        report: what verifying the shards found; `report.manifest` says what they are.
        seconds: how long each step took; steps that were done before are not there.
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
    pattern: str = "nanochat",
    max_chars: int | None = None,
    doc_cap: int | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Result:
    """Count, train, evaluate, save, shard and verify. The same call continues after a break.

    All options are checked before anything is read. If one was another in an earlier run, what
    depends on it is made anew, with a warning, and all else is kept.

    Args:
        source: files, as in `bytepair.read_documents`.
        out: the folder; new, empty, or that of the same pipeline.
        training: what `bytepair.train` does with the counts.
        sharding: what `bytepair.shards.write` makes; its `column`, `errors` and
            `max_document_bytes` hold for counting, too. A damaged file, which sharding can leave
            out, is an error while counting.
        pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression.
        max_chars: the number of characters of the corpus that are trained on; all of it is sharded.
        doc_cap: the number of characters of each document that are trained on.
        memory_limit: as in `bytepair.count`.
        threads: how many threads to use at most; None means all.
        progress: as in `bytepair.train`.

    Raises:
        CorpusError: if the source cannot be read.
        PatternError: if the pattern is neither a name nor a regular expression.
        ShardError: if the folder has the pipeline of other inputs, or another run works on it.
        VocabularyError: if there is no room for the special tokens.

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
    }  # fmt: skip
    limits = {"memory_limit": memory_limit, "max_document_bytes": sharding.max_document_bytes}
    files = _checked(source, training, sharding, counting)
    folder = Path(out)
    job = {
        "inputs": [[file.name, file.size] for file in files],
        "counts": {**counting, "unicode": _core.UNICODE_VERSION},
        "tokenizer": asdict(training),
        "shards": asdict(sharding),
    }
    told: dict[str, Any] = {"threads": threads, "progress": progress}
    seconds: dict[str, float] = {}

    def step(name: str, run: Callable[[], Any]) -> Any:
        started = time.monotonic()
        result = run()
        seconds[name] = round(time.monotonic() - started, 3)
        return result

    with manifest.locked(folder):
        _begin(folder, job)
        tok = _trained(folder, files, step, training, {**counting, **limits}, told)
        if not (folder / "evaluation.md").exists():
            step("evaluate", lambda: _evaluate(tok, folder / "evaluation.md"))
        step("shard", lambda: shards.write(
            source, tok, folder / "shards", **told, **asdict(sharding)
        ))  # fmt: skip
        report = step("verify", lambda: shards.verify(folder / "shards", progress=progress))
    return Result(tok, report, seconds)


def _checked(
    source: Source, training: TrainOptions, sharding: ShardOptions, counting: dict[str, Any]
) -> list[Input]:
    """Fail before the work if an option would fail after it; return the inputs."""
    from bytepair.shards.job import make_job
    from bytepair.shards.layout import layout

    Limits(counting["max_chars"], counting["doc_cap"])
    check(training, counting["pattern"])
    # The bytes alone with the special tokens stand for the tokenizer that will be trained.
    bare = replace(training, vocab_size=training.smallest, initial_tokens=())
    nothing = _core.Counts.from_items([], counting["pattern"])
    files = make_job(source, Tokenizer(_core.train(nothing, bare)), sharding).files
    layout(sharding.format).dtype(training.vocab_size - 1)
    return files


def _begin(folder: Path, job: dict[str, Any]) -> None:
    """Make the folder that of this job: take away what other options made of the same inputs."""
    from bytepair.shards import manifest

    known = folder / JOB
    if known.exists():
        before = manifest.read_json(known)
        manifest.check_job(folder, {"inputs": before.get("inputs")}, {"inputs": job["inputs"]})
        _remove(folder, manifest.differing(before, job))
    else:
        own = (f".{JOB}", manifest.LOCK)
        others = [path.name for path in folder.iterdir() if not path.name.startswith(own)]
        if others:
            raise ShardError(
                f"{folder} is not empty (it has {min(others)!r}); choose another folder"
            )
    manifest.write_json(known, job)


def _remove(folder: Path, changed: list[str]) -> None:
    """Remove what the first of the steps made whose options are others now, and all behind it."""
    first = next((number for number, step in enumerate(MADE) if step in changed), len(MADE))
    names = [name for step in list(MADE)[first:] for name in MADE[step]]
    there = [name for name in names if (folder / name).exists()]
    if there:
        warnings.warn(
            f"the options of {' and '.join(changed)} are others than in the run before: "
            f"{', '.join(there)} in {folder} will be made anew",
            stacklevel=4,
        )
    for name in there:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _trained(
    folder: Path,
    files: list[Input],
    step: Callable[[str, Callable[[], Any]], Any],
    training: TrainOptions,
    counting: dict[str, Any],
    told: dict[str, Any],
) -> Tokenizer:
    """The tokenizer: that of an earlier run, or trained on its counts, or on new ones."""
    home = folder / "tokenizer"
    if (home / FILE_NAME).exists():
        return load(home)
    path, checkpoint = folder / "counts.parquet", folder / "counts.checkpoint"
    if not path.exists():
        found = Files(files)
        counted = step("count", lambda: count(found, checkpoint=checkpoint, **counting, **told))
        counted.save(path)
    checkpoint.unlink(missing_ok=True)
    counts = load_counts(path, pattern=counting["pattern"])
    tok: Tokenizer = step("train", lambda: train(counts, **asdict(training), **told))
    tok.save(home, overwrite=True)  # the folder is this pipeline's
    return tok


def _evaluate(tokenizer: Tokenizer, path: Path) -> None:
    """Write the figures of the tokenizer; none of others, which might have to be fetched."""
    from bytepair import evaluate

    found = evaluate.measure(tokenizer, against=[])
    write_whole(path, evaluate.to_markdown(found).encode())
