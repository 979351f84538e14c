"""Adapts tokenizers to engines: vocabularies for grammars, token healing, ids for `run.c`, plugins.

    >>> import bytepair
    >>> tok = bytepair.train(["hello hello"], vocab_size=269)
    >>> bytepair.engines.with_sentencepiece_ids(tok).special_tokens["<|bos|>"]
    1

`to_llguidance` and `to_xgrammar` convert the vocabulary for libraries that constrain generation by
a grammar, which they match against the bytes of ordinary tokens; the stop tokens are allowed at its
end, all other special tokens and unused ids never. `with_sentencepiece_ids`
renumbers the tokens as `run.c` of llama2.c expects; `cover` heals prompts that end within a token.
The module `plugins` is for vLLM and SGLang, which find it by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from bytepair import _core
from bytepair.engines import plugins
from bytepair.errors import ArgumentError, SpecialTokenError, VocabularyError
from bytepair.formats.llama2c import FIRST_BYTE_ID
from bytepair.properties import roles
from bytepair.properties.tokens import all_tokens
from bytepair.tokenizer.cover import cover
from bytepair.tokenizer.tokenizer import Tokenizer
from bytepair.tokenizer.vocabulary import renumbered

if TYPE_CHECKING:
    import llguidance
    import xgrammar

__all__ = [
    "cover", "plugins", "to_llguidance", "to_xgrammar", "with_sentencepiece_ids",
]  # fmt: skip

#: The special tokens that end a text, by name or id; None means the token with the role `eos`.
Stop: TypeAlias = str | int | Sequence[str | int] | None


def stop_ids(tokenizer: _core.Tokenizer, stop: Stop) -> list[int]:
    """The ids of the special tokens that end a text, each once."""
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

    Raises:
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
        The argument of `xgrammar.GrammarCompiler`; errors are as in `to_llguidance`.

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


def with_sentencepiece_ids(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy with the ids that `run.c` of llama2.c expects.

    These are 0 for the unknown token, 1 and 2 for BOS and EOS (the end of a turn if one token is
    both), 3 to 258 for the bytes, then the other tokens in their order, and the other special
    tokens. `<unk>`, `<s>` and `</s>` are added if missing. Encoded text must be encoded again.

    Args:
        tokenizer: a tokenizer that merges bytes.

    Raises:
        VocabularyError: if a byte has no token, or the tokenizer merges characters.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> tok = bytepair.engines.with_sentencepiece_ids(tok)
        >>> tok.special_tokens["<|bos|>"], tok.encode("a"), tok.encode("hello")
        (1, [100], [262])
    """
    if tokenizer.merge_rule == "characters":
        raise VocabularyError(
            "this tokenizer merges characters, with byte fallback, and those that merge bytes are "
            "given other ids; renumber a byte-level tokenizer"
        )
    tokens = sorted(tokenizer.mergeable_ranks().items(), key=lambda item: item[1])
    single = sorted(token for token, _ in tokens if len(token) == 1)
    if len(single) < 256:
        raise VocabularyError(
            f"{256 - len(single)} bytes have no token, and here all must have an id"
        )
    first = _first(tokenizer)
    longer = (token for token, _ in tokens if len(token) > 1)
    others = [name for name in tokenizer.special_tokens if name not in first]
    new = {name: id for id, name in enumerate(first)}
    ids = {token: id for id, token in enumerate(chain(single, longer), FIRST_BYTE_ID)}
    new |= {name: id for id, name in enumerate(others, FIRST_BYTE_ID + len(ids))}
    notes = {roles.NOTES["bos"]: first[1], roles.NOTES["eos"]: first[2]}
    model = renumbered(tokenizer, ids, new, tokenizer.notes | notes)
    return Tokenizer(model).replace(repeats=_core.repeats(tokenizer))


def _first(tokenizer: _core.Tokenizer) -> tuple[str, str, str]:
    """The special tokens of the first three ids; those of SentencePiece if there are none."""
    by_role = roles.roles(tokenizer)
    begin = by_role.get("bos", "<s>")
    ends = (by_role.get(role) for role in ("eos", "end_of_turn"))
    return "<unk>", begin, next((name for name in ends if name and name != begin), "</s>")
