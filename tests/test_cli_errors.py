"""What a command says when something goes wrong: a line and hints, in the words of commands."""

from __future__ import annotations

import gc
import importlib
import io
import sys
import warnings
from pathlib import Path
from typing import Final

import click
import pytest

import bytepair
from bytepair import cli
from bytepair.cli import COMMANDS
from bytepair.cli.messages import in_words
from bytepair.errors import BytepairError
from commands import message_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a text and a tokenizer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello hello world " * 10)
    for name in ("bad.txt", "bad.jinja"):
        (tmp_path / name).write_bytes(b"a\xff")
    bytepair.train(["hello hello world"], 270).save(tmp_path / "tokenizer")
    return tmp_path


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a checkout, such as the tokenizer of the sample text, change no message."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def error_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str, code: int = 1
) -> str:
    """Run the command and return the message that it writes to standard error, and its hints."""
    monkeypatch.setattr(sys, "argv", ["bytepair", *words])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which main sets
    with pytest.raises(SystemExit) as end:
        cli.main()
    # The exception still refers to the frames of the command: what they opened must be closed.
    readers = [thing for thing in gc.get_objects() if isinstance(thing, io.BufferedReader)]
    opened = [str(reader.name) for reader in readers if not reader.closed]
    assert not [name for name in opened if Path(name).is_file()]
    error = capsys.readouterr().err
    assert (end.value.code or 0) == code, error
    assert "Traceback" not in error
    return message_of(error)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("shard a.txt -t tokenizer", "missing option '--out' / '-o'; see bytepair shard --help"),
        ("train --ties x", "invalid value for '--ties'"),
        ("render a.txt --template bad.jinja", "bad.jinja is not UTF-8 at byte 1"),
        ("convert tokenizer x --format foo", "there is no format 'foo'"),
        ("convert tokenizer x --format tekken", "there is no format 'tekken' to write"),
        ("convert tokenizer x", "pass --format, one of"),
        ("evaluate --against none --token-bytes x.foo", "x.foo must end in .npy or .pt"),
        ("nonsense", "no such command 'nonsense'; see bytepair --help"),
        ("train --vocab 300", "no such option '--vocab'; did you mean --vocab-size?;"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    assert message in error_of(capsys, monkeypatch, *words.split(), code=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("convert tokenizer x --source-format foo", "there is no format 'foo'; there are bytepair"),
        ("convert tokenizer x.tiktoken", "; pass --lossy to write it without these"),
        (
            "train bad.txt -o new",
            "bad.txt is not UTF-8 at byte 1; repair it, or pass --errors replace",
        ),
        ("train --vocab-size 9 -o new", "--vocab-size 9 is too small"),
        (
            "evaluate --against none --val bad.txt",
            "bad.txt is not UTF-8 at byte 1; repair it, or pass --errors replace to read U+FFFD "
            "instead, or --errors skip to leave the document out",
        ),
        ("encode missing.txt", "there is no file or folder 'missing.txt'; check the path"),
        ("encode tokenizer a.txt", "the folder tokenizer contains no file with a known suffix"),
        *(
            (f"encode {first} a.txt", "name a tokenizer with -t, as in bytepair encode -t")
            for first in ("tokenizer", "gpt2", "tokenizer/tokenizer.bytepair")
        ),
        ("train a.txt -o new --pattern \udcff", "'\\udcff' is not UTF-8"),
        ("count a.txt -o new --column \udcff", "'\\udcff' is not UTF-8"),
    ],
)
def test_failures_are_in_the_words_of_the_command(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    message: str,
) -> None:
    before = sorted(folder.rglob("*"))
    assert message in error_of(capsys, monkeypatch, *words.split())
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("module", "words", "message"),
    [
        (
            "ray",
            "count a.txt --ray -o c.parquet",
            "the package ray: pip install 'bytepair[ray]'",
        ),
        (
            "ray",
            "shard a.txt --ray -o out",
            "the package ray: pip install 'bytepair[ray]'",
        ),
        ("huggingface_hub", "convert foo/bar out.bytepair", "bytepair[hub]"),
        ("huggingface_hub", "train hf://datasets/foo/bar -o new", "pip install 'bytepair[hub]'"),
    ],
)
def test_a_missing_extra_is_said_before_any_work(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    words: str,
    message: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(bytepair.evaluate, "measure", None)
    before = sorted(folder.rglob("*"))
    assert message in error_of(capsys, monkeypatch, *words.split())
    assert sorted(folder.rglob("*")) == before


def test_a_file_system_that_fails_in_its_own_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of `hf://` are neither of Arrow nor `OSError`."""

    class System:
        def get_file_info(self, *_: object) -> object:
            raise RuntimeError("no address of hostname")

    module = importlib.import_module("bytepair.corpus.files")
    monkeypatch.setattr(module, "_file_system", lambda url: (System(), url))
    line = error_of(capsys, monkeypatch, "train", "hf://datasets/foo/bar")
    reason = "hf://datasets/foo/bar: no address of hostname"
    assert line == f"{reason}; check the network and your credentials"


@pytest.mark.parametrize("name", COMMANDS)
def test_whatever_a_command_raises_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(**_: object) -> None:
        raise KeyError("a defect\nin two lines")

    command = cli.command.get_command(click.Context(cli.command), name)
    assert command is not None
    monkeypatch.setattr(command, "callback", fail)
    words = {
        "train": [], "download": [], "plan": [],
        "count": ["a.txt"], "shard": ["a.txt", "-o", "out"], "convert": ["tokenizer", "x"],
        "verify": ["tokenizer"], "compare": ["one", "two"], "prune": ["tokenizer", "-o", "out"],
        "extend": ["tokenizer", "a.txt", "--extra", "3", "-o", "out"],
        "render": ["a.jsonl"],
    }.get(name, [])  # fmt: skip
    error = error_of(capsys, monkeypatch, name, *words, code=2 if name == "compare" else 1)
    assert error.startswith("unexpected KeyError: ")
    assert "BYTEPAIR_DEBUG=1" in error
    monkeypatch.setenv("BYTEPAIR_DEBUG", "1")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == (2 if name == "compare" else 1)
    output = capsys.readouterr().err
    assert output.startswith("Traceback")
    assert message_of(output[output.index("error: ") :]) == error


@pytest.mark.filterwarnings("always")
def test_warnings_are_in_the_words_of_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("shard", "a.txt", "-o", "out", "--format", "llmc")
    assert "pass a smaller --tokens-per-shard" in error_of(capsys, monkeypatch, *words, code=0)


TRAIN: Final = click.Command(
    "train",
    params=[
        click.Option(["--errors"], type=click.Choice(["strict", "replace"])),
        click.Option(["--vocab-size"]), click.Option(["--special-token", "special_tokens"]),
        click.Option(["--progress/--no-progress"]), click.Option(["--lossy"], is_flag=True),
    ],
)  # fmt: skip


@pytest.mark.parametrize(
    ("message", "option", "hint", "lines"),
    [
        ("no", None, 'pass errors="replace" to go on', ["no", "pass --errors replace to go on"]),
        ("no", None, "pass vocab_size=300", ["no", "pass --vocab-size 300"]),
        ("vocab_size is 3, too small", "vocab_size", "", ["--vocab-size is 3, too small"]),
        ("there are errors here", "errors", "", ["there are errors here"]),
        ("no", None, "pass lossy=True to read it", ["no", "pass --lossy to read it"]),
        ("no", None, "raise vocab_size", ["no", "raise --vocab-size"]),
        ("no", None, "pass progress=False", ["no", "pass --no-progress"]),
        # What the command lacks stays an argument of Python.
        ("it is bad", None, "pass other=True to go on", ["it is bad", "pass other=True to go on"]),
        ("other is bad", "other", "", ["other is bad"]),
    ],
)  # fmt: skip
def test_options_are_those_of_the_command(
    message: str, option: str | None, hint: str, lines: list[str]
) -> None:
    error = BytepairError(message, option=option, hint=hint)
    assert in_words(error, TRAIN) == lines


@pytest.mark.parametrize(
    "words",
    ["train NAME.json -o new", "train folder --vocab-size 266 -o new", "inspect named",
     "compare tokenizer one NAME.txt", "plan --params 1M -t tokenizer --corpus NAME.txt",
     "evaluate tokenizer --against none --parallel NAME.txt --parallel a.txt",
     "evaluate tokenizer --against none --parallel NAME.txt --parallel a.txt --markdown"],
)  # fmt: skip
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_a_name_does_not_command_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    name = "\x1b]0;retitled\x07\x1b[31m\x9b\u202e\r"
    (folder / f"{name}.txt").write_text("hello hello")
    (folder / f"{name}.json").write_text("{}")
    (folder / "folder").mkdir()
    (folder / "folder" / "a.txt").write_text("hello hello")
    (folder / "folder" / f"{name}.exe").write_text("")
    bytepair.train(["hello"], 257, special_tokens=[name]).save("named")
    bytepair.train(["hello"], 257, special_tokens=["<|a|>"]).save("one")
    monkeypatch.setattr("sys.argv", ["bytepair", *words.replace("NAME", name).split(" ")])
    with pytest.raises(SystemExit):
        cli.main()
    told = "".join(capsys.readouterr())
    assert "retitled" in told
    assert not set(name) - set("]0;[31mretitled") & set(told)


@pytest.mark.timeout(20)
def test_a_long_name_in_an_error_takes_no_time() -> None:
    command = click.Command("count", params=[click.Option(["--errors"])])
    for text in in_words(BytepairError(" a=[" * 100_000, hint=" a=[" * 100_000), command):
        assert len(text) <= 1_000
