"""How llama.cpp splits text: its rules, by the names that `tokenizer.ggml.pre` of a file gives.

llama.cpp does not read split patterns. It has a list of its own, and a name of it also says whether
a pretoken that is a token wins outright. What it does with a name is what stands here, with one
exception: its contractions are not of `ſ` (U+017F), which the letter case of the published patterns
includes. Its `gpt-4o` and `tekken` are not the published patterns of these vocabularies: letters
other than `a` to `z` are of both cases to it, and marks are no letters.

Where it has no name for a pattern, the patterns are compared (`differences`), and the name is taken
whose pattern differs least.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from bytepair import _core
from bytepair.formats import differences
from bytepair.formats.parts import marks, unmade
from bytepair.formats.pretokenizers import BYTE_LEVEL, pattern_of

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
_WORDS: Final = " ?[^(\\s|.,!?…。，、।۔،)]+"

#: For each kind of rule, the patterns that split one after the other.
_STEPS: Final[dict[str, tuple[str, ...]]] = {
    "gpt2": (_core.PATTERNS["gpt2"],),
    "gpt4o": (
        _core.PATTERNS["gpt4o"].replace(_UPPER, r"[\p{L}&&[^a-z]]").replace(
            _LOWER, r"[\p{L}&&[^A-Z]]"
        ),
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
    "digits": (r"\p{N}", BYTE_LEVEL),
    "minicpm5": (r"\p{N}{1,3}", _LLAMA3.replace("{1,3}", "+")),
    "deepseek3": (r"\p{N}{1,3}", _CJK, _DEEPSEEK3),
    "deepseek-llm": (
        "[\r\n]", rf"\s?[{_LETTERS}]+", "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$",
        "[一-龥ࠀ-一가-퟿]+", r"\p{N}+",
    ),
    "deepseek-coder": (
        "[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}",
    ),
    "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", BYTE_LEVEL, "[0-9][0-9][0-9]"),
    "laguna": (r"[^\n]+|[\n]+", _QWEN2),
    # Runs of numbers, and in them a cut before each group of three digits that others follow up to
    # the end; llama.cpp has two rules for it, the second of which matches nothing but places.
    "superbpe": (r"\p{N}(?:(?!(?:[0-9]{3})+(?![0-9]))\p{N})*",),
    "default": (r"[\p{P}\$\+<=>\^~\|]+", BYTE_LEVEL, r"\p{N}+", "[0-9][0-9][0-9]"),
}  # fmt: skip

#: The names of each kind of rule, and whether whole tokens win outright.
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
    ("gpt4o", False): "gpt-4o llama4 kanana2 talkie minimax-m2",
    ("tekken", True): "tekken",
    ("default", False): "default",
}


def rule(name: str) -> tuple[str, bool] | None:
    """The split pattern of a name, and whether whole tokens win outright; None if not known.

    Example:
        >>> rule("qwen2") == (_QWEN2, False), rule("unheard-of")
        (True, None)
    """
    for (kind, ignore), names in _NAMES.items():
        if name in names.split():
            return _pattern(kind), ignore
    return None


def name_of(tokenizer: _core.Tokenizer) -> str | None:
    """The name of how this tokenizer splits and merges, or None."""
    for (kind, ignore), names in _NAMES.items():
        if marks(tokenizer.pattern).rest == _pattern(kind) and _fits(tokenizer, ignore):
            return names.split()[0]
    return None


def nearest(tokenizer: _core.Tokenizer) -> str:
    """The name that does what this tokenizer does, or of those that do not, the one most like it.

    Example:
        >>> tokens = {bytes([byte]): byte for byte in range(256)}
        >>> model = _core.Model.from_ranks(tokens, _core.PATTERNS["nanochat"], {})
        >>> nearest(_core.Tokenizer(model))
        'llama-bpe'
    """
    found = name_of(tokenizer)
    if found is None:
        every = tuple((kind, _pattern(kind)) for kind in _STEPS)
        kinds = differences.nearest(marks(tokenizer.pattern).rest, every)
        named = [(_fits(tokenizer, ignore), kinds.index(kind), names.split()[0])
                 for (kind, ignore), names in _NAMES.items() if kind in kinds]  # fmt: skip
        found = min(named, key=lambda entry: (not entry[0], entry[1]))[2]
    return found


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What llama.cpp does in another way by the rule that is most like this tokenizer."""
    if name_of(tokenizer):
        return []
    name = nearest(tokenizer)
    regex, ignore = rule(name) or ("", False)
    own = marks(tokenizer.pattern).rest
    lost = []
    if regex != own:
        every = {_pattern(kind) for kind in _STEPS}
        known = [name for name, regex in _core.PATTERNS.items() if regex in every]
        lost.append(
            f"the split pattern: llama.cpp has no name for it (of our patterns it has "
            f"{', '.join(known)}); its rule {name!r} differs least: "
            f"{differences.described(own, regex)}"
        )
    if not _fits(tokenizer, ignore):
        what = "wins" if ignore else "does not win"
        lost.append(f"how whole tokens are merged: by {name!r} a pretoken that is one {what}")
    return lost


def _fits(tokenizer: _core.Tokenizer, ignore: bool) -> bool:
    """Whether whole tokens win outright, or do not, as in this tokenizer."""
    if tokenizer.merge_rule == "ranks":
        return ignore or not unmade(tokenizer)
    return ignore == tokenizer.ignore_merges


@lru_cache
def _pattern(kind: str) -> str:
    """The pattern of a kind of rule, as it would be read from a `tokenizer.json`."""
    steps = _STEPS[kind]
    if len(steps) == 1:
        return steps[0]
    splits: list[dict[str, Any]] = [
        {"type": "Split", "pattern": {"Regex": step}, "behavior": "Isolated"} for step in steps
    ]
    end = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    return pattern_of({"type": "Sequence", "pretokenizers": [*splits, end]}, kind)
