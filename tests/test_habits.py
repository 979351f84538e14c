"""Names of other libraries: each gives an error that names the call of ours, which exists."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

import bytepair
from bytepair import plot
from bytepair.tokenizer.habits import HABITS

TOK = bytepair.train(["hello hello"] * 2, 270)


@pytest.mark.parametrize("name", HABITS)
def test_a_name_of_another_library_names_ours(name: str) -> None:
    for owner in (TOK, bytepair.Tokenizer):
        with pytest.raises(AttributeError, match="a Tokenizer has no attribute") as caught:
            getattr(owner, name)
        assert str(caught.value).endswith(f"; use {HABITS[name]}")
    assert name not in dir(TOK)


@pytest.mark.parametrize("hint", sorted({*HABITS.values()}))
def test_what_is_named_exists(hint: str) -> None:
    call = re.match(r"(?:id in )?(bytepair\.)?(\w+)", hint)
    assert call
    assert hasattr(bytepair if call[1] else TOK, call[2])


def test_other_names_and_protocols_stay() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'colour'$"):
        TOK.colour  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(TOK, "to_str")
    assert copy.deepcopy(TOK) == TOK == pickle.loads(pickle.dumps(TOK))


def test_what_is_shown_in_a_terminal() -> None:
    session = TOK.session()
    session.append("hello hell")
    ids, stable = len(session), session.stable
    assert repr(session) == f"<bytepair.Session: {ids} ids, {stable} of them stable>"
    drawn = plot.bars({"a": 1.0}, title="t")
    assert re.fullmatch(r"<SVG of [\d,]+ characters; a notebook draws it, .*>", repr(drawn))
    assert repr(TOK.show("a", format="html")).startswith("<HTML of ")
