"""Methods of `Tokenizer` for text generation: growing prompts and token healing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bytepair import _core
from bytepair._internal.arguments import checked
from bytepair._internal.later import Later
from bytepair.tokenizer.batch import Affix, SpecialMode
from bytepair.tokenizer.session import Session

if TYPE_CHECKING:
    from bytepair.tokenizer.cover import Cover
else:
    Cover = Later("bytepair.tokenizer.cover", "Cover")


class GenerationMethods(_core.Tokenizer):
    """The methods of `Tokenizer` for prompts."""

    __slots__ = ()

    @checked
    def session(self, *, special: SpecialMode = None, prepend: Affix = None) -> Session:
        """Start encoding a growing text, such as a chat prompt; only new text is encoded.

        Args:
            special: as in `encode`; a special token that arrives in pieces becomes its id when its
                name is complete.
            prepend: as in `encode`; the id is present from the start.

        Returns:
            A `Session`: `append(text)` returns how the ids change, `ids` are the ids of the whole
            text, `stable` is the number of final ids, and `fork()` creates a branch.

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

    @checked
    def cover(self, text: str, *, special: SpecialMode = None) -> Cover:
        """Find all sequences of ids with which the encoding of a continued text may begin.

        This is exact token healing: if a prompt may end within a token, let the model choose among
        these sequences instead of using the ids of `encode(text)`.

        A list of ids is a *cover* of the text if, for some text `more` (possibly empty),
        `encode(text + more)` begins with it, and its last id contains the end of `text`: the bytes
        of the list begin with those of `text`, but not without the last id. Each cover is returned
        once. Sequences that spell the text but occur in no encoding are not covers. An empty text
        has one cover, without ids.

        Each cover is confirmed by encoding an example of `more`: the remaining bytes of the last
        id, followed by up to two characters of each class that the published patterns distinguish,
        including several letters. A cover would be missed only if it requires a letter after the
        last id, and the vocabulary has a token that joins the two for each of the tried letters.

        Args:
            text: the text so far.
            special: as in `encode`, for the text so far. The continuation is ordinary text, even if
                it would complete the name of a special token.

        Returns:
            A `Cover`: `ids`, the common first ids, and `endings`, the alternatives that follow.

        Raises:
            PatternError: if the split pattern is not a published one or a variation of it, or
                normalizes texts: then a continuation may change any id.
            SpecialTokenError: as in `encode`.

        The first call for a tokenizer sorts its tokens; the sorted tokens of the last four
        tokenizers are cached. The time grows with the number of tokens that begin with a suffix of
        the text; it is longest for a text that ends with a space, since most tokens begin with one.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> ids, endings = tok.cover("hello he")
            >>> tok.decode(ids), [tok.decode(ending) for ending in endings]
            ('hello', [' he', ' hel', ' hello'])
        """
        from bytepair.tokenizer.cover import cover

        return cover(self, text, special)
