"""Nothing that writes a tokenizer replaces another one without being asked to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bytepair
from bytepair.errors import OverwriteError
from formats import TARGETS, small
from messages import told

ONE = small()
OTHER = bytepair.Tokenizer.from_ranks(
    ONE.mergeable_ranks() | {b"lo": 261}, pattern="gpt2", special_tokens=ONE.special_tokens
)


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("format", TARGETS)
def test_another_tokenizer_is_not_replaced_unasked(format: str, tmp_path: Path) -> None:
    target = tmp_path / TARGETS[format]
    ONE.export(target, format, lossy=True)
    before = listing(tmp_path)
    ONE.export(target, format, lossy=True)  # writing an equal one needs no permission
    with told(OverwriteError):
        OTHER.export(target, format, lossy=True)
    assert listing(tmp_path) == before
    OTHER.export(target, format, lossy=True, overwrite=True)
    assert listing(tmp_path) != before
    OTHER.export(target, format, lossy=True)


@pytest.mark.parametrize("format", [*TARGETS, "a folder"])
def test_a_file_of_something_else_is_not_replaced_unasked(format: str, tmp_path: Path) -> None:
    target = tmp_path / TARGETS.get(format, "")
    if format == "a folder":
        target, format = tmp_path / "tokenizer.bytepair", "bytepair"
    file = {"gpt2": target / "vocab.json", "nanochat": target / "tokenizer.pkl"}.get(format, target)
    file.parent.mkdir(exist_ok=True)
    file.write_text("years of work")
    with told(OverwriteError):
        ONE.export(target, format, lossy=True)
    assert file.read_text() == "years of work"


def test_an_equal_tokenizer_with_other_notes_is_replaced(tmp_path: Path) -> None:
    ONE.save(tmp_path)
    named = ONE.replace(notes={"name": "one"})
    named.save(tmp_path)
    assert bytepair.load(tmp_path).notes == named.notes
    named.save(tmp_path, tables=False)
    with told(OverwriteError):
        OTHER.save(tmp_path)
    OTHER.save(tmp_path, overwrite=True)
    assert bytepair.load(tmp_path) == OTHER


def test_one_of_several_files_is_enough(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with told(OverwriteError):
        ONE.export(tmp_path, "huggingface")
    assert listing(tmp_path) == {"tokenizer_config.json": b"{}"}


def run(*words: str, cwd: Path, code: int = 0) -> str:
    command = [sys.executable, "-m", "bytepair", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr


def test_train_refuses_to_replace_a_tokenizer_before_it_trains(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello help world " * 10)
    words = ["train", "a.txt", "--vocab-size"]
    assert run(*words, "266", cwd=tmp_path) == ""
    first = bytepair.load(tmp_path / "tokenizer")
    error = run(*words, "267", cwd=tmp_path, code=1)
    assert "tokenizer.bytepair exists" in error
    assert "--force" in error
    assert bytepair.load(tmp_path / "tokenizer") == first
    assert run(*words, "268", "--force", cwd=tmp_path) == ""
    assert bytepair.load(tmp_path / "tokenizer").vocab_size == 268
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "tokenizer"]


def test_convert_needs_force_to_replace(tmp_path: Path) -> None:
    ONE.export(tmp_path / "one.bytepair")
    OTHER.export(tmp_path / "other.bytepair")
    run("convert", "one.bytepair", "tokenizer.json", cwd=tmp_path)
    run("convert", "one.bytepair", "tokenizer.json", cwd=tmp_path)
    error = run("convert", "other.bytepair", "tokenizer.json", cwd=tmp_path, code=1)
    assert error == (
        "error: tokenizer.json exists and has different content\n"
        "hint: pass --force to replace it, or choose another path\n"
    )
    assert bytepair.load(tmp_path / "tokenizer.json") == ONE
    run("convert", "other.bytepair", "tokenizer.json", "--force", cwd=tmp_path)
    assert bytepair.load(tmp_path / "tokenizer.json") == OTHER


@pytest.mark.parametrize("words", [["train"], ["shard"]])
def test_a_folder_to_write_that_is_a_file_is_said_before_any_work(
    words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("hello")
    for out in ("a.txt", "a.txt/below"):
        error = run(*words, "a.txt", "-o", out, cwd=tmp_path, code=2)
        assert "a.txt' is a file\nhint: pass a folder" in error
    assert listing(tmp_path) == {"a.txt": b"hello"}


@pytest.mark.parametrize(("option", "name"), [("--sizes", "s.csv"), ("--token-bytes", "t.npy")])
def test_evaluate_needs_force_to_replace(option: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello help " * 10)
    (tmp_path / name).write_text("years of work")
    bytepair.train(tmp_path / "a.txt", 266).save(tmp_path / "tokenizer")
    words = ["evaluate", "tokenizer", "--val", "a.txt", "--against", "none", option, name]
    assert "--force" in run(*words, cwd=tmp_path, code=2)
    assert (tmp_path / name).read_text() == "years of work"
    run(*words, "--force", cwd=tmp_path)
    assert (tmp_path / name).read_bytes() != b"years of work"


@pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
@pytest.mark.parametrize("kind", ["a link", "a pipe", "hard links", "a folder"])
@pytest.mark.parametrize("format", TARGETS)
def test_nothing_is_written_through_what_is_no_file(format: str, kind: str, tmp_path: Path) -> None:
    """Each file that a format writes is tried; an error names it, and nothing is changed."""
    named = ONE.replace(chat_template={"default": "a", "more": "b"})
    target = tmp_path / "out" / TARGETS[format]
    target.parent.mkdir()
    names = [*listing_of(named.export(target, format, lossy=True))]
    mine = tmp_path / "mine"
    for name in names:
        mine.write_text("mine")
        path = target / name if name else target
        path.unlink()
        put(kind, path, mine)
        before = listing(target.parent)
        for overwrite in (False, True):
            with told(OSError, path.name):
                OTHER.export(target, format, lossy=True, overwrite=overwrite)
        assert listing(target.parent) == before
        assert mine.read_text() == "mine"
        path.rmdir() if kind == "a folder" else path.unlink()
        named.export(target, format, lossy=True, overwrite=True)


def put(kind: str, path: Path, mine: Path) -> None:
    """Put something at a path that is no file of its own."""
    if kind == "a link":
        path.symlink_to(mine)
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "hard links":
        path.hardlink_to(mine)
    else:
        path.mkdir()


def listing_of(target: Path) -> dict[str, bytes]:
    return listing(target) if target.is_dir() else {"": target.read_bytes()}
