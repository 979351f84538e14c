"""A web service that counts tokens, truncates texts and streams tokens, with FastAPI.

    pip install bytepair fastapi uvicorn
    TOKENIZER=my-tokenizer uvicorn fastapi_app:app      # in this folder
    curl -s localhost:8000/count -H 'content-type: application/json' -d '{"text": "Hello world"}'

`TOKENIZER` is what `bytepair.load` takes; without it, a small tokenizer is trained on the sample
text. Long texts are encoded in threads, so that they do not delay other requests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

import bytepair
from bytepair.tokenizer import truncate_text

MAX_CHARS = 10_000_000


def tokenizer() -> bytepair.Tokenizer:
    """The tokenizer that the environment names, or a small one."""
    if name := os.environ.get("TOKENIZER"):
        return bytepair.load(name)
    return bytepair.train(bytepair.sample.paths(), 4096, progress=False)


app = FastAPI()
tok = tokenizer()


class Text(BaseModel):
    """A text."""

    text: str = Field(max_length=MAX_CHARS)


class Limit(Text):
    """A text, and how many tokens it may have."""

    max_tokens: int = Field(ge=0)


@app.post("/count")
async def count(body: Text) -> dict[str, int]:
    """The number of tokens of a text."""
    return {"tokens": await asyncio.to_thread(tok.count, body.text)}


@app.post("/truncate")
async def truncate(body: Limit) -> dict[str, str]:
    """The beginning of a text with at most so many tokens."""
    return {"text": await asyncio.to_thread(truncate_text, tok, body.text, body.max_tokens)}


@app.post("/stream")
async def stream(body: Text) -> StreamingResponse:
    """The text token by token, each piece as soon as its characters are complete."""
    ids = await asyncio.to_thread(tok.encode, body.text)
    return StreamingResponse(pieces(ids), media_type="text/plain")


def pieces(ids: list[int]) -> Iterator[str]:
    """The text of ids that arrive one by one, as a model generates them."""
    stream = tok.decode_stream()
    for id in ids:
        yield stream.push(id)
    yield stream.flush()
