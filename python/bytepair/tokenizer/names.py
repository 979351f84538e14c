"""Errors for names that a tokenizer does not have, and what the core calls in this package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from bytepair import _core
from bytepair._internal.hints import HABITS, KEYWORDS, MODULE_NAMES
from bytepair.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unknown_keyword(method: str, names: Iterable[str]) -> ArgumentError:
    """The error for a keyword that a method of a tokenizer does not have.

    Example:
        >>> print(unknown_keyword("encode", ["allowed_special"]))
        encode has no argument 'allowed_special'; use special="all" or special={"<|name|>"}
        >>> print(unknown_keyword("encode", ["colour"]))
        encode has no argument 'colour'
    """
    name = next(iter(names))
    hint = f"use {KEYWORDS[name]}" if name in KEYWORDS else ""
    return ArgumentError(f"{method} has no argument {name!r}", option=name, hint=hint)


def missing(name: str) -> AttributeError:
    """The error for an attribute that a tokenizer does not have.

    Example:
        >>> print(missing("n_vocab"))
        a Tokenizer has no attribute 'n_vocab'; use vocab_size
        >>> print(missing("colour"))
        a Tokenizer has no attribute 'colour'
    """
    instead = HABITS.get(name) or MODULE_NAMES.get(name)
    hint = f"; use {instead}" if instead else ""
    return AttributeError(f"a Tokenizer has no attribute {name!r}{hint}")


class NotHere:
    """A name on the class `Tokenizer` for what stands elsewhere: getting it is an error."""

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __get__(self, instance: object, owner: object = None) -> NoReturn:
        """Refuse."""
        raise AttributeError(f"a Tokenizer has no such attribute; use {self._instead}")


# ------------------------------------------------------------ what the core calls, by name


def _texts(column: Any) -> Iterable[str]:
    from bytepair.corpus.arrow import texts

    return texts(column)


def _of_type(ids: NDArray[Any], dtype: Any, vocab_size: int) -> NDArray[Any]:
    from bytepair.tokenizer.batch import of_type

    return of_type(ids, dtype, vocab_size)


def register() -> None:
    """Tell the core what to call for keywords of other libraries, columns and types of numpy."""
    from bytepair.tokenizer.results import IdArrays, IdsWithOffsets

    _core.register(
        unknown_keyword=unknown_keyword,
        texts=_texts,
        of_type=_of_type,
        id_arrays=IdArrays,
        ids_with_offsets=IdsWithOffsets,
    )
