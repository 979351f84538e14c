"""Expressions of `tokenizer.json` files split as Oniguruma, the engine of `tokenizers`, does."""

from __future__ import annotations

import random

import pytest

import bytepair
from bytepair import _core
from bytepair.errors import UnsupportedError
from pre_tokenizers import from_oniguruma, to_oniguruma, tokenizer_of

tokenizers = pytest.importorskip("tokenizers")

NAMES = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
]  # fmt: skip
#: Parts of classes.
PARTS = [
    *(f"[:{name}:]" for name in NAMES), *(f"[:^{name}:]" for name in NAMES), r"\w", r"\W", r"\s",
    r"\S", r"\d", r"\h", r"\x41-\x5a", r"\x09", r"\p{L}", r"\p{Lu}", r"\P{N}", r"\u00e9",
    r"\u4e00-\u9fff", "a-f", "x", "_", "[a-cé]", "[^b-z]", "[[:alpha:]]", "[^[:upper:]]", "-",
    "&", "~", r"\]", "\u00b2", "^",
]  # fmt: skip
CHARACTERS = "aBfx1_ \t\n-^&~]é\u0301中\u00b2\u00bd½Ⅷªǅ٣$.\u200d\u0378\u00ad\u2028\x7f"


def theirs(regex: str, text: str) -> list[str]:
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), behavior="isolated")
    return [piece for piece, _ in split.pre_tokenize_str(text)]


def ours(regex: str, text: str) -> list[str]:
    return bytepair.pretokenize(text, from_oniguruma(regex))


@pytest.mark.parametrize(
    "regex",
    [
        *(f"[[:{name}:]]" for name in NAMES), *(f"[[:^{name}:]]" for name in NAMES),
        r"\w", r"\W", r"[\w]", r"[\W]", r"\h", r"\H", r"[^[:space:]\w]", r"a\b", r"a\B",
        r"[\p{L}&&[:^lower:]]", r"[^\p{L}&&[:alpha:]]", r"\u00e9", r"[\u4e00-\u9fff]",
    ],
)  # fmt: skip
def test_a_class_has_the_same_characters(regex: str) -> None:
    others = [*range(0x3000), *range(0x3000, 0xD800, 7), *range(0xE000, 0x110000, 7)]
    texts = ["a" + "a".join(map(chr, others[at : at + 5000])) for at in range(0, len(others), 5000)]
    assert all(ours(regex, text) == theirs(regex, text) for text in texts)


def character_class(rng: random.Random) -> str:
    parts = rng.choices(PARTS, k=rng.randint(1, 4))
    if rng.random() < 0.3:
        parts.insert(rng.randint(1, len(parts)), "&&")
    return "[" + rng.choice(["", "^"]) + "".join(parts) + "]"


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_split_alike_or_are_refused(seed: int) -> None:
    rng, accepted = random.Random(seed), 0
    for _ in range(200):
        atoms = [character_class(rng), rng.choice([r"\w", r"\W", r"\h", r"\u0061", r"\x61", "a"])]
        atoms = [atom + rng.choice(["", "+"]) for atom in atoms]
        atoms.append(rng.choice([r"\b", r"\B", r"(?=[[:alpha:]])", r"(?<!\w)", ""]))
        rng.shuffle(atoms)
        regex = "".join(atoms)
        text = "".join(rng.choices(CHARACTERS, k=40))
        try:
            pieces, expected = ours(regex, text), theirs(regex, text)
        except (UnsupportedError, bytepair.errors.PatternError):
            continue
        except Exception as error:  # Oniguruma refuses it
            if "Oniguruma error" in str(error):
                continue
            raise
        accepted += 1
        assert pieces == expected, (regex, from_oniguruma(regex), text)
    assert accepted > 50


@pytest.mark.parametrize(
    "regex", [r"[a--b]", "[a~~b]", "[]a]", "[a&&]", "[[:what:]]", "[a[b[c]]]", r"(?i:\w)", r"\G"]
)
def test_what_is_not_translated_is_refused(regex: str) -> None:
    with pytest.raises(UnsupportedError):
        from_oniguruma(regex)


@pytest.mark.parametrize("regex", [r"[[:space:]]+", r"\w+|\W", r"\bx\b", "[[:^graph:]x]", r"[\W_]"])
def test_a_translated_expression_stays_the_same(regex: str) -> None:
    here = from_oniguruma(regex)
    assert _core.tokenizer_json_losses(tokenizer_of(here)) == []
    assert from_oniguruma(to_oniguruma(here)) == here
