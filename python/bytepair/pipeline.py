"""A corpus in; counts, a tokenizer, its figures, and verified token shards out: all in one folder.

    out/
    ├── pipeline.json     what was asked for
    ├── counts.parquet    the pretokens of the corpus
    ├── tokenizer/        tokenizer.bytepair
    ├── evaluation.md     the figures of the tokenizer
    └── shards/           token shards and their manifest

Each step leaves its file, whole, and is not done again by the next run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair import _core, corpus
from bytepair.counting import count
from bytepair.counts import Counts
from bytepair.documents import documents, inputs, is_url
from bytepair.errors import ShardError
from bytepair.progress import Callback
from bytepair.tokenizer import FILE_NAME, Tokenizer, load, write_whole
from bytepair.train import NANOCHAT_SPECIAL_TOKENS, train

if TYPE_CHECKING:
    from bytepair.shards import Report

JOB: Final = "pipeline.json"


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


def pipeline(
    source: corpus.Source,
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
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Result:
    """Count, train, evaluate, save, shard and verify. The same call continues after a break.

    Args:
        source: files, as in `bytepair.documents`.
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
        threads: how many threads to use at most; None means all.
        progress: as in `bytepair.train`.

    Raises:
        CorpusError: if the source cannot be read.
        ShardError: if the folder is that of another pipeline, or another run works on it.
        VocabularyError: if there is no room for the special tokens.

    Example:
        >>> import bytepair, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.pipeline(bytepair.sample.paths(), folder, vocab_size=1000)
        >>> bool(made.report), made.report.manifest.documents, list(made.seconds)
        (True, 61, ['count', 'train', 'evaluate', 'shard', 'verify'])
    """
    from bytepair import shards
    from bytepair.shards import manifest

    files = inputs(source)
    text = documents(source, column) if any(is_url(file.name) for file in files) else source
    folder = Path(out)
    job = {
        "inputs": [[file.name, file.size] for file in files], "vocab_size": vocab_size,
        "pattern": pattern, "special_tokens": list(special_tokens), "max_chars": max_chars,
        "doc_cap": doc_cap, "column": column, "unicode": _core.UNICODE_VERSION,
    }  # fmt: skip
    seconds: dict[str, float] = {}

    def step(name: str, run: Callable[[], Any]) -> Any:
        started = time.monotonic()
        result = run()
        seconds[name] = round(time.monotonic() - started, 3)
        return result

    with manifest.locked(folder):
        _begin(folder, job)
        tok = _trained(
            folder, text, step, vocab_size=vocab_size, special_tokens=special_tokens,
            progress=progress, threads=threads,
            counting={"pattern": pattern, "max_chars": max_chars, "doc_cap": doc_cap,
                      "column": column},
        )  # fmt: skip
        if not (folder / "evaluation.md").exists():
            step("evaluate", lambda: _evaluate(tok, folder / "evaluation.md"))
        step("shard", lambda: shards.write(
            source, tok, folder / "shards", format=format, tokens_per_shard=tokens_per_shard,
            bos=bos, column=column, threads=threads, progress=progress,
        ))  # fmt: skip
        report = step("verify", lambda: shards.verify(folder / "shards", progress=progress))
    return Result(tok, report, seconds)


def _begin(folder: Path, job: dict[str, Any]) -> None:
    """Make the folder that of this job."""
    from bytepair.shards import manifest

    known = folder / JOB
    if known.exists():
        manifest.check_job(folder, manifest.read_json(known), job)
        return
    others = [p.name for p in folder.iterdir() if not p.name.startswith((f".{JOB}", manifest.LOCK))]
    if others:
        raise ShardError(f"{folder} is not empty (it has {min(others)!r}); choose another folder")
    manifest.write_json(known, job)


def _trained(
    folder: Path,
    source: corpus.Source,
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
        counted = step("count", lambda: count(source, checkpoint=checkpoint, **options))
        counted.save(path)
    checkpoint.unlink(missing_ok=True)
    tok: Tokenizer = step("train", lambda: train(
        Counts.load(path), vocab_size, pattern=counting["pattern"], special_tokens=special_tokens,
        threads=threads, progress=progress,
    ))  # fmt: skip
    tok.save(home)
    return tok


def _evaluate(tokenizer: Tokenizer, path: Path) -> None:
    """Write the figures of the tokenizer; none of others, which might have to be fetched."""
    from bytepair import evaluate

    found = evaluate.measure(tokenizer, against=[])
    write_whole(path, evaluate.to_markdown(found).encode())
