"""Sources, a tokenizer and options in, a job out: everything that decides what the shards are.

With what is handed on while it is done: documents as ids, and their addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.source import Input, Limits, Source, files_of
from bytepair.errors import ShardError, SpecialTokenError
from bytepair.shards.layout import Layout, layout
from bytepair.tokenizer import Tokenizer

OnError: TypeAlias = Literal["raise", "skip"]

TOKENS_PER_SHARD: Final = 100_000_000


class ShardOptions(TypedDict, total=False):
    """The options of `write` that decide what the shards are."""

    format: str
    tokens_per_shard: int
    bos: bool | str
    eos: bool | str
    column: str
    doc_cap: int | None
    on_error: OnError
    max_document_bytes: int


@dataclass(frozen=True)
class ShardJob:
    """Everything that decides what the shards are.

    Attributes:
        tokenizer: encodes.
        files: the inputs, in order.
        values: what the manifest says of the job.
    """

    tokenizer: Tokenizer
    files: list[Input]
    values: dict[str, Any]

    @property
    def layout(self) -> Layout:
        """The format."""
        return layout(self.values["format"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the ids."""
        found: np.dtype[Any] = np.dtype(self.values["dtype"])
        return found


@dataclass(frozen=True)
class Address:
    """The address of a document: the number of its input, and its row there."""

    input: int
    row: int


@dataclass(frozen=True)
class Encoded:
    """Documents as ids.

    Attributes:
        ids: of all documents, end to end.
        offsets: int64, where each begins, and where the last ends.
        text_ends: the same for the bytes of their text.
        starts: int64, the first document of each run of rows.
        places: the address of each of these.
    """

    ids: NDArray[Any]
    offsets: NDArray[np.int64]
    text_ends: NDArray[Any]
    starts: NDArray[np.int64]
    places: list[Address]

    def place(self, document: int) -> Address:
        """The address of a document."""
        run = int(np.searchsorted(self.starts, document, side="right")) - 1
        place = self.places[run]
        return Address(place.input, place.row + document - int(self.starts[run]))


#: Something left out, as it stands in marks and manifests.
Left: TypeAlias = "dict[str, Any]"


def make_job(
    source: Source,
    tokenizer: Tokenizer,
    *,
    format: str = "bytepair",
    tokens_per_shard: int = TOKENS_PER_SHARD,
    bos: bool | str = False,
    eos: bool | str = False,
    column: str = "text",
    doc_cap: int | None = None,
    on_error: OnError = "raise",
    max_document_bytes: int = DOCUMENT_BYTES,
) -> ShardJob:
    """Check the options of `write` and gather them with the inputs."""
    if tokens_per_shard < 1:
        raise ShardError(f"tokens_per_shard is {tokens_per_shard}; pass at least 1")
    if on_error not in ("raise", "skip"):
        raise ShardError(f"on_error is {on_error!r}; pass 'raise' or 'skip'")
    Limits(doc_cap=doc_cap)
    files = files_of(source)
    largest = max([tokenizer.vocab_size - 1, *tokenizer.special_tokens.values()])
    values = {
        "format": format,
        "dtype": layout(format).dtype(largest).name,
        "tokenizer": tokenizer.fingerprint,
        "bos": special_id(tokenizer, bos, "bos"),
        "eos": special_id(tokenizer, eos, "eos"),
        "tokens_per_shard": tokens_per_shard,
        "column": column,
        "doc_cap": doc_cap,
        "on_error": on_error,
        "max_document_bytes": max_document_bytes,
        "inputs": [[file.name, file.size] for file in files],
    }
    return ShardJob(tokenizer, files, values)


def special_id(tokenizer: Tokenizer, wanted: bool | str, role: str) -> int | None:
    """The id of a special token by name, or of the one with the role; one without a role may do.

    Texts of vocabularies where no token begins them, as Qwen's, begin with the one that ends them.
    """
    if wanted is False:
        return None
    known = tokenizer.special_tokens
    roles = tokenizer.roles
    found = roles.get(role, roles.get("eos")) if wanted is True else wanted
    if found not in known:
        what = f"{role} token" if wanted is True else f"special token {wanted}"
        raise SpecialTokenError(
            f"the tokenizer has no {what}; it has {', '.join(known) or 'no special tokens'}; name "
            "one of them"
        )
    return known[found]
