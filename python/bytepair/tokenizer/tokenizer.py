"""The public class `Tokenizer`.

Encoding, decoding and lookups are implemented in Rust (`bytepair._core.Tokenizer`). This module
adds files, pickling and display.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from bytepair import _core
from bytepair._internal.arguments import checked
from bytepair.chat.methods import ChatMethods
from bytepair.files.outputs import check_output_folder
from bytepair.files.safe import write_whole
from bytepair.formats.names import FILE_NAME, WrittenFormat
from bytepair.properties import metadata, roles
from bytepair.properties.rules import pattern_text
from bytepair.tokenizer.batch import BulkMethods, SpecialMode
from bytepair.tokenizer.display import show, summary
from bytepair.tokenizer.generation import GenerationMethods
from bytepair.tokenizer.habits import NamesOthers, missing, unknown_keyword
from bytepair.tokenizer.special import added

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bytepair.tokenizer.origins import TokenParts
    from bytepair.tokenizer.pruning import Keep


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


class Tokenizer(BulkMethods, ChatMethods, GenerationMethods, metaclass=NamesOthers):
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
    def with_roles(self, **wanted: str | None) -> Self:
        """Return a copy, equal to this tokenizer, with different roles of special tokens.

        Args:
            wanted: the names of special tokens as `bos=`, `eos=`, `pad=` and `end_of_turn=`; None
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
        return self.with_notes(roles.notes(self, wanted))

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
    def save(
        self, folder: str | os.PathLike[str], *, tables: bool = True, overwrite: bool = False
    ) -> Path:
        """Save the tokenizer to a folder, which is created if needed.

        The file is written under a temporary name, synced and renamed: after a crash, the folder
        contains either the old or the new tokenizer, completely, and a process that has loaded the
        old one is not affected. The same tokenizer always gives the same file, and may be saved
        again.

        Args:
            folder: the folder for `tokenizer.bytepair`.
            tables: whether the file contains the lookup tables that `load` must otherwise build: it
                loads instantly, but is three to four times larger. Small vocabularies are saved
                without tables.
            overwrite: whether to replace a different tokenizer.

        Returns:
            The path of the file.

        Raises:
            OverwriteError: if the folder contains a tokenizer with another fingerprint, and
                `overwrite` is false.
            NotADirectoryError: if this is a file, or has the name of one, such as `tokenizer.json`;
                `export` writes files.
            OSError: if the folder cannot be written.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.save(folder)
            ...     path.name, bytepair.load(folder) == tok
            ('tokenizer.bytepair', True)
        """
        path = Path(folder) / FILE_NAME
        try:
            check_output_folder(path.parent)
        except NotADirectoryError as error:
            raise NotADirectoryError(f"{error}, or write the file with export") from None
        is_new = not path.parent.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._write(path, tables=tables, overwrite=overwrite)
        except BaseException:
            if is_new:
                with suppress(OSError):  # it is not empty
                    path.parent.rmdir()
            raise
        return path

    def _write(self, path: Path, *, tables: bool = True, overwrite: bool) -> None:
        from bytepair.files import existing

        data = self.to_bytes(tables=tables)
        if not overwrite:
            existing.check(self, path, lambda new: new.write_bytes(data), _core.Model.map)
        write_whole(path, data)

    @checked
    def export(
        self,
        path: str | os.PathLike[str],
        format: WrittenFormat | str | None = None,
        *,
        lossy: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write the tokenizer in the format of another library.

        Files are written atomically. `bytepair.load` reads them.

        Args:
            path: the output file, or the output folder for formats with several files.
            format: the format: a name in the table of `docs/formats`, such as `huggingface` or
                `tiktoken`; None means to choose it by the file name.
            lossy: whether to write a format that cannot represent all of the tokenizer.
            overwrite: whether to replace files of a different tokenizer.

        Returns:
            The path.

        Raises:
            LossError: if something would be lost and `lossy` is false; the message lists it.
            OverwriteError: if a file of a different tokenizer would be replaced and `overwrite` is
                false.
            ValueError: if the format does not exist, or cannot be written.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.export(f"{folder}/tokenizer.json")
            ...     bytepair.load(path) == tok
            True
        """
        from bytepair.formats import registry

        target = Path(path)
        found = format or registry.of_path(target)
        if found != "bytepair":
            registry.write(self, target, found, lossy=lossy, overwrite=overwrite)
        elif target.name.endswith(".bytepair"):
            self._write(target, overwrite=overwrite)
        else:
            return self.save(target, overwrite=overwrite)
        return target

    @checked
    def export_losses(
        self, format: str | os.PathLike[str], path: str | os.PathLike[str] | None = None
    ) -> list[str]:
        """List what would be lost by writing the tokenizer in a format.

        Args:
            format: a name in the table of `docs/formats`, such as `gguf`; or a path with a known
                file name, as in `export`.
            path: the file or folder to write, if `format` is a name: a `tokenizer.json` alone has
                no roles and no chat template, a folder has. None means a folder.

        Returns:
            A description of everything that the format cannot represent, or that programs which
            read it handle differently; empty if nothing is lost.

        Raises:
            ValueError: if the format does not exist.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> tok.export_losses("huggingface"), tok.export_losses("tiktoken")
            ([], ['the split pattern', 'the special tokens'])
        """
        from bytepair.formats import registry

        if isinstance(format, os.PathLike):
            format, path = registry.of_path(Path(format)), format
        return registry.losses(self, format, None if path is None else Path(path))

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
        kept = metadata.carried(other, self.special_tokens)
        return self.with_notes(kept) if kept else self

    def _with_repeats(self, limit: int) -> Self:
        """This tokenizer with another size limit for the cache of repeated text."""
        return self if limit == _core.repeats(self) else type(self)(_core.with_repeats(self, limit))

    @checked
    def show(
        self,
        text_or_ids: str | Iterable[int],
        mask: Sequence[int] | None = None,
        *,
        format: Literal["terminal", "html"] = "terminal",
        special: SpecialMode = None,
        with_ids: bool = False,
        color: bool | None = None,
    ) -> str:
        """Display the tokens of a text or of ids, for a terminal or a notebook.

        Args:
            text_or_ids: a text, which is encoded, or ids.
            mask: for each id, whether a model is trained on it: tokens with 1 are green, tokens
                with 0 are red. Without a mask, backgrounds alternate.
            format: "terminal", or "html" for notebooks, where the id of a token is in its tooltip.
            special: for a text, as in `encode`: how special tokens in it are encoded.
            with_ids: whether each token is followed by its id.
            color: for a terminal, whether to use colours; None means yes, unless `NO_COLOR` is set.
                Without colours, tokens are separated by `|`, and are in brackets if the mask is 1.

        Returns:
            The tokens. Bytes that are not a complete character are shown as `<E4>`, invisible
            characters as `<U+200D>`, special tokens as `⟪<|bos|>⟫`, which never occurs for text.

        Raises:
            ValueError: if the mask and the ids have different lengths, or the format is unknown.
            SpecialTokenError: as in `encode`.
            UnknownIdError: if an id is not in the vocabulary.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=270)
            >>> print(tok.show("hello hell", color=False))
            hello| |hel|l
            >>> print(tok.show([259, 261], mask=[0, 1], with_ids=True, color=False))
            hello(259)|[⟪<|bos|>⟫](261)
            >>> "id 259" in tok.show("hello", format="html")
            True
        """
        return show(
            self, text_or_ids, mask, format=format, special=special, with_ids=with_ids, color=color
        )

    def _repr_html_(self) -> str:
        """The properties of the tokenizer and some tokens, for notebooks."""
        return summary(self)

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
