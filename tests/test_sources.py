"""A source means the same to every function, keyword and command that reads."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.cli import COMMANDS
from bytepair.errors import CorpusError
from messages import told

TEXTS = ["hello hello help", "the theme of the hour", "others helped; é 二"]

#: Functions that read text, also from memory; each takes a source, `files=` or `texts=`.
READERS: dict[str, Callable[..., Any]] = {
    "count": bytepair.count,
    "train": partial(bytepair.train, vocab_size=270),
    "resume": lambda *source, **named: partial(bytepair.training.resume, small(), vocab_size=280)(
        *source, **named
    ),
    "extend": lambda *source, **named: partial(bytepair.extend, small(), extra=5)(*source, **named),
    "documents": bytepair.evaluate.documents,
    "measure": lambda *source, **named: bytepair.plan.measure(small(), *source, **named)[0],
}

#: Functions that read only files; each takes their names and a folder to write to.
FILE_READERS: dict[str, Callable[[Any, Path], Any]] = {
    "read_documents": lambda names, _: list(bytepair.corpus.read_documents(names)),
    "shards.write": lambda names, out: bytepair.shards.write(names, small(), out),
    "distributed.count": lambda names, out: bytepair.distributed.count(
        names, out / "counts.parquet", rank=0, world_size=1
    ),
    "distributed.shard": lambda names, out: bytepair.distributed.shard(
        names, small(), out, rank=0, world_size=1
    ),
}


def small() -> bytepair.Tokenizer:
    return bytepair.train(bytepair.corpus.Texts(TEXTS), vocab_size=270)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "corpus"
    home.mkdir()
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()
    (home / "a.jsonl").write_bytes(lines)
    (home / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    (home / "a.jsonl.zst").write_bytes(pa.compress(lines, "zstd", asbytes=True))
    pq.write_table(pa.table({"text": TEXTS}), home / "a.parquet")
    return home


# ---------------------------------------------------------------------------- functions


@pytest.mark.parametrize("name", READERS)
def test_every_kind_of_source_is_the_same_text(name: str, folder: Path) -> None:
    read = READERS[name]
    texts, paths = bytepair.corpus.Texts, bytepair.corpus.Paths
    expected, file = read(texts(TEXTS)), folder / "a.jsonl"
    for source in (
        TEXTS, iter(TEXTS), tuple(TEXTS), pa.array(TEXTS), [pa.array(TEXTS)],
        pa.table({"text": TEXTS}), file, str(file), [file], iter([file]), file.as_uri(),
        str(folder / "*.jsonl"), folder / "a.parquet", folder / "a.jsonl.gz",
        folder / "a.jsonl.zst",
    ):  # fmt: skip
        assert read(source) == expected, source
    for files in (file, str(file), [str(file)], [file], file.as_uri(), str(folder / "*.jsonl")):
        assert read(paths(files)) == expected, files
    assert read(folder) == read(paths([folder])) == read(texts(TEXTS * 4))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "names",
    [["/data/typo.txt"], ["typo.txt", "s3://bucket/typo.jsonl.gz"], ["a/b", "c\\d.md"], "exists"],
    ids=str,
)
def test_texts_that_look_like_paths_are_an_error_with_both_readings(
    name: str, names: Any, folder: Path
) -> None:
    names = [str(folder), "a text"] if names == "exists" else names
    with pytest.raises(CorpusError) as wrong:
        READERS[name](names)
    assert f"{names[0]!r} looks like a path" in str(wrong.value)
    assert "pass a pathlib.Path for each, or bytepair.corpus.Paths(names)" in wrong.value.hint
    assert "to use the strings as texts, pass bytepair.corpus.Texts(strings)" in wrong.value.hint
    assert wrong.value.option == "source"


@pytest.mark.parametrize("name", READERS)
def test_types_say_what_strings_are(name: str) -> None:
    with told(CorpusError):
        READERS[name](bytepair.corpus.Paths(["/data/typo.txt"]))
    if name in ("count", "documents"):
        assert READERS[name](bytepair.corpus.Texts(["/data/typo.txt"]))
    with pytest.raises(TypeError, match="'source'"):
        READERS[name]()
    with told(CorpusError):
        READERS[name](bytepair.corpus.Texts("a text"))


@pytest.mark.parametrize("name", FILE_READERS)
def test_names_of_files_mean_the_same_to_what_reads_files(
    name: str, folder: Path, tmp_path: Path
) -> None:
    read, file = FILE_READERS[name], folder / "a.jsonl"
    for number, names in enumerate((file, str(file), [file], file.as_uri(), f"{folder}/*.jsonl")):
        out = tmp_path / str(number)
        out.mkdir()
        assert read(names, out)
    for wrong in ("/data/typo.txt", [Path("/data/typo.txt")]):
        with told(CorpusError):
            read(wrong, tmp_path / "wrong")
    with told(CorpusError):
        read([str(file)], tmp_path / "wrong")
    with told(CorpusError):
        read(f"{folder}/*.md", tmp_path / "wrong")
    if name != "shards.write":
        with told(CorpusError):
            read(pa.array(TEXTS), tmp_path / "wrong")


def test_files_of_conversations_are_named_as_others_are(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    file, tok = tmp_path / "a.jsonl", small()
    file.write_text(json.dumps(talk) + "\n")
    (expected, _) = tok.render_conversation(talk)
    for source in (file, str(file), file.as_uri(), f"{tmp_path}/*.jsonl", tmp_path):
        assert tok.render_batch(source).input_ids.tolist() == expected
    with told(CorpusError):
        tok.render_batch("/data/typo.jsonl")


def test_bytes_that_are_not_utf8_are_replaced_wherever_files_are(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one \xff two")
    expected = bytepair.count(["one \ufffd two"])
    for source in (tmp_path / "a.txt", (tmp_path / "a.txt").as_uri()):
        assert bytepair.count(source, reading=bytepair.Reading(errors="replace")) == expected
        with told(CorpusError):
            bytepair.count(source)


# ---------------------------------------------------------------------------- commands


def run(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bytepair", *words],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        "train typo.txt", "count typo.txt",
        "shard typo.txt -t tok -o out",
        "evaluate tok --val typo.txt --against none",
        "plan --params 1M -t tok --corpus typo.txt", "count typo.txt --rank 0 --world-size 1",
        "compare tok tok typo.txt",
    ],
)  # fmt: skip
def test_commands_take_names_as_files(words: str, tmp_path: Path) -> None:
    small().save(tmp_path / "tok")
    done = run(tmp_path, *words.split())
    assert (done.returncode, done.stdout) == (2 if words.startswith("compare") else 1, "")
    assert done.stderr.splitlines() == [
        "error: there is no file or folder 'typo.txt'", "hint: check the path"
    ]  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    home = tmp_path_factory.mktemp("published")
    (home / "a.txt").write_text("one two")
    return home


#: For each command that takes a tokenizer, the arguments that name a published one.
WITH_A_TOKENIZER = {
    "encode": "-t gpt2 --text hi", "decode": "-t gpt2 5303", "inspect": "gpt2 --text hi",
    "verify": "gpt2", "plan": "--params 1M -t gpt2", "shard": "a.txt -t gpt2 -o shards",
    "evaluate": "gpt2 --against none",
    "convert": "gpt2 gpt2.tiktoken --lossy", "compare": "gpt2 gpt2 a.txt",
    "extend": "gpt2 a.txt --extra 5 -o larger",
    "prune": "gpt2 --vocab-size 1000 -o pruned",
}  # fmt: skip
#: The others; `render` needs the special tokens of a chat template, which gpt2 has not.
WITHOUT = {"train", "count", "download", "explore", "render"}


@pytest.mark.parametrize("name", WITH_A_TOKENIZER)
def test_every_command_takes_a_published_name(
    name: str, published: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared / "vocabularies"))
    done = run(published, name, *WITH_A_TOKENIZER[name].split())
    assert done.returncode == 0, done.stderr


def test_no_command_is_left_out() -> None:
    assert set(COMMANDS) == WITHOUT | set(WITH_A_TOKENIZER)


def test_the_page_takes_a_published_name(published: Path, shared: Path) -> None:
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(shared / "vocabularies")}
    words = [sys.executable, "-m", "bytepair", "explore", "gpt2", "--port", "0"]
    with subprocess.Popen(words, cwd=published, env=env, stdout=subprocess.PIPE, text=True) as page:
        timer = threading.Timer(60, page.kill)
        timer.start()
        try:
            assert page.stdout is not None
            with urllib.request.urlopen(page.stdout.readline().strip()) as answer:
                assert answer.status == 200
        finally:
            timer.cancel()
            page.kill()


def test_commands_limit_memory_as_python_does(folder: Path) -> None:
    words = ["--vocab-size", "280", "--memory-limit", "1M"]
    assert run(folder, "train", "a.jsonl", *words, "-o", "tok").returncode == 0
    expected = bytepair.train(
        folder / "a.jsonl",
        280,
        reading=bytepair.Reading(memory_limit=10**6),
    )
    assert bytepair.load(folder / "tok") == expected
    assert run(folder, "count", "a.jsonl", "--memory-limit", "1", "-o", "c.parquet").returncode == 0
    assert bytepair.training.load_counts(folder / "c.parquet") == bytepair.count(folder / "a.jsonl")
    done = run(
        folder, "count", "a.jsonl", "a.parquet", "--weight", "a.parquet=2", "-o", "w.parquet"
    )
    assert done.returncode == 0
    assert bytepair.training.load_counts(folder / "w.parquet") == bytepair.count(TEXTS).times(3)


@pytest.mark.parametrize("path", ["a.parquet", "folder/*.parquet"])
def test_a_cloud_that_does_not_answer_is_an_error(
    path: str,
) -> None:
    with socket.socket() as closed:  # it is bound, so nobody else listens there
        closed.bind(("127.0.0.1", 0))
        options = f"endpoint_override=127.0.0.1:{closed.getsockname()[1]}&scheme=http"
        with told(CorpusError, f"gs://anonymous@bucket/{path}", "check the network"):
            bytepair.count(f"gs://anonymous@bucket/{path}?{options}&retry_limit_seconds=1")


@pytest.mark.parametrize("url", [False, True])
def test_an_error_names_a_truncated_file_once(url: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["hello"] * 100}), path)
    path.write_bytes(path.read_bytes()[:100])
    name = path.as_uri() if url else str(path)
    with pytest.raises(CorpusError) as caught:
        list(bytepair.corpus.read_documents(name))
    assert str(caught.value) == (
        f"{name} cannot be read: Invalid Parquet file. Corrupt footer; download or write it again"
    )
