"""The public class `Tokenizer`: made from values, asked for its roles, changed to another one.

Encoding, decoding and lookups are implemented in Rust (`bytepair._core.Tokenizer`). The methods for
large amounts of text, chats, prompts, files and display stand in files of their own.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bytepair import _core
from bytepair._internal.arguments import checked
from bytepair._internal.later import Later
from bytepair.chat.methods import ChatMethods
from bytepair.files.safe import write_whole
from bytepair.properties import metadata, roles
from bytepair.properties.rules import pattern_text
from bytepair.tokenizer.batch import BulkMethods
from bytepair.tokenizer.conversion import ConversionMethods
from bytepair.tokenizer.display import DisplayMethods
from bytepair.tokenizer.generation import GenerationMethods
from bytepair.tokenizer.habits import NamesOthers, missing, unknown_keyword
from bytepair.tokenizer.saving import SavingMethods
from bytepair.tokenizer.special import added

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bytepair.tokenizer.origins import TokenParts
    from bytepair.tokenizer.pruning import Keep
else:
    NDArray = Later("numpy.typing", "NDArray")
    Keep = Later("bytepair.tokenizer.pruning", "Keep")
    TokenParts = Later("bytepair.tokenizer.origins", "TokenParts")
    np = Later("numpy")


@dataclass(frozen=True, eq=False)
class Pruned:
    """The result of `Tokenizer.prune`.

    Attributes:
        tokenizer: the smaller tokenizer.
        ids: int32, the new id of each old id, or -1 for a removed token. Given a matrix with one
            row per old id, the rows of the new ids are `matrix[numpy.flatnonzero(ids >= 0)]`.
    """

    tokenizer: Tokenizer
    ids: NDArray[np.int32]

    @checked
    def save_ids(self, path: str | os.PathLike[str]) -> Path:
        """Write `ids` to a `.npy` file, which appears complete or not at all.

        Args:
            path: The output file; an existing file is replaced.

        Returns:
            The path of the file.

        Example:
            >>> import bytepair, numpy, tempfile
            >>> pruned = bytepair.train(["hello hello"], vocab_size=268).prune(267)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     numpy.load(pruned.save_ids(f"{folder}/ids.npy"))[-1]
            np.int32(266)
        """
        import numpy as np

        path, data = Path(path), io.BytesIO()
        np.save(data, self.ids)
        write_whole(path, data.getvalue())
        return path


class Tokenizer(
    BulkMethods,
    ChatMethods,
    ConversionMethods,
    DisplayMethods,
    GenerationMethods,
    SavingMethods,
    metaclass=NamesOthers,
):
    """A byte-level BPE tokenizer: immutable and thread-safe.

    Created by `bytepair.train`, `bytepair.load` or `Tokenizer.from_ranks`. Two tokenizers are equal
    if their vocabularies, special tokens, merge rules and split patterns are equal.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello hello world"], vocab_size=270)
        >>> tok.decode(tok.encode("hello world"))
        'hello world'
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # so that type checkers know all attributes

        def __getattr__(self, name: str) -> Any:
            raise missing(name)

    @classmethod
    @checked
    def from_bytes(cls, data: bytes) -> Self:
        """Create a tokenizer from the bytes of the native format.

        Args:
            data: the result of `to_bytes`, or the content of `tokenizer.bytepair`.

        Raises:
            FileFormatError: if the bytes are not valid; the message contains the offset.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> bytepair.Tokenizer.from_bytes(tok.to_bytes()) == tok
            True
        """
        return cls(_core.Model.from_bytes(data))

    @classmethod
    @checked
    def from_ranks(
        cls,
        mergeable_ranks: dict[bytes, int],
        *,
        pattern: str | Sequence[str],
        special_tokens: dict[str, int] | list[_core.AddedToken] | None = None,
        normalizer: str | Sequence[str] | None = None,
    ) -> Self:
        """Create a tokenizer from a vocabulary with ranks, as in tiktoken.

        Args:
            mergeable_ranks: the bytes of each token and its rank, which is also its id.
            pattern: the split pattern: a name in `bytepair.PATTERNS`, a regular expression, or
                several of these, of which each splits the pieces of the previous one.
            special_tokens: the special tokens and their ids, or a list of `AddedToken`.
            normalizer: how texts are changed first: "NFC", "NFD", "NFKC", "NFKD", "Lowercase",
                "StripAccents", or several of these; None for not at all.

        Raises:
            VocabularyError: if an id or a token occurs twice, or an id is too large.
            PatternError: if the pattern is neither a name nor a regular expression.

        Example:
            >>> import bytepair
            >>> ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256}
            >>> tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")
            >>> tok.encode("abc")
            [256, 99]
        """
        rules = _core.TextRules(_core.pattern(pattern), normalizer=_names(normalizer))
        return cls(_core.Model.from_ranks(mergeable_ranks, rules, special_tokens or {}))

    @classmethod
    @checked
    def from_merges(
        cls,
        tokens: dict[bytes, int],
        merges: list[tuple[bytes, bytes]],
        *,
        pattern: str | Sequence[str],
        special_tokens: dict[str, int] | list[_core.AddedToken] | None = None,
        ignore_merges: bool = False,
        normalizer: str | Sequence[str] | None = None,
    ) -> Self:
        """Create a tokenizer from a vocabulary and a list of merges, as in Hugging Face tokenizers.

        Args:
            tokens: the bytes of each token and its id.
            merges: the pairs of tokens to merge, in order.
            pattern: the split pattern: a name in `bytepair.PATTERNS`, a regular expression, or
                several of these, of which each splits the pieces of the previous one.
            special_tokens: the special tokens and their ids, or a list of `AddedToken`.
            normalizer: how texts are changed first: "NFC", "NFD", "NFKC", "NFKD", "Lowercase",
                "StripAccents", or several of these; None for not at all.
            ignore_merges: whether a pretoken that is a token becomes that token without merging.

        Raises:
            VocabularyError: if the vocabulary is invalid, or a merge does not produce a token.
            PatternError: if the pattern is neither a name nor a regular expression.

        Example:
            >>> import bytepair
            >>> tokens = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257}
            >>> tok = bytepair.Tokenizer.from_merges(tokens, [(b"a", b"b")], pattern="gpt4")
            >>> tok.encode("abc")
            [256, 99]
        """
        rules = _core.TextRules(_core.pattern(pattern), normalizer=_names(normalizer))
        special = special_tokens or {}
        return cls(_core.Model.from_merges(tokens, merges, rules, special, ignore_merges))

    @checked
    def with_notes(self, notes: Mapping[str, str]) -> Self:
        """Return a copy with additional notes about its origin.

        Args:
            notes: keys and values, such as `name`, `date` or `license`; existing keys are replaced.

        Returns:
            The copy, which is equal to this tokenizer: notes are not compared. They are saved.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> named = tok.with_notes({"name": "hello", "date": "2026-11-21"})
            >>> named == tok, named.notes["name"], named.notes["text_bytes"]
            (True, 'hello', '11')
        """
        return type(self)(_core.with_notes(self, self.notes | dict(notes)))

    @property
    def roles(self) -> dict[str, str]:
        """The special tokens with a role, by role.

        The roles are `bos` and `eos` (begin and end a text), `pad` (pads rows) and `end_of_turn`
        (ends a message of a conversation). Roles do not affect encoding or equality; GGUF and
        Hugging Face files contain them. They are known for published vocabularies and nanochat's,
        and derived from names such as `<|eos|>`; `with_roles` sets them.

        Example:
            >>> import bytepair
            >>> roles = bytepair.train(["hello hello"], vocab_size=269).roles
            >>> roles["bos"], roles["end_of_turn"]
            ('<|bos|>', '<|assistant_end|>')
        """
        return roles.roles(self)

    @checked
    def with_roles(self, **names: str | None) -> Self:
        """Return a copy, equal to this tokenizer, with different roles of special tokens.

        Args:
            names: the names of special tokens as `bos=`, `eos=`, `pad=` and `end_of_turn=`; None
                removes a role. Roles that are not passed are unchanged.

        Raises:
            SpecialTokenError: if a token is not a special token of this tokenizer.
            TypeError: if the role does not exist.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 260, special_tokens=["<start>", "<end>"])
            >>> tok.with_roles(bos="<start>", eos="<end>").roles
            {'bos': '<start>', 'eos': '<end>'}
        """
        return self.with_notes(roles.notes(self, names))

    @property
    def bos_token_id(self) -> int | None:
        """The id of the special token that begins a text (see `roles`), or None."""
        return self.special_tokens.get(self.roles.get("bos", ""))

    @property
    def eos_token_id(self) -> int | None:
        """The id of the special token that ends a text (see `roles`), or None.

        For a chat model it should be the end of a turn:
        `tok.with_roles(eos=tok.roles["end_of_turn"])`.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 266)
            >>> tok.with_roles(eos="<|assistant_end|>").eos_token_id
            261
        """
        return self.special_tokens.get(self.roles.get("eos", ""))

    @property
    def pad_token_id(self) -> int | None:
        """The id of the special token that pads rows (see `roles`), or None."""
        return self.special_tokens.get(self.roles.get("pad", ""))

    def __call__(self, text: str, **options: Any) -> list[int]:
        """Encode a text, as `encode` does with its options (for libraries that call a tokenizer).

        Example:
            >>> import bytepair
            >>> bytepair.train(["hi hi"], 266)("hi hi")
            [256, 32, 256]
        """
        if others := options.keys() - {"special", "prepend", "append"}:
            raise unknown_keyword("encode", sorted(others))
        return self.encode(text, **options)

    @checked
    def with_special_tokens(self, names: Sequence[str]) -> Self:
        """Return a copy with additional special tokens.

        Existing ids do not change. A new special token gets the lowest reserved id (one with a name
        such as `<|reserved_0|>`, as created by `bytepair.train(..., reserved=16)` and in Llama 3),
        or else the id after the last one.

        Args:
            names: the names, in the order of their ids.

        Raises:
            SpecialTokenError: if a name is that of a special token, equal to an ordinary token, or
                empty.
            TypeError: if the names are not ordered.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 260, special_tokens=["<|bos|>"], reserved=1)
            >>> tok.with_special_tokens(["<|tool|>", "<|image|>"]).special_tokens
            {'<|bos|>': 258, '<|tool|>': 259, '<|image|>': 260}
        """
        return type(self)(_core.with_special_tokens(self, added(self, names)))

    @checked
    def with_vocab_size(self, vocab_size: int) -> Self:
        """Truncate the vocabulary; the result equals training to the smaller size.

        Args:
            vocab_size: the vocabulary size of the result, including special tokens, which get new
                ids.

        Raises:
            VocabularyError: if the tokenizer is smaller, or was not created by training.

        Example:
            >>> import bytepair
            >>> large = bytepair.train(["hello hello"], 269)
            >>> large.with_vocab_size(267) == bytepair.train(["hello hello"], 267)
            True
        """
        return type(self)(_core.with_vocab_size(self, vocab_size))._with_roles_of(self)

    @checked
    def prune(
        self,
        keep: Keep = None,
        *,
        vocab_size: int | None = None,
        drop: Iterable[int] | None = None,
    ) -> Pruned:
        """Remove tokens, without changing the encoding of texts that do not use them.

        Special tokens, single bytes and the intermediate tokens of kept tokens are always kept. A
        text whose tokens are all kept is encoded to the same tokens; its new ids are
        `pruned.ids[old_ids]`. Other texts are encoded with the remaining merges. The new ids are
        contiguous, in the order of the old ones.

        Args:
            keep: what to keep. `bytepair.Counts` (with the split pattern of this tokenizer), or a
                mapping from ids to how often each occurs: the tokens that occur. Ids: these tokens.
                A number: the tokens with the lowest ids, up to this vocabulary size.
            vocab_size: with counts, keep at most this many ids, including special tokens: the
                least used token that no other token needs is removed first, and its uses are added
                to its parts.
            drop: instead of `keep`, the ids to remove, such as
                `bytepair.evaluate.unreachable(tok)`; tokens that others need are kept.

        Raises:
            VocabularyError: if there is no room for the special tokens and bytes.
            CountsError: if the counts have a different pattern, or the tokenizer normalizes texts,
                so that it needs a mapping of ids.
            UnknownIdError: if an id is not in the vocabulary.
            TypeError: if the combination of arguments is invalid.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello help, world world"], 275)
            >>> small = tok.prune(bytepair.count(["hello world"]))
            >>> small.tokenizer.vocab_size, small.ids[tok.encode("hello world")].tolist()
            (274, [264, 263])
            >>> small.tokenizer.encode("hello world")
            [264, 263]
        """
        from bytepair.tokenizer.pruning import pruned

        model, ids = pruned(self, keep, vocab_size, drop)
        if (ids >= 0).all():  # nothing goes; a new model would lack the counts of the merges
            return Pruned(self, ids)
        return Pruned(type(self)(model)._with_repeats(_core.repeats(self)), ids)

    @checked
    def parts_in(self, old: _core.Tokenizer) -> TokenParts:
        """Express each token of this tokenizer by ids of an old one.

        The parts of a token are its bytes, encoded by the old tokenizer as one pretoken: the token
        itself, if it exists there. The part of a special token is the one of the same name; if
        there is none, its name is encoded. An unused id has no parts.

        Args:
            old: the tokenizer of the existing embedding table: this one before `bytepair.extend` or
                `with_special_tokens`, or any other.

        Returns:
            The parts in two int64 arrays: new id `i` has `ids[offsets[i]:offsets[i + 1]]`.
            `torch.nn.functional.embedding_bag(ids, weight, offsets, include_last_offset=True)`
            computes the mean of the old rows for each new id.

        Raises:
            SplitError: if the old tokenizer has no token for a byte.

        Example:
            >>> import bytepair
            >>> old = bytepair.train(["hello hello"], 259, special_tokens=["<|bos|>"])
            >>> new = bytepair.extend(old, ["hello hello"], 3)
            >>> parts = new.parts_in(old)
            >>> a, b = parts.offsets[new.token_id("hello"):][:2]
            >>> [old.token_bytes(id) for id in parts.ids[a:b].tolist()]
            [b'hel', b'l', b'o']
        """
        from bytepair.tokenizer.origins import parts_in

        return parts_in(self, old)

    def _with_roles_of(self, other: _core.Tokenizer) -> Self:
        """A copy with the roles, flags and chat templates of another tokenizer."""
        notes = metadata.carried(other, self.special_tokens)
        return self.with_notes(notes) if notes else self

    def _with_repeats(self, limit: int) -> Self:
        """This tokenizer with another size limit for the cache of repeated text."""
        return self if limit == _core.repeats(self) else type(self)(_core.with_repeats(self, limit))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as native bytes, with tables, so that unpickling is fast."""
        return _unpickled, (type(self), self.to_bytes(), _core.repeats(self))

    def __repr__(self) -> str:
        """The main properties of the tokenizer."""
        pattern = pattern_text(self)
        return (
            f"<bytepair.Tokenizer: {self.vocab_size:,} ids, {len(self.special_tokens)} of them "
            f"special, pattern {pattern}, rule {self.merge_rule}, {self.fingerprint[:12]}>"
        )


def _names(normalizer: str | Sequence[str] | None) -> list[str]:
    """The names of the steps of a normalizer."""
    return [normalizer] if isinstance(normalizer, str) else list(normalizer or ())


def _unpickled(kind: type[Tokenizer], data: bytes, repeats: int) -> Tokenizer:
    """The tokenizer of native bytes."""
    return kind.from_bytes(data)._with_repeats(repeats)
