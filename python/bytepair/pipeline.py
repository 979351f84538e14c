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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair import _core
from bytepair._internal.progress import Callback
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.source import Files, Input, Limits, Source
from bytepair.errors import ShardError
from bytepair.formats.files import FILE_NAME, write_whole
from bytepair.tokenizer import Tokenizer, load
from bytepair.training.counting import count
from bytepair.training.counts import Counts
from bytepair.training.trainer import NANOCHAT_SPECIAL_TOKENS, TrainOptions, train

if TYPE_CHECKING:
    from bytepair.shards import Report
    from bytepair.shards.job import ShardOptions

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
    vocab_size: int = 65536,
    *,
    pattern: str = "nanochat",
    special_tokens: Sequence[str] = NANOCHAT_SPECIAL_TOKENS,
    max_chars: int | None = None,
    doc_cap: int | None = None,
    format: str = "bytepair",
    tokens_per_shard: int = 100_000_000,
    bos: bool | str = True,
    column: str = "text",
    max_document_bytes: int = DOCUMENT_BYTES,
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Result:
    """Count, train, evaluate, save, shard and verify. The same call continues after a break.

    All options are checked before anything is read. If one was another in an earlier run, what
    depends on it is made anew, with a warning, and all else is kept.

    Args:
        source: files, as in `bytepair.read_documents`.
        out: the folder; new, empty, or that of the same pipeline.
        vocab_size: ids of the tokenizer.
        pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression.
        special_tokens: the special tokens of the tokenizer.
        max_chars: of the corpus, so many characters are trained on; all of it is sharded.
        doc_cap: of each document, so many characters are trained on.
        format: of the shards, as in `bytepair.shards.write`.
        tokens_per_shard: as there.
        bos: as there.
        column: the column or field with the text.
        max_document_bytes: as in `bytepair.count` and `bytepair.shards.write`.
        threads: how many threads to use at most; None means all.
        progress: as in `bytepair.train`.

    Raises:
        CorpusError: if the source cannot be read.
        PatternError: if the pattern is neither a name nor a regular expression.
        ShardError: if the folder has the pipeline of other inputs, or another run works on it.
        VocabularyError: if there is no room for the special tokens.

    Example:
        >>> import bytepair, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.run_pipeline(bytepair.sample.paths(), folder, vocab_size=1000)
        >>> bool(made.report), made.report.manifest.documents, list(made.seconds)
        (True, 61, ['count', 'train', 'evaluate', 'shard', 'verify'])
    """
    from bytepair import shards
    from bytepair.shards import manifest

    pattern = _core.pattern(pattern)
    counting = {"pattern": pattern, "max_chars": max_chars, "doc_cap": doc_cap, "column": column}
    sharding: ShardOptions = {
        "format": format, "tokens_per_shard": tokens_per_shard, "bos": bos, "column": column,
        "max_document_bytes": max_document_bytes,
    }  # fmt: skip
    TrainOptions(vocab_size, special_tokens, threads=threads).check(pattern)
    files = _checked(source, vocab_size, special_tokens, counting, sharding)
    folder = Path(out)
    job = {
        "inputs": [[file.name, file.size] for file in files],
        "counts": {**counting, "unicode": _core.UNICODE_VERSION},
        "tokenizer": {"vocab_size": vocab_size, "special_tokens": list(special_tokens)},
        "shards": sharding,
    }
    seconds: dict[str, float] = {}

    def step(name: str, run: Callable[[], Any]) -> Any:
        started = time.monotonic()
        result = run()
        seconds[name] = round(time.monotonic() - started, 3)
        return result

    with manifest.locked(folder):
        _begin(folder, job)
        tok = _trained(
            folder, files, step, vocab_size=vocab_size, special_tokens=special_tokens,
            progress=progress, threads=threads,
            counting={**counting, "max_document_bytes": max_document_bytes},
        )  # fmt: skip
        if not (folder / "evaluation.md").exists():
            step("evaluate", lambda: _evaluate(tok, folder / "evaluation.md"))
        step("shard", lambda: shards.write(
            source, tok, folder / "shards", threads=threads, progress=progress, **sharding,
        ))  # fmt: skip
        report = step("verify", lambda: shards.verify(folder / "shards", progress=progress))
    return Result(tok, report, seconds)


def _checked(
    source: Source,
    vocab_size: int,
    special_tokens: Sequence[str],
    counting: dict[str, Any],
    sharding: ShardOptions,
) -> list[Input]:
    """Fail before the work if an option would fail after it; return the inputs."""
    from bytepair.shards.job import make_job
    from bytepair.shards.layout import layout

    Limits(counting["max_chars"], counting["doc_cap"])
    # The bytes alone with the special tokens stand for the tokenizer that will be trained.
    smallest = 256 + len(special_tokens)
    bare = train([], smallest, pattern=counting["pattern"], special_tokens=special_tokens)
    files = make_job(source, bare, **sharding).files
    layout(sharding["format"]).dtype(vocab_size - 1)
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
    *,
    vocab_size: int,
    special_tokens: Sequence[str],
    counting: dict[str, Any],
    threads: int | None,
    progress: bool | Callback | None,
) -> Tokenizer:
    """The tokenizer: that of an earlier run, or trained on its counts, or on new ones."""
    home = folder / "tokenizer"
    if (home / FILE_NAME).exists():
        return load(home)
    path, checkpoint = folder / "counts.parquet", folder / "counts.checkpoint"
    if not path.exists():
        options: dict[str, Any] = {**counting, "threads": threads, "progress": progress}
        counted = step("count", lambda: count(Files(files), checkpoint=checkpoint, **options))
        counted.save(path)
    checkpoint.unlink(missing_ok=True)
    tok: Tokenizer = step("train", lambda: train(
        Counts.load(path), vocab_size, pattern=counting["pattern"], special_tokens=special_tokens,
        threads=threads, progress=progress,
    ))  # fmt: skip
    tok.save(home, overwrite=True)  # the folder is this pipeline's
    return tok


def _evaluate(tokenizer: Tokenizer, path: Path) -> None:
    """Write the figures of the tokenizer; none of others, which might have to be fetched."""
    from bytepair import evaluate

    found = evaluate.measure(tokenizer, against=[])
    write_whole(path, evaluate.to_markdown(found).encode())
