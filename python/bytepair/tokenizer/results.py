"""Results of encoding that are more than a list of ids: of batches, files and growing texts.

`docs/encode.md` has the table of the types of ids: what each method returns.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from bytepair import _core
from bytepair._internal.checks import refuse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bytepair.corpus.column import SkipLog, TextBatch
    from bytepair.corpus.source import Reading

#: How special tokens in a text are encoded; see `Tokenizer.encode`.
SpecialMode: TypeAlias = Literal["text", "all", "none", "error"] | Collection[str] | None
Ids: TypeAlias = "NDArray[np.uint16 | np.uint32]"

#: A special token by name, or any id.
Affix: TypeAlias = str | int | None


class IdArrays(NamedTuple):
    """The ids of many texts.

    Attributes:
        ids: the ids of all texts, one after the other.
        offsets: where each text begins in `ids`, and the end of the last one.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=260, special_tokens=())
        >>> arrays = tok.encode_batch_to_numpy(["hello", "hell"])
        >>> arrays.ids[arrays.offsets[1] : arrays.offsets[2]].tolist() == tok.encode("hell")
        True
    """

    ids: NDArray[np.uint16 | np.uint32]
    offsets: NDArray[np.int64]


class IdsWithOffsets(NamedTuple):
    """The ids of a text, and where each stands in it.

    Attributes:
        ids: the ids.
        bytes: for each id, the start and the end of its text in bytes of UTF-8; shape (n, 2).
        chars: the same in characters.
    """

    ids: list[int]
    bytes: NDArray[np.int64]
    chars: NDArray[np.int64]


def of_type(arrays: IdArrays, dtype: Any, vocab_size: int) -> IdArrays:
    """These arrays with ids in another type of numpy."""
    import numpy as np

    allowed = f"an integer type of numpy with room for ids below {vocab_size}"
    try:
        new_type = np.dtype(dtype)
    except (TypeError, ValueError):
        raise refuse("dtype", dtype, allowed) from None
    if new_type.kind not in "iu" or np.iinfo(new_type).max < vocab_size - 1:
        raise refuse("dtype", dtype, allowed)
    return arrays._replace(ids=arrays.ids.astype(new_type, copy=False))


class Change(NamedTuple):
    """The change of the ids after appending text.

    Attributes:
        removed: the number of ids removed at the end.
        ids: the ids to append after the remaining ones.
    """

    removed: int
    ids: list[int]


class Session:
    """A growing text and its ids, which always equal those of encoding the whole text.

    Only new text is encoded: appending encodes the new text, and the text after the last safe
    split point (where no continuation changes an id), usually a few words. A text without such
    points is encoded again from the last one each time: a very long run of letters or white space,
    or the whole text if `bytepair.tokenizer.split_engine(tok)` is "regex", or contains such a step.

    A session takes 4 bytes per id and some kilobytes; one thread at a time may use it.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> session = bytepair.tokenizer.Session(tok, prepend="<|bos|>")
        >>> session.append("hello hell")
        Change(removed=0, ids=[259, 32, 257, 108])
        >>> other = session.fork()
        >>> other.append("o")
        Change(removed=2, ids=[259])
        >>> session.ids, other.ids, len(other)
        ([260, 259, 32, 257, 108], [260, 259, 32, 259], 4)
    """

    __slots__ = ("_core",)

    def __init__(
        self, tokenizer: _core.Tokenizer, *, special: SpecialMode = None, prepend: Affix = None
    ) -> None:
        """Start with an empty text; `special` and `prepend` are as in `Tokenizer.encode`.

        A special token that arrives in pieces becomes its id when its name is complete.
        """
        self._core = _core.Session(tokenizer, special=special, prepend=prepend)

    def append(self, text: str) -> Change:
        """Append text.

        The text may end anywhere, even within a word, a special token or a pair of surrogates.
        After an error, which is as in `encode` for the whole text, the session is unchanged.

        Returns:
            The change of the ids: remove the last `removed` ids, then append `ids`.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> session, ids = bytepair.tokenizer.Session(tok, special="all"), []
            >>> for piece in ["hello<|b", "os|", ">"]:
            ...     change = session.append(piece)
            ...     ids[len(ids) - change.removed :] = change.ids
            >>> ids == session.ids == tok.encode("hello<|bos|>", special="all")
            True
        """
        return Change(*self._core.append(text))

    @property
    def ids(self) -> list[int]:
        """All ids, as a new list."""
        return self._core.ids

    @property
    def stable(self) -> int:
        """The number of first ids that are final, whatever is appended.

        It never decreases. It is a lower bound: only ids that are certain to be final are counted.
        """
        return self._core.stable

    @property
    def rest(self) -> str:
        """The text after the stable ids, which the next `append` encodes again."""
        return self._core.rest

    def fork(self) -> Self:
        """An independent session with the same text.

        It takes constant time, because both share the stable ids.
        """
        new = object.__new__(type(self))
        new._core = self._core.fork()
        return new

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"<bytepair.Session: {len(self):,} ids, {self.stable:,} of them stable>"


def encode_file(
    tokenizer: _core.Tokenizer,
    path: str | os.PathLike[str],
    separator: str | bytes | None,
    reading: Reading,
    *,
    memory_map: bool,
    **options: Any,
) -> IdArrays:
    """The ids of a file; see `Tokenizer.encode_file`."""
    from bytepair.corpus.column import SkipLog
    from bytepair.corpus.files import is_plain_text
    from bytepair.corpus.read import read_batches

    if separator is not None and not separator:
        raise refuse("separator", separator, "a string, or None for one document")
    ending = separator.encode() if isinstance(separator, str) else separator
    skips, path = SkipLog(), Path(path)
    # A missing file raises the usual FileNotFoundError; a pipe can be opened only once.
    with nullcontext() if path.is_fifo() else path.open("rb"):
        if not is_plain_text(path):
            if separator is not None:
                raise refuse("separator", separator, f"None, as {path} is no plain text")
            batches = read_batches([path], reading, on_skip=skips.add)
            arrays = _encode_batches(tokenizer, batches, **options)
        elif reading.errors == "skip":
            texts = _documents(path, ending, skips)
            arrays = tokenizer.encode_batch_to_numpy(texts, **options)
        else:
            lossy, reads = reading.errors == "replace", not memory_map
            how = {"separator": ending or b"", "lossy": lossy, "reads": reads, **options}
            arrays = _core.encode_file(tokenizer, os.fspath(path), **how)
    skips.warn()
    return IdArrays(*arrays)


def _encode_batches(
    tokenizer: _core.Tokenizer, batches: Iterator[TextBatch], **options: Any
) -> tuple[Ids, NDArray[np.int64]]:
    import numpy as np

    ids, ends = [tokenizer.encode_batch_to_numpy([])[0]], [np.zeros(1, np.int64)]
    for batch in batches:
        if isinstance(batch, list):
            some, offsets = tokenizer.encode_batch_to_numpy(batch, **options)
        else:
            some, offsets = _core.encode_utf8(tokenizer, batch.data, batch.offsets, **options)
        ids.append(some)
        ends.append(offsets[1:] + ends[-1][-1])
    return np.concatenate(ids), np.concatenate(ends)


def _documents(path: Path, ending: bytes | None, skips: SkipLog) -> list[str]:
    """The documents of a file of plain text that are UTF-8."""
    from bytepair.corpus.column import Skip

    data, texts = path.read_bytes(), []
    for number, document in enumerate([data] if ending is None else data.split(ending)):
        try:
            texts.append(document.decode())
        except UnicodeDecodeError as error:
            reason = f"the document is not UTF-8 at byte {error.start}"
            skips.add(Skip(str(path), number, 1, reason))
    return texts
