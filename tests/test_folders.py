"""A folder is read whole: through links, without hidden files, and nothing without a word."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.corpus.files import files_matching, in_cloud, list_files
from bytepair.errors import CorpusError
from messages import told

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with links, cycles, hidden files and files of other kinds."""
    home, other = tmp_path / "corpus", tmp_path / "elsewhere"
    for name in ("corpus/a/deep", "corpus/b", "corpus/.hidden", "elsewhere/more"):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "corpus/z.txt", "corpus/a/one.txt", "corpus/a/deep/two.md", "corpus/b/three.txt",
        "corpus/.hidden/no.txt", "corpus/.no.txt", "corpus/b/README.md", "elsewhere/far.txt",
        "elsewhere/more/farther.text", "corpus/b/code.py",
    ):  # fmt: skip
        (tmp_path / name).write_text(f"the text of {name} ")
    (home / "link").symlink_to(other)
    (home / "a" / "again").symlink_to(other / "more")
    (home / "a" / "deep" / "up").symlink_to(home)
    (home / "self").symlink_to(home)
    (home / "b" / "linked.txt").symlink_to(other / "far.txt")
    return home


WHOLE = [
    "a/again/farther.text", "a/deep/two.md", "a/one.txt", "b/README.md", "b/linked.txt",
    "b/three.txt", "link/far.txt", "z.txt",
]  # fmt: skip


def names(source: Any, folder: Path) -> list[str]:
    return [str(Path(file.path).relative_to(folder)) for file in files_matching(source).files]


@pytest.mark.parametrize("glob", ["", "/", "/*", "/**", "/**/*", "/**/**"])
def test_a_folder_and_its_globs_are_the_same_files(folder: Path, glob: str) -> None:
    assert names(f"{folder}{glob}", folder) == WHOLE
    assert names(folder.as_uri() + glob, folder) == WHOLE


def test_globs_with_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(f"{folder}/**/*.txt", folder) == [name for name in WHOLE if name.endswith(".txt")]
    assert names(f"{folder}/*/*.txt", folder) == [
        "a/one.txt", "b/linked.txt", "b/three.txt", "link/far.txt", "self/z.txt"
    ]  # fmt: skip
    assert names(f"{folder}/b/*.py", folder) == ["b/code.py"]  # a name that is given is read
    assert names(f"{folder}/.hidden/*", folder) == [".hidden/no.txt"]
    assert names(f"{folder}/[b]/", folder) == [n for n in WHOLE if n[0] == "b"]
    monkeypatch.chdir(folder)
    assert [file.path for file in files_matching("a/*.txt").files] == ["a/one.txt"]
    with told(CorpusError, "no file matches"):
        files_matching(f"{folder}/**/*.jsonl")


def test_the_text_is_that_of_all_files(folder: Path) -> None:
    texts = [(folder / name).read_text() for name in WHOLE]
    assert bytepair.count(folder) == bytepair.count(texts)
    assert bytepair.count(f"{folder}/**") == bytepair.count(texts)


def test_a_link_that_leads_nowhere_is_an_error(folder: Path) -> None:
    (folder / "a" / "gone.txt").symlink_to("nowhere.txt")
    for source in (folder, f"{folder}/**/*.txt", f"{folder}/*/*.txt", folder / "a" / "*.txt"):
        with told(CorpusError):
            bytepair.count(str(source))
    (folder / "a" / "gone.txt").unlink()
    (folder / "a" / "loop").symlink_to("loop")
    with told(CorpusError):
        bytepair.count(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_glob_waits_for_no_pipe_and_reads_no_device(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    os.mkfifo(tmp_path / "b.txt")
    (tmp_path / "c.txt").symlink_to("/dev/zero")
    assert list_files(f"{tmp_path}/*.txt") == [str(tmp_path / "a.txt")]
    with told(CorpusError):
        list_files(f"{tmp_path}/[bc].txt")


def test_a_folder_that_cannot_be_read_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = Path.iterdir

    def refuse(path: Path) -> Any:
        if path.name == "deep":
            raise PermissionError(13, "Permission denied", str(path))
        return entries(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    for source in (folder, f"{folder}/**/*.txt", f"{folder}/*/*/*.txt"):
        with told(CorpusError):
            bytepair.count(str(source))


def test_a_file_that_cannot_be_read_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name != "two.md" and access(path, mode)
    )
    with told(CorpusError):
        bytepair.count(folder)


def test_the_card_of_a_data_set_is_no_text(tmp_path: Path) -> None:
    data = tmp_path / "set" / "data"
    data.mkdir(parents=True)
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(pa.table({"text": [name]}), data / name)
    (tmp_path / "set" / "README.md").write_text("a card")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "README.md").write_text("a text")
    assert names(tmp_path / "set", tmp_path) == ["set/data/a.parquet", "set/data/b.parquet"]
    assert names(f"{tmp_path}/set/**", tmp_path) == names(tmp_path / "set", tmp_path)
    assert names(f"{tmp_path}/*/*.md", tmp_path) == ["other/README.md", "set/README.md"]
    assert names(tmp_path, tmp_path)[0] == "other/README.md"


def test_what_is_read_is_said_before_the_work(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bytepair")
    bytepair.count(folder)
    assert caplog.messages == ["reading 8 text files; skipped .hidden/, .no.txt, b/code.py"]
    caplog.clear()
    bytepair.count(folder / "z.txt")  # the name says it already
    bytepair.count(["a text"])
    assert caplog.messages == []
    groups = {"b": folder / "b", "z": [folder / "z.txt"]}
    recipe: list[Any] = [
        bytepair.training.Mixture({"b": 1, "z": 1}),
        bytepair.training.Superwords(start=262),
    ]
    bytepair.train(groups, 270, special_tokens=(), recipe=recipe)
    assert caplog.messages == ["reading b: 3 text files; skipped code.py; z: 1 text file"]


def test_hidden_files_are_skipped_in_clouds() -> None:
    paths = ["b/x/a.parquet", "b/x/.a.parquet", "b/README.md", "b/y.txt", "b/y.py"]
    assert in_cloud(paths, "b", "b/*") == (
        ["b/x/a.parquet", "b/y.txt"], ["README.md", "x/.a.parquet", "y.py"]
    )  # fmt: skip
    assert in_cloud(paths, "b", "b/*.py") == (paths, [])


def test_commands_say_it_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        pq.write_table(pa.table({"text": ["one two"]}), tmp_path / "in" / f"{number}.parquet")
    (tmp_path / "in" / "README.md").write_text("a card")
    (tmp_path / "talk.jsonl").write_text(json.dumps({"text": "x"}))
    bytepair.train(["one two"], 265).save(tmp_path / "tokenizer")
    line = "reading 3 parquet files; skipped README.md\n"
    for words in (
        "count in", "train in --vocab-size 265 -o new --force", "shard in -o shards",
        "compare tokenizer new in",
        "evaluate --against none --val in", "encode in",
        "plan --params 1M -t tokenizer --corpus in",
        "count in --rank 0 --world-size 1 -o c.parquet",
    ):  # fmt: skip
        for quiet in ([], ["--quiet"]):
            done = subprocess.run(
                [sys.executable, "-m", "bytepair", *words.split(), *quiet],
                cwd=tmp_path, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, (words, done.stderr)
            assert done.stderr.count("reading ") == (not quiet), (words, done.stderr)
            assert quiet or done.stderr.startswith(line), (words, done.stderr)


def test_a_file_that_is_named_twice_is_said(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one two")
    again: list[Any] = [[Path("a.txt"), Path("a.txt")], bytepair.corpus.Paths(["a.txt", "./*.txt"])]
    for source in again:
        with told(bytepair.errors.BytepairWarning):
            assert bytepair.count(source) == bytepair.count(["one two"] * 2)
    assert bytepair.count(Path("a.txt")) == bytepair.count(["one two"])
