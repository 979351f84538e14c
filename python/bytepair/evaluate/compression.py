"""Tokenizers and texts in, how many tokens each needs for each out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class Compression:
    """How many tokens one text becomes.

    Attributes:
        text: what the text is.
        bytes: how long it is in UTF-8.
        tokens: how many tokens it becomes, by the name of the tokenizer.
    """

    text: str
    bytes: int
    tokens: dict[str, int]

    def ratio(self, name: str) -> float:
        """Bytes per token: more is better."""
        return self.bytes / self.tokens[name] if self.tokens[name] else 0.0

    def difference(self, ours: str, theirs: str) -> float:
        """How many more tokens ours needs, as a share of theirs: -0.1 is 10% fewer, 0.1 10% more.

        Example:
            >>> one = Compression("news", 100, {"ours": 27, "theirs": 30})
            >>> round(one.difference("ours", "theirs"), 3)
            -0.1
        """
        if not self.tokens[theirs]:
            return 0.0
        return self.tokens[ours] / self.tokens[theirs] - 1

    def in_words(self, ours: str, theirs: str) -> str:
        """How many more or fewer tokens ours needs, as people say it.

        Example:
            >>> Compression("news", 100, {"ours": 27, "theirs": 30}).in_words("ours", "theirs")
            '10.0% fewer'
        """
        share = self.difference(ours, theirs)
        return f"{abs(share):.1%} {'more' if share > 0 else 'fewer'}" if share else "as many"


def compress(
    tokenizers: Mapping[str, Tokenizer], texts: Mapping[str, str | Sequence[str]]
) -> list[Compression]:
    """Count the tokens of each text under each tokenizer.

    Args:
        tokenizers: the tokenizers, by name.
        texts: each a text, or a list of documents, by name.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> compress({"ours": tok}, {"greeting": "hello hello"})[0].ratio("ours")
        3.6666666666666665
    """
    results = []
    for name, text in texts.items():
        documents = [text] if isinstance(text, str) else list(text)
        size = sum(len(document.encode()) for document in documents)
        tokens = {
            who: int(tokenizer.count_batch(documents).sum())
            for who, tokenizer in tokenizers.items()
        }
        results.append(Compression(name, size, tokens))
    return results
