"""A tokenizer for event loops: calls that are awaited, and long ones that do not block the loop.

A short text is encoded in less time than a thread needs to take over, so it is encoded at once.
Longer texts go to the threads of the loop (`asyncio.to_thread`); the core releases the interpreter
lock there, so that the loop goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence, Sized
from typing import Any, Final, TypeVar

from bytepair._internal.arguments import checked
from bytepair.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")

#: Up to this many characters, or ids, a call runs in the loop itself.
MOST_IN_LOOP: Final = 4096


class AsyncTokenizer:
    """The calls of a tokenizer that a server needs, as coroutines.

    Each takes the arguments of the method of `Tokenizer` with its name, and returns the same. All
    tasks and threads may share one.

    Args:
        tokenizer: the tokenizer, which is also the attribute `tokenizer`.

    Example:
        >>> import asyncio, bytepair
        >>> tok = bytepair.AsyncTokenizer(bytepair.train(["hello hello"], 269))
        >>> async def both():
        ...     return await asyncio.gather(tok.encode("hello!"), tok.count("hello" * 9999))
        >>> asyncio.run(both())
        [[259, 33], 9999]
    """

    @checked
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    async def encode(self, text: str, **options: Any) -> list[int]:
        """`Tokenizer.encode`."""
        return await _run(self.tokenizer.encode, text, **options)

    async def encode_batch(self, texts: Iterable[str], **options: Any) -> Any:
        """`Tokenizer.encode_batch`."""
        call: Callable[..., Any] = self.tokenizer.encode_batch
        return await asyncio.to_thread(call, texts, **options)

    async def count(self, text: str, **options: Any) -> int:
        """`Tokenizer.count`."""
        return await _run(self.tokenizer.count, text, **options)

    async def count_batch(self, texts: Iterable[str], **options: Any) -> Any:
        """`Tokenizer.count_batch`."""
        return await asyncio.to_thread(self.tokenizer.count_batch, texts, **options)

    async def truncate_text(self, text: str, max_tokens: int, **options: Any) -> str:
        """`Tokenizer.truncate_text`."""
        return await _run(self.tokenizer.truncate_text, text, max_tokens, **options)

    async def decode(self, ids: Sequence[int], **options: Any) -> str:
        """`Tokenizer.decode`."""
        return await _run(self.tokenizer.decode, ids, **options)

    async def decode_batch(self, batch: Iterable[Sequence[int]], **options: Any) -> list[str]:
        """`Tokenizer.decode_batch`."""
        return await asyncio.to_thread(self.tokenizer.decode_batch, batch, **options)

    async def render_conversation(self, conversation: Any, **options: Any) -> Any:
        """`Tokenizer.render_conversation`."""
        call = self.tokenizer.render_conversation
        return await asyncio.to_thread(call, conversation, **options)

    async def decode_stream(self, ids: AsyncIterable[int], **options: Any) -> AsyncIterator[str]:
        """Decode ids as a model generates them.

        Args:
            ids: the ids, from an asynchronous iterator.
            options: as in `Tokenizer.decode_stream`.

        Yields:
            The text, piece by piece, as soon as its characters are complete; never an empty piece.

        Raises:
            UnknownIdError: if an id is not in the vocabulary.
        """
        stream = self.tokenizer.decode_stream(**options)
        async for id in ids:
            if text := stream.push(id):
                yield text
        if text := stream.flush():
            yield text


async def _run(call: Callable[..., T], argument: Sized, *args: Any, **options: Any) -> T:
    """Call at once if the argument is short, else in a thread."""
    if hasattr(argument, "__len__") and len(argument) > MOST_IN_LOOP:
        return await asyncio.to_thread(call, argument, *args, **options)
    return call(argument, *args, **options)
