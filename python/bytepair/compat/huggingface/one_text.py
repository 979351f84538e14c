"""`tokenizer(text)` without options, past what transformers does for batches, pairs and options.

Of a call with 100 bytes that is nine tenths of the time. Whatever differs from the defaults goes
the usual way, also what a later version of transformers may add.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from bytepair.compat.huggingface.tokenizer import Tokenizer


def shortened(base: Any, batch: Callable[..., Any]) -> Callable[..., Any]:
    """The method `_encode_plus` of a class of transformers, with the short way for one text.

    Args:
        base: the class.
        batch: `transformers.BatchEncoding`.
    """
    usual, convert = base._encode_plus, base._convert_encoding
    parameters = inspect.signature(usual).parameters.values()
    defaults = {each.name: each.default for each in parameters} | {"split_special_tokens": False}

    def _encode_plus(
        self: Any, text: Any, text_pair: Any = None, add_special_tokens: Any = True, **how: Any
    ) -> Any:
        if type(text) is str and text_pair is None and how.items() <= defaults.items():
            face = self._tokenizer
            if type(face) is Tokenizer and face.is_bare and type(self)._convert_encoding is convert:
                encoding = face.encode(text, None, False, add_special_tokens)
                return batch(_values(self, encoding), [encoding])
        return usual(self, text, text_pair, add_special_tokens, **how)

    return _encode_plus


def _values(tokenizer: Any, encoding: Any) -> dict[str, list[int]]:
    """What transformers takes from the encoding of one text."""
    ids, names = encoding.ids, tokenizer.model_input_names
    values = {"input_ids": ids}
    if "token_type_ids" in names:
        values["token_type_ids"] = encoding.type_ids
    if "attention_mask" in names:
        values["attention_mask"] = encoding.attention_mask
    tokenizer._eventual_warn_about_too_long_sequence(ids, None, True)
    return values
