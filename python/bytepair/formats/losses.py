"""What a format cannot hold of a tokenizer: its values, compared with a table of capabilities.

The table says for each format what its files hold and what the programs that read them do. One
function compares; what only one engine does differently is a function of that format's module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from bytepair import _core
from bytepair.formats import gpt2, llama2c
from bytepair.formats.gguf import file as gguf
from bytepair.formats.gguf import metadata as gguf_metadata
from bytepair.formats.gpt2 import lost_twins
from bytepair.formats.huggingface import folder as huggingface
from bytepair.formats.parts import Losses
from bytepair.properties import metadata
from bytepair.properties.rules import form
from bytepair.properties.tokens import uncovered, unmade

#: How texts can be split: as the tokenizer asks; by one regular expression; by that of GPT-2; not
#: at all, since the file has no pattern; or the module of the format compares.
_Split: TypeAlias = Literal["all", "regex", "gpt2", "none", "own"]
#: Which added tokens a file has: all, that which ends a text in GPT-2, or none.
_Added: TypeAlias = Literal["all", "end", "none"]
#: What merging starts from.
_Units: TypeAlias = Literal["bytes", "characters", "names"]


@dataclass(frozen=True)
class Capabilities:
    """What the files of a format hold, and what the programs do that read them.

    Attributes:
        reader: the program that reads them.
        units: what merging may start from.
        split: how texts can be split.
        added: which added tokens a file has.
        flags: the flags of added tokens that a file has; "ordinary" means not special.
        merges: whether a list of merges is held, beside the rule of ranks.
        whole_pretokens: whether a pretoken that is a token is never merged.
        characters: whether tokens are written in the characters of GPT-2, so that one name may
            stand for two of them.
        normalizer: whether texts can be normalized.
        uncovered: what the reader does with a byte that no token covers; None if it does the same,
            or cannot have such a tokenizer.
        is_written: whether bytepair writes the format.
        own: what else is lost, as the module of the format says.
    """

    reader: str
    units: tuple[_Units, ...] = ("bytes",)
    split: _Split = "regex"
    added: _Added = "all"
    flags: frozenset[str] = frozenset()
    merges: bool = False
    whole_pretokens: bool = True
    characters: bool = False
    normalizer: bool = False
    uncovered: str | None = None
    is_written: bool = True
    own: Callable[[_core.Tokenizer], list[str]] = lambda _tokenizer: []


_FLAGS: Final = {
    "lstrip": "that added tokens strip white space before them (lstrip)",
    "rstrip": "that added tokens strip white space after them (rstrip)",
    "single_word": "that added tokens are found only as words (single_word)",
    "normalized": "that added tokens are found in normalized texts (normalized)",
    "ordinary": "that added tokens which are not special are found in every text",
}

#: What a reader does with a byte that no token covers, as a tokenizer may do itself.
_DROPS: Final = "drops them"

_ENGINE: Final = Capabilities("the engines", split="none", added="none", own=llama2c.losses)

#: What each format holds.
CAPABILITIES: Final[dict[str, Capabilities]] = {
    "huggingface": Capabilities(
        "tokenizers", ("bytes", "characters", "names"), "all", flags=frozenset(_FLAGS),
        merges=True, normalizer=True, own=huggingface.losses,
    ),
    "tiktoken": Capabilities("tiktoken", split="none", added="none", uncovered="panics"),
    "gpt2": Capabilities(
        "the reader", split="gpt2", added="end", merges=True, whole_pretokens=False,
        characters=True, uncovered=_DROPS, own=gpt2.losses,
    ),
    "nanochat": Capabilities("tiktoken", uncovered="panics"),
    "llama2c": _ENGINE,
    "qwen3": Capabilities(
        "the engines", split="none", added="none",
        own=lambda tokenizer: llama2c.losses(tokenizer, llama2c.QWEN3),
    ),
    "gguf": Capabilities(
        "llama.cpp", ("bytes", "characters"), "own", flags=frozenset(("ordinary",)), merges=True,
        characters=True, uncovered=_DROPS, own=gguf.losses,
    ),
    "tekken": Capabilities("mistral-common", uncovered="panics", is_written=False),
    "sentencepiece": Capabilities(
        "sentencepiece", ("characters",), "none", flags=frozenset(("ordinary",)),
        is_written=False,
    ),
}  # fmt: skip

_HINTS: Final[dict[str, Callable[[_core.Tokenizer], list[str]]]] = {
    "llama2c": llama2c.hints,
    "qwen3": lambda tokenizer: llama2c.hints(tokenizer, llama2c.QWEN3),
    "gguf": gguf_metadata.hints,
}


def losses(tokenizer: _core.Tokenizer, format: str, path: Path | None = None) -> Losses:
    """What a format cannot represent of a tokenizer; see `bytepair.compat.export_losses`.

    A path with the name of one file has no place for what the format writes into other files.
    """
    can = CAPABILITIES[format]
    if reason := lost_units(tokenizer, format):
        return Losses([reason])
    lost = [] if can.is_written else [f"everything: {format} is only read here"]
    if format != "gguf":  # its own function compares, since it fills roles that are missing
        lost += metadata.losses(tokenizer, format)
    if format == "huggingface" and path is not None and huggingface.is_alone(path):
        lost += metadata.lost_alone(tokenizer)
    lost += [*_lost_rules(tokenizer, can), *_lost_added(tokenizer, can)]
    lost += [*_lost_merges(tokenizer, can), *_lost_bytes(tokenizer, can), *can.own(tokenizer)]
    hints = _HINTS[format](tokenizer) if lost and format in _HINTS else []
    return Losses(dict.fromkeys(lost), ", or ".join(hints))


def lost_units(tokenizer: _core.Tokenizer, format: str) -> str | None:
    """Why a tokenizer that merges no bytes cannot be written in a format at all, if so."""
    units: _Units = "bytes"
    if _core.text_rules(tokenizer).has_symbols or _core.text_rules(tokenizer).decodes_names:
        units = "names"
    elif tokenizer.merge_rule == "characters":
        units = "characters"
    held = CAPABILITIES[format].units
    if units in held:
        return None
    what = {
        "bytes": "bytes",
        "characters": "characters, with byte fallback",
        "names": "symbols with names",
    }
    return f"this tokenizer merges {what[units]}, and {format} merges {what[held[0]]}"


def _lost_rules(tokenizer: _core.Tokenizer, can: Capabilities) -> Iterator[str]:
    """What happens to a text before it is merged."""
    rules, pattern = _core.text_rules(tokenizer), tokenizer.pattern
    if rules.normalizer and not can.normalizer and tokenizer.merge_rule != "characters":
        yield f"the normalization to {form(rules)}: {can.reader} encodes texts as they are"
    if can.split == "none":
        yield "the split pattern"
    if can.split == "gpt2" and pattern != _core.PATTERNS["gpt2"]:
        yield "the split pattern: readers use GPT-2's"
    if can.split in ("regex", "none") and not isinstance(pattern, str):
        steps = ", ".join(rules.pre_tokenizer) or "several patterns"
        yield f"the splitting by {steps}: {can.reader} splits by one regular expression"
    if rules.user_defined and can.units == ("bytes",):
        yield "that user-defined tokens are found before merging"


def _lost_added(tokenizer: _core.Tokenizer, can: Capabilities) -> Iterator[str]:
    """The added tokens that a file does not have, and their flags."""
    names = list(tokenizer.special_tokens)
    if can.added == "none" and names:
        yield "the special tokens"
    if can.added == "end" and (others := [name for name in names if name != gpt2.END_OF_TEXT]):
        yield f"the special tokens {', '.join(map(repr, others))}"
    for flag, sentence in _FLAGS.items():
        has = any(
            not token.special if flag == "ordinary" else getattr(token, flag)
            for token in _core.added_tokens(tokenizer)
        )
        if has and flag not in can.flags:
            yield sentence


def _lost_merges(tokenizer: _core.Tokenizer, can: Capabilities) -> Iterator[str]:
    """What a file does not have of the merges."""
    if tokenizer.merge_rule == "merges" and not can.merges:
        yield f"the list of merges: {can.reader} merges by rank, so texts get other ids"
    if not can.whole_pretokens and (
        _core.ignores_merges(tokenizer) or (tokenizer.merge_rule == "ranks" and unmade(tokenizer))
    ):
        yield "pretokens that are tokens: readers merge them instead of using the token"


def _lost_bytes(tokenizer: _core.Tokenizer, can: Capabilities) -> Iterator[str]:
    """The bytes and names that a reader treats in another way."""
    if can.characters and tokenizer.merge_rule != "characters":
        yield from lost_twins(tokenizer)
    drops = _core.text_rules(tokenizer).drops_uncovered
    differs = can.uncovered is not None and not (drops and can.uncovered == _DROPS)
    if differs and (missing := uncovered(tokenizer)):
        shown = ", ".join(f"{byte:#04x}" for byte in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        kept = "the omission of" if drops else "the error for"
        what = f"{kept} bytes that no token covers"
        yield f"{what} ({shown}{more}): {can.reader} {can.uncovered}"
