"""What a command writes is refused before the work: inputs, files of others, links and pipes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bytepair
from bytepair.cli import command
from bytepair.errors import NotAFileError, OverwriteError
from bytepair.files.outputs import open_own, remove_own, write_whole
from bytepair.training.counting import CheckpointWarning
from commands import run

TALK = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}\n'


@pytest.fixture
def folder(tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a corpus, conversations, counts and a tokenizer; the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("one two three " * 50, encoding="utf-8")
    Path("talk.jsonl").write_text(TALK, encoding="utf-8")
    bytepair.count(["one two"]).save("counts.parquet")
    trained.save("tok")
    return tmp_path


#: A command of each kind that writes a file; the output is the last word.
WRITING = {
    "count": ["count", "text.txt", "-o"],
    "count --rank": ["count", "text.txt", "--rank", "0", "--world-size", "1", "-o"],
    "count --checkpoint": ["count", "text.txt", "-o", "new.parquet", "--checkpoint"],
    "train --checkpoint": ["train", "text.txt", "--vocab-size", "300", "--checkpoint"],
    "render": ["render", "talk.jsonl", "-t", "tok", "--template", "nanochat", "-o"],
    "prune --ids": ["prune", "tok", "--vocab-size", "300", "-o", "new", "--ids"],
    "evaluate --sizes": ["evaluate", "tok", "--val", "text.txt", "--sizes"],
    "evaluate --token-bytes": ["evaluate", "tok", "--val", "text.txt", "--token-bytes"],
    "explore --export": ["explore", "tok", "--export"],
}
ENDINGS = {"prune --ids": ".npy", "evaluate --token-bytes": ".npy", "explore --export": ".html"}


def listing(folder: Path) -> dict[str, bytes | None]:
    files = sorted(folder.rglob("*"))
    return {str(p): p.read_bytes() if p.is_file() else None for p in files}


def refused(words: list[str], output: str, folder: Path, code: int = 2) -> None:
    before = listing(folder)
    result = run(*words, output, cwd=folder, code=code)
    assert Path(output).name in result.stderr
    assert "this is a bug" not in result.stderr
    assert listing(folder) == before


@pytest.mark.parametrize("name", WRITING)
def test_a_file_of_somebody_else_is_not_replaced(name: str, folder: Path) -> None:
    output = "mine" + ENDINGS.get(name, ".csv")
    Path(output).write_text("precious", encoding="utf-8")
    refused(WRITING[name], output, folder)


@pytest.mark.parametrize(
    "name", ["count", "count --rank", "render", "evaluate --sizes", "count --checkpoint"]
)
def test_an_input_is_never_an_output(name: str, folder: Path) -> None:
    source = "talk.jsonl" if name == "render" else "text.txt"
    force = [] if "checkpoint" in name else ["--force"]
    words = WRITING[name]
    refused([*words[:-1], *force, words[-1]], source, folder)
    refused([*words[:-1], *force, words[-1]], f"./{source}", folder)


@pytest.mark.parametrize("name", ["count", "count --rank", "render", "evaluate --sizes"])
def test_an_existing_file_is_replaced_when_asked(name: str, folder: Path) -> None:
    output = "old.csv" if name == "evaluate --sizes" else "old.parquet"
    Path(output).write_text("old", encoding="utf-8")
    words = WRITING[name]
    run(*words[:-1], "--force", words[-1], output, cwd=folder)
    assert Path(output).read_bytes() != b"old"


def strange(kind: str, path: Path) -> None:
    """Put something other than a file of one name at a path."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        other = path.with_name("elsewhere")
        other.write_text("precious", encoding="utf-8")
        (path.symlink_to if kind == "link" else path.hardlink_to)(other)


STRANGE = ["link", "hard link", "pipe", "folder"]


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("name", WRITING)
def test_what_is_no_plain_file_is_refused(name: str, kind: str, folder: Path) -> None:
    output = "strange" + ENDINGS.get(name, ".parquet")
    strange(kind, Path(output))
    refused(WRITING[name], output, folder)


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("write", [open_own, remove_own, lambda path: write_whole(path, b"new")])
def test_nothing_is_written_through_another_name(
    kind: str, write: Callable[[Path], object], tmp_path: Path
) -> None:
    strange(kind, tmp_path / "name")
    before = listing(tmp_path)
    with pytest.raises(NotAFileError):
        write(tmp_path / "name")
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    "words",
    [
        ["train", "text.txt", "--vocab-size", "300", "--quiet", "-o"],
        ["prune", "tok", "--vocab-size", "300", "-o"],
        ["extend", "tok", "text.txt", "--extra", "4", "-o"],
    ],
)
def test_another_tokenizer_is_refused_before_the_work(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(words, "tok", folder, code=1)

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    CliRunner().invoke(command, [words[0], "--help"])  # its options have the defaults of the work
    monkeypatch.setattr(bytepair, words[0], work)
    result = CliRunner().invoke(command, [*words, "tok"])
    assert (result.exit_code, "exists" in result.stderr) == (1, True), result.stderr


def test_methods_replace_a_file_only_when_asked(folder: Path) -> None:
    tok = bytepair.load("tok")
    savers: dict[str, Callable[..., object]] = {
        "sizes.csv": bytepair.evaluate.sweep(tok).save,
        "bytes.npy": partial(bytepair.evaluate.save_token_bytes, tok),
    }
    for name, save in savers.items():
        Path(name).write_text("precious", encoding="utf-8")
        with pytest.raises(OverwriteError):
            save(name)
        assert Path(name).read_text(encoding="utf-8") == "precious"
        save(name, overwrite=True)
        assert Path(name).read_bytes() != b"precious"


def test_a_checkpoint_that_cannot_be_saved_does_not_fail_the_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = bytepair.Counts.save

    def full(counts: bytepair.Counts, path: Path, **options: Any) -> None:
        if "metadata" in options:  # of a checkpoint
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        save(counts, path)

    monkeypatch.setattr(bytepair.Counts, "save", full)
    words = ["count", "text.txt", "-o", "new.parquet", "--checkpoint", "check.parquet"]
    with pytest.warns(CheckpointWarning):
        result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    assert bytepair.training.load_counts("new.parquet").total


@pytest.mark.parametrize("kind", STRANGE)
def test_a_download_writes_through_no_other_name(kind: str, tmp_path: Path) -> None:
    from bytepair.corpus import download

    strange(kind, tmp_path / ".data.parquet.partial")
    before = listing(tmp_path)
    remote = download.Remote("http://127.0.0.1:9/data.parquet", "data.parquet")
    with pytest.raises(NotAFileError):
        download.fetch(remote, tmp_path / "data.parquet")
    assert listing(tmp_path) == before
