"""The size of a model in, the data that its training needs out: tokens, text, disk and time.

Everything is arithmetic on a rule of thumb (tokens for each parameter) and two measured numbers
(characters a token, characters a second). The numbers have defaults, and `measure` finds them for a
tokenizer and a text of your own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from bytepair.corpus.column import strings
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import Limits, Source, resolve
from bytepair.errors import PlanError
from bytepair.tokenizer import Tokenizer

#: About what two cores do with English; `measure` says what yours do.
CHARS_PER_SECOND: Final = 150e6
#: The width of nanochat's models for each layer.
ASPECT: Final = 64
MEASURED_CHARS: Final = 20_000_000

_LARGE: Final = {"trillion": 1e12, "billion": 1e9, "million": 1e6}
_TIMES: Final = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0}


@dataclass(frozen=True)
class Preset:
    """The numbers of one way to train models.

    Attributes:
        vocab_size: ids of the vocabulary.
        ratio: tokens to train on for each parameter that is counted.
        tables: how many tables of embeddings are counted: 2, input and output, or 1, the output.
        chars_per_token: characters of text that are read for each token to train on.
        chars_per_shard: characters of one shard of text.
        dataset: the data set, as `bytepair.download_dataset` names it.
        shards: how many shards it has for training; infinity if there are always enough.
    """

    vocab_size: int
    ratio: float
    tables: int
    chars_per_token: float
    chars_per_shard: int
    dataset: str
    shards: float


#: The defaults of nanochat. In 2025: the ratio of Chinchilla, of all parameters. In 2026: of the
#: matrices and the output table; 7 billion tokens take 150 shards, since documents are cropped.
PRESETS: Final = {
    "nanochat-2025": Preset(65536, 20.0, 2, 4.8, 250_000_000, "fineweb-edu", 1822),
    "nanochat-2026": Preset(32768, 12.0, 1, 5.4, 250_000_000, "climbmix", 6542),
}
PRESET: Final = "nanochat-2025"


@dataclass(frozen=True)
class DataPlan:
    """What training a model needs. `str` of it is the table that `bytepair plan` prints.

    Attributes:
        params: parameters of the model, of which the ratio is taken.
        tokens: tokens to train on.
        chars: characters that give this many tokens.
        shards: shards of text that hold this many characters, rounded up.
        available: shards that the data set has; infinity if there are always enough.
        disk_bytes: size of the token shards.
        seconds: how long encoding takes.
        vocab_size: ids of the vocabulary.
        width: of the model; None if not known.
    """

    params: float
    tokens: float
    chars: float
    shards: int
    available: float
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
        if self.shards > self.available:
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
    preset: str = PRESET,
    depth: int | None = None,
    vocab_size: int | None = None,
    width: int | None = None,
    ratio: float | None = None,
    chars_per_token: float | None = None,
    chars_per_second: float = CHARS_PER_SECOND,
    chars_per_shard: int | None = None,
    available: float | None = None,
) -> DataPlan:
    """Say what data the training of a model needs.

    Args:
        params: parameters of the model; needed if there is no `depth`.
        preset: a name in `PRESETS`, which gives every number that is None.
        depth: layers of a model of nanochat's shape: 64 times as wide as it is deep, with separate
            tables for input and output. The parameters that the preset counts follow, unless
            `params` is given.
        vocab_size: ids of the vocabulary.
        width: width of the model; None means what `depth` gives.
        ratio: tokens for each parameter.
        chars_per_token: characters of a token, as `measure` finds them.
        chars_per_second: characters encoded in a second, as `measure` finds them.
        chars_per_shard: characters of one shard of text.
        available: shards that the data set has, for the warning; `math.inf` means enough.

    Raises:
        PlanError: if there is no such preset, if there is neither `params` nor `depth`, or all of
            `params`, `depth` and `width`, or a number is not positive.

    Example:
        >>> import bytepair
        >>> needed = bytepair.plan.plan_data(561e6)
        >>> round(needed.tokens / 1e9, 1), round(needed.chars / 1e9), needed.shards
        (11.2, 54, 216)
        >>> bytepair.plan.plan_data(depth=24, preset="nanochat-2026", ratio=8).shards
        127
    """
    numbers = _numbers(
        preset, vocab_size=vocab_size, ratio=ratio, chars_per_token=chars_per_token,
        chars_per_shard=chars_per_shard, shards=available,
    )  # fmt: skip
    _check_positive(params=params, depth=depth, width=width, chars_per_second=chars_per_second)
    if params is not None and depth is not None and width is not None:
        raise PlanError("depth says nothing beside params and width; leave out one of the three")
    if depth is not None and width is None:
        width = ASPECT * depth
    if params is None:
        if depth is None or width is None:
            raise PlanError("pass the parameters of the model (params), or its depth")
        params = model_params(depth, width, numbers.vocab_size, numbers.tables)
    tokens = params * numbers.ratio
    chars = tokens * numbers.chars_per_token
    return DataPlan(
        params=params,
        tokens=tokens,
        chars=chars,
        shards=math.ceil(chars / numbers.chars_per_shard),
        available=numbers.shards,
        disk_bytes=tokens * (2 if numbers.vocab_size <= 1 << 16 else 4),
        seconds=chars / chars_per_second,
        vocab_size=numbers.vocab_size,
        width=width,
    )


def _numbers(preset: str, **given: float | None) -> Preset:
    """The numbers of a preset, with those that are given in their place."""
    if preset not in PRESETS:
        raise PlanError(f"there is no preset {preset!r}; pass one of {', '.join(PRESETS)}")
    _check_positive(**{name: value for name, value in given.items() if name != "shards"})
    changed: Any = {name: value for name, value in given.items() if value is not None}
    return replace(PRESETS[preset], **changed)


def _check_positive(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not 0 < value < math.inf:
            raise PlanError(f"{name} is {value}; it must be positive")


def model_params(depth: int, width: int, vocab_size: int, tables: int = 2) -> int:
    """Parameters of a transformer of nanochat's shape.

    Each layer has 4 matrices of width x width for attention and 8 for its hidden layer; the tables
    of input and output have `vocab_size` rows each. `tables=1` counts one of them, as nanochat
    does in 2026.

    Example:
        >>> from bytepair.plan import model_params
        >>> model_params(20, 1280, 65536)
        560988160
        >>> model_params(24, 1536, 32768, tables=1)
        729808896
    """
    return 12 * depth * width**2 + tables * vocab_size * width


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
