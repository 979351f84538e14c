"""A `tokenizers.Tokenizer` whose ids come from bytepair.

It contains the original, which stores all settings (components, added tokens, truncation, padding),
and an engine made from it, which encodes and decodes. Settings are changed in the original, and the
engine is rebuilt when it is needed next. The original computes what the engine does not: texts
given as words, pairs, and texts in which special tokens are text (`encode_special_tokens`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from bytepair.compat.conversions import to_huggingface
from bytepair.compat.huggingface import encoding as encodings
from bytepair.compat.huggingface.encoding import Call, Engine, Settings, state_of, theirs
from bytepair.errors import BytepairError
from bytepair.tokenizer import Tokenizer as BytepairTokenizer

if TYPE_CHECKING:
    import tokenizers

logger = logging.getLogger("bytepair.compat.huggingface")


def _reader(name: str) -> Any:

    def read(kind: type[Tokenizer], *args: Any, **how: Any) -> Tokenizer:
        return kind(getattr(_class(), name)(*args, **how))

    read.__name__, read.__doc__ = name, f"See `tokenizers.Tokenizer.{name}`."
    return classmethod(read)


def _component(name: str) -> property:
    """A property for a component of the original, which the caller may change in place."""

    def component(self: Tokenizer) -> Any:
        with self._lock:
            self._states.setdefault(name, state_of(self._original, name))
            return getattr(self._original, name)

    def replace(self: Tokenizer, value: Any) -> None:
        with self._lock:
            setattr(self._original, name, value)
            self._engine = None

    return property(component, replace, doc=f"The `{name}` of the original.")


class Tokenizer:
    """A tokenizer with the API of `tokenizers.Tokenizer`, and bytepair inside.

    Its encodings, decoded text and errors equal those of the original. `reason` says why it runs on
    the original, if it does.

    Example:
        >>> import bytepair
        >>> from bytepair.compat import huggingface
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> theirs = huggingface.Tokenizer(tok)
        >>> encoding = theirs.encode("hello hello")
        >>> encoding.ids, encoding.tokens, encoding.attention_mask
        ([259, 32, 259], ['hello', 'Ġ', 'hello'], [1, 1, 1])
        >>> encoding.offsets, theirs.decode(encoding.ids)
        ([(0, 5), (5, 6), (6, 11)], 'hello hello')
    """

    def __init__(self, model: Any) -> None:
        """Take a tokenizer of either library, or a model.

        A `tokenizers.Tokenizer` must not be used elsewhere from then on.
        """
        if isinstance(model, BytepairTokenizer):
            model = to_huggingface(model)
        elif not isinstance(model, _class()):
            model = _class()(model)
        self.name = "a tokenizers.Tokenizer"  # in the log
        self._lock = RLock()
        self._original: tokenizers.Tokenizer = model
        self._settings = _settings_of(model)
        self._engine: Engine | str | None = None
        self._states: dict[str, Any] = {}  # of components that others may change in place

    from_str, from_buffer = _reader("from_str"), _reader("from_buffer")
    from_file, from_pretrained = _reader("from_file"), _reader("from_pretrained")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as the text of a `tokenizer.json`."""
        return _restored, (type(self), self.to_str(), self.encode_special_tokens)

    def __repr__(self) -> str:
        return repr(self._original)

    def __str__(self) -> str:
        return str(self._original)

    @property
    def original(self) -> tokenizers.Tokenizer:
        """The `tokenizers.Tokenizer` inside."""
        return self._original

    @property
    def reason(self) -> str | None:
        """Why this tokenizer runs on the original; None if it runs on bytepair.

        Example:
            >>> import tokenizers
            >>> from bytepair.compat import huggingface
            >>> huggingface.Tokenizer(tokenizers.models.WordPiece()).reason.partition(";")[0]
            'model.type: a WordPiece model is not BPE: it chooses tokens without merging'
        """
        engine = self._current()
        return engine if isinstance(engine, str) else None

    def _current(self) -> Engine | str:
        """The engine for the tokenizer as it is now, or the reason why there is none."""
        engine = self._engine
        if engine is None or self._states:
            with self._lock:
                states = {name: state_of(self._original, name) for name in self._states}
                if self._engine is None or states != self._states:
                    self._states = states
                    with self._set((False, None, None)):
                        self._engine = encodings.engine_of(self._original)
                    if isinstance(self._engine, str):
                        logger.warning("%s runs on tokenizers: %s", self.name, self._engine)
                engine = self._engine
        return engine

    @contextmanager
    def _set(self, settings: Settings) -> Iterator[None]:
        with self._lock:
            _apply(self._original, settings)
            try:
                yield
            finally:
                _apply(self._original, self._settings)

    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Any:
        """Encode a text or a list of words, or two of them."""
        is_text = not is_pretokenized and pair is None and isinstance(sequence, str)
        if is_text and (encodings := self._fast([sequence], add_special_tokens)) is not None:
            return encodings[0]
        with self._lock:
            return self._original.encode(sequence, pair, is_pretokenized, add_special_tokens)

    def encode_batch(
        self, input: Sequence[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """Encode many texts, or pairs of texts; see `encode`; also an array of texts."""
        if not is_pretokenized and (encodings := self._fast(input, add_special_tokens)) is not None:
            return encodings
        with self._lock:
            return self._original.encode_batch(input, is_pretokenized, add_special_tokens)

    #: In `tokenizers` this omits the offsets; here they are computed on request.
    encode_batch_fast = encode_batch

    def _fast(self, inputs: Sequence[Any], special: bool) -> list[Any] | None:
        """The encodings by bytepair, or None if the original must compute them."""
        engine = self._current()
        split, truncation, padding = self._settings
        if split or isinstance(engine, str):
            return None
        if getattr(inputs, "ndim", 0) == 1:  # an array of numpy
            inputs = inputs.tolist()  # type: ignore[attr-defined]
        if not isinstance(inputs, list | tuple) or not inputs:
            return None
        return encodings.encode(Call(self, engine, bool(special), truncation, padding), inputs)

    def encode_original(self, text: str, special: bool, settings: Settings) -> tokenizers.Encoding:
        """Encode a text with the original, possibly with other settings."""
        with self._set(settings):
            return self._original.encode(text, add_special_tokens=special)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of ids."""
        if isinstance(ids, list | tuple) and (texts := self._decoded([ids], skip_special_tokens)):
            return texts[0]
        with self._lock:
            return self._original.decode(ids, skip_special_tokens)

    def decode_batch(
        self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """The texts of many lists of ids."""
        if (texts := self._decoded(sequences, skip_special_tokens)) is not None:
            return texts
        with self._lock:
            return self._original.decode_batch(sequences, skip_special_tokens)

    def _decoded(self, sequences: Sequence[Sequence[int]], skip: bool) -> list[str] | None:
        """The texts by bytepair, or None if the original must compute them."""
        engine = self._current()
        if isinstance(engine, str) or not engine.decodes:
            return None
        special = engine.special_ids if skip else frozenset()
        try:
            kept = [
                ids if special.isdisjoint(ids) else [id for id in ids if id not in special]
                for ids in sequences
            ]
            if len(kept) == 1:  # a batch would start threads
                return [engine.tokenizer.decode(kept[0])]
            return engine.tokenizer.decode_batch(kept)
        except (BytepairError, TypeError):
            return None  # the original skips ids without a token

    def __getattr__(self, name: str) -> Any:
        """What the original has, with the same arguments."""
        if name in _LOCKED:
            return partial(self._call_original, name)
        if name.startswith("async_") and hasattr(self._original, name):
            return partial(asyncio.to_thread, getattr(self, name.removeprefix("async_")))
        if name.startswith("_"):  # also while a copy is made, which has no original yet
            raise AttributeError(f"a Tokenizer has no attribute {name!r}")
        return getattr(self._original, name)

    def __dir__(self) -> list[str]:
        return [*{*super().__dir__(), *dir(self._original)}]

    def _call_original(self, name: str, *args: Any, **how: Any) -> Any:
        """Call a method of the original; what it changes is read again."""
        with self._lock:
            how = {option: theirs(value) for option, value in how.items()}
            result = getattr(self._original, name)(*map(theirs, args), **how)
            if name in _CHANGES:
                self._engine = None
            if name in _SETTINGS:
                self._settings = _settings_of(self._original)
            return result

    normalizer, pre_tokenizer = _component("normalizer"), _component("pre_tokenizer")
    post_processor, decoder = _component("post_processor"), _component("decoder")
    model = _component("model")

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens in texts are encoded as text."""
        return self._settings[0]

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        with self._lock:
            self._original.encode_special_tokens = value
            self._settings = _settings_of(self._original)

    @property
    def is_bare(self) -> bool:
        """Whether texts are neither truncated nor padded, and special tokens in them are found."""
        return self._settings == (False, None, None)

    @property
    def truncation(self) -> dict[str, Any] | None:
        """How texts are truncated, if they are."""
        return copy(self._settings[1])

    @property
    def padding(self) -> dict[str, Any] | None:
        """How texts are padded, if they are."""
        return copy(self._settings[2])


#: The methods of the original that change the model, those that change the settings, and others
#: that need them as they are.
_CHANGES: Final = ("add_tokens", "add_special_tokens", "train", "train_from_iterator")
_SETTINGS: Final = ("enable_truncation", "no_truncation", "enable_padding", "no_padding")
_LOCKED: Final = (*_CHANGES, *_SETTINGS, "to_str", "save", "post_process")


def _class() -> Any:
    from bytepair._internal.extras import tokenizers

    return tokenizers.tokenizers.Tokenizer


def _restored(kind: type[Tokenizer], json: str, split: bool) -> Tokenizer:
    tokenizer: Tokenizer = kind.from_str(json)
    tokenizer.encode_special_tokens = split
    return tokenizer


def _settings_of(original: tokenizers.Tokenizer) -> Settings:
    return original.encode_special_tokens, original.truncation, original.padding


def _apply(original: tokenizers.Tokenizer, settings: Settings) -> None:
    split, truncation, padding = settings
    original.encode_special_tokens = split
    if truncation is None:
        original.no_truncation()
    else:
        original.enable_truncation(**truncation)
    if padding is None:
        original.no_padding()
    else:
        original.enable_padding(**padding)
