"""The ending of a file means the same to every function and command that reads files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bytepair
from bytepair.cli import command
from bytepair.errors import CorpusError
from conftest import refused
from messages import told

TEXTS = ["one two, three", "", "vier fünf 六"]
LINES = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()
LIST = json.dumps([{"text": text, "id": 1} for text in TEXTS], indent=2).encode()
REFUSED = {
    "a.CSV": (b"text\none\n", "write it as parquet or jsonl"),
    "a.tsv.zst": (pa.compress(b"text\none\n", "zstd", asbytes=True), "as parquet or jsonl"),
    "a.jsonl.bz2": (b"BZh9", "unpack it"),
    "a.tar.gz": (gzip.compress(b"..."), "unpack it"),
}
READ = {
    "a.jsonl": LINES,
    "a.NDJSON": LINES,
    "a.jsonl.gz": gzip.compress(LINES),
    "a.jsonl.ZST": pa.compress(LINES, "zstd", asbytes=True),
    "a.json": LIST,
    "a.json.gz": gzip.compress(LIST),
    "a.parquet": None,
    "a.feather": None,
    "a.arrow": None,
    "a.txt": "one two, three\nvier fünf 六".encode(),
    "a.py": b"print('one two, three')\n",
    "README": b"one two, three",
    "a.txt.GZ": gzip.compress(b"one two, three"),
}


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(bytepair.sample.paths(), 600)


def write(folder: Path, name: str, data: bytes | None) -> Path:
    table = pa.table({"text": TEXTS})
    if name.endswith(".parquet"):
        pq.write_table(table, folder / name)
    elif data is None:
        new = pa.ipc.new_file if name.endswith(".feather") else pa.ipc.new_stream
        with new(folder / name, table.schema) as sink:
            sink.write_table(table, max_chunksize=2)
    else:
        (folder / name).write_bytes(data)
    return folder / name


def documents_in(name: str, data: bytes | None) -> list[str]:
    """Read a file by its ending, with the standard library."""
    if data is None or "json" in name.lower():
        return TEXTS
    return ["one two, three" if name.endswith("GZ") else data.decode()]


@pytest.mark.parametrize("name", REFUSED)
def test_a_kind_that_is_not_read_is_refused_everywhere(
    name: str, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    data, way_out = REFUSED[name]
    path = write(tmp_path, name, data)
    tok.save(tmp_path / "tok")
    uses: list[Callable[[], Any]] = [
        lambda: bytepair.train(path, 300),
        lambda: bytepair.count([path]),
        lambda: bytepair.count(str(tmp_path / "a.*")),
        lambda: list(bytepair.corpus.read_documents(path)),
        lambda: list(bytepair.corpus.read_documents(path.as_uri())),
        lambda: bytepair.shards.write(path, tok, tmp_path / "out", errors="skip"),
        lambda: bytepair.evaluate.documents(path),
        lambda: tok.encode_file(path),
    ]
    for use in uses:
        with told(CorpusError, way_out):
            use()
    assert not (tmp_path / "out").exists()
    result = CliRunner().invoke(command, ["encode", str(path), "-t", str(tmp_path / "tok")])
    assert result.exit_code == 1
    assert way_out in result.output


@pytest.mark.parametrize("name", READ)
def test_a_kind_that_is_read_has_the_same_documents_everywhere(
    name: str, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    path = write(tmp_path, name, READ[name])
    texts = documents_in(name, READ[name])
    tok.save(tmp_path / "tok")
    rows = [
        text
        for batch in bytepair.corpus.read_documents(path)
        for text in batch.column(0).to_pylist()
    ]
    assert rows == texts
    assert bytepair.count(path) == bytepair.count(texts)
    options: dict[str, Any] = {"vocab_size": 258, "special_tokens": []}
    assert bytepair.train(path, **options) == bytepair.train(texts, **options)
    assert bytepair.evaluate.documents(path) == texts
    manifest = bytepair.shards.write(path, tok, tmp_path / "out")
    assert manifest.documents == len(texts)
    ids, offsets = tok.encode_file(path)
    expected = tok.encode_batch_to_numpy(texts)
    assert ids.dtype == expected[0].dtype
    assert ids.tolist() == expected[0].tolist()
    assert offsets.tolist() == expected[1].tolist()
    words = ["encode", str(path), "-t", str(tmp_path / "tok"), "--json"]
    lines = CliRunner().invoke(command, words).stdout.splitlines()
    assert [json.loads(line) for line in lines] == tok.encode_batch(texts)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b'{"text": "a"}\n{"text": "b"}\n'),
        ("a.json.gz", gzip.compress(b'{"text": "a"}')),
        ("a.arrow", b"ARROW1 no more"),
    ],
    ids=count(),
)
def test_what_is_no_list_and_no_table_is_an_error_that_names_it(
    name: str, data: bytes, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    path = write(tmp_path, name, data)
    uses: list[Callable[[], Any]] = [
        lambda: bytepair.train(path, 300),
        lambda: list(bytepair.corpus.read_documents(path.as_uri())),
        lambda: bytepair.shards.write(path, tok, tmp_path / "out"),
        lambda: bytepair.evaluate.documents(path),
        lambda: tok.encode_file(path),
    ]
    for use in uses:
        with told(CorpusError) as caught:
            use()
        assert str(caught.value).count(name) == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "a.arrow"])
def test_conversations_as_text_are_an_error_that_names_the_command(
    name: str, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    row = {"messages": [{"role": "user", "content": "hi"}]}
    table = pa.Table.from_pylist([row])
    if "json" in name:
        (tmp_path / name).write_text(json.dumps(row if name == "a.jsonl" else [row]))
    elif name == "a.parquet":
        pq.write_table(table, tmp_path / name)
    else:
        with pa.ipc.new_stream(tmp_path / name, table.schema) as out:
            out.write_table(table)
    reading = bytepair.Reading(column="messages")
    uses: list[Callable[[], Any]] = [
        lambda: bytepair.count(tmp_path / name, reading=reading),
        lambda: bytepair.shards.write(tmp_path / name, tok, tmp_path / "out", column="messages"),
    ]
    for use in uses:
        with told(CorpusError, "bytepair render", name):
            use()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string_view()])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_other_columns_of_text(kind: pa.DataType, name: str, tmp_path: Path) -> None:
    values = pa.array([*TEXTS, None], pa.string())
    table = pa.table({"text": values.cast(kind)})
    if name == "a.arrow":
        with pa.ipc.new_file(tmp_path / name, table.schema) as out:
            out.write_table(table)
    elif kind == pa.string_view():
        pytest.skip("Arrow does not write them")
    else:
        pq.write_table(table, tmp_path / name)
    assert bytepair.evaluate.documents(tmp_path / name) == [*TEXTS, ""]


def test_a_saved_dictionary_of_data_sets_says_its_splits(tmp_path: Path) -> None:
    for split, text in (("train", "one"), ("test", "two")):
        (tmp_path / split).mkdir()
        table = pa.table({"text": [text]})
        with pa.ipc.new_stream(tmp_path / split / "data-00000-of-00001.arrow", table.schema) as out:
            out.write_table(table)
        (tmp_path / split / "state.json").write_text("{}")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert bytepair.count(tmp_path) == bytepair.count(["one"])
    with told(CorpusError):
        bytepair.count(tmp_path / "test")
    whole = bytepair.Reading(split="all")
    assert bytepair.count(tmp_path, reading=whole) == bytepair.count(["two", "one"])


def test_encode_file_takes_the_options_of_tables(tmp_path: Path, tok: bytepair.Tokenizer) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"body": "<|bos|>one"}\n{"body": "two"}\n', encoding="utf-8")
    ids, offsets = tok.encode_file(path, column="body", special="all", prepend="<|bos|>")
    bos = tok.special_tokens["<|bos|>"]
    assert np.split(ids, offsets[1:-1])[0].tolist() == [bos, bos, *tok.encode("one")]
    with told(CorpusError):
        tok.encode_file(path)
    with refused("separator", "\n"):
        tok.encode_file(path, separator="\n")
    path.write_text("", encoding="utf-8")
    assert [array.tolist() for array in tok.encode_file(path)] == [[], [0]]
    bad = tmp_path / "b.jsonl"
    bad.write_bytes(b'{"text": "a\xff"}\n')
    with told(CorpusError):
        tok.encode_file(bad)
    assert tok.encode_file(bad, errors="replace")[0].tolist() == tok.encode("a\ufffd")


def test_encode_reads_lines_of_packed_text(tmp_path: Path, tok: bytepair.Tokenizer) -> None:
    tok.save(tmp_path / "tok")
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    words = ["encode", str(path), "-t", str(tmp_path / "tok"), "--json", "--lines"]
    lines = CliRunner().invoke(command, words).stdout.splitlines()
    assert [json.loads(line) for line in lines] == tok.encode_batch(["one", "two"])
    table = write(tmp_path, "a.parquet", None)
    result = CliRunner().invoke(command, [*words[:1], str(table), *words[2:]])
    assert result.exit_code == 2
    assert "--lines is for text" in result.output
