"""A wrong argument is an error that names it, its value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytepair
from bytepair.errors import ArgumentError, SpecialTokenError
from messages import told
from training_options import keywords

TEXT = "the hello of the theme, hello there; other others hope" * 3
TOK = bytepair.train(bytepair.sample.paths(), 290)
COUNTS = bytepair.count([TEXT])
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
PAIR = {"prompt": "hi", "chosen": "yo", "rejected": "hi"}


#: Calls with one wrong argument, and what the error says.
NAMED: list[Callable[[], Any]] = [
    lambda: bytepair.train([TEXT], "300"),  # type: ignore[arg-type]
    lambda: bytepair.train([TEXT], 300.0),  # type: ignore[arg-type]
    lambda: bytepair.train([TEXT], 300, threads=-1),
    lambda: TOK.encode_batch(["a"], threads=-1),
    lambda: TOK.encode_batch_to_numpy(["a"], threads=2.5),  # type: ignore[arg-type]
    lambda: bytepair.train([TEXT], 300, special_tokens=[b"x"]),  # type: ignore[list-item]
    lambda: bytepair.train([TEXT], 300, special_tokens=["\ud83d"]),
    lambda: TOK.decode("1 2"),  # type: ignore[arg-type]
    lambda: TOK.decode(7),  # type: ignore[arg-type]
    lambda: TOK.decode([2.5]),  # type: ignore[list-item]
    lambda: TOK.decode([1], errors="x"),
    lambda: bytepair.count([TEXT], reading=bytepair.Reading(errors="x")),  # type: ignore[arg-type]
    lambda: TOK.encode_file("a.txt", errors="x"),  # type: ignore[arg-type]
    lambda: bytepair.training.resume("t.json", [TEXT]),  # type: ignore[arg-type]
    lambda: bytepair.evaluate.inspect("tok"),  # type: ignore[arg-type]
    lambda: TOK.encode("a", special=3),  # type: ignore[arg-type]
    lambda: bytepair.tokenizer.truncate_text(TOK, "a", -1),
    lambda: bytepair.tokenizer.truncate_text(TOK, "a", 1, keep="all"),  # type: ignore[arg-type]
    lambda: TOK.render_batch([TALK])[0:1],  # type: ignore[index]
]


@pytest.mark.parametrize("call", NAMED)
def test_an_error_names_the_argument_the_value_and_what_is_allowed(
    call: Callable[[], Any],
) -> None:
    with told(ArgumentError):
        call()


def test_a_dataset_has_no_slices(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    bytepair.shards.write(tmp_path / "a.txt", TOK, tmp_path / "shards")
    dataset: Any = bytepair.shards.Dataset(tmp_path / "shards")
    assert len(dataset[np.int64(0)]) == len(dataset[0])
    with told(ArgumentError):
        dataset[0:2]


def test_integers_of_numpy_are_integers(tmp_path: Path) -> None:
    expected = bytepair.count([TEXT], reading=bytepair.Reading(doc_cap=5))
    assert bytepair.count([TEXT], reading=bytepair.Reading(doc_cap=np.int32(5))) == expected  # type: ignore[arg-type]
    assert bytepair.train([TEXT], np.uint16(260), special_tokens=[]).vocab_size == 260  # type: ignore[arg-type]
    (tmp_path / "a.txt").write_text(TEXT)
    bytepair.shards.write(tmp_path / "a.txt", TOK, tmp_path / "a", doc_cap=np.int64(9))  # type: ignore[arg-type]


def test_a_special_token_is_not_an_ordinary_one() -> None:
    def unread() -> Iterator[str]:
        yield "hello"
        raise AssertionError("the text is read before the options are checked")

    broken: list[dict[str, Any]] = [
        {"special_tokens": ["a"]},
        {"special_tokens": ["<|x|>", "\n"]},
        {"special_tokens": ["ab"], "initial_tokens": ["ab"]},
    ]
    for options in broken:
        with told(SpecialTokenError):
            bytepair.train(bytepair.corpus.Texts(unread()), vocab_size=300, **keywords(**options))
    with told(UserWarning) as record:
        bytepair.train(["the the the"], vocab_size=259, special_tokens=["the"])
    assert record[0].filename == __file__
