"""The added tokens of a `tokenizer.json`, as the files beside it list them, with their flags."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import UnsupportedError
from bytepair.formats import parts
from bytepair.formats.charmap import lookalikes
from bytepair.formats.parts import STRIPS, Asked, marks

FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
#: The note that stores unusual flags.
NOTE: Final = "huggingface.added_tokens"

_USUAL: Final = {name: name == "special" for name in FLAGS}

#: The id of a token, and its flags.
Token: TypeAlias = dict[str, Any]


def check_alone(name: str, flags: dict[str, Any], place: str, asked: Asked) -> None:
    """Reject a token that matches only as a separate word."""
    if flags.get("single_word") and not asked.lossy:
        raise UnsupportedError(
            f"{place}.single_word",
            f"{name!r} does not match within a word; pass lossy=True to match it there too",
        )


def unusual(tokenizer: _core.Tokenizer) -> dict[str, dict[str, bool]]:
    """The flags in the note, by the names of the tokens."""
    noted: dict[str, dict[str, bool]] = json.loads(tokenizer.notes.get(NOTE, "{}"))
    return noted


def written(tokenizer: _core.Tokenizer) -> list[Token]:
    """The special tokens in the form of a `tokenizer.json`, in the order of their ids."""
    flags, left_out = unusual(tokenizer), set(lookalikes(tokenizer))
    marked, in_every_text = marks(tokenizer.pattern).flags, parts.added(tokenizer)
    return [
        {
            "id": id,
            "content": name,
            **_USUAL,
            **flags.get(name, {}),
            **{side: id in marked.get(side, []) for side in STRIPS},
            "special": id not in in_every_text,
        }
        for name, id in sorted(tokenizer.special_tokens.items(), key=lambda item: item[1])
        if name not in left_out
    ]
