"""Names of other libraries: each gives an error that names the call of ours, which exists."""

from __future__ import annotations

import copy
import pickle
import pydoc
import re
from typing import Any

import pytest

import bytepair
from bytepair._internal.hints import HABITS, KEYWORDS, MODULE_NAMES
from bytepair.errors import ArgumentError
from messages import told

#: The keywords that methods for one short text know, to refuse them.
USUAL = {"allowed_special", "disallowed_special"}
#: Writes help without the codes of a terminal.
PLAIN: Any = vars(pydoc)["plaintext"]
TOK = bytepair.train(["hello hello"] * 2, 270)


@pytest.mark.parametrize("name", HABITS)
def test_a_name_of_another_library_names_ours(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(TOK, name)
    assert str(caught.value).endswith(f"; use {HABITS[name]}")
    assert name not in dir(TOK)


@pytest.mark.parametrize(
    "name", ["load", "from_pretrained", "from_file", "from_directory", "train_from_iterator"]
)
def test_the_class_says_what_makes_a_tokenizer(name: str) -> None:
    for owner in (TOK, bytepair.Tokenizer):
        with told(AttributeError):
            getattr(owner, name)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("truncate", "bytepair.tokenizer.truncate_text"), ("render_prompt", "render_for_completion"),
     ("bits_per_byte", "bytepair.evaluate.bits_per_byte"), ("token_lengths", "token_lengths")],
)  # fmt: skip
def test_names_that_people_try_lead_to_what_they_seek(name: str, instead: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(TOK, name)
    assert instead in str(caught.value).partition("; use ")[2]


@pytest.mark.parametrize("name", MODULE_NAMES)
def test_the_module_says_what_to_use(name: str) -> None:
    if name in bytepair.__all__:
        return
    with pytest.raises(AttributeError) as caught:
        getattr(bytepair, name)
    assert str(caught.value).endswith(f"; use {MODULE_NAMES[name]}")


def test_the_module_says_where_a_name_of_a_room_is() -> None:
    with told(AttributeError):
        _ = bytepair.Mixture


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize(
    ("method", "argument"),
    [("encode", "a"), ("count", "a"), ("__call__", "a"), ("encode_batch", ["a"]),
     ("decode_batch", [[97]])],
)  # fmt: skip
def test_a_keyword_of_another_library_names_ours(method: str, argument: Any, keyword: str) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(TOK, method)(argument, **{keyword: True})
    assert keyword in str(caught.value)
    if method in ("encode", "count") and keyword not in USUAL:
        return  # Python's own error: knowing all keywords would slow down each call
    assert isinstance(caught.value, ArgumentError)
    assert caught.value.option == keyword
    assert caught.value.hint == f"use {KEYWORDS[keyword]}"


def test_other_keywords_are_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match="an unexpected keyword argument 'colour'"):
        TOK.encode("a", colour=1)  # type: ignore[call-arg]
    with told(ArgumentError):
        TOK("a", colour=1)
    assert TOK("hello<|bos|>", special="all") == TOK.encode("hello<|bos|>", special="all")


@pytest.mark.parametrize("hint", sorted({*HABITS.values()}))
def test_what_is_named_exists(hint: str) -> None:
    call = re.match(r"(?:id in )?(bytepair\.)?(\w+)", hint)
    assert call
    assert hasattr(bytepair if call[1] else TOK, call[2])


def test_other_names_and_protocols_stay() -> None:
    with told(AttributeError):
        TOK.colour  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(TOK, "to_str")
    assert copy.deepcopy(TOK) == TOK == pickle.loads(pickle.dumps(TOK))


def test_what_is_shown_in_a_terminal() -> None:
    session = bytepair.tokenizer.Session(TOK)
    session.append("hello hell")
    ids, stable = len(session), session.stable
    assert repr(session) == f"<bytepair.Session: {ids} ids, {stable} of them stable>"
    drawn = repr(TOK.show("a", format="html"))
    assert re.fullmatch(r"<HTML of [\d,]+ characters; a notebook draws it, .*>", drawn)
