"""Change the ids of the tokens of a tokenizer, or of some of them.

The result has the same pattern and merge rule. Any ids are accepted, and tokens without one are
removed.
"""

from __future__ import annotations

from bytepair import _core
from bytepair.formats.parts import Parts
from bytepair.properties import metadata
from bytepair.properties.rules import flags


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
    special_items = tokenizer.special_tokens.items()
    rules = tokenizer.rules.renumbered(
        moved | {id: special[name] for name, id in special_items if name in special}
    )
    notes = metadata.renumbered(notes, special, moved)
    flags_by_name = flags(tokenizer)
    return Parts(
        ids, rules, special, merges, ignore, notes, twins=twins, flags=flags_by_name
    ).model()
