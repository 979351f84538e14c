"""The Rust core. Private: everything public is exported by `bytepair` itself."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias, final

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import disjoint_base

from bytepair.corpus.column import ReadBounds
from bytepair.corpus.files import CorpusFile
from bytepair.corpus.read import DocumentSelection
from bytepair.corpus.source import Reading
from bytepair.properties.tokens import AddedToken
from bytepair.tokenizer.results import IdArrays, IdsWithOffsets
from bytepair.training.options import TrainSettings

PATTERNS: Final[dict[str, str]]
UNICODE_VERSION: Final[str]
TIES: Final[tuple[str, ...]]
ERROR_MODES: Final[tuple[str, ...]]
FILE_KINDS: Final[tuple[str, ...]]
COMPRESSIONS: Final[tuple[str, ...]]
VERSION: Final[str]

_Special: TypeAlias = Literal["text", "all", "none", "error"] | Collection[str]
# A pattern is usually a str; `Any` stands for a tuple of several, or None, which few callers meet.
_Rules: TypeAlias = str | Sequence[str] | TextRules
_Added: TypeAlias = Mapping[str, int] | list[AddedToken]

class _ArrowArray(Protocol):
    def __arrow_c_array__(self) -> object: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self) -> object: ...

_Texts: TypeAlias = Iterable[str] | _ArrowArray | _ArrowStream
_Ids: TypeAlias = Iterable[int] | NDArray[np.integer]
# The file, the byte in it, the lines and the documents before that byte, and all characters.
_Place: TypeAlias = tuple[int, int, int, int, int]
# The file, the first row, the number of rows, why, and what to do about it.
_Skipped: TypeAlias = tuple[int, int, int, str, str]
# Texts, bytes, characters, packed bytes, and the bytes of each file read since the last call.
_OnProgress: TypeAlias = Callable[[int, int, int, int, list[tuple[int, int]]], object]
_CountedPair: TypeAlias = tuple[tuple[bytes, bytes], int]

def pattern(name_or_regex: str | Sequence[str]) -> str | Any: ...
def lone_surrogates(texts: Sequence[str]) -> list[tuple[int, str]]: ...
def not_utf8(
    data: NDArray[np.uint8], offsets: NDArray[np.int32 | np.int64]
) -> list[tuple[int, str]]: ...
def shown(value: object) -> str: ...
def threads(requested: int | None = None) -> int: ...

@final
class Counter:
    def __new__(
        cls,
        pattern: str | Sequence[str],
        threads: int | None = None,
        *,
        memory_limit: int | None = None,
        spill_folder: PathLike[str] | None = None,
        careful: bool = False,
    ) -> Self: ...
    def add(self, texts: Iterable[str]) -> None: ...
    def add_utf8(self, data: NDArray[np.uint8], offsets: NDArray[np.int32 | np.int64]) -> None: ...
    def add_files(
        self,
        files: Sequence[CorpusFile],
        reading: Reading,
        bounds: ReadBounds,
        on_progress: _OnProgress,
        start: _Place = ...,
    ) -> bool: ...
    def take_reached(self) -> tuple[_Place, int, list[_Skipped]] | None: ...
    @property
    def is_whole(self) -> bool: ...
    @property
    def texts(self) -> int: ...
    @property
    def text_bytes(self) -> int: ...
    def finish(self) -> Counts: ...

@final
class Counts:
    def __len__(self) -> int: ...
    @property
    def pattern(self) -> str | Any: ...
    @property
    def total(self) -> int: ...
    @property
    def text_bytes(self) -> int: ...
    def items(self) -> list[tuple[bytes, int]]: ...
    @staticmethod
    def from_items(items: Iterable[tuple[bytes, int]], pattern: str | Sequence[str]) -> Counts: ...
    @property
    def fingerprint(self) -> str: ...
    @staticmethod
    def load(path: PathLike[str], pattern: str | Sequence[str]) -> Counts: ...
    def save(self, path: PathLike[str], metadata: Sequence[tuple[str, str]]) -> None: ...
    def plus(self, other: Counts) -> Counts: ...
    def times(self, times: int) -> Counts: ...
    def reduced(self, of: int) -> tuple[Counts, int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class PairHistory:
    def __new__(
        cls,
        merges: Sequence[tuple[bytes, bytes]],
        texts: Sequence[Counts],
        *,
        least: int = 1,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def merged(self) -> NDArray[np.uint64]: ...
    def rivals(
        self,
        weights: NDArray[np.float64],
        slack: NDArray[np.float64],
        pair_slack: Sequence[tuple[int, float]],
        most: int,
        tolerance: float,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64]]: ...

@final
class DocumentReader:
    def __new__(
        cls,
        file: CorpusFile,
        reading: Reading,
        bounds: ReadBounds,
        *,
        selection: DocumentSelection | None = None,
        source: object = ...,
        size: int = ...,
    ) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(
        self,
    ) -> tuple[int, int, NDArray[np.uint8], NDArray[np.int64], list[_Skipped]]: ...
    def progress(self) -> tuple[int, int, int]: ...

@final
class Splitter:
    def __new__(cls, pattern: str | Sequence[str]) -> Self: ...
    def pretokenize(self, text: str) -> list[str]: ...

@final
class DecodeStream:
    @property
    def stopped(self) -> str | None: ...
    def push(self, id: int) -> str: ...
    def flush(self) -> str: ...

@final
class EncodeStream:
    def __new__(cls, tokenizer: Tokenizer, *, special: _Special | None = None) -> Self: ...
    def push(self, piece: str) -> list[int]: ...
    def flush(self) -> list[int]: ...

@final
class TextRules:
    def __new__(
        cls,
        pattern: str | Sequence[str],
        *,
        normalizer: Sequence[str] = ...,
        user_defined: Sequence[int] = ...,
    ) -> Self: ...
    @property
    def pattern(self) -> str | Any: ...
    @property
    def normalizer(self) -> list[str]: ...
    @property
    def pre_tokenizer(self) -> list[str]: ...
    @property
    def around(self) -> tuple[list[int], list[int]]: ...
    @property
    def trim_offsets(self) -> bool | None: ...
    @property
    def user_defined(self) -> list[int]: ...
    @property
    def has_symbols(self) -> bool: ...
    @property
    def decodes_names(self) -> bool: ...
    @property
    def drops_uncovered(self) -> bool: ...
    def renumbered(self, ids: Mapping[int, int]) -> TextRules: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__ = None  # type: ignore[assignment]

@final
class Model:
    @staticmethod
    def from_bytes(data: bytes) -> Model: ...
    @staticmethod
    def from_tokenizer_json(data: bytes, lossy: bool) -> Model: ...
    @staticmethod
    def map(path: PathLike[str]) -> Model: ...
    @staticmethod
    def check(data: bytes) -> None: ...
    @staticmethod
    def from_parts(
        tokens: Mapping[bytes, int],
        rules: _Rules,
        special_tokens: _Added,
        *,
        merges: Sequence[tuple[bytes, bytes]] | None = None,
        ignore_merges: bool = False,
        twins: Mapping[int, bytes] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Model: ...

def with_notes(tokenizer: Tokenizer, notes: Mapping[str, str]) -> Model: ...
def with_special_tokens(tokenizer: Tokenizer, special_tokens: Mapping[str, int]) -> Model: ...
def roles(tokenizer: Tokenizer) -> list[tuple[str, str]]: ...
def usual_roles(special: Sequence[str]) -> list[tuple[str, str]]: ...
def with_repeats(tokenizer: Tokenizer, bytes: int) -> Model: ...
def with_uncovered_dropped(tokenizer: Tokenizer, drops: bool) -> Model: ...
def whole_only_ids(tokenizer: Tokenizer) -> list[int]: ...
def repeats(tokenizer: Tokenizer) -> int: ...
def encode_pretoken(tokenizer: Tokenizer, pretoken: bytes) -> list[int]: ...
def merge_counts(tokenizer: Tokenizer) -> NDArray[np.uint64]: ...
def twin_ids(tokenizer: Tokenizer) -> list[int]: ...
def added_tokens(tokenizer: Tokenizer) -> list[AddedToken]: ...
def count_batch(
    tokenizer: Tokenizer,
    texts: _Texts,
    *,
    special: _Special | None = None,
    prepend: str | int | None = None,
    append: str | int | None = None,
    add_special_tokens: bool | None = None,
    threads: int | None = None,
) -> NDArray[np.int64]: ...
def ignores_merges(tokenizer: Tokenizer) -> bool: ...
def is_lossless(tokenizer: Tokenizer) -> bool: ...
def pretokenize(tokenizer: Tokenizer, text: str) -> list[str]: ...
def split_engine(tokenizer: Tokenizer) -> str: ...
def text_rules(tokenizer: Tokenizer) -> TextRules: ...
def truncate_text(
    tokenizer: Tokenizer, text: str, max_tokens: int, *, keep: Literal["start", "end"] = "start"
) -> str: ...
def tokenizer_json(tokenizer: Tokenizer) -> str: ...
def tokenizer_json_losses(tokenizer: Tokenizer) -> list[str]: ...
def mistaken(head: bytes) -> tuple[str, str] | None: ...
def is_rank_file(head: bytes) -> bool: ...
def rank_file(data: bytes) -> tuple[dict[bytes, int], int | None]: ...
def is_rule_of_ranks(tokenizer: Tokenizer, ignore_merges: bool) -> bool: ...
def harmless_pattern(tokens: Sequence[bytes]) -> str: ...
def to_characters(token: bytes) -> str: ...
def to_bytes(characters: str) -> bytes | None: ...

@disjoint_base
class Tokenizer:
    def __new__(cls, model: Model | None = None) -> Self: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def encode(
        self,
        text: str,
        *,
        special: _Special | None = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        add_special_tokens: bool | None = None,
    ) -> list[int]: ...
    def encode_batch(
        self,
        texts: _Texts,
        *,
        special: _Special | None = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        add_special_tokens: bool | None = None,
        threads: int | None = None,
    ) -> list[list[int]]: ...
    def encode_batch_to_numpy(
        self,
        texts: _Texts,
        *,
        special: _Special | None = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        add_special_tokens: bool | None = None,
        dtype: DTypeLike | None = None,
        threads: int | None = None,
    ) -> IdArrays: ...
    def count(
        self,
        text: str,
        *,
        special: _Special | None = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        add_special_tokens: bool | None = None,
    ) -> int: ...
    def encode_offsets(
        self,
        text: str,
        *,
        special: _Special | None = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        add_special_tokens: bool | None = None,
    ) -> IdsWithOffsets: ...
    def decode(
        self, ids: _Ids, *, errors: str = "replace", skip_special_tokens: bool = False
    ) -> str: ...
    def decode_bytes(self, ids: _Ids) -> bytes: ...
    def decode_batch(
        self,
        batch: Iterable[_Ids],
        *,
        errors: str = "replace",
        skip_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[str]: ...
    def decode_stream(
        self,
        *,
        skip_special_tokens: bool = False,
        stop: str | Sequence[str] | None = None,
        keep_stop: bool = False,
    ) -> DecodeStream: ...
    def token_bytes(self, id: int) -> bytes: ...
    def token_id(self, token: str | bytes) -> int: ...
    def to_bytes(self, *, tables: bool = True) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def special_tokens(self) -> dict[str, int]: ...
    @property
    def pattern(self) -> str | Any: ...
    def merges(self) -> list[tuple[bytes, bytes]]: ...
    def mergeable_ranks(self) -> dict[bytes, int]: ...
    @property
    def notes(self) -> dict[str, str]: ...
    @property
    def merge_rule(self) -> Literal["ranks", "merges", "characters"]: ...
    @property
    def fingerprint(self) -> str: ...

@final
class View:
    def __new__(cls, material: str) -> Self: ...
    reads: ClassVar[frozenset[str]]
    changes: ClassVar[frozenset[str]]
    def add(self, name: str, tokenizer: Tokenizer, own: list[str]) -> int: ...
    def ask(self, question: str, body: bytes) -> str | bytes: ...
    def to_html(
        self,
        files: dict[str, str],
        text: str,
        *,
        special: bool,
        module: tuple[bytes, bytes] | None = None,
    ) -> str: ...

@final
class Session:
    def __new__(
        cls,
        tokenizer: Tokenizer,
        *,
        special: _Special | None = None,
        prepend: str | int | None = None,
    ) -> Self: ...
    def append(self, text: str) -> tuple[int, list[int]]: ...
    def fork(self) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def stable(self) -> int: ...
    @property
    def ids(self) -> list[int]: ...
    @property
    def rest(self) -> str: ...

def encode_utf8(
    tokenizer: Tokenizer,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32 | np.int64],
    *,
    special: _Special | None = None,
    prepend: str | int | None = None,
    append: str | int | None = None,
    threads: int | None = None,
) -> IdArrays: ...
def encode_file(
    tokenizer: Tokenizer,
    path: str,
    *,
    separator: bytes,
    lossy: bool,
    reads: bool = False,
    special: _Special | None = None,
    prepend: str | int | None = None,
    append: str | int | None = None,
    threads: int | None = None,
) -> IdArrays: ...
def render(
    tokenizer: Tokenizer,
    segments: list[str | int | None],
    trained: bytes,
    ends: Sequence[int],
    *,
    join: bool,
    threads: int | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.int64]]: ...
def pack(lengths: NDArray[np.int64], width: int) -> list[NDArray[np.int64]]: ...
def counts_footer(path: PathLike[str]) -> tuple[list[str], list[tuple[str, str]]]: ...
def parquet_rows(path: PathLike[str] | str, column: str) -> int | None: ...
def parquet_size(path: PathLike[str] | str, source: object, size: int) -> tuple[int, int]: ...
def unpack(
    path: PathLike[str] | str,
    compression: str | None,
    write: Callable[[bytes], object],
    *,
    source: object = ...,
) -> None: ...
def encode_rows(
    tokenizer: Tokenizer,
    files: Sequence[str],
    column: str,
    take: Callable[
        [
            NDArray[np.uint16 | np.uint32],
            NDArray[np.int64],
            NDArray[np.int64],
            list[tuple[int, int, int]],
        ],
        object,
    ],
    *,
    first: int = ...,
    doc_cap: int | None = ...,
    prepend: str | int | None = None,
    append: str | int | None = None,
    most_bytes: int,
    threads: int | None = None,
) -> tuple[int, int]: ...

@final
class RowPacker:
    def __new__(cls, width: int, buffer: int, *, cut: bool) -> Self: ...
    def add(self, document: int, length: int) -> None: ...
    def row(self) -> list[tuple[int, int]] | None: ...

def plan_rows(lengths: NDArray[np.uintp], width: int, buffer: int) -> list[NDArray[np.uintp]]: ...
def crc32(bytes: NDArray[np.uint8], start: int = 0) -> int: ...
def gather(
    sources: Sequence[NDArray[np.integer]],
    which: NDArray[np.uintp],
    starts: NDArray[np.uintp],
    lengths: NDArray[np.uintp],
    out: NDArray[np.integer],
) -> None: ...
def train(
    counts: Counts,
    options: TrainSettings,
    *,
    threads: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Model: ...
def train_parity(
    groups: Sequence[Counts],
    development: Sequence[Counts],
    options: TrainSettings,
    *,
    ratios: Sequence[float] | None = None,
    window: int | None = None,
    alpha: float = 1.0,
    global_merges: int = 0,
    threads: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> tuple[Model, list[int]]: ...
def with_vocab_size(tokenizer: Tokenizer, vocab_size: int) -> Model: ...
def resume(
    tokenizer: Tokenizer,
    counts: Counts,
    options: TrainSettings,
    *,
    superwords: tuple[int | None, Sequence[str]] | None = None,
    threads: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Model: ...
def extend(
    tokenizer: Tokenizer,
    counts: Counts,
    extra: int,
    options: TrainSettings,
    *,
    on_progress: Callable[[int, int], object] | None = None,
) -> Model: ...
def verify_merges(
    merges: Sequence[tuple[bytes, bytes]],
    counts: Counts,
    options: TrainSettings,
    *,
    superwords: tuple[int, tuple[int | None, Sequence[str]]] | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> tuple[int, _CountedPair, _CountedPair | None] | None: ...
