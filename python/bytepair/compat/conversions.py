"""Converts a tokenizer and its ids to objects of other libraries, and lists what a format loses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from bytepair import _core
from bytepair._internal.checks import check_choice, check_many, check_whole, integers
from bytepair.corpus import arrow
from bytepair.errors import ArgumentError, FormatError, LossError
from bytepair.files.outputs import write_files
from bytepair.formats import huggingface
from bytepair.formats.huggingface.companions import GENERATION
from bytepair.formats.parts import Losses, WrittenFormat
from bytepair.properties import roles
from bytepair.tokenizer.results import Ids, SpecialMode

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import tiktoken
    import tokenizers
    import transformers
    from numpy.typing import NDArray


#: The formats that `Tokenizer.export` writes.
FORMATS: Final = get_args(WrittenFormat)


def to_tiktoken(tokenizer: _core.Tokenizer, name: str = "bytepair") -> tiktoken.Encoding:
    """Convert the tokenizer to a `tiktoken.Encoding` of this name, with the same ids.

    Raises:
        ValueError: if the merge rule is not "ranks", the pattern does not match all text, or
            texts are normalized: tiktoken supports none of these.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=270)
        >>> bytepair.compat.to_tiktoken(tok).encode_ordinary("hello") == tok.encode("hello")
        True
    """
    from bytepair._internal.extras import tiktoken
    from bytepair.formats.writing import encoding_values

    return tiktoken.Encoding(name, **encoding_values(tokenizer))


def to_huggingface(tokenizer: _core.Tokenizer) -> tokenizers.Tokenizer:
    """Convert to a Hugging Face `tokenizers.Tokenizer`, which `transformers` can wrap.

    Its ids are the same; `docs/formats/tokenizer-json.md` says what is proved. Character
    classes are those of the Unicode version that `tokenizers` was built with. Special tokens in
    texts become their ids, unless its attribute `encode_special_tokens` is set to True.

    Raises:
        LossError: if a special token equals an ordinary token.
        FormatError: if notes of a damaged file make it invalid there.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> bytepair.compat.to_huggingface(tok).encode("hello").ids == tok.encode("hello")
        True
    """
    from bytepair._internal.extras import tokenizers

    _check_held(tokenizer)
    text = huggingface.text(tokenizer)
    with _read_by("tokenizers"):
        return tokenizers.tokenizers.Tokenizer.from_str(text)  # type: ignore[no-any-return]


def _check_held(tokenizer: _core.Tokenizer) -> None:
    if lost := huggingface.losses(tokenizer):
        raise LossError("huggingface", lost)


@contextmanager
def _read_by(library: str) -> Iterator[None]:
    """What another library raises, since notes of a native file may be damaged, as our error."""
    try:
        yield
    except Exception as error:
        raise FormatError(library, f"it cannot read what this tokenizer becomes: {error}") from None


def to_transformers(tokenizer: _core.Tokenizer) -> transformers.PreTrainedTokenizerFast:
    """Convert to a fast tokenizer of `transformers`, with roles, chat template and stops.

    It equals `AutoTokenizer.from_pretrained` of the folder that `Tokenizer.export` writes. As
    always in `transformers`, special tokens in texts become their ids.

    Its attribute `generation_config` says where generation stops, for `model.generation_config`.
    Errors are as in `to_huggingface`.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> theirs = bytepair.compat.to_transformers(tok)
        >>> theirs("hello").input_ids == tok.encode("hello"), theirs.eos_token
        (True, '<|assistant_end|>')
    """
    from tempfile import TemporaryDirectory

    from bytepair._internal.extras import transformers

    _check_held(tokenizer)
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, huggingface.files(tokenizer, folder))
        with _read_by("transformers"):
            fast = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        stops = (folder / GENERATION).is_file()
        kind = transformers.GenerationConfig
        fast.generation_config = kind.from_pretrained(folder) if stops else kind()
    templates = roles.chat_templates(tokenizer)  # with the tags that it reads
    others = templates.keys() - {roles.DEFAULT}
    fast.chat_template = templates if others else templates.get(roles.DEFAULT)
    fast.name_or_path = tokenizer.notes.get("name", "")
    fast.init_kwargs["name_or_path"] = fast.name_or_path
    return fast


def export_losses(
    tokenizer: _core.Tokenizer,
    format: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
) -> Losses:
    """List what would be lost by writing the tokenizer in a format.

    Args:
        tokenizer: the tokenizer.
        format: a name in the table of `docs/formats`, such as `gguf`; or a path with a known
            file name, as in `export`.
        path: the file or folder to write, if `format` is a name: a `tokenizer.json` alone has
            no roles and no chat template, a folder has. None means a folder.

    Returns:
        A description of everything that the format cannot represent, or that programs which
        read it handle differently; empty if nothing is lost. Its attribute `hint` says how
        less is lost.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> bytepair.compat.export_losses(tok, "tiktoken")
        ['the split pattern', 'the special tokens']
    """
    from bytepair.formats import writing

    if isinstance(format, os.PathLike):
        format, path = writing.of_path(Path(format)), format
    return writing.losses(tokenizer, format, None if path is None else Path(path))


#: The number of ids above which the lists of a column have 64-bit offsets.
MOST_IN_LIST_ARRAY: Final = 2**31 - 1


def encode_arrow(
    tokenizer: _core.Tokenizer,
    array: Any,
    *,
    special: SpecialMode = None,
    prepend: str | int | None = None,
    append: str | int | None = None,
    threads: int | None = None,
) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray:
    """Encode an Arrow column of texts to a column of lists of ids.

    Args:
        tokenizer: the tokenizer.
        array: an object with the Arrow interface (a pyarrow array or chunked array, a polars
            Series, ...) of type string, large_string or string_view.
        special: as in `Tokenizer.encode_batch`; so are errors.
        prepend: as there.
        append: as there.
        threads: as in `bytepair.train`.

    Returns:
        A pyarrow array with the list of ids of each text, and a null for each null. The ids are
        uint16 if the vocabulary has at most 65,536 ids, else uint32. The lists have 64-bit
        offsets if there are 2^31 ids or more. Chunks are preserved.

    Raises:
        TypeError: if `array` is not Arrow data, or does not contain text.
        CorpusError: if a text is not UTF-8; the message contains its index in its chunk.

    Example:
        >>> import bytepair, pyarrow
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> column = bytepair.compat.encode_arrow(tok, pyarrow.array(["hello!", None, ""]))
        >>> column.to_pylist()
        [[259, 33], None, []]
    """
    import numpy as np

    from bytepair._internal.extras import pyarrow as pa

    texts = arrow.import_column(array)
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    encoded = []
    for plain in arrow.plain(chunks):
        present = plain.drop_null()
        ids, ends = _core.encode_utf8(
            tokenizer, arrow.data(present), arrow.offsets(present),
            special=special, prepend=prepend, append=append, threads=threads,
        )  # fmt: skip
        encoded.append((ids, ends, np.asarray(plain.is_valid())))
    large = any(ends[-1] > MOST_IN_LIST_ARRAY for _, ends, _ in encoded)
    lists = [_lists(*parts, large=large) for parts in encoded]
    if not isinstance(texts, pa.ChunkedArray):
        return lists[0]
    ids_type = pa.uint16() if tokenizer.vocab_size <= 1 << 16 else pa.uint32()
    return pa.chunked_array(lists, pa.large_list(ids_type) if large else pa.list_(ids_type))


def pad(
    tokenizer: _core.Tokenizer,
    rows: Iterable[Sequence[int]],
    width: int | Literal["longest"] = "longest",
    *,
    side: Literal["right", "left"] = "right",
    tensors: Literal["np", "pt"] | None = None,
) -> dict[str, NDArray[np.integer]]:
    """Lists of ids as rows of equal width, filled with the padding token (see `roles`).

    Args:
        tokenizer: the tokenizer.
        rows: lists of ids, as from `encode_batch`.
        width: the number of ids of a row; "longest" means that of the longest list.
        side: the side of the padding: "right" or, as for generation, "left".
        tensors: "np" for arrays of int64, "pt" for tensors of torch; None for arrays of int32.

    Returns:
        `input_ids`, and `attention_mask` with 1 for ids and 0 for padding (uint8, or int64 with
        `tensors`), by these names: `model(**batch)` takes them.

    Raises:
        SpecialTokenError: if no token has the role `pad`, and a row needs padding.
        ArgumentError: if a list is longer than the rows.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> batch = bytepair.compat.pad(tok, tok.encode_batch(["hello!", "hello"]))
        >>> batch["input_ids"].tolist(), batch["attention_mask"].tolist()
        ([[259, 33], [259, 260]], [[1, 1], [1, 0]])
    """
    import numpy as np

    check_choice("side", side, ("right", "left"))
    rows = [integers("rows", row) for row in check_many("rows", rows, "lists of ids")]
    lengths = np.array([len(row) for row in rows], np.int64)
    longest = int(lengths.max(initial=0))
    width = longest if width == "longest" else check_whole("width", width)
    if width < longest:
        raise ArgumentError(
            f"list {int(lengths.argmax())} has {longest} ids, more than width={width}",
            option="width",
            value=width,
            hint=f"cut the lists: [ids[:{width}] for ids in rows]",
        )
    places = np.arange(width) if side == "right" else np.arange(width)[::-1]
    mask = places < lengths[:, None]
    filler = 0 if mask.all() else roles.id_of(tokenizer, "pad")
    ids = np.full((len(rows), width), filler, np.int32)
    ids[mask] = np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum()))
    batch: dict[str, NDArray[np.integer]]
    batch = {"input_ids": ids, "attention_mask": mask.astype(np.uint8)}
    if check_choice("tensors", tensors, ("np", "pt", None)) is None:
        return batch
    batch = {name: rows.astype(np.int64) for name, rows in batch.items()}
    if tensors == "np":
        return batch
    from bytepair._internal.extras import torch

    return {name: torch.from_numpy(rows) for name, rows in batch.items()}


def _lists(
    ids: Ids, offsets: NDArray[np.int64], valid: NDArray[np.bool_], *, large: bool
) -> pa.ListArray | pa.LargeListArray:
    """The ids of each text as a list, and a null where there is no text."""
    import numpy as np

    from bytepair._internal.extras import pyarrow as pa

    kind, width = (pa.LargeListArray, np.int64) if large else (pa.ListArray, np.int32)
    starts = offsets[np.concatenate([[0], np.cumsum(valid)])].astype(width)
    nulls = None if valid.all() else np.append(~valid, False)
    return kind.from_arrays(pa.array(starts, mask=nulls), pa.array(ids))
