"""What programs want of a tokenizer while a model generates: prompts that grow."""

from __future__ import annotations

from bytepair import _core
from bytepair.tokenizer.batch import Affix, SpecialMode
from bytepair.tokenizer.session import Session


class GenerationMethods(_core.Tokenizer):
    """The methods of `Tokenizer` for prompts that grow."""

    __slots__ = ()

    def session(self, *, special: SpecialMode = None, prepend: Affix = None) -> Session:
        """Start a text that grows, such as the prompt of a chat, at the cost of what is new.

        Args:
            special: as in `encode`; a special token that arrives in pieces is its id once its name
                is whole.
            prepend: as in `encode`; the id is there from the start.

        Returns:
            A `Session`: `append(text)` says how the ids change, `ids` are those of the whole text,
            `stable` is how many of them are final, and `fork()` branches.

        Raises:
            SpecialTokenError: if a named special token is unknown.

        Example:
            >>> import bytepair
            >>> session = bytepair.train(["hello hello"], 269).session()
            >>> session.append("hello hel")
            Change(removed=0, ids=[259, 32, 257])
            >>> session.append("lo")
            Change(removed=1, ids=[259])
            >>> session.ids
            [259, 32, 259]
        """
        return Session(self, special=special, prepend=prepend)
