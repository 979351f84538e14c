"""Coroutines return what methods return, and a long call does not hold up the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import bytepair
from bytepair.errors import ArgumentError
from bytepair.tokenizer.asynchronous import MOST_IN_LOOP

TOK = bytepair.train(["hello hello world"], 270)
TALK = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "world"}]
LONG = "hello world " * MOST_IN_LOOP


def test_coroutines_return_what_methods_return() -> None:
    tok = bytepair.AsyncTokenizer(TOK)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("encode", ("hello<|bos|>",), {"special": "all", "append": "<|bos|>"}),
        ("encode", (LONG,), {"prepend": "<|bos|>"}),
        ("encode_batch", (["hello", LONG],), {"threads": 1}),
        ("count", (LONG,), {}), ("count", ("hello",), {}),
        ("truncate_text", (LONG, 5), {"keep": "end"}),
        ("decode", ([256, 257],), {}), ("decode", (TOK.encode(LONG),), {"errors": "strict"}),
        ("decode_batch", ([[256], [261]],), {"skip_special_tokens": True}),
        ("render_conversation", (TALK,), {}),
    ]  # fmt: skip

    async def results() -> list[Any]:
        return await asyncio.gather(*(getattr(tok, name)(*a, **k) for name, a, k in calls))

    assert asyncio.run(results()) == [getattr(TOK, name)(*a, **k) for name, a, k in calls]

    async def counts() -> Any:
        return await tok.count_batch(["hello", ""])

    assert asyncio.run(counts()).tolist() == [1, 0]
    with pytest.raises(ArgumentError, match="encode has no argument 'allowed_special'"):
        asyncio.run(tok.encode("a", allowed_special="all"))
    with pytest.raises(ArgumentError, match="tokenizer is 'tok'"):
        bytepair.AsyncTokenizer("tok")  # type: ignore[arg-type]


class Held(bytepair.Tokenizer):
    """A tokenizer whose calls wait until the loop goes on."""

    __slots__ = ()
    go_on = threading.Event()

    def count(self, text: str, **options: Any) -> int:
        assert self.go_on.wait(60), "the loop is held up"
        return super().count(text, **options)


def test_a_long_call_does_not_hold_up_the_loop() -> None:
    tok = bytepair.AsyncTokenizer(Held.from_bytes(TOK.to_bytes()))

    async def both() -> int:
        counted = asyncio.create_task(tok.count(LONG))
        await asyncio.sleep(0)  # the task begins
        assert not counted.done()
        Held.go_on.set()
        return await counted

    assert asyncio.run(both()) == TOK.count(LONG)


def test_streams_are_decoded_piece_by_piece() -> None:
    tok = bytepair.AsyncTokenizer(TOK)
    ids = [*TOK.encode("hé 🙂"), TOK.special_tokens["<|bos|>"], 0xE2]

    async def generated() -> AsyncIterator[int]:
        for id in ids:
            yield id

    async def pieces(**options: Any) -> list[str]:
        return [text async for text in tok.decode_stream(generated(), **options)]

    assert asyncio.run(pieces()) == ["h", "é", " ", "🙂", "<|bos|>", "\ufffd"]
    skipped = asyncio.run(pieces(skip_special_tokens=True))
    assert "".join(skipped) == TOK.decode(ids, skip_special_tokens=True)
