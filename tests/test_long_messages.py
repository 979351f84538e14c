"""Messages stay readable, whatever a file contains: at most 1,000 characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.chat import JinjaTemplate
from formats import json_of

BIG = "x" * 1_000_000
LONGEST = "x" * 4096  # the name of an added token may have
TOK = bytepair.train(["hello hello"] * 2, 261, special_tokens=["<s>"])
CONVERSATION = [{"role": "user", "content": "x"}]


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of the first values of every object and list, and of every new key."""
    if isinstance(node, dict):
        for key, value in list(node.items())[:12]:
            yield from places(value, (*at, key))
        yield (*at, BIG)
    elif isinstance(node, list):
        for index, value in enumerate(node[:2]):
            yield from places(value, (*at, index))
    if at:
        yield at


def changed(document: dict[str, Any], at: tuple[Any, ...], value: Any) -> bytes:
    new = json.loads(json.dumps(document))
    node = new
    for key in at[:-1]:
        node = node[key]
    node[at[-1]] = value
    return json.dumps(new).encode()


def message(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except KeyError as error:  # whose text is the repr of its message
        return str(error.args[0])
    except Exception as error:
        return str(error)
    return None


@pytest.mark.parametrize("value", [BIG, "(" + BIG, [BIG], {BIG: BIG}, {"type": BIG}], ids=range(5))
def test_of_a_tokenizer_json(value: Any, tmp_path: Path) -> None:
    file, document, refused = tmp_path / "tokenizer.json", json_of(TOK), 0
    for at in places(document):
        file.write_bytes(changed(document, at, value))
        text = message(lambda: bytepair.load(file))
        refused += text is not None
        assert text is None or len(text) <= 1_000, at
    assert refused > 10


def lines(text: str) -> Callable[[Path], Any]:
    def call(folder: Path) -> None:
        (folder / "a.jsonl").write_text(text + "\n", encoding="utf-8")
        bytepair.count(folder / "a.jsonl")

    return call


def ranks(text: str) -> Callable[[Path], Any]:
    def call(folder: Path) -> None:
        (folder / "a.tiktoken").write_text(text + "\n", encoding="utf-8")
        bytepair.load(folder / "a.tiktoken", "tiktoken", pattern="gpt2", special_tokens={})

    return call


def render(template: str) -> Callable[[Path], Any]:
    return lambda _: TOK.render_conversation(CONVERSATION, template=JinjaTemplate(template))


def named() -> bytepair.Tokenizer:
    ranks = TOK.mergeable_ranks()
    return bytepair.Tokenizer.from_ranks(
        ranks, pattern="gpt2", special_tokens={LONGEST: 300, "<s>": 301}
    )


CASES: dict[str, Callable[[Path], Any]] = {
    "line": lines(BIG),
    "field": lines(json.dumps({BIG: 1})),
    "rank": ranks("aGk= " + BIG),
    "token": ranks("-" + BIG + " 1"),
    "pattern": lambda _: bytepair.pretokenize("a", pattern="(" + BIG),
    "end of pattern": lambda _: bytepair.pretokenize("a", pattern=BIG + "("),
    "twice": lambda _: bytepair.train(["a"], 264, special_tokens=[BIG, BIG]),
    "unknown": lambda _: TOK.encode("a", special={BIG}),
    "token_id": lambda _: TOK.token_id(BIG),
    "token_id of bytes": lambda _: TOK.token_id(b"\xff" * 1_000_000),
    "prepend": lambda _: TOK.encode("a", prepend=BIG),
    "syntax": render("{{ " + BIG + " " + BIG + " }}"),
    "raised": render("{{ raise_exception('" + BIG + "') }}"),
    "role": lambda _: TOK.render_conversation([{"role": BIG, "content": "x"}]),
    "key": lambda _: TOK.render_conversation([{"role": "user", "content": "x", BIG: 1}]),
    "in text": lambda _: named().encode(LONGEST, special="error"),
    "others": lambda _: named().encode("x", special={"q"}),
    "template": lambda _: named().render_conversation(CONVERSATION),
    "loss": lambda folder: named().export(folder / "o", "gpt2"),
    "note": lambda folder: TOK.replace(notes={"add_bos_token": BIG}).export(folder / "n.gguf"),
}


@pytest.mark.parametrize("name", CASES)
def test_of_other_input(name: str, tmp_path: Path) -> None:
    text = message(lambda: CASES[name](tmp_path))
    assert text is not None
    assert 10 < len(text) <= 1_000


def test_the_caret_stands_below_the_error() -> None:
    text = message(lambda: bytepair.pretokenize("a", pattern="é" * 500 + "***" + "b" * 500))
    assert text is not None
    *_, shown, caret = text.splitlines()
    assert shown[caret.index("^")] == "*"
    assert len(shown) < 150


def test_the_place_and_the_way_out_stay() -> None:
    text = message(lambda: named().encode(LONGEST, special="error"))
    assert text is not None
    assert text.startswith("the text contains the special token")
    assert 'special="all"' in text
