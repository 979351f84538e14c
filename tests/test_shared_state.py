"""Threads that meet in a call get what each would get alone."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import FrameType
from typing import Any

import pytest

import bytepair
from bytepair import chat
from bytepair.chat import renderer

TALK = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "there"}]


@pytest.fixture(autouse=True)
def _switches() -> Iterator[None]:
    """Threads change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(calls: Sequence[Callable[..., Any]], times: int = 20) -> list[list[Any]]:
    """The results of calls that run at the same time, each some times."""
    results: list[list[Any]] = [[] for _ in calls]
    start = threading.Barrier(len(calls))

    def run(place: int) -> None:
        start.wait()
        for _ in range(times):
            try:
                results[place].append(calls[place]())
            except Exception as error:
                results[place].append(error)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_each_thread_gets_the_ids_of_its_own_tokenizer() -> None:
    toks = [bytepair.train(["hello there " * n], 265 + n) for n in range(1, 5)]
    expected = [tok.render_conversation(TALK) for tok in toks]
    calls = [lambda tok=tok: tok.render_conversation(TALK) for tok in toks]
    for result, right in zip(together(calls), expected, strict=True):
        assert all(one == right for one in result)


@pytest.mark.parametrize("line", range(12))
def test_a_writer_belongs_to_its_tokenizer_whoever_comes_between(line: int) -> None:
    """The writer of the last call is kept; another thread may replace it before any line."""
    own, other = (bytepair.train(["hello there " * n], 265 + n) for n in (1, 4))
    lines = count()

    def between(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not renderer.writer.__code__:
            return None
        if event == "line" and next(lines) == line:
            renderer.writer(other, None)
        return between

    renderer.writer(own, None)
    before = sys.gettrace()
    sys.settrace(between)
    try:
        found = renderer.writer(own, None)
    finally:
        sys.settrace(before)
    assert found.tokenizer is own


def test_first_calls_that_meet_are_right() -> None:
    text = "hello there"
    tok = bytepair.train([text] * 2, 270)
    calls: list[Callable[..., Any]] = [
        lambda: tok.encode_batch([text])[0] == tok.encode(text),
        lambda: bytepair.train([text] * 2, vocab_size=270) == tok,
        lambda: bytepair.count([text], pattern="gpt4") == bytepair.count([text], pattern="gpt4"),
        lambda: tok.replace(roles={"eos": "<|bos|>"}).roles["eos"] == "<|bos|>",
        lambda: chat.JinjaTemplate("{{ messages }}").checks == "error",
    ]
    for result in together(calls * 2, 5):
        assert all(one is True for one in result), result
