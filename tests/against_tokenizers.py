"""Compare a tokenizer of ours with the library `tokenizers` on the same `tokenizer.json`.

`differences` takes a document and texts and yields a line for each result that differs: ids with
every treatment of added tokens, ids with the post-processor's, offsets, and decoding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tokenizers

import bytepair
from bytepair import errors
from json_documents import has_spans

#: What the library raises, including the panics of its Rust code.
THEIR_ERRORS: tuple[type[BaseException], ...] = (Exception,)
try:
    tokenizers.Tokenizer.from_str("{}")
except BaseException as error:
    THEIR_ERRORS = (
        Exception,
        *(kind for kind in type(error).__mro__ if kind.__name__ == "PanicException"),
    )


def attempt(call: Callable[[], Any]) -> Any:
    """The result, or None where the library fails or panics (some inputs do that)."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return None


def theirs(document: dict[str, Any], *, special: bool = True) -> Any:
    """The document in `tokenizers`, or None if it refuses the document."""
    tokenizer = attempt(lambda: tokenizers.Tokenizer.from_str(json.dumps(document)))
    if tokenizer is not None:
        tokenizer.encode_special_tokens = not special
        tokenizer.no_padding()
        tokenizer.no_truncation()
    return tokenizer


def ours(document: dict[str, Any], folder: Path) -> bytepair.Tokenizer:
    """The document in bytepair."""
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return bytepair.load(file)


class Pair:
    """A document in both libraries."""

    def __init__(self, document: dict[str, Any], folder: Path) -> None:
        """Read the document; `tokenizers` reads it several times, with other settings."""
        self.has_spans = has_spans(document)
        # Without a decoder, tokenizers puts spaces between names; bytepair gives the text.
        self.decodes = document["decoder"] is not None
        plain = {**document, "post_processor": None}
        self.own: Any = ours(document, folder)
        self.all = theirs(document)
        self.plain = theirs(plain)
        self.text = theirs(plain, special=False)
        self.none = theirs({**plain, "added_tokens": []})

    def differences(self, text: str) -> Iterator[str]:
        """A line for each result that differs."""
        checks: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
            ("text", lambda: self.own.encode(text), lambda: self._ids(self.text, text)),
            (
                "all",
                lambda: self.own.encode(text, special="all"),
                lambda: self._ids(self.plain, text),
            ),
            (
                "none",
                lambda: self.own.encode(text, special="none"),
                lambda: self._ids(self.none, text),
            ),
            (
                "add_special_tokens",
                lambda: self.own.encode(text, special="all", add_special_tokens=True),
                lambda: self.all.encode(text).ids,
            ),
            (
                "offsets",
                lambda: self._own_offsets(text),
                lambda: self.all.encode(text, add_special_tokens=False).offsets,
            ),
            ("decode", lambda: self._own_decoded(text, False), lambda: self._decoded(text, False)),
            (
                "decode, skipping",
                lambda: self._own_decoded(text, True),
                lambda: self._decoded(text, True),
            ),
        ]
        if not self.decodes:
            checks = [check for check in checks if not check[0].startswith("decode")]
        for name, call, expected in checks:
            right = attempt(expected)
            if right is None or (name == "offsets" and not self.has_spans):
                continue
            try:
                result = call()
            except errors.SplitError as error:
                if "no token" in str(error):  # tokenizers leaves such bytes out
                    continue
                result = error
            except Exception as error:
                result = repr(error)
            if result != right:
                yield f"{name} of {text!r}: {result} instead of {right}"

    @staticmethod
    def _ids(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _own_offsets(self, text: str) -> list[tuple[int, int]]:
        _, _, characters = self.own.encode_offsets(text, special="all")
        return [(start, end) for start, end in characters.tolist()]

    def _decoded(self, text: str, skips: bool) -> str:
        ids = self._ids(self.plain, text)
        decoded: str = self.plain.decode(ids, skip_special_tokens=skips)
        return decoded

    def _own_decoded(self, text: str, skips: bool) -> str:
        decoded: str = self.own.decode(self._ids(self.plain, text), skip_special_tokens=skips)
        return decoded


def differences(document: dict[str, Any], texts: Iterable[str], folder: Path) -> Iterator[str]:
    """A line for each result that differs; nothing if `tokenizers` refuses the document."""
    if theirs(document) is None:
        return
    pair = Pair(document, folder)
    for text in texts:
        yield from pair.differences(text)
