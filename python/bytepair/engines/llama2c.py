"""The ids that `run.c` of llama2.c assumes: SentencePiece's, for a tokenizer that has others."""

from __future__ import annotations

from itertools import chain

from bytepair import _core
from bytepair.errors import VocabularyError
from bytepair.formats.llama2c import FIRST_BYTE_ID
from bytepair.properties.roles import NOTES, roles
from bytepair.tokenizer.tokenizer import Tokenizer
from bytepair.tokenizer.vocabulary import renumbered


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
    roles = {NOTES["bos"]: first[1], NOTES["eos"]: first[2]}
    model = renumbered(tokenizer, ids, new, tokenizer.notes | roles)
    return Tokenizer(model)._with_repeats(_core.repeats(tokenizer))


def _first(tokenizer: _core.Tokenizer) -> tuple[str, str, str]:
    """The special tokens of the first three ids; those of SentencePiece if there are none."""
    by_role = roles(tokenizer)
    begin = by_role.get("bos", "<s>")
    ends = (by_role.get(role) for role in ("eos", "end_of_turn"))
    return "<unk>", begin, next((name for name in ends if name and name != begin), "</s>")
