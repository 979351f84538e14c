"""Messages name options as data, so that each way to call bytepair words them in its own way."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import errors
from bytepair.cli import COMMANDS
from bytepair.cli.words import RENAMED, wording_of
from bytepair.errors import ANY, BytepairError, Option, Phrase, WayOut, message
from commands import PYTHON_OPTION

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "python/bytepair"

#: What only callers of Python meet: APIs of other libraries, and keywords of theirs.
OF_PYTHON: Final = ("compat", "habits.py")

#: A message that ends with something to do.
ADVICE: Final = re.compile(
    r"; (?:then )?(?:ask|call|change|check|choose|convert|count|create|decode|divide|download|"
    r"export|fetch|free|give|install|load|lower|make|mend|name|omit|pass|put|raise|read|remove|"
    r"rename|repair|report|run|see|set|split|start|train|unpack|use|wait|write)\b(?! and\b)",
    re.IGNORECASE,
)

TEXT: Final = st.text(st.characters(codec="utf-8", exclude_characters='"\\'), max_size=12)
OPTIONS: Final = st.builds(
    Option,
    st.sampled_from(["errors", "lossy", "special_tokens", "other"]),
    st.sampled_from([ANY, "skip", True, False, 3, ["a", "b c"]]),
)
WAYS_OUT: Final = st.one_of(
    TEXT.map(WayOut), st.builds(lambda option, text: WayOut("pass", option, text), OPTIONS, TEXT)
)


def commands() -> list[click.Command]:
    """All commands."""
    return [getattr(import_module(f"bytepair.cli.{name}"), name) for name in COMMANDS]


def names_of_options() -> set[str]:
    """The arguments of Python that a command has as an option, where no English word is meant."""
    params = {param.name or "" for command in commands() for param in command.params}
    return {name for name in params | RENAMED.keys() if "_" in name}


def literals(node: ast.AST) -> Iterator[str]:
    """The text in an expression, except the names of options."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in parts)
        return
    inner = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        inner = [*node.args[name == "passing" :], *(word.value for word in node.keywords)]
        inner = [] if name in ("Option", "refuse") else inner
    for child in inner:
        yield from literals(child)


def messages_of(path: Path) -> Iterator[tuple[int, str]]:
    """The text of errors, warnings and ways out in a file of the package, with its line."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name.endswith(("Error", "Warning", "WayOut")) or name in ("warn", "passing"):
                yield from ((node.lineno, text) for text in literals(node))


def test_no_message_of_the_package_spells_an_option() -> None:
    names = names_of_options()
    spelled = [
        (str(path.relative_to(PACKAGE)), line, text)
        for path in PACKAGE.rglob("*.py")
        if not set(OF_PYTHON).intersection(path.relative_to(PACKAGE).parts)
        for line, text in messages_of(path)
        if PYTHON_OPTION.search(text) or names.intersection(re.findall(r"\w+", text))
        if len(text.split()) > 2  # else it is a place in a file
    ]
    assert spelled == []


def test_no_message_of_the_package_has_advice_in_its_text() -> None:
    """Advice is a `WayOut`, so that the command line can write it on a line of its own."""
    inside = [
        (str(path.relative_to(PACKAGE)), line, text)
        for path in PACKAGE.rglob("*.py")
        if not set(OF_PYTHON).intersection(path.relative_to(PACKAGE).parts)
        for line, text in messages_of(path)
        if ADVICE.search(text)
    ]
    assert inside == []


def texts_of_the_core() -> Iterator[tuple[Path, str]]:
    """The strings of the core outside its tests, without the values that they are filled with."""
    for path in (ROOT / "rust/core/src").rglob("*.rs"):
        code = re.sub(r"(?m)^\s*//.*$", "", path.read_text("utf-8")).partition("mod tests {")[0]
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code, re.DOTALL):
            text = re.sub(r"\\\s*", "", text.replace('\\"', '"'))
            yield path, re.sub(r"\{\w*[^}]*\}", "", text)


def test_no_message_of_the_core_spells_an_option() -> None:
    names = names_of_options()
    spelled = []
    for path, text in texts_of_the_core():
        fields = {"special_tokens"} if path.parent.name == "tokenizer_json" else set()
        words = re.findall(r"\w+", text)
        if len(words) > 2 and (PYTHON_OPTION.search(text) or (names - fields).intersection(words)):
            spelled.append((path.name, text))
    assert spelled == []


def test_no_message_of_the_core_has_advice_in_its_text() -> None:
    inside = {text for _, text in texts_of_the_core() if ADVICE.search(text)}
    # The smallest size is known when the error is made; a `WayOut` of the core is a constant.
    assert {text.partition(";")[2] for text in inside} == {" pass at least "}


@given(TEXT, st.lists(WAYS_OUT, max_size=4))
def test_a_command_is_told_what_it_can_do(text: str, ways_out: list[WayOut]) -> None:
    phrases: list[Phrase] = [text, *ways_out]
    errors_option = click.Option(["--errors"], type=click.Choice(["strict", "skip"]))
    special = click.Option(["--special-token"])
    wording = wording_of([click.Command("train", params=[errors_option, special])])
    ways = [
        way for way in ways_out
        if way.option is None
        or (way.option.name == "errors" and way.option.value in (ANY, "skip"))
        or way.option.name == "special_tokens"
    ]  # fmt: skip
    assert message(phrases, wording) == message([text, *ways], wording)
    assert message([text, *ways_out], lambda _: None) == message(
        [text, *(way for way in ways_out if way.option is None)]
    )


@given(TEXT, st.lists(WAYS_OUT, max_size=3))
def test_errors_are_the_same_after_copies(text: str, ways_out: list[WayOut]) -> None:
    for kind in BytepairError.__subclasses__():
        if kind in (errors.LossError, errors.OverwriteError, errors.DownloadError):
            continue
        error = kind(text, *ways_out)
        for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert type(other) is kind
            assert (str(other), other.phrases, other.ways_out) == (
                str(error), error.phrases, error.ways_out
            )  # fmt: skip


def test_the_core_gives_options_and_values(tmp_path: Path) -> None:
    tok = bytepair.train(["hello hello"], 269)
    (tmp_path / "bad.txt").write_bytes(b"a\xff")
    (tmp_path / "bad.jsonl").write_text('{"a": "\\ud800"}\n{"text": "b"}\n')
    cases: list[tuple[Any, list[tuple[str, Any]]]] = [
        (lambda: tok.encode("<|bos|>", special="error"), [("special", "text"), ("special", "all")]),
        (
            lambda: bytepair.count(tmp_path / "bad.txt"),
            [("errors", "replace"), ("errors", "skip")],
        ),
        (
            lambda: bytepair.count(tmp_path / "bad.jsonl", column="a"),
            [("errors", "replace"), ("errors", "skip")],
        ),
        (lambda: bytepair.count(tmp_path / "bad.jsonl", column="b"), [("column", ANY)]),
        (lambda: tok.encode_batch_to_numpy(["a"], dropout=0.1), [("seed", ANY)]),
    ]
    for call, options in cases:
        with pytest.raises(BytepairError) as refused:
            call()
        ways_out = refused.value.ways_out
        named = [way.option for way in ways_out if way.option is not None]
        assert [(option.name, option.value) for option in named] == options
        assert str(refused.value).startswith(refused.value.problem)
        assert all(str(option) in str(refused.value) for option in named)


def test_the_message_is_short_and_keeps_both_ends() -> None:
    error = BytepairError("a" * 5_000, WayOut.passing("errors", "skip"))
    assert len(str(error)) == 1_000
    assert str(error).endswith('; pass errors="skip"')
