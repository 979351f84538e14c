"""Methods of `Tokenizer` for large amounts of text: Arrow columns, files and streams.

They return arrays. Only `encode_stream` creates a Python object for each id.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.arguments import checked
from bytepair._internal.checks import check_many
from bytepair._internal.later import Later
from bytepair.corpus import arrow
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import REPAIR, Errors, TextBatch
from bytepair.corpus.kinds import is_plain_text
from bytepair.corpus.read import read_batches
from bytepair.corpus.skips import SkipLog
from bytepair.errors import ArgumentError, WayOut

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from bytepair.tokenizer.padding import PaddedBatch
else:
    NDArray = Later("numpy.typing", "NDArray")
    pa = Later("pyarrow")
    np = Later("numpy")

#: How special tokens in a text are encoded; see `Tokenizer.encode`.
SpecialMode: TypeAlias = Literal["text", "all", "none", "error"] | Collection[str] | None
Ids: TypeAlias = "NDArray[np.uint16 | np.uint32]"

#: A special token by name, or any id.
Affix: TypeAlias = str | int | None

MOST_IN_LIST_ARRAY = 2**31 - 1


class BulkMethods(_core.Tokenizer):
    """The methods of `Tokenizer` for large amounts of text."""

    __slots__ = ()

    def pad(
        self,
        rows: Iterable[Sequence[int]],
        width: int | Literal["longest"] = "longest",
        *,
        side: Literal["right", "left"] = "right",
        tensors: Literal["np", "pt"] | None = None,
    ) -> PaddedBatch:
        """Lists of ids as rows of equal width, filled with the padding token (see `roles`).

        Args:
            rows: lists of ids, as from `encode_batch`.
            width: the number of ids of a row; "longest" means that of the longest list.
            side: the side of the padding: "right" or, as for generation, "left".
            tensors: "np" for arrays of int64, "pt" for tensors of torch; None for arrays of int32.

        Returns:
            `input_ids` and `attention_mask` (1 for ids, 0 for padding; uint8, or int64 with
            `tensors`), as a tuple that is a mapping too: `model(**batch)` takes it.

        Raises:
            SpecialTokenError: if no token has the role `pad`, and a row needs padding.
            ArgumentError: if a list is longer than the rows.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> batch = tok.pad(tok.encode_batch(["hello!", "hello"]))
            >>> batch.input_ids.tolist(), batch.attention_mask.tolist()
            ([[259, 33], [259, 260]], [[1, 1], [1, 0]])
        """
        from bytepair.tokenizer.padding import pad

        return pad(self, rows, width, side, tensors)

    @checked
    def encode_arrow(
        self,
        array: Any,
        *,
        special: SpecialMode = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        threads: int | None = None,
    ) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray:
        """Encode an Arrow column of texts to a column of lists of ids.

        Args:
            array: an object with the Arrow interface (a pyarrow array or chunked array, a polars
                Series, ...) of type string, large_string, string_view, or a dictionary of these.
            special: as in `encode`.
            prepend: as in `encode`, for each text.
            append: as in `encode`, for each text.
            threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
                processors.

        Returns:
            A pyarrow array with the list of ids of each text, and a null for each null. The ids are
            uint16 if the vocabulary has at most 65,536 ids, else uint32. The lists have 64-bit
            offsets if there are 2^31 ids or more. Chunks are preserved.

        Raises:
            TypeError: if `array` is not Arrow data, or does not contain text.
            CorpusError: if a text is not UTF-8; the message contains its index in its chunk.
            SpecialTokenError: as in `encode`.
            SplitError: as in `encode`.

        Example:
            >>> import bytepair, pyarrow
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> tok.encode_arrow(pyarrow.array(["hello!", None, ""])).to_pylist()
            [[259, 33], None, []]
        """
        from bytepair._internal.extras import pyarrow as pa

        texts = arrow.imported(array)
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

    @checked
    def encode_file(
        self,
        path: str | os.PathLike[str],
        *,
        separator: str | bytes | None = None,
        errors: Errors = "strict",
        column: str = "text",
        max_document_bytes: int = DOCUMENT_BYTES,
        memory_map: bool = True,
        special: SpecialMode = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        threads: int | None = None,
    ) -> tuple[Ids, NDArray[np.int64]]:
        """Encode a file in parallel.

        The suffix determines how the file is read, as for `bytepair.train`: parquet or jsonl (one
        document per row), or text, optionally compressed as `.gz` or `.zst`. Plain text is
        memory-mapped and must not be modified meanwhile: ids would be wrong, and if it is
        truncated, the system ends the process (SIGBUS); `memory_map=False` reads it instead. With a
        named split pattern, a long document is divided between threads at places that do not change
        the ids, unless special tokens are searched.

        Args:
            path: the file.
            separator: the string between two documents of plain text; it is not part of them. None
                means that the file is one document. As with `str.split`, n separators give n + 1
                documents.
            errors: as in `bytepair.count`.
            column: the table column or JSON field that contains the text.
            max_document_bytes: the maximum size of a document, except in plain text; a longer one
                is an error.
            memory_map: whether to map a file of plain text instead of reading it.
            special: as in `encode`.
            prepend: as in `encode`, for each document.
            append: as in `encode`, for each document.
            threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
                processors.

        Returns:
            The ids of all documents, concatenated: uint16 if the vocabulary has at most 65,536 ids,
            else uint32. And the int64 offsets, one more than documents: document `i` has the ids
            `ids[offsets[i]:offsets[i + 1]]`.

        Raises:
            OSError: if the file cannot be read.
            CorpusError: if the file is not UTF-8, or not valid for its suffix; the message contains
                the place.
            ValueError: if the separator is empty, or given for a file that is not plain text, or
                `errors` has another value.
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
            raise ArgumentError(
                "separator is empty", WayOut("pass None for one document, or a string")
            )
        skips = SkipLog()
        # A missing file raises the usual FileNotFoundError; a pipe can be opened only once.
        with nullcontext() if Path(path).is_fifo() else Path(path).open("rb"):
            if not is_plain_text(Path(path)):
                if separator is not None:
                    raise ArgumentError(
                        f"separator is for plain text, but {path} is not", WayOut("omit it")
                    )
                batches = read_batches(
                    [Path(path)], column=column, errors=errors,
                    max_document_bytes=max_document_bytes, on_skip=skips.add,
                )  # fmt: skip
                encoded = self._encode_batches(
                    batches, special=special, prepend=prepend, append=append, threads=threads
                )
                skips.warn(stacklevel=2)
                return encoded
            if errors == "skip":
                texts = _documents(Path(path), separator, skips)
                skips.warn(stacklevel=2)
                return self.encode_batch_to_numpy(
                    texts, special=special, prepend=prepend, append=append, threads=threads
                )
            return _core.encode_file(
                self, os.fspath(path),
                separator=separator.encode() if isinstance(separator, str) else separator or b"",
                lossy=errors == "replace", reads=not memory_map,
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

    def encode_stream(self, texts: Iterable[str], *, special: SpecialMode = None) -> Iterator[int]:
        """Encode pieces of one text, such as the lines of a file, without holding all of it.

        With a named split pattern, little more than 64 KiB of text is buffered. With a custom
        pattern, text is buffered up to a safe split point, and completely if `split_engine` is
        "regex".

        Args:
            texts: the pieces, an iterable of str; a piece may end anywhere.
            special: as in `encode`.

        Yields:
            The ids of the whole text: `encode("".join(texts), special=special)`.

        Raises:
            ArgumentError: if `texts` is a text, a mapping or a table.
            SpecialTokenError: as in `encode`.
            SplitError: as in `encode`.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> list(tok.encode_stream(["hel", "lo", "!"]))
            [259, 33]
        """
        for ids in stream(self, texts, special):
            yield from ids.tolist()


def stream(
    tokenizer: _core.Tokenizer, texts: Iterable[str], special: SpecialMode = None
) -> Iterator[Ids]:
    """Encode pieces of one text, as `Tokenizer.encode_stream` does, to non-empty arrays."""
    encoder = _core.EncodeStream(tokenizer, special=special)
    for text in check_many("texts", texts):
        ids = encoder.push(text)
        if len(ids):
            yield ids
    ids = encoder.flush()
    if len(ids):
        yield ids


def _documents(path: Path, separator: str | bytes | None, skips: SkipLog) -> list[str]:
    """The documents of a file of plain text that are UTF-8."""
    data = path.read_bytes()
    ending = separator.encode() if isinstance(separator, str) else separator
    texts = []
    for number, document in enumerate([data] if ending is None else data.split(ending)):
        try:
            texts.append(document.decode())
        except UnicodeDecodeError as error:
            reason = f"the document is not UTF-8 at byte {error.start}"
            skips.add(str(path), number, reason, REPAIR)
    return texts


def _lists(
    ids: Ids, offsets: NDArray[np.int64], valid: pa.BooleanArray | None, *, large: bool
) -> pa.ListArray | pa.LargeListArray:
    """Build an array of lists, with a null for each null text."""
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
