"""The vocabulary for libraries that let a model generate only what a grammar allows.

They match the bytes of ordinary tokens against the grammar, and let a text end with the ids that
end one. No other special token may be generated: its name is no text of the grammar, even where
the same characters are allowed. Ids that stand for nothing are never generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from bytepair import _core
from bytepair.errors import SpecialTokenError
from bytepair.formats import roles
from bytepair.formats.parts import all_tokens

if TYPE_CHECKING:
    import llguidance
    import outlines_core
    import xgrammar

#: The special tokens that end a text, each by its name or id; None is that of the role `eos`.
Stop: TypeAlias = "str | int | Sequence[str | int] | None"


def stop_ids(tokenizer: _core.Tokenizer, stop: Stop) -> list[int]:
    """The ids of the special tokens that end a text, each once.

    Raises:
        SpecialTokenError: if there is none, or one is no special token.
    """
    if stop is None:
        return [roles.id_of(tokenizer, "eos")]
    special = tokenizer.special_tokens
    wanted = [stop] if isinstance(stop, str | int) else list(stop)
    for token in wanted:
        if token not in (special if isinstance(token, str) else special.values()):
            raise SpecialTokenError(
                f"{token!r} is no special token, so no text ends with it; they are {special}"
            )
    if not wanted:
        raise SpecialTokenError("no token is named that ends a text, so none would ever end")
    return list(dict.fromkeys(special[t] if isinstance(t, str) else t for t in wanted))


def _padding(tokenizer: _core.Tokenizer, vocab_size: int | None) -> list[bytes]:
    """The ids that a model has and the tokenizer has not: they stand for nothing."""
    more = (vocab_size or tokenizer.vocab_size) - tokenizer.vocab_size
    if more < 0:
        raise ValueError(
            f"vocab_size is {vocab_size}, but the tokenizer has {tokenizer.vocab_size} ids; pass "
            "the number of ids of the model, which is at least as many"
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
        tokens[id] = b""  # it takes ids without bytes for special tokens
    tokens += _padding(tokenizer, vocab_size)
    return xgrammar.TokenizerInfo(tokens, stop_token_ids=stop_ids(tokenizer, stop))


def to_outlines(tokenizer: _core.Tokenizer, stop: str | int | None) -> outlines_core.Vocabulary:
    """See `Tokenizer.to_outlines`."""
    from bytepair._internal.extras import outlines_core

    end, *others = stop_ids(tokenizer, stop)
    if others:
        raise ValueError(f"Outlines ends a text with one token, not with {1 + len(others)}")
    tokens = {token: [id] for token, id in tokenizer.mergeable_ranks().items()}
    return outlines_core.Vocabulary(end, tokens)
