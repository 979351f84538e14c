"""Examines a vocabulary: which tokens it has, and which of them are useful.

`inspect` looks at the vocabulary alone. `use` encodes a corpus with it and sees which tokens occur,
and how evenly. `bits_per_byte` makes the losses of models with different vocabularies comparable:
they are divided by the bytes of the text, since a longer token has a larger loss.
"""

from __future__ import annotations

import io
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_kind, check_many, refuse
from bytepair._internal.drawing import brief
from bytepair.errors import ArgumentError
from bytepair.files.outputs import write_whole
from bytepair.formats.nanochat import tensor_file
from bytepair.properties.tokens import token_lengths
from bytepair.tokenizer import Tokenizer
from bytepair.tokenizer.pruning import unreachable

#: The order of the Rényi entropy; its inventors found that it predicts translation quality.
RENYI_ORDER: Final = 2.5

#: How many of the longest tokens are named.
LONGEST_SHOWN: Final = 20

#: Numbers whose splits show how a tokenizer treats digits.
NUMBERS: Final = (
    "7", "42", "365", "2024", "31415", "1000000", "1,000,000", "3.14159", "12:45", "0x1F",
)  # fmt: skip


@dataclass(frozen=True)
class VocabularyReport:
    """What is in a vocabulary.

    Attributes:
        size: how many ids there are, special tokens included.
        special: how many of them are special tokens.
        lengths: how many ordinary tokens have how many bytes.
        longest: the ids of the longest tokens, longest first.
        unreachable: the ids of tokens that merging can never produce.
        split: the ids of tokens whose own text becomes other tokens; see `split_tokens`.
        unwhole: the ids of tokens of two bytes or more that begin or end inside a character.
        duplicates: the ids of tokens that differ in case or in a leading space only, in groups,
            the largest first.
        numbers: how some numbers are split.
        digits: how many tokens consist of 1, 2, 3 … ASCII digits alone.
    """

    size: int
    special: int
    lengths: dict[int, int]
    longest: list[int]
    unreachable: list[int]
    split: list[int]
    unwhole: list[int]
    duplicates: list[list[int]]
    numbers: dict[str, list[bytes]]
    digits: dict[int, int]

    __repr__ = brief


def inspect(tokenizer: Tokenizer) -> VocabularyReport:
    """Look through the vocabulary of a tokenizer.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["Hello hello hello 42 42"], vocab_size=272)
        >>> inspection = inspect(tok)
        >>> [tok.token_bytes(i) for i in inspection.duplicates[0]]
        [b' hello', b'Hello']
        >>> inspection.numbers["365"]
        [b'3', b'6', b'5']
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    ranks = tokenizer.mergeable_ranks()
    by_length = sorted(ranks.items(), key=lambda item: (-len(item[0]), item[1]))
    numbers = {n: [tokenizer.token_bytes(i) for i in tokenizer.encode(n)] for n in NUMBERS}
    return VocabularyReport(
        size=tokenizer.vocab_size,
        special=len(tokenizer.special_tokens),
        lengths=dict(sorted(Counter(map(len, ranks)).items())),
        longest=[id for _, id in by_length[:LONGEST_SHOWN]],
        unreachable=unreachable(tokenizer),
        split=split_tokens(tokenizer),
        unwhole=[id for token, id in ranks.items() if len(token) > 1 and not _is_text(token)],
        duplicates=near_duplicates(ranks),
        numbers=numbers,
        digits=dict(sorted(Counter(len(t) for t in ranks if t.isdigit()).items())),
    )


def split_tokens(tokenizer: Tokenizer) -> list[int]:
    """Find the tokens whose own text becomes other tokens, although merging can produce them.

    The pattern splits such a text, or a normalizer changes it: of the rank file of Qwen 3, 1,673
    tokens, such as Thai words with vowel signs. Tokens that are no whole text are not looked at.

    Example:
        >>> import bytepair
        >>> ranks = {bytes([b]): b for b in range(256)} | {b"12": 256}
        >>> split_tokens(bytepair.Tokenizer.from_ranks(ranks, pattern="qwen2"))  # splits digits
        [256]
    """
    left_out = set(unreachable(tokenizer))
    texts = {
        id: token.decode()
        for token, id in tokenizer.mergeable_ranks().items()
        if id not in left_out and _is_text(token)
    }
    own = tokenizer.encode_batch(list(texts.values()))
    return [id for id, ids in zip(texts, own, strict=True) if list(ids) != [id]]


def glitch_candidates(
    tokenizer: Tokenizer, embeddings: NDArray[Any], *, limit: int = 50
) -> list[int]:
    """Find tokens that a model has hardly been trained on, by its embeddings.

    Tokens that no text gives (`unreachable`, `split_tokens`, and bytes that UTF-8 does not have)
    keep the embeddings of the beginning, or decay to a common one. The nearest to their mean are
    candidates (Land and Bartolo, 2024, arXiv:2405.05417). Without a model, `use` lists the tokens
    that a corpus does not contain.

    Args:
        tokenizer: the tokenizer of the model.
        embeddings: the input embeddings: an array of one row for each id; more rows are ignored.
        limit: the maximum number of candidates.

    Returns:
        The ids of ordinary tokens that texts can give, the nearest first.

    Example:
        >>> import bytepair, numpy
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> embeddings = numpy.ones((269, 2))
        >>> embeddings[[0xC0, 0xC1, *range(0xF5, 0x100)]] = 0  # never trained
        >>> embeddings[ord("x")] = 0.1
        >>> tok.decode(glitch_candidates(tok, embeddings, limit=1))
        'x'
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    try:
        matrix = np.asarray(embeddings, np.float64)
    except (TypeError, ValueError):
        raise refuse("embeddings", embeddings, "an array of one row for each id") from None
    if matrix.ndim != 2 or len(matrix) < tokenizer.vocab_size:
        raise ArgumentError(
            f"embeddings has the shape {matrix.shape}, and the tokenizer {tokenizer.vocab_size} ids"
        )
    ranks = tokenizer.mergeable_ranks()
    invalid = [ranks[bytes([b])] for b in (0xC0, 0xC1, *range(0xF5, 0x100)) if bytes([b]) in ranks]
    never = {*invalid, *unreachable(tokenizer), *split_tokens(tokenizer)}
    ids = np.array([id for id in ranks.values() if id not in never], np.int64)
    if not never or not len(ids):
        return []
    distances = np.linalg.norm(matrix[ids] - matrix[sorted(never)].mean(axis=0), axis=1)
    nearest: list[int] = ids[np.argsort(distances, kind="stable")[:limit]].tolist()
    return nearest


def near_duplicates(ranks: dict[bytes, int]) -> list[list[int]]:
    """Group the tokens that differ in case or in a leading space only, the largest group first.

    Single bytes are left out: a vocabulary must have them all.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for token, id in ranks.items():
        if len(token) > 1 and _is_text(token):
            groups[token.decode().removeprefix(" ").casefold()].append(id)
    duplicates = [ids for key, ids in groups.items() if key and len(ids) > 1]
    return sorted(duplicates, key=lambda ids: (-len(ids), ids))


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class Use:
    """What a corpus makes of a vocabulary.

    Attributes:
        bytes: how long the corpus is in UTF-8.
        tokens: how many tokens it becomes.
        unused: the ids of ordinary tokens that do not occur.
        single_bytes: the share of its tokens that are one byte.
        broken_bytes: the share of its tokens that are one byte of a longer character.
        renyi: how evenly tokens are used, between 0 and 1; see `renyi_efficiency`.
        counts: how often each id occurs.
    """

    bytes: int
    tokens: int
    unused: list[int]
    single_bytes: float
    broken_bytes: float
    renyi: float
    counts: NDArray[np.int64]

    __repr__ = brief


def use(tokenizer: Tokenizer, texts: Iterable[str]) -> Use:
    """Encode a corpus and see which tokens occur.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> usage = use(tok, ["hello hello h"])
        >>> usage.tokens, usage.single_bytes  # hello, space, hello, space, h
        (5, 0.6)
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer)
    texts = list(check_many("texts", texts))
    ids, _ = tokenizer.encode_batch_to_numpy(texts)
    counts = np.bincount(ids, minlength=tokenizer.vocab_size)
    ranks = tokenizer.mergeable_ranks()
    total = max(int(counts.sum()), 1)
    single = {token: int(counts[id]) for token, id in ranks.items() if len(token) == 1}
    return Use(
        bytes=sum(len(text.encode(errors="replace")) for text in texts),
        tokens=int(counts.sum()),
        unused=[id for id in ranks.values() if not counts[id]],
        single_bytes=sum(single.values()) / total,
        broken_bytes=sum(n for token, n in single.items() if token[0] >= 0x80) / total,
        renyi=renyi_efficiency(counts, tokenizer.vocab_size),
        counts=counts,
    )


def renyi_efficiency(
    counts: Sequence[int] | NDArray[np.integer], size: int, order: float = RENYI_ORDER
) -> float:
    """How evenly tokens are used: the Rényi entropy of their shares over that of equal shares.

    Args:
        counts: how often each token occurs.
        size: how many tokens there are.
        order: the order of the entropy, which is not 1.

    Returns:
        Between 0 (one token does all) and 1 (all are used alike).

    Example:
        >>> renyi_efficiency([5, 5, 5, 5], 4), renyi_efficiency([9, 0, 0, 0], 4)
        (1.0, 0.0)
    """
    try:
        occurrences = np.asarray(counts, np.float64)
    except (TypeError, ValueError):
        raise refuse("counts", counts, "a sequence of numbers") from None
    occurrences = occurrences[occurrences > 0]
    if size < 2 or not occurrences.size:
        return 0.0
    shares = occurrences / occurrences.sum()
    entropy = float(np.log((shares**order).sum())) / (1 - order)
    return entropy / float(np.log(size)) + 0.0  # no -0.0


def nats_and_bytes(losses: Any, targets: Any, token_bytes: Any) -> tuple[float, int]:
    """Add up the losses and the bytes of one batch.

    With several batches or machines, sum the results and divide once at the end.

    Args:
        losses: the loss of each target in nats, any shape.
        targets: the ids to predict, of the same shape; negative ones are ignored.
        token_bytes: the number of bytes of each id; see `token_lengths`.

    Returns:
        The sum of the losses of targets that have bytes, and the number of these bytes.

    Example:
        >>> import numpy as np
        >>> losses, targets = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 1, -1, 2])
        >>> nats_and_bytes(losses, targets, np.array([1, 3, 0]))  # id 2 is special
        (3.0, 4)
    """
    for name, value in (("losses", losses), ("targets", targets), ("token_bytes", token_bytes)):
        if not hasattr(value, "reshape") or isinstance(value, np.generic):
            raise refuse(name, value, "an array or a tensor")
    losses, targets = losses.reshape(-1), targets.reshape(-1)
    if losses.shape != targets.shape:
        raise ArgumentError(f"there are {losses.shape[0]} losses but {targets.shape[0]} targets")
    real = targets >= 0
    lengths = token_bytes[targets[real]]
    nats = losses[real][lengths > 0]
    # Sums in 32 bits or fewer lose precision.
    nats = nats.double() if hasattr(nats, "double") else nats.astype(np.float64)
    return float(nats.sum()), int(lengths.sum())


def bits_per_byte(losses: Any, targets: Any, token_bytes: Any) -> float:
    """The bits that a model needs per byte of the text; the arguments are as in `nats_and_bytes`.

    It is infinity if no target has bytes.

    Example:
        >>> import numpy as np
        >>> losses = np.log(2) * np.array([8.0, 16.0, 99.0])
        >>> bits_per_byte(losses, np.array([0, 1, -1]), np.array([1, 2]))
        8.0
    """
    nats, size = nats_and_bytes(losses, targets, token_bytes)
    return nats / (math.log(2) * size) if size else math.inf


def save_token_bytes(
    tokenizer: Tokenizer, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the number of bytes of each id, atomically.

    The name of the file ends in `.npy` for numpy, or in `.pt` for torch. A file that exists is
    replaced with `overwrite` only.

    Example:
        >>> import bytepair, numpy, tempfile
        >>> tok = bytepair.train(["hello"], vocab_size=265)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.load(save_token_bytes(tok, f"{folder}/token_bytes.npy")).sum()
        np.int64(256)
    """
    path, lengths = Path(path), token_lengths(tokenizer)
    if path.suffix == ".npy":
        file = io.BytesIO()
        np.save(file, lengths)
        data = file.getvalue()
    elif path.suffix == ".pt":
        data = tensor_file(lengths)
    else:
        raise ArgumentError(f"{path.name} must end in .npy or .pt")
    write_whole(path, data, overwrite=overwrite)
    return path
