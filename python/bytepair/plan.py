"""The size of a model in, the data that its training needs out: tokens, text, disk and time.

Everything is arithmetic on a rule of thumb (tokens for each parameter) and two measured numbers
(characters a token, characters a second). The numbers have defaults, and `measure` finds them for a
tokenizer and a text of your own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bytepair.corpus.column import strings
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import Limits, Source, resolve
from bytepair.errors import PlanError
from bytepair.tokenizer import Tokenizer

#: Tokens for each parameter at which a model of a given cost is best (Chinchilla).
RATIO: Final = 20.0
#: English web text with a vocabulary of 65,536.
CHARS_PER_TOKEN: Final = 4.8
#: What a shard of fineweb-edu-100b-shuffle holds.
CHARS_PER_SHARD: Final = 250_000_000
#: Shards of that data set, without the one for validation.
SHARDS: Final = 1822
#: About what two cores do with English; `measure` says what yours do.
CHARS_PER_SECOND: Final = 150e6
#: The width of nanochat's models for each layer.
ASPECT: Final = 64
MEASURED_CHARS: Final = 20_000_000

_LARGE: Final = {"trillion": 1e12, "billion": 1e9, "million": 1e6}
_TIMES: Final = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0}


@dataclass(frozen=True)
class DataPlan:
    """What training a model needs. `str` of it is the table that `bytepair plan` prints.

    Attributes:
        params: parameters of the model.
        tokens: tokens to train on.
        chars: characters that give this many tokens.
        shards: shards of text that hold this many characters, rounded up.
        available: shards that the data set has; None if not known.
        disk_bytes: size of the token shards.
        seconds: how long encoding takes.
        vocab_size: ids of the vocabulary.
        width: of the model; None if not known.
    """

    params: float
    tokens: float
    chars: float
    shards: int
    available: int | None
    disk_bytes: float
    seconds: float
    vocab_size: int
    width: int | None

    @property
    def embedding_params(self) -> int | None:
        """Parameters of one table of embeddings: vocabulary times width."""
        return None if self.width is None else self.vocab_size * self.width

    @property
    def warnings(self) -> list[str]:
        """What speaks against the plan."""
        found = []
        if self.available is not None and self.shards > self.available:
            found.append(
                f"the data set is too small: {self.shards:,} shards are needed and it has "
                f"{self.available:,}; train {self.shards / self.available:.1f} epochs, lower the "
                "ratio, or take more data"
            )
        return found

    def __str__(self) -> str:
        """The plan as lines of names and values."""
        rows = {
            "parameters": _in(_LARGE, self.params),
            "tokens": _in(_LARGE, self.tokens),
            "characters": _in(_LARGE, self.chars),
            "shards": f"{self.shards:,} of text",
            "disk": f"{_in(_LARGE, self.disk_bytes)} bytes of token shards",
            "time": f"{_in(_TIMES, self.seconds, ' seconds')} to encode",
        }
        if self.embedding_params is not None:
            each = self.embedding_params
            rows["embedding"] = (
                f"{each / 1e6:,.1f} million parameters ({self.vocab_size:,} x {self.width:,}), "
                f"twice if input and output do not share"
            )
            rows["larger"] = (
                f"{2 * self.vocab_size:,} ids would cost {each / 1e6:,.1f} million more a table, "
                f"{100 * each / self.params:.1f} % of the model"
            )
        lines = [f"{name:>10}  {value}" for name, value in rows.items()]
        return "\n".join([*lines, *(f"   warning  {text}" for text in self.warnings)])


def plan_data(
    params: float | None = None,
    *,
    depth: int | None = None,
    vocab_size: int = 65536,
    width: int | None = None,
    ratio: float = RATIO,
    chars_per_token: float = CHARS_PER_TOKEN,
    chars_per_second: float = CHARS_PER_SECOND,
    chars_per_shard: int = CHARS_PER_SHARD,
    available: int | None = SHARDS,
) -> DataPlan:
    """Say what data the training of a model needs.

    Args:
        params: parameters of the model; needed if there is no `depth`.
        depth: layers of a model of nanochat's shape: 64 times as wide as it is deep, with separate
            tables for input and output. The parameters follow, unless `params` is given.
        vocab_size: ids of the vocabulary.
        width: width of the model; None means what `depth` gives.
        ratio: tokens for each parameter.
        chars_per_token: characters of a token, as `measure` finds them.
        chars_per_second: characters encoded in a second, as `measure` finds them.
        chars_per_shard: characters of one shard of text.
        available: shards that the data set has, for the warning; None means enough.

    Raises:
        PlanError: if there is neither `params` nor `depth`, or all of `params`, `depth` and
            `width`, or a number is not positive.

    Example:
        >>> import bytepair
        >>> needed = bytepair.plan.plan_data(561e6)
        >>> round(needed.tokens / 1e9, 1), round(needed.chars / 1e9), needed.shards
        (11.2, 54, 216)
    """
    _check_positive(
        params=params, depth=depth, vocab_size=vocab_size, width=width, ratio=ratio,
        chars_per_token=chars_per_token, chars_per_second=chars_per_second,
        chars_per_shard=chars_per_shard,
    )  # fmt: skip
    if params is not None and depth is not None and width is not None:
        raise PlanError("depth says nothing beside params and width; leave out one of the three")
    if depth is not None and width is None:
        width = ASPECT * depth
    if params is None:
        if depth is None or width is None:
            raise PlanError("pass the parameters of the model (params), or its depth")
        params = model_params(depth, width, vocab_size)
    tokens = params * ratio
    chars = tokens * chars_per_token
    return DataPlan(
        params=params,
        tokens=tokens,
        chars=chars,
        shards=math.ceil(chars / chars_per_shard),
        available=available,
        disk_bytes=tokens * (2 if vocab_size <= 1 << 16 else 4),
        seconds=chars / chars_per_second,
        vocab_size=vocab_size,
        width=width,
    )


def _check_positive(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not 0 < value < math.inf:
            raise PlanError(f"{name} is {value}; it must be positive")


def model_params(depth: int, width: int, vocab_size: int) -> int:
    """Parameters of a transformer of nanochat's shape.

    Each layer has 4 matrices of width x width for attention and 8 for its hidden layer; the tables
    of input and output have `vocab_size` rows each.

    Example:
        >>> from bytepair.plan import model_params
        >>> model_params(20, 1280, 65536)
        560988160
    """
    return 12 * depth * width**2 + 2 * vocab_size * width


def measure(
    tokenizer: Tokenizer,
    source: Source | None = None,
    *,
    files: Source | None = None,
    texts: Iterable[str] | None = None,
    max_chars: int = MEASURED_CHARS,
) -> tuple[float, float]:
    """Find how many characters a token has, and how many characters a second are encoded.

    Args:
        tokenizer: the tokenizer.
        source: text like that to be trained on, as in `bytepair.train`.
        files: see there.
        texts: see there.
        max_chars: how much of it to encode.

    Returns:
        Characters a token, and characters a second.

    Raises:
        PlanError: if the source has no text.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> chars_per_token, chars_per_second = bytepair.plan.measure(tok, bytepair.sample.paths())
        >>> round(chars_per_token, 1)
        1.6
    """
    chars = tokens = 0
    seconds = 0.0
    found = resolve(source, files=files, texts=texts)
    for batch in read_batches(found, limits=Limits(max_chars)):
        documents = strings(batch)
        started = time.perf_counter()
        tokens += sum(map(len, tokenizer.encode_batch(documents)))
        seconds += time.perf_counter() - started
        chars += sum(map(len, documents))
    if not tokens:
        raise PlanError("there is no text to measure")
    return chars / tokens, chars / seconds


def _in(units: dict[str, float], number: float, unit: str = "") -> str:
    """A number in the largest of these units that it reaches, or else in its own."""
    found = next((name for name, size in units.items() if number >= size), None)
    return f"{number / units[found]:,.1f} {found}" if found else f"{number:,.0f}{unit}"
