"""Collects everything that determines shards: inputs, a tokenizer and options."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import check_choice, check_kind, check_whole, refuse
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Errors, Skip
from bytepair.corpus.documents import read
from bytepair.corpus.files import Files, Input, Split, of_split, recorded
from bytepair.corpus.source import Reading
from bytepair.errors import CorpusError, SpecialTokenError
from bytepair.shards.layout import Layout, layout
from bytepair.shards.manifest import Address, InputSplit, ShardFormat
from bytepair.tokenizer import Tokenizer

TOKENS_PER_SHARD: Final = 100_000_000


@dataclass(frozen=True)
class ShardOptions:
    """The options that determine the shards of a corpus and a tokenizer.

    Attributes:
        format: "bytepair", "llmc", "nanogpt", "megatron" or "arrow"; see `bytepair.shards.layout`.
            With llm.c and nanoGPT, the first shard is for validation, unless `split` is "both".
        tokens_per_shard: the maximum number of tokens of a shard, unless a document is longer.
        bos: the name of the special token before each document; True means the usual one, False
            none.
        eos: the name of the special token after each document, as for `bos`; by default none.
        column: the table column or JSON field that contains the text.
        doc_cap: the maximum number of characters of a document; the rest is cropped. None means no
            limit.
        errors: how to treat a document or file that cannot be read: "strict" raises an error,
            "replace" replaces invalid UTF-8 and lone surrogates by U+FFFD and is otherwise
            "strict", "skip" skips it and records it in the manifest.
        max_document_bytes: the maximum size of a document in a file.
        split: as in `bytepair.count`; or "both": shards of the documents for validation, then those
            for training. As in `corpus.read_documents`, the last file is for validation where no
            data set says it.
        val_share: in place of `split`, the share of the text for validation, between 0 and 1: the
            first documents, up to this share of the bytes of the files. All files are read.

    Example:
        >>> from bytepair.shards import ShardOptions
        >>> ShardOptions(tokens_per_shard=1000).bos
        True
    """

    format: ShardFormat = "bytepair"
    tokens_per_shard: int = TOKENS_PER_SHARD
    bos: bool | str = True
    eos: bool | str = False
    column: str = "text"
    doc_cap: int | None = None
    errors: Errors = "strict"
    max_document_bytes: int = DOCUMENT_BYTES
    split: InputSplit | None = None
    val_share: float | None = None

    def __post_init__(self) -> None:
        """Check the values before anything is read."""
        check_choice("errors", self.errors, ("strict", "replace", "skip"))
        for name in ("tokens_per_shard", "max_document_bytes", "doc_cap"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_whole(name, value, least=1))
        if self.val_share is not None:
            if self.split is not None:
                raise refuse("split", self.split, "None where val_share divides the text")
            check_kind("val_share", self.val_share, float)
            if not 0 < self.val_share < 1:
                raise refuse("val_share", self.val_share, "between 0 and 1")

    @property
    def files_split(self) -> Split | None:
        """The split of the source that is read; `make_job` divides all of it."""
        if self.split == "both" or self.val_share is not None:
            return "all"
        return self.split


class ShardKeywords(TypedDict, total=False):
    """The fields of `ShardOptions`, as keywords of `write`."""

    format: ShardFormat
    tokens_per_shard: int
    bos: bool | str
    eos: bool | str
    column: str
    doc_cap: int | None
    errors: Errors
    max_document_bytes: int
    split: InputSplit | None
    val_share: float | None


@dataclass(frozen=True)
class ShardJob:
    """Everything that determines the shards.

    `values` are what the manifest says of it; "val_end" only if the documents before this address
    are for validation.
    """

    tokenizer: Tokenizer
    files: list[Input]
    values: dict[str, Any]
    first_input: int = 0  # the number of the first input in the source

    @cached_property
    def layout(self) -> Layout:
        """The format."""
        return layout(self.values["format"])

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the ids."""
        dtype: np.dtype[Any] = np.dtype(self.values["dtype"])
        return dtype

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """How many bytes the inputs before each one have, and all together."""
        return np.cumsum([0, *(file.size for file in self.files)])


def make_job(
    files: list[Input], tokenizer: Tokenizer, options: ShardOptions, folder: Path
) -> ShardJob:
    """Collect everything that determines the shards in a folder."""
    val_end = None
    if options.split == "both":
        val = of_split(Files(files), "val", by_position=True).files
        files = [*val, *of_split(Files(files), "train", by_position=True).files]
        val_end = Address(len(val), 0)
    elif options.val_share is not None:
        val_end = _end_of_share(files, options, options.val_share)
    largest = max([tokenizer.vocab_size - 1, *tokenizer.special_tokens.values()])
    values = asdict(options) | {
        "dtype": layout(options.format).dtype(largest).name,
        "tokenizer": tokenizer.fingerprint,
        "bos": special_id(tokenizer, options.bos, "bos"),
        "eos": special_id(tokenizer, options.eos, "eos"),
        **recorded(files, folder),
    }
    del values["split"], values["val_share"]  # the inputs and `val_end` say what was read
    if val_end is not None:
        values["val_end"] = list(val_end)
    return ShardJob(tokenizer, files, values)


def _end_of_share(files: list[Input], options: ShardOptions, share: float) -> Address:
    """The first document for training, if those before it have a share of the bytes of the files.

    The file that contains it is read twice, since its documents are counted first.
    """
    ends = np.cumsum([file.size for file in files])
    share_end = share * float(ends[-1])
    number = min(int(np.searchsorted(ends, share_end, side="right")), len(files) - 1)
    reading = Reading(options.column, options.errors, max_document_bytes=options.max_document_bytes)
    documents = sum(
        (piece.rows or 0) if isinstance(piece, Skip) else len(piece)
        for piece in read(files[number], reading)
    )
    rest = (float(ends[number]) - share_end) / max(files[number].size, 1)
    end = max(Address(number, documents - round(rest * documents)), Address(0, 1))
    if end >= Address(len(files) - 1, documents):
        raise CorpusError(
            f"val_share leaves no document for training; {files[number].name} has {documents}",
            option="val_share",
            hint="pass a smaller share, or divide the text into more documents",
        )
    return end


def special_id(tokenizer: Tokenizer, token: bool | str, role: str) -> int | None:
    """The id of a special token by name, or of the one with the role.

    If no token has the role of beginning a text, as in Qwen's vocabularies, it is the one that ends
    a text.
    """
    if token is False:
        return None
    special = tokenizer.special_tokens
    roles = tokenizer.roles
    name = roles.get(role, roles.get("eos")) if token is True else token
    if name not in special:
        what = f"{role} token" if token is True else f"special token {token}"
        raise SpecialTokenError(
            f"the tokenizer has no {what}; it has {', '.join(special) or 'no special tokens'}",
            hint=f"name one of them, or pass {role}=False to use none",
        )
    return special[name]
