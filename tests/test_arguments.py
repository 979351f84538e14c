"""A wrong argument is an error that names it, its value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytepair
from bytepair.errors import ArgumentError, SpecialTokenError
from training_options import keywords

TEXT = "the hello of the theme, hello there; other others hope" * 3
TOK = bytepair.train(bytepair.sample.paths(), 290)
COUNTS = bytepair.count([TEXT])
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
PAIR = {"prompt": "hi", "chosen": "yo", "rejected": "hi"}


#: Calls with one wrong argument, and what the error says.
NAMED: list[tuple[Callable[[], Any], str]] = [
    (lambda: bytepair.train([TEXT], "300"), "vocab_size is '300'; it must be an integer"),  # type: ignore[arg-type]
    (lambda: bytepair.train([TEXT], 300.0), "vocab_size is 300.0; it must be an integer"),  # type: ignore[arg-type]
    (lambda: bytepair.train([TEXT], 300, threads=-1), "threads is -1; it must be .* at least 1"),
    (lambda: TOK.encode_batch(["a"], threads=-1), "threads is -1; it must be .* at least 1"),
    (
        lambda: TOK.encode_batch_to_numpy(["a"], threads=2.5),  # type: ignore[arg-type]
        "threads is 2.5; it must be an integer",
    ),
    (lambda: bytepair.train([TEXT], 300, special_tokens=[b"x"]), r"special_tokens is \[b'x'\]"),  # type: ignore[list-item]
    (
        lambda: bytepair.train([TEXT], 300, special_tokens=["\ud83d"]),
        r"special_tokens is \['\\ud83d'\]; it must be a list of str",
    ),
    (lambda: TOK.decode("1 2"), "ids is '1 2'; it must be a list"),  # type: ignore[arg-type]
    (lambda: TOK.decode(7), "ids is 7; it must be a list"),  # type: ignore[arg-type]
    (lambda: TOK.decode([2.5]), "an id is 2.5; it must be an integer"),  # type: ignore[list-item]
    (lambda: TOK.decode([1], errors="x"), "errors is 'x'; it must be"),
    (
        lambda: bytepair.count([TEXT], reading=bytepair.Reading(errors="x")),  # type: ignore[arg-type]
        "errors is 'x'; it must be",
    ),
    (lambda: TOK.encode_file("a.txt", errors="x"), "errors is 'x'; it must be"),  # type: ignore[arg-type]
    (lambda: bytepair.training.resume("t.json", [TEXT]), "tokenizer is 't.json'.*bytepair.load"),  # type: ignore[arg-type]
    (lambda: bytepair.evaluate.inspect("tok"), "tokenizer is 'tok'; it must be a Tokenizer"),  # type: ignore[arg-type]
    (lambda: TOK.encode("a", special=3), "special is 3; it must be"),  # type: ignore[arg-type]
    (
        lambda: bytepair.tokenizer.truncate_text(TOK, "a", -1),
        "max_tokens is -1; it must be .* at least 0",
    ),
    (
        lambda: bytepair.tokenizer.truncate_text(TOK, "a", 1, keep="all"),  # type: ignore[arg-type]
        "keep is 'all'; it must be \"start\"",
    ),
    (lambda: TOK.render_batch([TALK])[0:1], r"conversation or row is slice\(0, 1, None\)"),  # type: ignore[index]
]


@pytest.mark.parametrize(("call", "message"), NAMED, ids=[message[:20] for _, message in NAMED])
def test_an_error_names_the_argument_the_value_and_what_is_allowed(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_dataset_has_no_slices(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    bytepair.shards.write(tmp_path / "a.txt", TOK, tmp_path / "shards")
    dataset: Any = bytepair.shards.Dataset(tmp_path / "shards")
    assert len(dataset[np.int64(0)]) == len(dataset[0])
    with pytest.raises(ArgumentError, match=r"a document is slice\(0, 2, None\); it must"):
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

    broken: list[tuple[dict[str, Any], str]] = [
        ({"special_tokens": ["a"]}, r"'a' is an ordinary token \(the byte 97\)"),
        ({"special_tokens": ["<|x|>", "\n"]}, r"'\\n' is an ordinary token"),
        ({"special_tokens": ["ab"], "initial_tokens": ["ab"]}, r"'ab' .* \(an initial token\)"),
    ]
    for options, message in broken:
        with pytest.raises(SpecialTokenError, match=message):
            bytepair.train(bytepair.corpus.Texts(unread()), vocab_size=300, **keywords(**options))
    with pytest.warns(UserWarning, match="'the' became an ordinary token") as record:
        bytepair.train(["the the the"], vocab_size=259, special_tokens=["the"])
    assert record[0].filename == __file__
