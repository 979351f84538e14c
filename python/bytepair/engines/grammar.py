"""Convert the vocabulary for libraries that constrain generation by grammars.

They match the bytes of ordinary tokens against the grammar, and allow the stop tokens at the end.
Other special tokens are never generated: their names do not count as text of the grammar, even if
it allows the same characters. Unused ids are never generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from bytepair import _core
from bytepair.errors import ArgumentError, SpecialTokenError
from bytepair.properties import roles
from bytepair.properties.tokens import all_tokens

if TYPE_CHECKING:
    import llguidance
    import outlines_core
    import xgrammar

#: The special tokens that end a text, by name or id; None means the token with the role `eos`.
Stop: TypeAlias = str | int | Sequence[str | int] | None


def stop_ids(tokenizer: _core.Tokenizer, stop: Stop) -> list[int]:
    """The ids of the special tokens that end a text, each once.

    Raises:
        SpecialTokenError: if there is none, or one is not a special token.
    """
    if stop is None:
        return [roles.id_of(tokenizer, "eos")]
    special = tokenizer.special_tokens
    tokens = [stop] if isinstance(stop, str | int) else list(stop)
    for token in tokens:
        if token not in (special if isinstance(token, str) else special.values()):
            raise SpecialTokenError(
                f"{token!r} is not a special token; the tokenizer has {special}"
            )
    if not tokens:
        raise SpecialTokenError("no stop token is given, so no text would ever end")
    return list(dict.fromkeys(special[t] if isinstance(t, str) else t for t in tokens))


def _padding(tokenizer: _core.Tokenizer, vocab_size: int | None) -> list[bytes]:
    """Empty tokens for the additional ids of a model."""
    more = (vocab_size or tokenizer.vocab_size) - tokenizer.vocab_size
    if more < 0:
        raise ArgumentError(
            f"vocab_size is {vocab_size}, but the tokenizer has {tokenizer.vocab_size} ids",
            option="vocab_size",
            hint="pass the vocabulary size of the model, which must be at least as large",
        )
    return [b""] * more


class _Vocabulary:
    """What llguidance asks of a tokenizer: ids of special tokens, the bytes of each id, a call."""

    def __init__(self, tokenizer: _core.Tokenizer) -> None:
        special = tokenizer.special_tokens
        by_role = roles.roles(tokenizer)
        self.bos_token_id = special.get(by_role.get("bos", ""))
        self.eos_token_id = special.get(by_role.get("eos", ""))
        self.special_token_ids = list(special.values())
        self.tokens = all_tokens(tokenizer)
        self._encode = tokenizer.encode

    def __call__(self, text: str) -> list[int]:
        """The ids of a text that a grammar determines."""
        return self._encode(text)


def to_llguidance(
    tokenizer: _core.Tokenizer, *, stop: Stop = None, vocab_size: int | None = None
) -> llguidance.LLTokenizer:
    """Convert the vocabulary for llguidance, which constrains generation by grammars.

    Text that is determined by a grammar is encoded with this tokenizer.

    Args:
        tokenizer: the tokenizer.
        stop: the special tokens that end a text, by name or id; None means the token with the
            role `eos` (see `Tokenizer.roles`). For a chat, pass the token that ends a turn.
        vocab_size: the number of ids of the model, if it has more; additional ids are never
            allowed.

    Returns:
        An `llguidance.LLTokenizer`.

    Raises:
        ImportError: if the package `llguidance` is not installed.
        SpecialTokenError: if no special token ends a text, or `stop` is not a special token.
        ValueError: if `vocab_size` is smaller than the vocabulary.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> end = "<|assistant_end|>"
        >>> bytepair.engines.to_llguidance(tok, stop=end).eos_token  # doctest: +SKIP
        264
    """
    from bytepair._internal.extras import llguidance

    wrapper = llguidance.TokenizerWrapper(_Vocabulary(tokenizer))
    wrapper.tokens = [*wrapper.tokens, *_padding(tokenizer, vocab_size)]
    return llguidance.LLTokenizer(wrapper, eos_token=stop_ids(tokenizer, stop))


def to_xgrammar(
    tokenizer: _core.Tokenizer, *, stop: Stop = None, vocab_size: int | None = None
) -> xgrammar.TokenizerInfo:
    """Convert the vocabulary for XGrammar, which constrains generation by grammars.

    Special tokens have no bytes there, so only those in `stop` can be generated.

    Args:
        tokenizer: the tokenizer.
        stop: as in `to_llguidance`.
        vocab_size: as in `to_llguidance`.

    Returns:
        The argument of `xgrammar.GrammarCompiler`.

    Raises:
        ImportError: if the package `xgrammar` is not installed.
        SpecialTokenError: as in `to_llguidance`.
        ValueError: as in `to_llguidance`.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> end = "<|assistant_end|>"
        >>> bytepair.engines.to_xgrammar(tok, stop=end).stop_token_ids  # doctest: +SKIP
        [264]
    """
    from bytepair._internal.extras import xgrammar

    tokens = all_tokens(tokenizer)
    for id in tokenizer.special_tokens.values():
        tokens[id] = b""  # XGrammar treats ids without bytes as special tokens
    tokens += _padding(tokenizer, vocab_size)
    return xgrammar.TokenizerInfo(tokens, stop_token_ids=stop_ids(tokenizer, stop))


def to_outlines(
    tokenizer: _core.Tokenizer, *, stop: str | int | None = None
) -> outlines_core.Vocabulary:
    """Convert the vocabulary for Outlines, which constrains generation by regular expressions.

    Args:
        tokenizer: the tokenizer.
        stop: as in `to_llguidance`, but only one token.

    Returns:
        The argument of `outlines_core.Index`, with the ordinary tokens.

    Raises:
        ImportError: if the package `outlines_core` is not installed.
        SpecialTokenError: as in `to_llguidance`.
        ValueError: if more than one token is passed.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> end = "<|assistant_end|>"
        >>> bytepair.engines.to_outlines(tok, stop=end).get_eos_token_id()  # doctest: +SKIP
        264
    """
    from bytepair._internal.extras import outlines_core

    end, *others = stop_ids(tokenizer, stop)
    if others:
        raise ArgumentError(f"Outlines supports one stop token, not {1 + len(others)}")
    tokens = {token: [id] for token, id in tokenizer.mergeable_ranks().items()}
    return outlines_core.Vocabulary(end, tokens)
