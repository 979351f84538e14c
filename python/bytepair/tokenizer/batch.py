"""Much text in, arrays of ids out: Arrow columns, files, and text that arrives in pieces.

What is here are methods of `Tokenizer`. No id becomes a Python object, except those that
`encode_iterable` yields.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from bytepair import _core
from bytepair.corpus import arrow
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import TextBatch
from bytepair.corpus.kinds import is_plain_text
from bytepair.corpus.read import read_batches
from bytepair.formats import roles

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

#: What special tokens in a text mean; see `Tokenizer.encode`.
SpecialMode: TypeAlias = "Literal['text', 'all', 'error'] | Collection[str] | None"
Ids: TypeAlias = "NDArray[np.uint16 | np.uint32]"

#: A special token by name, or any id.
Affix: TypeAlias = "str | int | None"

MOST_IN_LIST_ARRAY = 2**31 - 1


class PaddedBatch(NamedTuple):
    """Texts as rows of one width.

    Attributes:
        input_ids: int32, a row for each text: its ids, then the padding token.
        attention_mask: uint8, 1 where there is an id of the text, else 0.
    """

    input_ids: NDArray[np.int32]
    attention_mask: NDArray[np.uint8]


class BulkMethods(_core.Tokenizer):
    """The methods of a tokenizer for much text at once."""

    __slots__ = ()

    def encode_arrow(
        self,
        array: Any,
        *,
        special: SpecialMode = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        threads: int | None = None,
    ) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray:
        """Encode a column of texts into a column of lists of ids.

        Args:
            array: strings with the Arrow interface: an array or a chunked array of pyarrow, a
                Series of polars, ...; of type string, large_string, string_view, or a dictionary of
                them.
            special: as in `encode`.
            prepend: as in `encode`, for each text.
            append: as in `encode`, for each text.
            threads: the number of threads at most; None means `BYTEPAIR_NUM_THREADS`, else all.

        Returns:
            For each text its ids, for each null a null: a pyarrow array of lists of uint16 if the
            vocabulary has at most 65,536 ids, else of uint32. The lists are large (64-bit offsets)
            if there are 2^31 ids or more. What comes in chunks goes out in the same chunks.

        Raises:
            TypeError: if `array` is no Arrow data, or holds something other than text.
            CorpusError: if a text is not UTF-8; the message says which one, in its chunk.
            SpecialTokenError: as in `encode`.
            SplitError: as in `encode`.

        Example:
            >>> import bytepair, pyarrow
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> tok.encode_arrow(pyarrow.array(["hello!", None, ""])).to_pylist()
            [[259, 33], None, []]
        """
        from bytepair._internal.extras import pyarrow as pa

        texts = _imported(array)
        chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
        encoded = []
        for chunk in chunks:
            plain = arrow.plain(chunk)
            present = plain.drop_null()
            ids, ends = _core.encode_utf8(
                self, arrow.data(present), arrow.offsets(present),
                special=special, prepend=prepend, append=append, threads=threads,
            )  # fmt: skip
            encoded.append((ids, ends, plain.is_valid() if plain.null_count else None))
        large = any(ends[-1] > MOST_IN_LIST_ARRAY for _, ends, _ in encoded)
        lists = [_lists(*parts, large=large) for parts in encoded]
        if not isinstance(texts, pa.ChunkedArray):
            return lists[0]
        ids_type = pa.uint16() if self.vocab_size <= 1 << 16 else pa.uint32()
        return pa.chunked_array(lists, pa.large_list(ids_type) if large else pa.list_(ids_type))

    def encode_file(
        self,
        path: str | os.PathLike[str],
        *,
        separator: str | bytes | None = None,
        errors: Literal["strict", "replace"] = "strict",
        column: str = "text",
        max_document_bytes: int = DOCUMENT_BYTES,
        special: SpecialMode = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        threads: int | None = None,
    ) -> tuple[Ids, NDArray[np.int64]]:
        """Encode a file on all cores.

        Its ending says what it is, as for `bytepair.train`: parquet or jsonl, with a document a
        row, or text, each also `.gz` or `.zst`. Plain text is mapped, not read into memory, and
        must not be changed meanwhile. Under the named split patterns a long document of it is cut
        for several threads where that changes no id, unless special tokens are looked for.

        Args:
            path: the file.
            separator: what stands between two documents of plain text; it belongs to none of them.
                None means that the file is one document. As with `str.split`, n separators make
                n + 1 documents.
            errors: "strict" raises where the file is not UTF-8, "replace" reads U+FFFD there.
            column: the column of a table, or the field of a json object, that holds the text.
            max_document_bytes: a longer document is an error, if the file is not plain text.
            special: as in `encode`.
            prepend: as in `encode`, for each document.
            append: as in `encode`, for each document.
            threads: the number of threads at most; None means `BYTEPAIR_NUM_THREADS`, else all.

        Returns:
            The ids of all documents, end to end: uint16 if the vocabulary has at most 65,536 ids,
            else uint32. And int64 offsets, one more than there are documents: document `i` has the
            ids `ids[offsets[i]:offsets[i + 1]]`.

        Raises:
            OSError: if the file cannot be read.
            CorpusError: if the file is not UTF-8, or cannot be read as what its ending says; the
                message says where.
            ValueError: if the separator is empty or the file is not plain text, or `errors` is
                something else.
            SpecialTokenError: as in `encode`.
            SplitError: as in `encode`.

        Example:
            >>> import bytepair, pathlib, tempfile
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "texts.txt")
            ...     _ = path.write_text("hello!|ho")
            ...     ids, offsets = tok.encode_file(path, separator="|")
            >>> ids.tolist(), offsets.tolist()
            ([259, 33, 104, 111], [0, 2, 4])
        """
        if separator is not None and not separator:
            raise ValueError("separator is empty; pass None for one document, or what divides them")
        if errors not in ("strict", "replace"):
            raise ValueError(f'errors is {errors!r}; it must be "strict" or "replace"')
        with Path(path).open("rb"):  # so that a missing file is reported as Python does it
            if not is_plain_text(Path(path)):
                if separator is not None:
                    raise ValueError(
                        f"separator is for plain text, and {path} is none; leave it out"
                    )
                batches = read_batches(
                    [Path(path)], column=column, errors=errors,
                    max_document_bytes=max_document_bytes,
                )  # fmt: skip
                return self._encode_batches(
                    batches, special=special, prepend=prepend, append=append, threads=threads
                )
            return _core.encode_file(
                self, os.fspath(path),
                separator=separator.encode() if isinstance(separator, str) else separator or b"",
                lossy=errors == "replace",
                special=special, prepend=prepend, append=append, threads=threads,
            )  # fmt: skip

    def _encode_batches(
        self, batches: Iterator[TextBatch], **options: Any
    ) -> tuple[Ids, NDArray[np.int64]]:
        """Encode documents batch by batch."""
        import numpy as np

        ids, ends = [self.encode_batch_to_numpy([])[0]], [np.zeros(1, np.int64)]
        for batch in batches:
            if isinstance(batch, list):
                some, offsets = self.encode_batch_to_numpy(batch, **options)
            else:
                some, offsets = _core.encode_utf8(self, batch.data, batch.offsets, **options)
            ids.append(some)
            ends.append(offsets[1:] + ends[-1][-1])
        return np.concatenate(ids), np.concatenate(ends)

    def encode_iterable(self, texts: Iterable[str]) -> Iterator[int]:
        """Encode pieces of one text, such as the lines of a file, without holding all of it.

        Special tokens in it are text. Under the named split patterns little more than 64 KiB is
        held. Under one of your own, text is held until a place where it may be cut for sure, and to
        the end if `split_engine` is "regex".

        Args:
            texts: the pieces, an iterable of str; a piece may end anywhere.

        Yields:
            The ids of the whole text: `encode("".join(texts))`.

        Raises:
            SplitError: as in `encode`.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> list(tok.encode_iterable(["hel", "lo", "!"]))
            [259, 33]
        """
        for ids in self.encode_iterable_to_numpy(texts):
            yield from ids.tolist()

    def encode_iterable_to_numpy(self, texts: Iterable[str]) -> Iterator[Ids]:
        """Encode pieces of one text into arrays, as `encode_iterable` does id by id.

        Args:
            texts: the pieces, an iterable of str; a piece may end anywhere.

        Yields:
            Arrays that are not empty; end to end they are `encode_to_numpy("".join(texts))`.

        Raises:
            SplitError: as in `encode`.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> [ids.tolist() for ids in tok.encode_iterable_to_numpy(["hel", "lo", "!"])]
            [[259, 33]]
        """
        if isinstance(texts, str):
            raise TypeError("an iterable of texts is expected, not one str; pass [text]")
        stream = _core.EncodeStream(self)
        for text in texts:
            ids = stream.push(text)
            if len(ids):
                yield ids
        ids = stream.flush()
        if len(ids):
            yield ids


def encode_rows(
    tokenizer: _core.Tokenizer,
    texts: Iterable[str],
    special: SpecialMode,
    prepend: Affix,
    append: Affix,
    max_tokens: int | None,
    pad_to: int | Literal["longest"] | None,
    threads: int | None,
) -> list[list[int]] | PaddedBatch:
    """What `Tokenizer.encode_batch` does with `max_tokens` or `pad_to`."""
    before, after = tokenizer.encode("", prepend=prepend), tokenizer.encode("", append=append)
    room = None if max_tokens is None else max_tokens - len(before) - len(after)
    if room is not None and room < 0:
        raise ValueError(f"max_tokens is {max_tokens}, which prepend and append do not fit")
    encoded = tokenizer.encode_batch(texts, special=special, threads=threads)
    rows = [[*before, *ids[:room], *after] for ids in encoded]
    return rows if pad_to is None else _padded(tokenizer, rows, pad_to)


def _padded(
    tokenizer: _core.Tokenizer, rows: list[list[int]], pad_to: int | Literal["longest"]
) -> PaddedBatch:
    """Lists of ids as rows of one width."""
    import numpy as np

    lengths = np.array([len(row) for row in rows], np.int64)
    longest = int(lengths.max(initial=0))
    width = longest if pad_to == "longest" else pad_to
    if width < longest:
        raise ValueError(
            f"text {int(lengths.argmax())} has {longest} ids, more than a row of {width} (pad_to) "
            f"holds; pass max_tokens={width} to cut it"
        )
    mask = np.arange(width) < lengths[:, None]
    filler = 0 if mask.all() else roles.id_of(tokenizer, "pad")
    ids = np.full((len(rows), width), filler, np.int32)
    ids[mask] = np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum()))
    return PaddedBatch(ids, mask.astype(np.uint8))


def _imported(source: Any) -> pa.Array | pa.ChunkedArray:
    """An array, or a chunked one, out of an object with the Arrow interface."""
    from bytepair._internal.extras import pyarrow as pa

    if isinstance(source, pa.Array | pa.ChunkedArray):
        return source
    if isinstance(source, pa.Table | pa.RecordBatch) or hasattr(source, "__dataframe__"):
        raise TypeError("a table was given; pass one of its columns, such as table['text']")
    if hasattr(source, "__arrow_c_stream__"):
        return pa.chunked_array(source)
    if hasattr(source, "__arrow_c_array__"):
        return pa.array(source)
    kind = type(source).__name__
    raise TypeError(f"a {kind} is no Arrow data; pass strings as a list to encode_batch_to_numpy")


def _lists(
    ids: Ids, offsets: NDArray[np.int64], valid: pa.BooleanArray | None, *, large: bool
) -> pa.ListArray | pa.LargeListArray:
    """An array of lists; where a text is not valid, a null, which has no ids."""
    import numpy as np

    from bytepair._internal.extras import pyarrow as pa

    mask = None
    if valid is not None:
        lengths = np.zeros(len(valid), np.int64)
        lengths[np.asarray(valid)] = np.diff(offsets)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        mask = pa.array(~np.asarray(valid))
    kind, width = (pa.LargeListArray, np.int64) if large else (pa.ListArray, np.int32)
    return kind.from_arrays(pa.array(offsets.astype(width)), pa.array(ids), mask=mask)
