"""A column of Arrow strings in, its bytes and offsets out: the way from Arrow to Rust.

Whatever takes columns takes them through here, and so all take the same kinds: strings, large
strings, views and dictionaries of strings, and columns of nothing but nulls.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bytepair.errors import CorpusError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


def plain(array: pa.Array) -> pa.Array:
    """A column as strings or large strings; nulls stay.

    Raises:
        TypeError: if it does not hold text.

    Example:
        >>> import pyarrow as pa
        >>> from bytepair.corpus.arrow import plain
        >>> plain(pa.array(["one", "two", "one"]).dictionary_encode()).to_pylist()
        ['one', 'two', 'one']
    """
    from bytepair._internal.extras import pyarrow as pa

    types, kind = pa.types, array.type
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(kind) or types.is_large_string(kind):
        return array
    if types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner):
        return array.cast(pa.large_string())
    if types.is_null(kind):
        return array.cast(pa.large_string())
    raise TypeError(f"the column holds {kind}, not text")


def offsets(texts: pa.Array) -> NDArray[Any]:
    """Where each string of a plain column begins in its bytes, and where the last ends.

    Example:
        >>> import pyarrow as pa
        >>> from bytepair.corpus.arrow import offsets
        >>> offsets(pa.array(["one", "two"])[1:]).tolist()
        [3, 6]
    """
    import numpy as np

    from bytepair._internal.extras import pyarrow as pa

    if not len(texts):
        return np.zeros(1, np.int32)
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    found = np.frombuffer(texts.buffers()[1], width)
    return found[texts.offset : texts.offset + len(texts) + 1]


def data(texts: pa.Array) -> NDArray[np.uint8]:
    """The bytes of a plain column, in which its offsets are.

    Example:
        >>> import pyarrow as pa
        >>> from bytepair.corpus.arrow import data
        >>> data(pa.array(["one", "two"])).tobytes()
        b'onetwo'
    """
    import numpy as np

    found = texts.buffers()[2] if len(texts) else None
    return np.frombuffer(b"" if found is None else found, np.uint8)


def check_column(column: str, schema: pa.Schema, place: str) -> None:
    """Raise a `CorpusError` if a table has no such column, or one that is no text."""
    from bytepair._internal.extras import pyarrow as pa

    names = schema.names
    if column not in names:
        raise CorpusError(f"{place} has no column {column!r}; it has {', '.join(names) or 'none'}")
    try:
        plain(pa.array([], schema.field(column).type))
    except TypeError as error:
        raise CorpusError(f"{place} has no text in its column {column!r}: {error}") from None


def is_installed() -> bool:
    """Whether pyarrow can be imported, which is an extra."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def failures() -> tuple[type[Exception], ...]:
    """What reading a file may raise, by Arrow too if that is in use."""
    if sys.modules.get("pyarrow"):
        return (OSError, sys.modules["pyarrow"].ArrowException)
    return (OSError,)


def release_memory() -> None:
    """Give back the memory that Arrow holds for its next use."""
    if sys.modules.get("pyarrow"):
        sys.modules["pyarrow"].default_memory_pool().release_unused()
