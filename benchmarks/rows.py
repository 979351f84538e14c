"""What the table of benchmarks measures: each row, on which text, with which libraries.

Input: a folder of texts as `texts.py` makes it, and a number of rounds. Output: for each row, what
the processes of each library printed. A row is a command of `encode.py` or `train.py`.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import runs
import texts
from peers import MODELS, SEPARATOR, Vocabulary

FAST = ("bytepair", "gigatoken", "fastokens", "snaptokens", "quicktok", "toktok")
ALL = (*FAST, "tiktoken", "tokenizers", "tokie")
DECODERS = (*ALL, "rs_bpe")
TRAINERS = ("bytepair", "rustbpe", "tokenizers")
PATTERNS = {"cl100k_base": "gpt4", "o200k_base": "gpt4o"}


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        name: what is done, as the table says it.
        key: the figure that is shown.
        unit: its unit; less is better but for MB/s.
        output: what `encode.py` measures; for `train.py`, the ending of the corpus.
        source: the folder of texts.
        megabytes: how much of it.
        peers: who takes part.
        vocabulary: the rank file.
        threads: how many threads may be used.
        script: which script measures it.
    """

    name: str
    key: str
    unit: str
    output: str
    source: str
    megabytes: float
    peers: tuple[str, ...] = FAST
    vocabulary: str = "cl100k_base"
    threads: int = 1
    script: str = "encode.py"

    @property
    def measurement(self) -> tuple[Any, ...]:
        """What identifies the processes of a row; rows with an equal key share them."""
        return (
            self.script,
            self.output,
            self.source,
            self.megabytes,
            self.vocabulary,
            self.threads,
        )


O200K = "o200k_base"
ROWS = (
    Row("train 32,768 ids, 30 MB in a text file, GPT-2's pattern", "seconds", "s", "txt",
        "large", 30, ("bytepair", "gigabpe", "tokenizers"), "gpt2", 2, "train.py"),
    Row("the same from jsonl, nanochat's pattern", "seconds", "s", "jsonl",
        "large", 30, TRAINERS, "nanochat", 2, "train.py"),
    Row("the same from parquet", "seconds", "s", "parquet",
        "large", 30, TRAINERS, "nanochat", 2, "train.py"),
    Row("encode English, first 10 MB", "first", "MB/s", "arrays", "english", 10, ALL),
    Row("the same 10 MB a second time", "second", "MB/s", "arrays", "english", 10, ALL),
    Row("English, first 10 MB, o200k", "first", "MB/s", "arrays", "english", 10, FAST, O200K),
    Row("English, first 100 MB", "first", "MB/s", "arrays", "large", 100),
    Row("English, 50 MB met, the next 50 MB", "steady", "MB/s", "steady", "large", 100),
    Row("the same, o200k", "steady", "MB/s", "steady", "large", 100, FAST, O200K),
    Row("many languages, first 10 MB", "first", "MB/s", "arrays", "multilingual", 10),
    Row("many languages, half met, the next half", "steady", "MB/s", "steady", "multilingual", 50),
    Row("code, 25 MB met, the next 25 MB", "steady", "MB/s", "steady", "code", 50),
    Row("texts of 100 bytes never seen, to lists", "fresh", "µs", "message", "english", 20, ALL),
    Row("the slowest of 25,000 texts of 2,000 characters", "slowest", "ms", "slowest", "code", 60),
    Row("a prompt that grows by 1,000 characters", "turn", "µs", "growing", "english", 1),
    Row("1 GB from a file, two threads", "first", "MB/s", "file", "large", 1000,
        ("bytepair", "gigatoken"), threads=2),
    Row("decode English, lists", "list", "MB/s", "decode", "english", 10, DECODERS),
    Row("decode English, arrays", "array", "MB/s", "decode", "english", 10, DECODERS),
    Row("decode many languages, lists", "list", "MB/s", "decode", "multilingual", 10, DECODERS),
    Row("decode many languages, arrays", "array", "MB/s", "decode", "multilingual", 10, DECODERS),
    Row("transformers, a text of 100 bytes", "100 bytes, new", "µs", "models", "english",
        30, tuple(MODELS)),
    Row("transformers, 1,000 texts of 1 kB", "1,000 texts of 1 kB, new", "µs", "models",
        "english", 30, tuple(MODELS)),
)  # fmt: skip


def measure(data: Path, rounds: int, quick: bool, wanted: list[str] | None) -> dict[str, Any]:
    """Every row whose name has a part that is wanted; the figures of each library, by row."""
    found: dict[tuple[Any, ...], runs.Results] = {}
    rows = [row for row in ROWS if not wanted or any(part in row.name for part in wanted)]
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            if row.measurement not in found:
                print(f"{row.name} ...", flush=True)
                command = prepare(row, data, Path(folder), quick)
                found[row.measurement] = runs.measure(command, list(row.peers), rounds)
    return {row.name: found[row.measurement] for row in rows}


def prepare(row: Row, data: Path, folder: Path, quick: bool) -> list[str]:
    """The files that a row needs, and its command."""
    megabytes = min(row.megabytes, 2) if quick else row.megabytes
    script = str(Path(__file__).with_name(row.script))
    if row.script == "train.py":
        source = corpus(data / row.source, folder, row.output, megabytes)
        lines = corpus(data / row.source, folder, "txt", megabytes)
        ties = "hf" if row.vocabulary == "gpt2" else "rustbpe"
        options = ["--pattern", row.vocabulary, "--ties", ties, "--vocab-size", "32768"]
        return [script, str(source), *options, "--threads", str(row.threads), "--lines", str(lines)]
    vocabulary = written(row, data, folder)
    common = [script, str(data / row.source), "--rank-file", vocabulary.rank_file]
    common += ["--pattern", vocabulary.pattern, "--files", str(vocabulary.folder)]
    common += ["--threads", str(row.threads)]
    if row.output == "file":
        write_varied(data / row.source, vocabulary.folder / "documents.txt", megabytes)
    options = ["--output", row.output, "--megabytes", str(megabytes)]
    return [*common, *options]


def written(row: Row, data: Path, folder: Path) -> Vocabulary:
    """The vocabulary of a row, in every form; made once."""
    rank_file = data / "vocabularies" / f"{row.vocabulary}.tiktoken"
    made = Vocabulary(
        folder / row.vocabulary, str(rank_file), PATTERNS[row.vocabulary], row.threads
    )
    if not made.folder.exists():
        made.folder.mkdir()
        made.write()
    return made


def corpus(source: Path, folder: Path, ending: str, megabytes: float) -> Path:
    """The first documents of a folder as one file; for text, one line after the other."""
    path = folder / f"train.{ending}"
    if path.exists():
        return path
    if ending == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"text": list(runs.texts(source, megabytes))})
        pq.write_table(table, path, row_group_size=512, compression="zstd")
        return path
    with path.open("w", encoding="utf-8", newline="") as out:
        for text in runs.texts(source, megabytes):
            out.write(json.dumps({"text": text}) + "\n" if ending == "jsonl" else text + "\n")
    return path


def write_varied(source: Path, path: Path, megabytes: float) -> None:
    """Write this much text to one file: the documents repeatedly, each time with some new words.

    A pass exchanges two letters, which changes the words that have one of them and no others.
    """
    between = ""
    with path.open("w", encoding="utf-8", newline="") as out:
        for column in texts.varied(source, int(megabytes * 1e6), letters=2):
            for text in column.to_pylist():
                out.write(between + text)
                between = SEPARATOR
