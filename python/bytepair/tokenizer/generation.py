"""What programs want of a tokenizer while a model generates: prompts and grammars.

Prompts grow, and end within a token; libraries that keep a model to a grammar want the vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bytepair import _core
from bytepair.formats import grammar
from bytepair.formats.grammar import Stop
from bytepair.tokenizer.batch import Affix, SpecialMode
from bytepair.tokenizer.session import Session

if TYPE_CHECKING:
    import llguidance
    import outlines_core
    import xgrammar

    from bytepair.tokenizer.cover import Cover


class GenerationMethods(_core.Tokenizer):
    """The methods of `Tokenizer` for prompts and grammars."""

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

    def cover(self, text: str, *, special: SpecialMode = None) -> Cover:
        """Find all ways in which the ids of a text that goes on with this one may begin.

        A prompt that ends within a token is healed by letting a model choose among these, instead
        of what `encode` makes of a text that ends there.

        A list of ids is a *cover* of the text if there is a text `more`, which may be empty, so
        that `encode(text + more)` begins with it, and its last id is the one in which `text` ends:
        its bytes begin with those of `text`, and without the last id they are too few. All such
        lists are found, each once. Not among them are ids that spell the text as no encoding does,
        and what follows the last id. An empty text has one cover, without ids.

        For each list, a `more` was tried: what the last id has beyond the text, and up to two
        characters of each kind that the published patterns tell apart, several letters among them.
        So a list would be missed only if it needs a letter behind the last id, and the vocabulary
        has a token that joins the two for each of the letters that are tried.

        Args:
            text: the text so far.
            special: as in `encode`, for the text so far. What may follow is ordinary text, also
                where it would complete the name of a special token.

        Returns:
            A `Cover`: `ids`, that all covers begin with, and `endings`, of which one follows.

        Raises:
            PatternError: if the split pattern is not of a published form, or normalizes texts: what
                follows may then change any id.
            SpecialTokenError: as in `encode`.

        The first call sorts the tokens, which are kept for the last four tokenizers asked. Time
        goes with the number of tokens that begin as some end of the text does: a space at the end
        is the most, as most tokens begin with one.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> ids, endings = tok.cover("hello he")
            >>> tok.decode(ids), [tok.decode(ending) for ending in endings]
            ('hello', [' he', ' hel', ' hello'])
        """
        from bytepair.tokenizer.cover import cover

        return cover(self, text, special)

    def to_llguidance(
        self, *, stop: Stop = None, vocab_size: int | None = None
    ) -> llguidance.LLTokenizer:
        """Hand the vocabulary to llguidance, whose grammars constrain what a model generates.

        Text that a grammar forces is encoded by this tokenizer, so the ids are the usual ones.

        Args:
            stop: the special tokens that end a text, each by its name or id; None means the one
                with the role `eos` (see `roles`). For a chat this is the end of a turn.
            vocab_size: the number of ids of the model, if it has more: the others are never
                allowed.

        Returns:
            What `llguidance.LLMatcher` and its other classes take.

        Raises:
            ImportError: if the package `llguidance` is not installed.
            SpecialTokenError: if no special token ends a text, or what is named is none.
            ValueError: if the model has fewer ids.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> tok.to_llguidance(stop="<|assistant_end|>").eos_token  # doctest: +SKIP
            264
        """
        return grammar.to_llguidance(self, stop, vocab_size)

    def to_xgrammar(
        self, *, stop: Stop = None, vocab_size: int | None = None
    ) -> xgrammar.TokenizerInfo:
        """Hand the vocabulary to XGrammar, whose grammars constrain what a model generates.

        Special tokens have no bytes there, so none but those of `stop` is ever allowed.

        Args:
            stop: as in `to_llguidance`.
            vocab_size: as in `to_llguidance`.

        Returns:
            What `xgrammar.GrammarCompiler` takes.

        Raises:
            ImportError: if the package `xgrammar` is not installed.
            SpecialTokenError: as in `to_llguidance`.
            ValueError: the same.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> tok.to_xgrammar(stop="<|assistant_end|>").stop_token_ids  # doctest: +SKIP
            [264]
        """
        return grammar.to_xgrammar(self, stop, vocab_size)

    def to_outlines(self, *, stop: str | int | None = None) -> outlines_core.Vocabulary:
        """Hand the vocabulary to Outlines, whose indexes constrain what a model generates.

        Args:
            stop: as in `to_llguidance`, but one.

        Returns:
            What `outlines_core.Index` takes, with the ordinary tokens.

        Raises:
            ImportError: if the package `outlines_core` is not installed.
            SpecialTokenError: as in `to_llguidance`.
            ValueError: if more than one is named.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> tok.to_outlines(stop="<|assistant_end|>").get_eos_token_id()  # doctest: +SKIP
            264
        """
        return grammar.to_outlines(self, stop)
