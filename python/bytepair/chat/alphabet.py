"""Special tokens within messages as single characters, so that strings can be searched for them.

Each is a lone surrogate, which no decoded text contains. So the token `<tool_call>` and a text that
spells it stay different. A name that is not a special token of the tokenizer is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bytepair.chat.template import Piece, Special

_FIRST_CODE_POINT: Final = 0xD800


class Alphabet:
    """The characters of some special tokens.

    Example:
        >>> letters = Alphabet({"<think>": 7}, ["<think>", "<other>"])
        >>> string = letters.string([Special("<think>"), "hm", Special("<other>")])
        >>> len(string), letters.visible(string), letters.character(7) == string[0]
        (10, '<think>hm<other>', True)
    """

    def __init__(self, special: Mapping[str, int], names: Iterable[str]) -> None:
        tokens = sorted(name for name in set(names) if name in special)
        self._characters = {
            name: chr(_FIRST_CODE_POINT + number) for number, name in enumerate(tokens)
        }
        self._of_id = {special[name]: character for name, character in self._characters.items()}
        self._names = {ord(character): name for name, character in self._characters.items()}

    def character(self, id: int) -> str | None:
        """The character of an id; None if it has none."""
        return self._of_id.get(id)

    def string(self, pieces: Sequence[Piece]) -> str:
        """The elements of a template as a string."""
        names = (piece.name if isinstance(piece, Special) else piece for piece in pieces)
        return "".join(
            self._characters.get(name, name) if isinstance(piece, Special) else name
            for piece, name in zip(pieces, names, strict=True)
        )

    def visible(self, string: str) -> str:
        """A string with the names of the tokens."""
        return string.translate(self._names)
