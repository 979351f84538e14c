"""Texts that are hard for a tokenizer: strategies for hypothesis, and fixed cases."""

from __future__ import annotations

import random

from hypothesis import strategies as st

SPACES = " \t\n\r\v\f\u00a0\u2003\u3000\u0085\u200b\u001c"

#: One or more characters of every class that a split pattern distinguishes.
CLASSES = [
    "a", "z", "S", "K", "\u017f", "\u212a", "é", "Ñ", "ǅ", "ʰ", "ª", "中", "あ", "ก", "้", "ी", "́",
    "0", "9", "٣", "Ⅷ", "½", "²", " ", "\t", "\n", "\r", "\u00a0", "\u3000", "'", "’", "/", "!",
    "<", "|", ">", "_", "-", "😀", "\u200d", "\u0000", "\ufffd", "\U0010ffff",
]  # fmt: skip

any_text = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from(CLASSES)))
class_text = st.lists(st.sampled_from(CLASSES), max_size=40).map("".join)
words = st.sampled_from(
    ["don't", "I'LL", "we've", "x's", "THEY'RE", "caféS", "naïve", "HTTPServer"]
)
prose = st.lists(st.one_of(words, class_text), max_size=12).map(" ".join)
spaces = st.text(st.sampled_from(SPACES), max_size=30)
bytes_text = st.binary(max_size=80).map(lambda data: data.decode("utf-8", "replace"))
hard_text = st.one_of(any_text, class_text, prose, spaces, bytes_text)


def unsplittable(kind: str, size: int = 1_000_000) -> str:
    """A text of this many characters that a split pattern cannot cut."""
    rng = random.Random(0)
    makers = {
        "a": lambda: "a" * size,
        "letters": lambda: "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=size)),
        "spaces": lambda: " " * size,
        "newlines": lambda: "\n" * size,
        "chinese": lambda: "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(size // 3)),
    }
    return makers[kind]()
