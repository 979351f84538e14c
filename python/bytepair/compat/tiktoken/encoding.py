"""Implements tiktoken's `Encoding`, and finds encodings by name.

Ranks come from tiktoken and its plugins, so `get_encoding` downloads and caches the same files as
they do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import check_many
from bytepair.errors import UnknownIdError
from bytepair.formats.writing import encoding_values
from bytepair.tokenizer import Tokenizer

Allowed: TypeAlias = Literal["all"] | AbstractSet[str]
Disallowed: TypeAlias = Literal["all"] | Collection[str]

_NONE: frozenset[str] = frozenset()


class DisallowedSpecialTokenError(ValueError):
    """A text holds a special token that the caller did not allow."""


class Encoding:
    r"""tiktoken's `Encoding`, with bytepair inside.

    Example:
        >>> from bytepair.compat import tiktoken
        >>> ranks = {bytes([b]): b for b in range(256)} | {b"he": 256}
        >>> enc = tiktoken.Encoding(
        ...     "tiny", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={"<|end|>": 257}
        ... )
        >>> enc.encode("hey<|end|>", allowed_special="all")
        [256, 121, 257]
    """

    __module__ = "bytepair.compat.tiktoken"  # where pickles look for it

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        self.name = name
        self._pat_str = pat_str
        self._mergeable_ranks = mergeable_ranks
        self._special_tokens = special_tokens
        largest = max(special_tokens.values(), default=0)
        self.max_token_value = max(max(mergeable_ranks.values()), largest)
        if explicit_n_vocab:
            assert len(mergeable_ranks) + len(special_tokens) == explicit_n_vocab
            assert self.max_token_value == explicit_n_vocab - 1
        # Special tokens may share an id; the tokenizer has another one for each name but the last.
        names = {id: name for name, id in special_tokens.items()}
        others = [name for name, id in special_tokens.items() if names[id] != name]
        own = {name: self.n_vocab + number for number, name in enumerate(others)}
        self._shared = {id: special_tokens[name] for name, id in own.items()}
        self._tokenizer = Tokenizer.from_ranks(
            mergeable_ranks, pattern=pat_str, special_tokens=special_tokens | own
        )

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, name: str = "bytepair") -> Encoding:
        """A tokenizer with the API of tiktoken; see `bytepair.compat.to_tiktoken`."""
        return cls(name, **encoding_values(tokenizer))

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def encode_ordinary(self, text: str) -> list[int]:
        """Encode a text; special tokens in it are text."""
        return self._tokenizer.encode(text)

    def encode(
        self, text: str, *, allowed_special: Allowed = _NONE, disallowed_special: Disallowed = "all"
    ) -> list[int]:
        """Encode a text; a DisallowedSpecialTokenError if it holds a disallowed special token."""
        allowed = self._allowed([text], allowed_special, disallowed_special)
        return self._with_shared(self._tokenizer.encode(text, special=allowed))

    def encode_to_numpy(self, text: str, **special: Any) -> NDArray[np.uint32]:
        """Encode a text into an array of uint32; see `encode`."""
        return np.array(self.encode(text, **special), np.uint32)

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """Encode many texts on several threads; special tokens in them are text."""
        return self._tokenizer.encode_batch(text, threads=num_threads)

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: Allowed = _NONE,
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:
        """Encode many texts on several threads; see `encode`."""
        texts = list(check_many("text", text))
        allowed = self._allowed(texts, allowed_special, disallowed_special)
        rows = self._tokenizer.encode_batch(texts, special=allowed, threads=num_threads)
        return [self._with_shared(row) for row in rows]

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of one token, special or not; a KeyError if it does not exist."""
        token = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        if token in self._mergeable_ranks:
            return self._mergeable_ranks[token]
        try:
            return self._special_tokens[token.decode()]
        except (KeyError, UnicodeDecodeError):
            raise KeyError(token) from None

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Decode ids into bytes; a KeyError if one is unknown."""
        try:
            return self._tokenizer.decode_bytes(tokens)
        except UnknownIdError as error:
            if any(not 0 <= token < 1 << 32 for token in tokens):
                raise OverflowError("an id is a number from 0 to 2**32 - 1") from None
            raise KeyError(str(error)) from None

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Decode ids into text; bytes that are not UTF-8 are treated as `errors` says."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id; a KeyError if it is unknown."""
        return self.decode_bytes([token])

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """The bytes of each id."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Iterable[int]) -> tuple[str, list[int]]:
        """Decode ids, and tell at which character each token starts (or inside which one)."""
        parts = self.decode_tokens_bytes(tokens)
        offsets: list[int] = []
        characters = 0
        for part in parts:
            inside = 0x80 <= part[0] < 0xC0
            offsets.append(max(0, characters - inside))
            characters += sum(not 0x80 <= byte < 0xC0 for byte in part)
        return b"".join(parts).decode(), offsets

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """Decode many lists of ids into texts; the number of threads is not used."""
        lists = check_many("batch", batch, "lists of ids")
        return [self.decode(tokens, errors) for tokens in lists]

    def decode_bytes_batch(
        self, batch: Sequence[Sequence[int]], *, num_threads: int = 8
    ) -> list[bytes]:
        """Decode many lists of ids into bytes; the number of threads is not used."""
        return [self.decode_bytes(tokens) for tokens in check_many("batch", batch, "lists of ids")]

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all ordinary tokens, sorted."""
        return sorted(self._mergeable_ranks)

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`."""
        return self._special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """The names of the special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether an id is that of a special token."""
        assert isinstance(token, int)
        return token in self._special_tokens.values()

    @property
    def n_vocab(self) -> int:
        """One more than the largest id."""
        return self.max_token_value + 1

    def _allowed(
        self, texts: list[str], allowed: Allowed, disallowed: Disallowed
    ) -> AbstractSet[str]:
        """The allowed special tokens; an error if a text holds a disallowed one."""
        names = self.special_tokens_set
        allow = names if allowed == "all" else allowed
        forbid = frozenset(names - allow if disallowed == "all" else disallowed)
        for name in (self._first_of(forbid, text) for text in texts if forbid):
            if name is not None:
                raise DisallowedSpecialTokenError(
                    f"the text holds the disallowed special token {name!r}; pass "
                    f"allowed_special={{{name!r}}} for its id, or disallowed_special=() for text"
                )
        return allow & names

    def _first_of(self, names: frozenset[str], text: str) -> str | None:
        """The first of the names in a text, the longest of those that start there; None if none."""
        if len(names) <= _MOST_TRIED or not names <= self.special_tokens_set:
            match = _finder(names).search(text)
            return None if match is None else match[0]
        ids = self._tokenizer.encode(text, special=names)  # in linear time
        special = {id: name for name, id in self._tokenizer.special_tokens.items()}
        return next((special[id] for id in ids if id in special), None)

    def _with_shared(self, ids: list[int]) -> list[int]:
        return [self._shared.get(id, id) for id in ids] if self._shared else ids

    def __getstate__(self) -> object:
        if self is ENCODINGS.get(self.name):
            return self.name
        return {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }

    def __setstate__(self, value: Any) -> None:
        if isinstance(value, str):
            self.__dict__ = get_encoding(value).__dict__
        else:
            Encoding.__init__(self, **value)


#: A regular expression tries all names at each character with which one begins, up to so many.
_MOST_TRIED: Final = 1 << 11


@lru_cache(maxsize=128)
def _finder(names: frozenset[str]) -> re.Pattern[str]:
    """Finds any of the names, the longest of those that start at the same place."""
    return re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))


#: The encodings that have been requested, by name.
ENCODINGS: dict[str, Encoding] = {}

#: For each name the function that returns the values of its encoding; filled on the first request.
ENCODING_CONSTRUCTORS: dict[str, Callable[[], dict[str, Any]]] = {}


def list_encoding_names() -> list[str]:
    """The names of the encodings of tiktoken and of its plugins."""
    if not ENCODING_CONSTRUCTORS:
        import tiktoken_ext  # type: ignore[import-untyped, unused-ignore]

        all_constructors: dict[str, Callable[[], dict[str, Any]]] = {}
        for plugin in iter_modules(tiktoken_ext.__path__, "tiktoken_ext."):
            constructors = import_module(plugin.name).ENCODING_CONSTRUCTORS
            if twice := all_constructors.keys() & constructors.keys():
                raise ValueError(f"{plugin.name} has the encoding {min(twice)!r} a second time")
            all_constructors |= constructors
        ENCODING_CONSTRUCTORS.update(all_constructors)
    return list(ENCODING_CONSTRUCTORS)


def get_encoding(encoding_name: Any) -> Encoding:
    """The encoding of that name; a ValueError if there is none."""
    if encoding_name not in ENCODINGS:
        names = list_encoding_names()
        if encoding_name not in names:
            raise ValueError(f"unknown encoding {encoding_name!r}; there are {', '.join(names)}")
        ENCODINGS[encoding_name] = Encoding(**ENCODING_CONSTRUCTORS[encoding_name]())
    return ENCODINGS[encoding_name]
