"""What the package does for the core, registered when it is imported.

The core calls these for keywords of other libraries, Arrow columns and types of numpy,
and makes the results of `results.py`. Each imports what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bytepair import _core
from bytepair.tokenizer.results import IdArrays, IdsWithOffsets

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _unknown_keyword(method: str, names: Iterable[str]) -> Exception:
    from bytepair.tokenizer.habits import unknown_keyword

    return unknown_keyword(method, names)


def _texts(column: Any) -> Iterable[str]:
    from bytepair.corpus.arrow import texts

    return texts(column)


def _of_type(ids: NDArray[Any], dtype: Any, vocab_size: int) -> NDArray[Any]:
    from bytepair.tokenizer.padding import of_type

    return of_type(ids, dtype, vocab_size)


def register() -> None:
    """Register the callables with the core."""
    _core.register(
        unknown_keyword=_unknown_keyword,
        texts=_texts,
        of_type=_of_type,
        id_arrays=IdArrays,
        ids_with_offsets=IdsWithOffsets,
    )
