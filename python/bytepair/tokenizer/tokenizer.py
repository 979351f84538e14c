"""The class `Tokenizer`.

Encoding, decoding and lookups are implemented in Rust (`bytepair._core.Tokenizer`, the base class).
What takes more than some lines stands as plain functions in the files beside this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from bytepair import _core
from bytepair._internal.checks import refuse
from bytepair.chat.methods import ChatMethods
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.errors import NotAFolderError
from bytepair.files.outputs import check_output_folder, write_whole
from bytepair.formats.names import FILE_NAME, Losses, WrittenFormat
from bytepair.properties import metadata
from bytepair.properties import roles as roles_of
from bytepair.properties.rules import pattern_text
from bytepair.tokenizer import batch, show, vocabulary
from bytepair.tokenizer.names import NotHere, missing, unknown_keyword
from bytepair.tokenizer.session import Session

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import tiktoken
    import tokenizers
    import transformers
    from numpy.typing import NDArray

    from bytepair.corpus.column import Errors
    from bytepair.tokenizer.batch import Affix, Ids, PaddedBatch, SpecialMode


class Tokenizer(ChatMethods):
    """A byte-level BPE tokenizer: immutable and thread-safe.

    Created by `bytepair.train`, `bytepair.load` or `Tokenizer.from_ranks`. Two tokenizers are equal
    if their vocabularies, special tokens, merge rules and split patterns are equal.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello hello world"], vocab_size=270)
        >>> tok.decode(tok.encode("hello world"))
        'hello world'
    """

    __slots__ = ()

    # Names that other libraries have for what stands elsewhere; getting one is an error.
    load = from_pretrained = from_file = from_str = from_directory = NotHere(
        "bytepair.load(path_or_name)"
    )
    train = train_from_iterator = train_new_from_iterator = NotHere(
        "bytepair.train(texts, vocab_size)"
    )

    if not TYPE_CHECKING:  # so that type checkers know all attributes

        def __getattr__(self, name: str) -> Any:
            raise missing(name)

    # ------------------------------------------------------------------ from values and bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Create a tokenizer from the bytes of the native format.

        Args:
            data: the result of `to_bytes`, or the content of `tokenizer.bytepair`.

        Raises:
            FileFormatError: if the bytes are not valid; the message contains the offset.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> bytepair.Tokenizer.from_bytes(tok.to_bytes()) == tok
            True
        """
        return cls(_core.Model.from_bytes(data))

    @classmethod
    def from_ranks(
        cls,
        mergeable_ranks: dict[bytes, int],
        *,
        pattern: str | Sequence[str],
        special_tokens: dict[str, int] | list[_core.AddedToken] | None = None,
        normalizer: str | Sequence[str] | None = None,
    ) -> Self:
        """Create a tokenizer from a vocabulary with ranks, as in tiktoken.

        Args:
            mergeable_ranks: the bytes of each token and its rank, which is also its id.
            pattern: the split pattern: a name in `bytepair.PATTERNS`, a regular expression, or
                several of these, of which each splits the pieces of the previous one.
            special_tokens: the special tokens and their ids, or a list of `AddedToken`.
            normalizer: how texts are changed first: "NFC", "NFD", "NFKC", "NFKD", "Lowercase",
                "StripAccents", or several of these; None for not at all.

        Raises:
            VocabularyError: if an id or a token occurs twice, or an id is too large.
            PatternError: if the pattern is neither a name nor a regular expression.

        Example:
            >>> import bytepair
            >>> ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256}
            >>> tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")
            >>> tok.encode("abc")
            [256, 99]
        """
        rules = _core.TextRules(_core.pattern(pattern), normalizer=_names(normalizer))
        return cls(_core.Model.from_ranks(mergeable_ranks, rules, special_tokens or {}))

    @classmethod
    def from_merges(
        cls,
        tokens: dict[bytes, int],
        merges: list[tuple[bytes, bytes]],
        *,
        pattern: str | Sequence[str],
        special_tokens: dict[str, int] | list[_core.AddedToken] | None = None,
        ignore_merges: bool = False,
        normalizer: str | Sequence[str] | None = None,
    ) -> Self:
        """Create a tokenizer from a vocabulary and a list of merges, as in Hugging Face tokenizers.

        Args:
            tokens: the bytes of each token and its id.
            merges: the pairs of tokens to merge, in order.
            pattern: the split pattern: a name in `bytepair.PATTERNS`, a regular expression, or
                several of these, of which each splits the pieces of the previous one.
            special_tokens: the special tokens and their ids, or a list of `AddedToken`.
            normalizer: how texts are changed first: "NFC", "NFD", "NFKC", "NFKD", "Lowercase",
                "StripAccents", or several of these; None for not at all.
            ignore_merges: whether a pretoken that is a token becomes that token without merging.

        Raises:
            VocabularyError: if the vocabulary is invalid, or a merge does not produce a token.
            PatternError: if the pattern is neither a name nor a regular expression.

        Example:
            >>> import bytepair
            >>> tokens = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257}
            >>> tok = bytepair.Tokenizer.from_merges(tokens, [(b"a", b"b")], pattern="gpt4")
            >>> tok.encode("abc")
            [256, 99]
        """
        rules = _core.TextRules(_core.pattern(pattern), normalizer=_names(normalizer))
        special = special_tokens or {}
        return cls(_core.Model.from_merges(tokens, merges, rules, special, ignore_merges))

    # ------------------------------------------------------------------ roles and changes

    def replace(
        self,
        *,
        special_tokens: Sequence[str] | Mapping[str, int | None] | None = None,
        vocab_size: int | None = None,
        roles: Mapping[str, str | None] | None = None,
        chat_template: str | Mapping[str, str | None] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Self:
        """A copy with other properties; what is not passed stays.

        Args:
            special_tokens: names of special tokens to add, in the order of their ids, or names and
                ids. Existing ids do not change. A name without an id gets the lowest reserved id
                (one with a name such as `<|reserved_0|>`, as created by
                `bytepair.train(..., reserved=16)` and in Llama 3), or else the id after the last
                one.
            vocab_size: truncate the vocabulary to this size, including special tokens, which get
                new ids; the result equals training to the smaller size.
            roles: names of special tokens by role: `bos`, `eos`, `pad`, `end_of_turn`; None removes
                a role.
            chat_template: the Jinja template, such as the text of `chat_template.jinja`, or several
                by name; "" or None removes one. It is stored unchanged.
            notes: keys and values about the origin, such as `name`, `date` or `license`.

        Returns:
            The copy. It is equal to this tokenizer if only roles, templates or notes differ.

        Raises:
            SpecialTokenError: if a name is empty, taken, or equal to an ordinary token, or a role
                is given to what is no special token.
            VocabularyError: if the tokenizer is smaller than `vocab_size`, or was not created by
                training.
            ArgumentError: if a role does not exist, or names have no order.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 260, special_tokens=["<|bos|>"], reserved=1)
            >>> tok = tok.replace(special_tokens=["<|tool|>", "<|image|>"])
            >>> tok.special_tokens
            {'<|bos|>': 258, '<|tool|>': 259, '<|image|>': 260}
            >>> tok.replace(roles={"eos": "<|tool|>"}, notes={"name": "hi"}).eos_token_id
            259
        """
        new = self
        if vocab_size is not None:
            new = type(self)(_core.with_vocab_size(new, vocab_size))._with_roles_of(self)
        if special_tokens is not None:
            new = type(self)(_core.with_special_tokens(new, vocabulary.added(new, special_tokens)))
        changed = roles_of.changed_notes(new, roles, chat_template)
        changed |= dict(notes or {})
        return type(self)(_core.with_notes(new, new.notes | changed)) if changed else new

    @property
    def roles(self) -> dict[str, str]:
        """The special tokens with a role, by role.

        The roles are `bos` and `eos` (begin and end a text), `pad` (pads rows) and `end_of_turn`
        (ends a message of a conversation). Roles do not affect encoding or equality; GGUF and
        Hugging Face files contain them. They are known for published vocabularies and nanochat's,
        and derived from names such as `<|eos|>`; `replace` sets them.

        Example:
            >>> import bytepair
            >>> roles = bytepair.train(["hello hello"], vocab_size=269).roles
            >>> roles["bos"], roles["end_of_turn"]
            ('<|bos|>', '<|assistant_end|>')
        """
        return roles_of.roles(self)

    @property
    def lossless(self) -> bool:
        """Whether every text is decoded to itself: `tok.decode(tok.encode(text)) == text`.

        Not so if a normalizer changes text, if the pre-tokenizer drops some, if an added token that
        is found in every text takes white space, if characters are unknown, if a decoder changes
        names, or if no token covers a byte that texts have.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hello hello"], 269).lossless
            True
        """
        return super().lossless

    @property
    def bos_token_id(self) -> int | None:
        """The id of the special token that begins a text (see `roles`), or None."""
        return self.special_tokens.get(self.roles.get("bos", ""))

    @property
    def eos_token_id(self) -> int | None:
        """The id of the special token that ends a text (see `roles`), or None.

        For a chat model it should be the end of a turn:
        `tok.replace(roles={"eos": tok.roles["end_of_turn"]})`.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 266)
            >>> tok.replace(roles={"eos": "<|assistant_end|>"}).eos_token_id
            261
        """
        return self.special_tokens.get(self.roles.get("eos", ""))

    @property
    def pad_token_id(self) -> int | None:
        """The id of the special token that pads rows (see `roles`), or None."""
        return self.special_tokens.get(self.roles.get("pad", ""))

    # ------------------------------------------------------------------ many texts

    def __call__(self, text: str, **options: Any) -> list[int]:
        """Encode a text, as `encode` does with its options (for libraries that call a tokenizer).

        Example:
            >>> import bytepair
            >>> bytepair.train(["hi hi"], 266)("hi hi")
            [256, 32, 256]
        """
        if others := options.keys() - {"special", "prepend", "append"}:
            raise unknown_keyword("encode", sorted(others))
        return self.encode(text, **options)

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
        return batch.pad(self, rows, width, side, tensors)

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
        return batch.encode_arrow(
            self, array, special=special, prepend=prepend, append=append, threads=threads
        )

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
        reading = batch.FileReading(separator, errors, column, max_document_bytes, memory_map)
        return batch.encode_file(
            self, path, reading, special=special, prepend=prepend, append=append, threads=threads
        )

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
        for ids in batch.stream(self, texts, special):
            yield from ids.tolist()

    def session(self, *, special: SpecialMode = None, prepend: Affix = None) -> Session:
        """Start encoding a growing text, such as a chat prompt; only new text is encoded.

        Args:
            special: as in `encode`; a special token that arrives in pieces becomes its id when its
                name is complete.
            prepend: as in `encode`; the id is present from the start.

        Returns:
            A `Session`: `append(text)` returns how the ids change, `ids` are the ids of the whole
            text, `stable` is the number of final ids, and `fork()` creates a branch.

        Raises:
            SpecialTokenError: if a named special token is unknown.

        Example:
            >>> import bytepair
            >>> session = bytepair.train(["hello hello"], 269).session()
            >>> session.append("hello hel")
            Change(removed=0, ids=[259, 32, 257])
            >>> session.append("lo")
            Change(removed=1, ids=[259])
            >>> session.ids
            [259, 32, 259]
        """
        return Session(self, special=special, prepend=prepend)

    def show(
        self,
        text_or_ids: str | Iterable[int],
        mask: Sequence[int] | None = None,
        *,
        format: Literal["terminal", "html"] = "terminal",
        special: SpecialMode = None,
        with_ids: bool = False,
        color: bool | None = None,
    ) -> str:
        """Display the tokens of a text or of ids, for a terminal or a notebook.

        Args:
            text_or_ids: a text, which is encoded, or ids.
            mask: for each id, whether a model is trained on it: tokens with 1 are green, tokens
                with 0 are red. Without a mask, backgrounds alternate.
            format: "terminal", or "html" for notebooks, where the id of a token is in its tooltip.
            special: for a text, as in `encode`: how special tokens in it are encoded.
            with_ids: whether each token is followed by its id.
            color: for a terminal, whether to use colours; None means yes, unless `NO_COLOR` is set.
                Without colours, tokens are separated by `|`, and are in brackets if the mask is 1.

        Returns:
            The tokens. Bytes that are not a complete character are shown as `<E4>`, invisible
            characters as `<U+200D>`, special tokens as `⟪<|bos|>⟫`, which never occurs for text.

        Raises:
            ValueError: if the mask and the ids have different lengths, or the format is unknown.
            SpecialTokenError: as in `encode`.
            UnknownIdError: if an id is not in the vocabulary.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=270)
            >>> print(tok.show("hello hell", color=False))
            hello| |hel|l
            >>> print(tok.show([259, 261], mask=[0, 1], with_ids=True, color=False))
            hello(259)|[⟪<|bos|>⟫](261)
            >>> "id 259" in tok.show("hello", format="html")
            True
        """
        if isinstance(text_or_ids, str):
            text_or_ids = self.encode(text_or_ids, special=special)
        if format == "html":
            return show.html(self, text_or_ids, mask, with_ids=with_ids)
        if format != "terminal":
            raise refuse("format", format, '"terminal" or "html"')
        return show.terminal(self, text_or_ids, mask, with_ids=with_ids, color=color)

    # ------------------------------------------------------------------ files and other libraries

    def save(
        self, folder: str | os.PathLike[str], *, tables: bool = True, overwrite: bool = False
    ) -> Path:
        """Save the tokenizer to a folder, which is created if needed.

        The file is written under a temporary name, synced and renamed: after a crash, the folder
        contains either the old or the new tokenizer, completely, and a process that has loaded the
        old one is not affected. The same tokenizer always gives the same file, and may be saved
        again.

        Args:
            folder: the folder for `tokenizer.bytepair`.
            tables: whether the file contains the lookup tables that `load` must otherwise build: it
                loads instantly, but is three to four times larger. Small vocabularies are saved
                without tables.
            overwrite: whether to replace a different tokenizer.

        Returns:
            The path of the file.

        Raises:
            OverwriteError: if the folder contains a tokenizer with another fingerprint, and
                `overwrite` is false.
            NotAFolderError: if this is a file, or has the name of one, such as `tokenizer.json`;
                `export` writes files.
            OSError: if the folder cannot be written.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.save(folder)
            ...     path.name, bytepair.load(folder) == tok
            ('tokenizer.bytepair', True)
        """
        path = Path(folder) / FILE_NAME
        try:
            check_output_folder(path.parent)
        except NotAFolderError as error:
            hint = ", or ".join(filter(None, [error.hint, "write the file with export"]))
            raise NotAFolderError(error.message, hint=hint) from None
        is_new = not path.parent.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._write(path, tables=tables, overwrite=overwrite)
        except BaseException:
            if is_new:
                with suppress(OSError):  # it is not empty
                    path.parent.rmdir()
            raise
        return path

    def _write(self, path: Path, *, tables: bool = True, overwrite: bool) -> None:
        """Write the native file."""
        from bytepair.files.outputs import check_replaced

        data = self.to_bytes(tables=tables)
        if not overwrite:
            check_replaced(self, path, lambda new: new.write_bytes(data), _core.Model.map)
        write_whole(path, data)

    def export(
        self,
        path: str | os.PathLike[str],
        format: WrittenFormat | str | None = None,
        *,
        lossy: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write the tokenizer in the format of another library.

        Files are written atomically. `bytepair.load` reads them.

        Args:
            path: the output file, or the output folder for formats with several files.
            format: the format: a name in the table of `docs/formats`, such as `huggingface` or
                `tiktoken`; None means to choose it by the file name.
            lossy: whether to write a format that cannot represent all of the tokenizer.
            overwrite: whether to replace files of a different tokenizer.

        Returns:
            The path.

        Raises:
            LossError: if something would be lost and `lossy` is false; the message lists it.
            OverwriteError: if a file of a different tokenizer would be replaced and `overwrite` is
                false.
            ValueError: if the format does not exist, or cannot be written.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.export(f"{folder}/tokenizer.json")
            ...     bytepair.load(path) == tok
            True
        """
        from bytepair.formats import registry

        target = Path(path)
        written_format = format or registry.of_path(target)
        if written_format != "bytepair":
            registry.write(self, target, written_format, lossy=lossy, overwrite=overwrite)
        elif target.name.endswith(".bytepair"):
            self._write(target, overwrite=overwrite)
        else:
            return self.save(target, overwrite=overwrite)
        return target

    def export_losses(
        self, format: str | os.PathLike[str], path: str | os.PathLike[str] | None = None
    ) -> Losses:
        """List what would be lost by writing the tokenizer in a format.

        Args:
            format: a name in the table of `docs/formats`, such as `gguf`; or a path with a known
                file name, as in `export`.
            path: the file or folder to write, if `format` is a name: a `tokenizer.json` alone has
                no roles and no chat template, a folder has. None means a folder.

        Returns:
            A description of everything that the format cannot represent, or that programs which
            read it handle differently; empty if nothing is lost. Its attribute `hint` says how
            less is lost.

        Raises:
            ValueError: if the format does not exist.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> tok.export_losses("huggingface"), tok.export_losses("tiktoken")
            ([], ['the split pattern', 'the special tokens'])
        """
        from bytepair.formats import registry

        if isinstance(format, os.PathLike):
            format, path = registry.of_path(Path(format)), format
        return registry.losses(self, format, None if path is None else Path(path))

    def to_tiktoken(self, name: str = "bytepair") -> tiktoken.Encoding:
        """Convert the tokenizer to a `tiktoken.Encoding`.

        Its ids are the same for every text, provided that the split pattern matches all text, as
        all named patterns do (tiktoken drops text outside of matches), and the merge rule is
        "ranks".

        Args:
            name: the name of the encoding.

        Raises:
            ValueError: if the merge rule is not "ranks", or the pattern normalizes text: tiktoken
                supports neither.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=270)
            >>> tok.to_tiktoken().encode_ordinary("hello") == tok.encode("hello")
            True
        """
        from bytepair._internal.extras import tiktoken
        from bytepair.formats.tiktoken import values

        return tiktoken.Encoding(name, **values(self, exact=True))

    def to_huggingface(self, *, special: bool = True) -> tokenizers.Tokenizer:
        """Convert to a Hugging Face `tokenizers.Tokenizer`, which `transformers` can wrap.

        Its ids are the same; `docs/formats/tokenizer-json.md` says what is proved. Character
        classes are those of the Unicode version that `tokenizers` was built with.

        Args:
            special: whether special tokens in texts become their ids, as is usual in `tokenizers`;
                if not, they are text, as in `Tokenizer.encode`.

        Raises:
            ImportError: if the package `tokenizers` is not installed.
            LossError: if a special token equals an ordinary token.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> tok.to_huggingface().encode("hello").ids == tok.encode("hello")
            True
        """
        from bytepair.formats.huggingface import conversion

        return conversion.of_tokenizers(self, special=special)

    def to_transformers(self) -> transformers.PreTrainedTokenizerFast:
        """Convert to a fast tokenizer of `transformers`, with roles, chat template and stops.

        It equals `AutoTokenizer.from_pretrained` of the folder that `Tokenizer.export` writes. As
        always in `transformers`, special tokens in texts become their ids.

        Returns:
            The tokenizer; its attribute `generation_config` says where generation stops, for
            `model.generation_config`.

        Raises:
            ImportError: if the package `transformers` is not installed.
            LossError: if a special token equals an ordinary token.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> theirs = tok.to_transformers()
            >>> theirs("hello").input_ids == tok.encode("hello"), theirs.eos_token
            (True, '<|assistant_end|>')
        """
        from bytepair.formats.huggingface import conversion

        return conversion.of_transformers(self)

    def _with_roles_of(self, other: _core.Tokenizer) -> Self:
        """A copy with the roles, flags and chat templates of another tokenizer."""
        notes = metadata.carried(other, self.special_tokens)
        return self.replace(notes=notes) if notes else self

    def _with_repeats(self, limit: int) -> Self:
        """This tokenizer with another size limit for the cache of repeated text."""
        return self if limit == _core.repeats(self) else type(self)(_core.with_repeats(self, limit))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as native bytes, with tables, so that unpickling is fast."""
        return _unpickled, (type(self), self.to_bytes(), _core.repeats(self))

    def __repr__(self) -> str:
        """The main properties of the tokenizer."""
        pattern = pattern_text(self)
        return (
            f"<bytepair.Tokenizer: {self.vocab_size:,} ids, {len(self.special_tokens)} of them "
            f"special, pattern {pattern}, rule {self.merge_rule}, {self.fingerprint[:12]}>"
        )

    def _repr_html_(self) -> str:
        """The properties of the tokenizer and some tokens, for notebooks."""
        return show.summary(self)


def _names(normalizer: str | Sequence[str] | None) -> list[str]:
    """The names of the steps of a normalizer."""
    return [normalizer] if isinstance(normalizer, str) else list(normalizer or ())


def _unpickled(kind: type[Tokenizer], data: bytes, repeats: int) -> Tokenizer:
    """The tokenizer of native bytes."""
    return kind.from_bytes(data)._with_repeats(repeats)
