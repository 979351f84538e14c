"""The split rules of llama.cpp, by their names in the field `tokenizer.ggml.pre`.

llama.cpp does not read split patterns. It has a fixed list of names, which also determine whether a
pretoken that is a token is merged. The behaviour of each name is reproduced here, with one
exception: its contractions exclude `ſ` (U+017F), which the case-insensitive published patterns
include. Many of its rules differ from the published patterns of these vocabularies: in `gpt-4o` and
`tekken` letters other than `a` to `z` count as both cases, and marks are not letters.

If llama.cpp has no name for a pattern, the rule that splits the most short texts in the same way is
used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Final, NamedTuple

from bytepair import _core
from bytepair.formats.pieces import CONTROL, NORMAL, USER_DEFINED
from bytepair.properties.tokens import splitter, unmade

_GPT2: Final = _core.PATTERNS["gpt2"]
_LLAMA3: Final = _core.PATTERNS["llama3"]
_QWEN2: Final = _core.PATTERNS["qwen2"]
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LETTERS: Final = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-"
    "ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-"
    "ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_CJK: Final = "[一-龥\u3040-ゟ゠-ヿ]+"
_DEEPSEEK3: Final = (
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)
_ASIAN: Final = (
    "[一-鿿㐀-䶿\uf900-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-⿟เ-\u0eff\u1780-\u17ffက-႟ꩠ-ꩿꧠ-\ua9ff가-\ud7ffᄀ-ᇿ]+"
)
_HAN: Final = (
    "一-\u9fff㐀-䶿\U00020000-\U0002a6df\U0002a700-\U0002ebef\uf900-\ufaff\U0002f800-\U0002fa1f"
)
#: llama.cpp takes no space for a part of a range.
_NOT_SPACES: Final = r"[一-龥ࠀ-一가-퟿&&[^\s]]+"
#: A number begins a pretoken or ends one, and is split before each group of three, from the end.
_THREES: Final = r"\P{N}*+\p{N}(?:(?!(?:\p{N}{3})+(?!\p{N}))\p{N})*|\P{N}+"
_WORDS: Final = " ?[^(\\s|.,!?…。，、।۔،)]+"


def _cased(upper: str, lower: str) -> str:
    """The pattern of GPT-4o with other classes of letters."""
    return _core.PATTERNS["gpt4o"].replace(_UPPER, upper).replace(_LOWER, lower)


#: For each kind of rule, the patterns that are applied one after the other.
_STEPS: Final[dict[str, tuple[str, ...]]] = {
    "gpt2": (_GPT2,),
    "gpt4o": (_cased(r"[\p{L}&&[^a-z]]", r"[\p{L}&&[^A-Z]]"),),
    "granite": (_cased(r"[\p{L}\p{M}&&[^a-z]]", r"[\p{L}\p{M}&&[^A-Z]]"),),
    "tiny-aya": (_THREES, _cased(r"[\p{L}\p{M}]", r"[\p{L}\p{M}]")),
    "youtu": (
        "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + _CJK,
        _cased(r"[\p{L}\p{M}]", r"[\p{L}\p{M}]").replace("{1,3}", ""),
    ),
    "kimi-k2": (
        f"[{_HAN}]+|" + _cased(*[rf"[\p{{L}}&&[^{_HAN}]]"] * 2).replace("/", ""),
    ),
    "tekken": (
        r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]*[\p{L}&&[^A-Z]]+"
        r"|[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]+[\p{L}&&[^A-Z]]*"
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "llama3": (_LLAMA3,),
    "qwen2": (_QWEN2,),
    "qwen35": (_QWEN2.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"\s\p{L}", r"\s\p{L}\p{M}"),),
    "bailing": (_core.PATTERNS["nanochat"].replace("{1,2}", ""),),
    "seed-coder": (_QWEN2.replace(r"\p{L}\p{N}]+[\r\n]*", r"\p{L}\p{N}\r\n]+"),),
    "ufakzeka": (_QWEN2.partition("|[^")[2].join(["[^", ""]),),
    "bloom": (_WORDS,),
    "viking": (_WORDS, r"\p{N}"),
    "digits": (r"\p{N}", _GPT2),
    "minicpm5": (r"\p{N}{1,3}", _LLAMA3.replace("{1,3}", "+")),
    "deepseek3": (r"\p{N}{1,3}", _CJK, _DEEPSEEK3),
    "deepseek-llm": (
        "[\r\n]", rf"\s?[{_LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟、。]+", r"\s+$", _NOT_SPACES,
        r"\p{N}+",
    ),
    "deepseek-coder": ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _NOT_SPACES, r"\p{N}"),
    "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]"),
    "laguna": (r"[^\n]+|[\n]+", _QWEN2),
    "afmoe": (_THREES, _ASIAN, _DEEPSEEK3),
    "spark2.5": (
        r"\p{N}{1,3}", _CJK, _DEEPSEEK3.replace("[\r\n]*|\\s*[\r\n]+", "|[\r\n]"), r"\p{N}",
    ),
    "exaone-moe": (
        _QWEN2.replace(r"\p{L}+", r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+")
        .replace(r"[\r\n]*", r"[\r\n/]?").replace(r"[\r\n]+", r"[\r\n]"),
    ),
    "k2-horizon": (_LLAMA3.replace(r"\p{L}+", r"[\p{L}\p{M}\u200c\u200d]+"),),
    "jais-2": (
        _LLAMA3.replace(r"\s+(?!\S)|\s+", "".join(
            rf"\s{{{run}}}(?!\S)|" for run in (512, 256, 128, 64, 32, 16, 8, 4, "1,2")
        ) + r"\s"),
    ),
    "chameleon": (
        "<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\t\n]|    |  ", r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]", _GPT2,
    ),
    # Runs of digits, split before each group of three digits, counted from the end; llama.cpp has
    # two rules for it, of which the second only has empty matches.
    "superbpe": (r"\p{N}(?:(?!(?:[0-9]{3})+(?![0-9]))\p{N})*",),
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
}  # fmt: skip


class SplitRule(NamedTuple):
    """A name, its split pattern, and whether pretokens that are tokens are not merged."""

    name: str
    pattern: str | tuple[str, ...]
    ignores_merges: bool


#: The names of each kind of rule, and whether pretokens that are tokens are not merged.
_NAMES: Final = {
    ("gpt2", False): "gpt-2 phi-2 mpt olmo jais exaone4 trillion granite-docling modern-bert "
    "roberta-bpe gigachat a.x-4.0 mellum jina-v1-en jina-v2-code jina-v2-es jina-v2-de jina-es "
    "jina-de",
    ("llama3", True): "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 glm4 glm5 "
    "jina-v5-nano",
    ("llama3", False): "smaug-bpe dbrx chatglm-bpe",
    ("qwen2", False): "qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan grok-2 solar-open kormo "
    "f2llmv2",
    ("qwen35", False): "qwen35",
    ("digits", False): "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
    ("deepseek3", False): "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
    ("deepseek-llm", False): "deepseek-llm",
    ("deepseek-coder", False): "deepseek-coder",
    ("falcon", False): "falcon",
    ("bailing", False): "bailingmoe bailingmoe2 llada-moe",
    ("minicpm5", True): "minicpm5",
    ("bloom", False): "bloom poro-chat gpt3-finnish",
    ("viking", False): "viking",
    ("seed-coder", False): "seed-coder",
    ("ufakzeka", False): "ufakzeka",
    ("laguna", False): "laguna",
    ("superbpe", False): "superbpe",
    ("granite", True): "granite-embed-multi-97m",
    ("tiny-aya", False): "tiny_aya cohere2moe",
    ("youtu", True): "youtu",
    ("kimi-k2", False): "kimi-k2",
    ("afmoe", False): "afmoe",
    ("spark2.5", False): "spark2_5",
    ("exaone-moe", False): "exaone-moe",
    ("k2-horizon", False): "k2-horizon",
    ("jais-2", False): "jais-2",
    ("chameleon", False): "chameleon",
    ("gpt4o", False): "gpt-4o llama4 kanana2 talkie minimax-m2",
    ("tekken", True): "tekken",
    ("default", False): "default",
}


#: The names of tokens at which llama.cpp stops, whatever their roles.
STOPS: Final = frozenset((
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
    "<｜end▁of▁sentence｜>", "[e~[",
))  # fmt: skip

#: The names of tokens that mark parts of code to fill in, which llama.cpp finds by these names.
_FILL_IN: Final = frozenset((
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
    "<|code_prefix|>", "<|prefix|>", "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",
    "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>", "<|fim_middle|>",
    "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
    "<|middle|>", "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>",
    "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
))  # fmt: skip

#: The names of tokens that llama.cpp finds in every text, whatever their type.
_IN_TEXTS: Final = frozenset(("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"))

#: The names of tokens to which llama.cpp gives another type than the file may.
RETYPED: Final = STOPS | _FILL_IN | _IN_TEXTS


def kinds(names: Sequence[str], kinds: Sequence[int]) -> list[int]:
    """The types that llama.cpp gives to the tokens of a file, by their names."""
    here = set(names) & RETYPED
    if not here:
        return list(kinds)
    return [
        _kind(name, kind, here) if name in here else kind
        for name, kind in zip(names, kinds, strict=True)
    ]


def _kind(name: str, kind: int, here: set[str]) -> int:
    """The type of a token with one of the names of which llama.cpp knows better."""
    calls = not here.isdisjoint(("<|call|>", "<|calls|>"))
    by_call = {"<|return|>", "<|call|>"} <= here or ("<|flush|>" in here and calls)
    if name in _IN_TEXTS or (name == "<|end|>" and by_call):  # it ends a message, not the turn
        return USER_DEFINED
    if name == "</s>" and "<|tool_response>" in here:
        return NORMAL
    return CONTROL if kind in (NORMAL, USER_DEFINED) else kind


def lost_kinds(kinds_by_name: Mapping[str, int]) -> list[str]:
    """The tokens that llama.cpp takes for tokens of another type."""
    names = list(kinds_by_name)
    lost: dict[str, list[str]] = {}
    there = kinds(names, list(kinds_by_name.values()))
    for (name, kind), other in zip(kinds_by_name.items(), there, strict=True):
        if kind == NORMAL and name in RETYPED:
            what = "is ordinary text: llama.cpp takes it for a control token"
            lost.setdefault(what, []).append(name)
        elif kind != other:
            lost.setdefault(_TYPES[other], []).append(name)
    return [f"that {', '.join(map(repr, names))} {what}" for what, names in lost.items()]


#: The names of added tokens that are compared have at most this number of characters.
_MOST_NAME_CHARS: Final = 512


def lost_order(names: Iterable[str]) -> list[str]:
    """Two added tokens that may overlap in a text, of which llama.cpp finds the longer one.

    Example:
        >>> lost_order(["<a>", ">>>>"])
        ["that the first of '<a>' and '>>>>' is found where they overlap: llama.cpp finds the last"]
    """
    by_size = sorted(names, key=lambda name: len(name.encode()))
    if by_size and len(by_size[-1]) > _MOST_NAME_CHARS:  # the rest takes the square of the length
        return [f"the order of added tokens of more than {_MOST_NAME_CHARS} characters"]
    longest = {name[:end]: name for name in by_size for end in range(1, len(name))}
    for name in by_size:
        for start in range(1, len(name)):
            other = longest.get(name[start:], name)
            if other != name and len(other.encode()) >= len(name.encode()):
                what = "is found where they overlap: llama.cpp finds the last"
                return [f"that the first of {name!r} and {other!r} {what}"]
    return []


_TYPES: Final = {
    NORMAL: "is an added token: llama.cpp takes it for an ordinary one",
    CONTROL: "is found in every text: llama.cpp takes it for a control token",
    USER_DEFINED: "is found in no text unless asked for: llama.cpp finds it in every text",
}

#: The names whose files get BOS before a text, or the separator between two, if no key says it.
_ADD_BOS: Final = (
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken "
    "chameleon"
)
_ADD_SEP: Final = "jina-v1-en jina-v2-code roberta-bpe"

#: The names with which llama.cpp removes spaces before punctuation when it decodes.
CLEAN_UP: Final = (
    "default minicpm5 llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 "
    "jina-v5-nano falcon mpt starcoder gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de "
    "a.x-4.0 mellum modern-bert jina-v1-en jina-v2-code roberta-bpe refact stablelm2 olmo dbrx "
    "smaug-bpe glm4 chatglm-bpe jais codeshell bloom gpt3-finnish exaone exaone4 minerva-7b megrez "
    "mellum2 jais-2 exaone-moe"
)


def usual_flags(model: Any, name: Any) -> list[str]:
    """The flags that llama.cpp sets for a tokenizer model and a name, if a file has no keys."""
    if model == "llama" or name in _ADD_BOS.split():
        return ["add_bos_token"]
    return ["add_sep_token"] if name in _ADD_SEP.split() else []


def rule(name: str) -> SplitRule:
    """The rule of a name; a KeyError if the name is unknown."""
    for (kind, ignore), names in _NAMES.items():
        if name in names.split():
            return SplitRule(name, _pattern(kind), ignore)
    raise KeyError(name)


#: Texts that show how a rule splits: all short ones of characters of every class, and runs of one.
_SYMBOLS: Final = (
    "a", "A", "'s", "1", "!", "/", " ", "\t", "\n", "\r", "é", "É", "中", "\u0301", "。", "😀",
)  # fmt: skip
_TEXTS: Final = [
    *("".join(parts) for length in (1, 2, 3) for parts in product(_SYMBOLS, repeat=length)),
    *(symbol * length for symbol in _SYMBOLS for length in range(4, 9)),
]


@lru_cache(maxsize=16)
def nearest(tokenizer: _core.Tokenizer) -> SplitRule:
    """The rule of this tokenizer, or else the one that splits the most texts as it.

    Example:
        >>> tokens = {bytes([byte]): byte for byte in range(256)}
        >>> model = _core.Model.from_ranks(tokens, _core.PATTERNS["nanochat"], {})
        >>> nearest(_core.Tokenizer(model)).name
        'llama-bpe'
    """
    rules = [rule(names.split()[0]) for names in _NAMES.values()]
    for one in rules:
        if one.pattern == tokenizer.pattern and _fits(tokenizer, one.ignores_merges):
            return one
    patterns = {one.pattern for one in rules}
    counts = {each: sum(1 for _ in _differing(tokenizer, each)) for each in patterns}
    fits = {ignore: _fits(tokenizer, ignore) for ignore in (True, False)}
    return min(rules, key=lambda one: (counts[one.pattern], not fits[one.ignores_merges]))


def _differing(
    tokenizer: _core.Tokenizer, pattern: str | tuple[str, ...]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """The texts that a pattern splits in another way, with the pretokens of both."""
    other = splitter(pattern)
    for text in _TEXTS:
        here, there = _core.pretokenize(tokenizer, text), other.pretokenize(text)
        if here != there:
            yield text, here, there


@lru_cache(maxsize=16)
def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What llama.cpp does differently with the most similar rule."""
    name, pattern, ignores_merges = nearest(tokenizer)
    lost = []
    if pattern != tokenizer.pattern:
        every = {_pattern(kind) for kind in _STEPS}
        names = [name for name, regex in _core.PATTERNS.items() if regex in every]
        text, here, there = next(_differing(tokenizer, pattern), ("", [], []))
        how = f"becomes {' '.join(map(repr, there))}, not {' '.join(map(repr, here))}"
        lost.append(
            f"the split pattern: llama.cpp has no name for it (it supports "
            f"{', '.join(names)}); its rule {name!r} differs least: "
            + (f"{text!r} {how}" if text else "no difference on short texts")
        )
    if not _fits(tokenizer, ignores_merges):
        what = "does not merge" if ignores_merges else "merges"
        lost.append(f"the merging of pretokens that are tokens: {name!r} {what} them")
    return lost


def _fits(tokenizer: _core.Tokenizer, ignore: bool) -> bool:
    """Whether pretokens that are tokens are treated as in this tokenizer."""
    if tokenizer.merge_rule == "ranks":
        return ignore or not unmade(tokenizer)
    return ignore == _core.ignores_merges(tokenizer)


@lru_cache
def _pattern(kind: str) -> str | tuple[str, ...]:
    """The pattern of a kind of rule, in the form as read from a `tokenizer.json`."""
    return _core.composed_pattern(_STEPS[kind])
