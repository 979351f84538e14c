"""`errors` means the same to every command and function that reads text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.errors import CorpusError, SkippedWarning
from commands import message_of, run
from conftest import refused
from messages import told
from training_options import keywords

LONE = r'{"text": "b\ud83dc"}'
PLACE = r"the text has the lone surrogate \ud83d, half of a character"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tok = bytepair.train(["one two one two", "three"], 270)
    tok.save(tmp_path / "tokenizer")
    (tmp_path / "bad.jsonl").write_text(f'{{"text": "one two"}}\n{LONE}\n{{"text": "three"}}\n')
    (tmp_path / "bad.txt").write_bytes(b"one\xff two")
    return tmp_path


#: For each command that reads text, its words; the file comes last.
COMMANDS = {
    "count": "count", "train": "train -o OUT --vocab-size 266", "shard": "shard -o OUT",
    "encode": "encode",
    "compare": "compare tokenizer tokenizer", "evaluate": "evaluate --against none --val",
    "plan": "plan --params 1M -t tokenizer --corpus",
    "distributed": "count --rank 0 --world-size 1 -o OUT.parquet",
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_it(name: str, folder: Path) -> None:
    number = itertools.count()

    def call(*more: str, code: int = 0) -> str:
        words = COMMANDS[name].replace("OUT", f"out-{next(number)}").split()
        return run(*words, *more, cwd=folder, code=code).stderr

    code = 2 if name == "compare" else 1
    for file, place in (("bad.jsonl", f"bad.jsonl, line 2: {PLACE}"),
                        ("bad.txt", "bad.txt is not UTF-8 at byte 3")):  # fmt: skip
        assert message_of(call(file, code=code)) == (
            f"{place}; repair it, or pass --errors replace to read U+FFFD instead, or --errors "
            "skip to leave the document out"
        )
        call(file, "--errors", "replace")
    output = call("bad.jsonl", "--errors", "skip")
    assert output.startswith("warning: ")
    assert PLACE in output


def both(read: Callable[..., Any], source: Any, texts: dict[str, Any]) -> None:
    """Compare what a function makes of a source with what it makes of other texts."""
    with told(CorpusError):
        read(source, errors="strict")
    assert read(source, errors="replace") == read(texts["replace"], errors="strict")
    with told(SkippedWarning):
        result = read(source, errors="skip")
    assert result == read(texts["skip"], errors="strict")
    with refused("errors", "ignore"):
        read(source, errors="ignore")


@pytest.mark.parametrize("kind", ["file", "texts"])
def test_functions_take_it(kind: str, folder: Path) -> None:
    source = folder / "bad.jsonl" if kind == "file" else ["one two", "b\ud83dc", "three"]
    texts = {"replace": ["one two", "b\ufffdc", "three"], "skip": ["one two", "three"]}
    tok = bytepair.load(folder / "tokenizer")
    for read in (
        lambda source, **options: bytepair.count(source, **keywords(**options)),
        lambda source, **options: bytepair.train(source, 266, **keywords(**options)),
        lambda source, **options: bytepair.extend(tok, source, 1, **keywords(**options)),
        bytepair.evaluate.documents,
    ):
        both(read, source, texts)


def test_encode_file_takes_it(folder: Path) -> None:
    tok = bytepair.load(folder / "tokenizer")
    path = folder / "many.txt"
    path.write_bytes(b"one|\xff|two")
    with told(SkippedWarning):
        ids, offsets = tok.encode_file(path, separator="|", errors="skip")
    assert ids.tolist() == [*tok.encode("one"), *tok.encode("two")]
    assert len(offsets) == 3
    with told(SkippedWarning):
        ids, _ = tok.encode_file(folder / "bad.jsonl", errors="skip")
    assert ids.tolist() == [*tok.encode("one two"), *tok.encode("three")]


def test_encode_skips_texts_and_lines(folder: Path) -> None:
    tok = bytepair.load(folder / "tokenizer")
    (folder / "lines.txt").write_bytes(b"one\ntwo \xff\nthree\n")
    done = run("encode", "bad.txt", "bad.jsonl", "--errors", "skip", "--json", cwd=folder)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [tok.encode("one two"), tok.encode("three")]
    assert done.stderr.startswith("warning: 2 documents skipped as invalid: bad.txt, row 0: ")
    replaced = run("encode", "--lines", "lines.txt", "--errors", "replace", cwd=folder).stdout
    assert replaced.splitlines()[1] == " ".join(map(str, tok.encode("two \ufffd")))


def test_encode_takes_a_folder(folder: Path) -> None:
    tok = bytepair.load(folder / "tokenizer")
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").write_text("one")
    pq.write_table(pa.table({"text": ["two", "three"]}), folder / "in" / "b.parquet")
    for source in ("in", "in/*", (folder / "in").as_uri()):
        done = run("encode", source, cwd=folder)
        assert done.stdout.splitlines() == [
            " ".join(map(str, tok.encode(text))) for text in ("one", "two", "three")
        ]
        assert done.stderr == "reading 1 text file and 1 parquet file\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"<!DOCTYPE html><html>", "a page of HTML, perhaps that of a failed down"),
        ("a.jsonl", b"<html>\n<p>", "it is a page of HTML"),
        ("a.jsonl.gz", b"<html>", "it is a page of HTML"),
        ("a.parquet", b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS"),
        ("a.jsonl", b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS"),
        ("a.txt", b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS"),
        ("a.jsonl", b'{"body": "x", "id": 3}', "the first object has body, id; pass column= to"),
        ("a.parquet", b"PAR1 no", "; download or write it again"),
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00\x00", 'or pass errors="skip" to keep the documents'),
        ("a.txt.gz", b"\x1f\x8b\x08\x00\x00", "; download or compress it again"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    name: str, content: bytes, message: str, folder: Path
) -> None:
    path = folder / name
    path.write_bytes(content)
    tok = bytepair.load(folder / "tokenizer")
    for read in (
        bytepair.count,
        lambda path: list(bytepair.corpus.read_documents(path)),
        lambda path: bytepair.shards.write(path, tok, folder / "out"),
        tok.encode_file,
    ):
        with pytest.raises(CorpusError) as caught:
            read(path)
        assert message in str(caught.value)
        assert str(path) in str(caught.value)
    shown = message_of(run("encode", name, cwd=folder, code=1).stderr)
    assert message.partition("errors=")[0].partition("column=")[0] in shown
