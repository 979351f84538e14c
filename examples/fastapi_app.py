"""A web service that counts tokens, fits texts and prompts to a length, and streams tokens.

    pip install bytepair fastapi uvicorn
    TOKENIZER=my-tokenizer uvicorn fastapi_app:app      # in this folder
    curl -s localhost:8000/count --json '{"text": "Hello world"}'

`TOKENIZER` is what `bytepair.load` takes; without it, a small tokenizer is trained on the sample
text. Long texts are encoded in threads, so that they do not delay other requests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI, HTTPException
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


class Conversation(BaseModel):
    """The messages of a conversation, and how many tokens its prompt may have."""

    messages: list[dict[str, Any]]
    max_tokens: int | None = Field(None, ge=1)


class Answer(Text):
    """What a model answers, and the strings at which the answer ends."""

    stop: list[str] = []


@app.post("/count")
async def count(body: Text) -> dict[str, int]:
    """The number of tokens of a text."""
    return {"tokens": await asyncio.to_thread(tok.count, body.text)}


@app.post("/truncate")
async def truncate(body: Limit) -> dict[str, str]:
    """The beginning of a text with at most so many tokens."""
    return {"text": await asyncio.to_thread(truncate_text, tok, body.text, body.max_tokens)}


@app.post("/prompt")
async def prompt(body: Conversation) -> dict[str, list[int]]:
    """The ids that a model continues; the oldest turns are dropped if there are too many."""
    render = tok.render_for_completion
    try:
        ids = await asyncio.to_thread(
            render, body.messages, max_tokens=body.max_tokens, drop="oldest"
        )
    except bytepair.errors.BytepairError as error:
        raise HTTPException(422, str(error)) from None
    return {"ids": ids}


@app.post("/stream")
async def stream(body: Answer) -> StreamingResponse:
    """The text token by token, each piece as soon as its characters are complete."""
    ids = await asyncio.to_thread(tok.encode, body.text)
    return StreamingResponse(pieces(ids, body.stop), media_type="text/plain")


def pieces(ids: list[int], stop: list[str]) -> Iterator[str]:
    """The text of ids that arrive one by one, as a model generates them."""
    stream = tok.decode_stream(stop=stop)
    for id in ids:
        yield stream.push(id)
        if stream.stopped:
            break
    yield stream.flush()
