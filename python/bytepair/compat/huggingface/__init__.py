"""The API of `tokenizers` and `transformers`, with bytepair inside.

    from bytepair.compat import huggingface
    from transformers import AutoTokenizer

    huggingface.use()
    tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")   # runs on bytepair

The ids, the encodings and the decoded text equal the original's. A tokenizer that bytepair cannot
reproduce exactly stays as it is, and the log says why. `wrap` is for one tokenizer, `undo` reverses
`use`, and `Tokenizer` is the class with the API of `tokenizers.Tokenizer`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from bytepair.compat.huggingface.encoding import Encoding
from bytepair.compat.huggingface.tokenizer import Tokenizer

__all__ = ["Encoding", "Tokenizer", "undo", "use", "wrap"]

T = TypeVar("T")

#: What `use` replaced: the owner, the name, and the value there (None if it was inherited).
_replaced: list[tuple[Any, str, Any]] = []


def wrap(tokenizer: T) -> T:
    """Make one tokenizer run on bytepair, if the ids of every text are the same.

    Args:
        tokenizer: a fast tokenizer of `transformers`, which is changed in place; or a
            `tokenizers.Tokenizer`, which is not changed.

    Returns:
        The tokenizer of `transformers`; or a `Tokenizer` in place of one of `tokenizers`. If
        bytepair would not be exact, the unchanged argument; the reason is logged.

    Example:
        >>> import bytepair
        >>> from bytepair.compat import huggingface
        >>> theirs = bytepair.compat.to_huggingface(bytepair.train(["hello hello"], vocab_size=269))
        >>> huggingface.wrap(theirs).encode("hello").ids
        [259]
    """
    from bytepair._internal.extras import tokenizers

    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, tokenizers.tokenizers.Tokenizer):
        face = Tokenizer(copy.deepcopy(tokenizer))
        return tokenizer if face.reason else face  # type: ignore[return-value]
    inner = getattr(tokenizer, "_tokenizer", None)
    if not isinstance(inner, Tokenizer | tokenizers.tokenizers.Tokenizer):
        raise TypeError(
            "pass a fast tokenizer of transformers or a tokenizers.Tokenizer, not "
            f"{type(tokenizer).__name__}"
        )
    _run_on_bytepair(tokenizer, inner)
    return tokenizer


def _run_on_bytepair(tokenizer: Any, inner: Any) -> None:
    """Exchange the tokenizer inside of one of transformers, if that is exact."""
    from bytepair._internal.extras import tokenizers

    if isinstance(inner, tokenizers.tokenizers.Tokenizer):
        face = Tokenizer(inner)
        face.name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        if not face.reason:
            tokenizer._tokenizer = face


def use() -> ExitStack:
    """Make all tokenizers that `transformers` loads from then on run on bytepair.

    `AutoTokenizer.from_pretrained`, and that of every class of fast tokenizers, return wrapped
    tokenizers (see `wrap`) if that is exact, and unchanged ones otherwise, with the reason in the
    log. `tokenizers.decoders.DecodeStream` accepts both.

    Returns:
        A context: in a `with` statement, this ends with the block; tokenizers that were loaded are
        not changed.
    """
    from bytepair._internal.extras import tokenizers_decoders, transformers

    context = ExitStack()
    if not _replaced:
        base = transformers.PreTrainedTokenizerFast
        _replace(base, "from_pretrained", _on_bytepair(base.from_pretrained.__func__))
        _replace(base, "_encode_plus", shortened(base, transformers.BatchEncoding))
        stream = tokenizers_decoders.DecodeStream
        _replace(tokenizers_decoders, "DecodeStream", _stream_for_both(stream))
        context.callback(undo)
    return context


def undo() -> None:
    """Make `transformers` load its own tokenizers again; loaded ones are not changed."""
    while _replaced:
        owner, name, before = _replaced.pop()
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _replace(owner: Any, name: str, value: Any) -> None:
    _replaced.append((owner, name, vars(owner).get(name)))
    setattr(owner, name, value)


def _on_bytepair(usual: Callable[..., Any]) -> Any:
    """The method `from_pretrained` that exchanges what the usual one loads."""

    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        loaded = usual(cls, *args, **kwargs)
        _run_on_bytepair(loaded, getattr(loaded, "_tokenizer", None))
        return loaded

    return classmethod(from_pretrained)


def _stream_for_both(stream: Any) -> Any:
    """A `DecodeStream` that accepts tokenizers of both kinds."""

    class DecodeStream:
        """Decodes ids one by one, as the `tokenizers.decoders.DecodeStream` that it contains."""

        def __init__(self, ids: Any = None, skip_special_tokens: bool = False) -> None:
            self._stream = stream(ids, skip_special_tokens)

        def __copy__(self) -> DecodeStream:
            return copy.deepcopy(self)

        def step(self, tokenizer: Any, id: Any) -> str | None:
            """Add one or more ids; return the text that is complete, or None."""
            inner = tokenizer.original if isinstance(tokenizer, Tokenizer) else tokenizer
            text: str | None = self._stream.step(inner, id)
            return text

    return DecodeStream


def shortened(base: Any, batch: Callable[..., Any]) -> Callable[..., Any]:
    """The method `_encode_plus` of a class of transformers, with the short way for one text."""
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
    ids, names = encoding.ids, tokenizer.model_input_names
    values = {"input_ids": ids}
    if "token_type_ids" in names:
        values["token_type_ids"] = encoding.type_ids
    if "attention_mask" in names:
        values["attention_mask"] = encoding.attention_mask
    tokenizer._eventual_warn_about_too_long_sequence(ids, None, True)
    return values
