"""Change the ids of the tokens of a tokenizer, or of some of them.

The result has the same pattern and merge rule. `renumbered` accepts any ids, and removes tokens
without one. `with_sentencepiece_ids` assigns the ids that `run.c` of llama2.c assumes: 0 for the
unknown token, 1 and 2 for the special tokens that begin and end a text, 3 to 258 for the bytes in
order, then the other tokens in order, and the other special tokens.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from bytepair import _core
from bytepair.errors import VocabularyError
from bytepair.formats import metadata
from bytepair.formats.parts import Parts, flags
from bytepair.formats.roles import NOTES, roles

#: The id of the first byte.
FIRST_BYTE: Final = 3


def with_sentencepiece_ids(tokenizer: _core.Tokenizer) -> _core.Model:
    """Renumber the tokens; see `Tokenizer.with_sentencepiece_ids`."""
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
    ids = {token: id for id, token in enumerate(chain(single, longer), FIRST_BYTE)}
    new |= {name: id for id, name in enumerate(others, FIRST_BYTE + len(ids))}
    noted = {NOTES["bos"]: first[1], NOTES["eos"]: first[2]}
    return renumbered(tokenizer, ids, new, tokenizer.notes | noted)


def renumbered(
    tokenizer: _core.Tokenizer,
    ids: dict[bytes, int],
    special: dict[str, int],
    notes: dict[str, str],
    twins: dict[int, bytes] | None = None,
) -> _core.Model:
    """The tokenizer with other ids.

    Args:
        tokenizer: the tokenizer.
        ids: the ordinary tokens that stay, with their ids; merges of others are left out.
        special: the special tokens and their ids.
        notes: the notes of the result.
        twins: with byte fallback, the tokens that have the bytes of another, by their new ids.
    """
    merges = None
    if tokenizer.merge_rule != "ranks":
        merges = [
            (left, right)
            for left, right in tokenizer.merges()
            if left in ids and right in ids and left + right in ids
        ]
    twins = (twins or {}) if tokenizer.merge_rule == "characters" else None
    ignore = tokenizer.ignore_merges
    old = tokenizer.mergeable_ranks()
    moved = {old[token]: id for token, id in ids.items() if token in old}
    named = tokenizer.special_tokens.items()
    rules = tokenizer.rules.renumbered(
        moved | {id: special[name] for name, id in named if name in special}
    )
    notes = metadata.renumbered(notes, special, moved)
    found = flags(tokenizer)
    return Parts(ids, rules, special, merges, ignore, notes, twins=twins, flags=found).model()


def _first(tokenizer: _core.Tokenizer) -> tuple[str, str, str]:
    """The special tokens of the first three ids; those of SentencePiece if there are none."""
    known = roles(tokenizer)
    begin = known.get("bos", "<s>")
    ends = (known.get(role) for role in ("eos", "end_of_turn"))
    return "<unk>", begin, next((name for name in ends if name and name != begin), "</s>")
