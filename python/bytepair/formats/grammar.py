"""Convert the vocabulary for libraries that constrain generation by grammars.

They match the bytes of ordinary tokens against the grammar, and allow the stop tokens at the end.
Other special tokens are never generated: their names do not count as text of the grammar, even if
it allows the same characters. Unused ids are never generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from bytepair import _core
from bytepair.errors import ArgumentError, Option, SpecialTokenError
from bytepair.formats import roles
from bytepair.formats.parts import all_tokens

if TYPE_CHECKING:
    import llguidance
    import outlines_core
    import xgrammar

#: The special tokens that end a text, by name or id; None means the token with the role `eos`.
Stop: TypeAlias = "str | int | Sequence[str | int] | None"


def stop_ids(tokenizer: _core.Tokenizer, stop: Stop) -> list[int]:
    """The ids of the special tokens that end a text, each once.

    Raises:
        SpecialTokenError: if there is none, or one is not a special token.
    """
    if stop is None:
        return [roles.id_of(tokenizer, "eos")]
    special = tokenizer.special_tokens
    wanted = [stop] if isinstance(stop, str | int) else list(stop)
    for token in wanted:
        if token not in (special if isinstance(token, str) else special.values()):
            raise SpecialTokenError(
                f"{token!r} is not a special token; the tokenizer has {special}"
            )
    if not wanted:
        raise SpecialTokenError("no stop token is given, so no text would ever end")
    return list(dict.fromkeys(special[t] if isinstance(t, str) else t for t in wanted))


def _padding(tokenizer: _core.Tokenizer, vocab_size: int | None) -> list[bytes]:
    """Empty tokens for the additional ids of a model."""
    more = (vocab_size or tokenizer.vocab_size) - tokenizer.vocab_size
    if more < 0:
        raise ArgumentError(
            Option("vocab_size"),
            f"is {vocab_size}, but the tokenizer has {tokenizer.vocab_size} ids; pass the "
            "vocabulary size of the model, which must be at least as large",
        )
    return [b""] * more


def to_llguidance(
    tokenizer: _core.Tokenizer, stop: Stop, vocab_size: int | None
) -> llguidance.LLTokenizer:
    """See `Tokenizer.to_llguidance`."""
    from bytepair._internal.extras import llguidance

    wrapper = llguidance.TokenizerWrapper(tokenizer)
    wrapper.tokens = [*wrapper.tokens, *_padding(tokenizer, vocab_size)]
    return llguidance.LLTokenizer(wrapper, eos_token=stop_ids(tokenizer, stop))


def to_xgrammar(
    tokenizer: _core.Tokenizer, stop: Stop, vocab_size: int | None
) -> xgrammar.TokenizerInfo:
    """See `Tokenizer.to_xgrammar`."""
    from bytepair._internal.extras import xgrammar

    tokens = all_tokens(tokenizer)
    for id in tokenizer.special_tokens.values():
        tokens[id] = b""  # XGrammar treats ids without bytes as special tokens
    tokens += _padding(tokenizer, vocab_size)
    return xgrammar.TokenizerInfo(tokens, stop_token_ids=stop_ids(tokenizer, stop))


def to_outlines(tokenizer: _core.Tokenizer, stop: str | int | None) -> outlines_core.Vocabulary:
    """See `Tokenizer.to_outlines`."""
    from bytepair._internal.extras import outlines_core

    end, *others = stop_ids(tokenizer, stop)
    if others:
        raise ArgumentError(f"Outlines supports one stop token, not {1 + len(others)}")
    tokens = {token: [id] for token, id in tokenizer.mergeable_ranks().items()}
    return outlines_core.Vocabulary(end, tokens)
