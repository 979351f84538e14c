"""Estimate the data that training a model needs: tokens, text, disk space and time.

The estimate uses a rule of thumb (training tokens per parameter) and two measured numbers
(characters per token, characters per second). All have defaults; `measure` measures the two for
your own tokenizer and text.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from bytepair._internal.checks import check_choice, refuse
from bytepair.corpus.column import Errors
from bytepair.corpus.read import sample
from bytepair.corpus.source import Reading, Source
from bytepair.errors import ArgumentError, CorpusError
from bytepair.tokenizer import Tokenizer

__all__ = [
    "PRESET", "PRESETS", "DataPlan", "Measurement", "Preset", "measure", "plan_data",
]  # fmt: skip

#: The approximate speed of two cores on English text; `measure` measures your machine.
CHARS_PER_SECOND: Final = 150e6
#: The width of nanochat's models, per layer.
WIDTH_PER_LAYER: Final = 64
MEASURED_CHARS: Final = 20_000_000

_LARGE: Final = {"trillion": 1e12, "billion": 1e9, "million": 1e6}
_TIMES: Final = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0}


@dataclass(frozen=True)
class Preset:
    """The default numbers of a training recipe.

    Attributes:
        vocab_size: the vocabulary size.
        ratio: training tokens per counted parameter.
        tables: how many embedding tables are counted: 2 (input and output) or 1 (output).
        chars_per_token: characters of text read per training token.
        chars_per_shard: characters per text shard.
        dataset: the data set, as named by `bytepair.corpus.download_dataset`.
        shards: the number of its training shards.
    """

    vocab_size: int
    ratio: float
    tables: int
    chars_per_token: float
    chars_per_shard: int
    dataset: str
    shards: int


#: The defaults of nanochat. 2025: the ratio of Chinchilla, counting all parameters. 2026: counting
#: the matrices and the output table; 7 billion tokens need 150 shards, since documents are cropped.
PRESETS: Final = {
    "nanochat-2025": Preset(65536, 20.0, 2, 4.8, 250_000_000, "fineweb-edu", 1822),
    "nanochat-2026": Preset(32768, 12.0, 1, 5.4, 250_000_000, "climbmix", 6542),
}
PRESET: Final = "nanochat-2025"


@dataclass(frozen=True)
class DataPlan:
    """The data that training a model needs. `str(plan)` is the table printed by `bytepair plan`.

    Attributes:
        params: the number of parameters to which the ratio applies.
        tokens: the number of training tokens.
        chars: the number of characters that give this many tokens.
        shards: the number of text shards with this many characters, rounded up.
        available: the number of shards in the data set.
        disk_bytes: the size of the token shards in bytes.
        seconds: the time to encode the text.
        vocab_size: the vocabulary size.
        width: the width of the model; None if unknown.
    """

    params: float
    tokens: float
    chars: float
    shards: int
    available: int
    disk_bytes: float
    seconds: float
    vocab_size: int
    width: int | None

    @property
    def embedding_params(self) -> int | None:
        """Parameters of one embedding table: vocabulary size times width."""
        return None if self.width is None else self.vocab_size * self.width

    def __str__(self) -> str:
        """The plan as a table, one name and value per line."""
        rows = {
            "parameters": _in(_LARGE, self.params),
            "tokens": _in(_LARGE, self.tokens),
            "characters": f"{_in(_LARGE, self.chars)}, {self.chars / self.tokens:.2f} a token",
            "shards": f"{self.shards:,} of text",
            "disk": f"{_in(_LARGE, self.disk_bytes)} bytes of token shards",
            "time": f"{_in(_TIMES, self.seconds, ' seconds')} to encode",
        }
        if self.embedding_params is not None:
            each = self.embedding_params
            rows["embedding"] = (
                f"{each / 1e6:,.1f} million parameters ({self.vocab_size:,} x {self.width:,}), "
                f"{each / self.params:.1%} of the model; twice if input and output are not tied"
            )
        if self.shards > self.available:
            rows["warning"] = (
                f"the data set is too small: it has {self.available:,} shards and {self.shards:,} "
                f"are needed; train {self.shards / self.available:.1f} epochs, lower the ratio, or "
                "use more data"
            )
        return "\n".join(f"{name:>10}  {value}" for name, value in rows.items())


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
) -> DataPlan:
    """Estimate the data that training a model needs.

    Args:
        params: the number of parameters; required without `depth`.
        preset: a name in `PRESETS`, which supplies every number that is None.
        depth: the number of layers of a nanochat model: its width is 64 times its depth, with
            separate embedding tables for input and output. Determines the number of counted
            parameters, unless `params` is given.
        vocab_size: the vocabulary size.
        width: the width of the model; None means 64 times `depth`.
        ratio: training tokens per parameter.
        chars_per_token: characters per token, as returned by `measure`.
        chars_per_second: characters encoded per second, as returned by `measure`.

    Raises:
        ArgumentError: if the preset is unknown, neither `params` nor `depth` is given, all of
            `params`, `depth` and `width` are given, or a number is not positive.

    Example:
        >>> import bytepair
        >>> needed = bytepair.plan.plan_data(561e6)
        >>> round(needed.tokens / 1e9, 1), round(needed.chars / 1e9), needed.shards
        (11.2, 54, 216)
        >>> bytepair.plan.plan_data(depth=24, preset="nanochat-2026", ratio=8).shards
        127
    """
    check_choice("preset", preset, PRESETS)
    given = {"vocab_size": vocab_size, "ratio": ratio, "chars_per_token": chars_per_token}
    others = {
        "params": params, "depth": depth, "width": width, "chars_per_second": chars_per_second,
    }  # fmt: skip
    for name, value in (given | others).items():
        if value is not None and not 0 < value < math.inf:
            raise refuse(name, value, "above 0")
    changes: dict[str, Any] = {name: n for name, n in given.items() if n is not None}
    numbers = replace(PRESETS[preset], **changes)
    if params is not None and depth is not None and width is not None:
        raise ArgumentError("params, width and depth are all given", hint="omit one of the three")
    if depth is not None and width is None:
        width = WIDTH_PER_LAYER * depth
    if params is None:
        if depth is None or width is None:
            raise ArgumentError("pass the number of parameters (params) or of layers (depth)")
        # A layer has 4 matrices of width x width for attention and 8 for its MLP.
        params = (12 * depth * width + numbers.tables * numbers.vocab_size) * width
    tokens = params * numbers.ratio
    chars = tokens * numbers.chars_per_token
    shards = math.ceil(chars / numbers.chars_per_shard)
    disk_bytes = tokens * (2 if numbers.vocab_size <= 1 << 16 else 4)
    seconds = chars / chars_per_second
    sizes = numbers.shards, disk_bytes, seconds, numbers.vocab_size, width
    return DataPlan(params, tokens, chars, shards, *sizes)


class Measurement(NamedTuple):
    """What a tokenizer does with a text: the result of `measure`."""

    chars_per_token: float
    chars_per_second: float


def measure(
    tokenizer: Tokenizer,
    source: Source,
    *,
    max_chars: int = MEASURED_CHARS,
    errors: Errors = "strict",
) -> Measurement:
    """Measure the characters per token and the characters encoded per second.

    `source` is text similar to the training text, as in `bytepair.train`, of which at most
    `max_chars` characters, drawn from all files, are encoded; `errors` is as in `bytepair.Reading`.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> round(bytepair.plan.measure(tok, bytepair.sample.paths()).chars_per_token, 1)
        1.6
    """
    documents = sample(source, Reading(max_chars=max_chars, errors=errors))
    started = time.perf_counter()
    tokens = sum(map(len, tokenizer.encode_batch(documents)))
    seconds = time.perf_counter() - started
    if not tokens:
        raise CorpusError("the source has no text to measure")
    return Measurement(documents.chars / tokens, documents.chars / seconds)


def _in(units: dict[str, float], number: float, unit: str = "") -> str:
    """Format a number in the largest unit that it reaches, or else in the base unit."""
    name = next((name for name, size in units.items() if number >= size), None)
    return f"{number / units[name]:,.1f} {name}" if name else f"{number:,.0f}{unit}"
