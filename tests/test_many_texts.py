"""A text, bytes, a mapping or a table is iterable, but is not many texts: it is refused."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Callable
from typing import Any

import pytest

import bytepair
from bytepair.errors import ArgumentError

TOK = bytepair.train(["hello hello"], 269)


class Table:
    """A table as in pandas: iterating it gives the names of its columns."""

    columns = ("text",)

    def __iter__(self) -> Any:
        return iter(self.columns)


CALLS: dict[str, Callable[[Any], Any]] = {
    "encode_batch": lambda texts: TOK.encode_batch(texts),
    "pad": lambda texts: bytepair.compat.pad(TOK, texts),
    "encode_batch_to_numpy": lambda texts: TOK.encode_batch_to_numpy(texts),
    "count_batch": lambda texts: bytepair.tokenizer.count_batch(TOK, texts),
    "encode_stream": lambda texts: list(TOK.encode_stream(texts)),
    "decode_batch": lambda texts: TOK.decode_batch(texts),
}


def wrong() -> list[Any]:
    """Things that are no list of texts."""
    columns = {"text": ["hello"], "id": ["a"]}
    return ["hello", b"hello", bytearray(b"hello"), columns, UserDict(columns),
            OrderedDict(columns), columns.copy(), Table()]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("texts", wrong(), ids=lambda value: type(value).__name__)
def test_a_text_or_a_mapping_is_not_many_texts(name: str, texts: Any) -> None:
    with pytest.raises(ArgumentError) as refused:
        CALLS[name](texts)
    assert refused.value.option in ("texts", "batch", "rows")


def test_other_iterables_are_many_texts() -> None:
    columns = {"hello": 1, "hell": 2}
    for texts in (["hello", "hell"], ("hello", "hell"), iter(columns), columns.keys()):
        assert TOK.encode_batch(texts) == [[259], [257, 108]]
