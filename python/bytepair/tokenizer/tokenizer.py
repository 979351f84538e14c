"""The tokenizer that people hold in their hands, and how it gets to disk and back.

Encoding, decoding and looking things up are in Rust (`bytepair._core.Tokenizer`). This adds what is
done rarely: files, pickles, other libraries, pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from bytepair import _core
from bytepair.chat.methods import ChatMethods
from bytepair.formats import roles
from bytepair.formats.files import FILE_NAME, write_whole
from bytepair.formats.parts import all_tokens, bytes_per_token
from bytepair.tokenizer.batch import BulkMethods, SpecialMode
from bytepair.tokenizer.display import show, summary
from bytepair.tokenizer.generation import GenerationMethods
from bytepair.tokenizer.special import added

if TYPE_CHECKING:
    import numpy as np
    import tiktoken
    import tokenizers
    from numpy.typing import NDArray

    from bytepair.tokenizer.origins import TokenParts
    from bytepair.tokenizer.pruning import Keep


@dataclass(frozen=True, eq=False)
class Pruned:
    """What `Tokenizer.prune` makes.

    Attributes:
        tokenizer: the smaller tokenizer.
        ids: int32, for each old id the new one, or -1 where the token is gone. The new rows of a
            matrix with a row for each old id are `matrix[numpy.flatnonzero(ids >= 0)]`.
    """

    tokenizer: Tokenizer
    ids: NDArray[np.int32]


class Tokenizer(BulkMethods, ChatMethods, GenerationMethods):
    """A byte-level BPE tokenizer: immutable, and safe to use from many threads.

    It is made by `bytepair.train`, `bytepair.load` or `Tokenizer.from_ranks`. Two tokenizers are
    equal when their vocabulary, special tokens, merge rule and split pattern are.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello hello world"], vocab_size=270)
        >>> tok.decode(tok.encode("hello world"))
        'hello world'
    """

    __slots__ = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Make a tokenizer from the bytes of the native format.

        Args:
            data: what `to_bytes` gives, or the content of `tokenizer.bytepair`.

        Raises:
            FileFormatError: if the bytes break the format; the message says where.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> bytepair.Tokenizer.from_bytes(tok.to_bytes()) == tok
            True
        """
        return cls(_core.Model.from_bytes(data))

    @classmethod
    def from_ranks(
        cls,
        mergeable_ranks: dict[bytes, int],
        *,
        pattern: str,
        special_tokens: dict[str, int] | None = None,
    ) -> Self:
        """Make a tokenizer from a vocabulary of ranks, as tiktoken has it.

        Args:
            mergeable_ranks: the bytes of each token and its rank, which is also its id.
            pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression.
            special_tokens: the special tokens and their ids.

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
        regex = _core.pattern(pattern)
        return cls(_core.Model.from_ranks(mergeable_ranks, regex, special_tokens or {}))

    @classmethod
    def from_merges(
        cls,
        tokens: dict[bytes, int],
        merges: list[tuple[bytes, bytes]],
        *,
        pattern: str,
        special_tokens: dict[str, int] | None = None,
        ignore_merges: bool = False,
    ) -> Self:
        """Make a tokenizer from a vocabulary and a list of merges, as Hugging Face has it.

        Args:
            tokens: the bytes of each token and its id.
            merges: the pairs of tokens that merge, in order.
            pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression.
            special_tokens: the special tokens and their ids.
            ignore_merges: whether a pretoken that is a token wins outright, before any merge.

        Raises:
            VocabularyError: if a rule of the vocabulary is broken, or a merge makes no token.
            PatternError: if the pattern is neither a name nor a regular expression.

        Example:
            >>> import bytepair
            >>> tokens = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257}
            >>> tok = bytepair.Tokenizer.from_merges(tokens, [(b"a", b"b")], pattern="gpt4")
            >>> tok.encode("abc")
            [256, 99]
        """
        regex, special = _core.pattern(pattern), special_tokens or {}
        return cls(_core.Model.from_merges(tokens, merges, regex, special, ignore_merges))

    def with_notes(self, notes: Mapping[str, str]) -> Self:
        """Make a tokenizer with the same values and more notes on its origin.

        Args:
            notes: keys and values, such as `name`, `date` or `license`; a key that is there already
                gets the new value.

        Returns:
            The tokenizer, equal to this one: notes do not count. They are saved with it.

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
        """The special tokens that have a role, by the role.

        The roles are `bos` and `eos` (they begin and end a text), `pad` (fills rows) and
        `end_of_turn` (ends a message of a conversation). They change no id and do not count when
        tokenizers are compared; GGUF and Hugging Face files hold them. Published vocabularies and
        that of nanochat know theirs, and names such as `<|eos|>` say it; `with_roles` says others.

        Example:
            >>> import bytepair
            >>> roles = bytepair.train(["hello hello"], vocab_size=269).roles
            >>> roles["bos"], roles["end_of_turn"]
            ('<|bos|>', '<|assistant_end|>')
        """
        return roles.roles(self)

    def with_roles(self, **wanted: str | None) -> Self:
        """Make a tokenizer, equal to this one, in which other special tokens have a role.

        Args:
            wanted: special tokens as `bos=`, `eos=`, `pad=` and `end_of_turn=`; None means that no
                token has the role. Roles that are not named stay as they are.

        Raises:
            SpecialTokenError: if a token is no special token of this tokenizer.
            TypeError: if there is no such role.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 260, special_tokens=["<start>", "<end>"])
            >>> tok.with_roles(bos="<start>", eos="<end>").roles
            {'bos': '<start>', 'eos': '<end>'}
        """
        return self.with_notes(roles.notes(self, wanted))

    @property
    def bos_id(self) -> int:
        """The id of the special token that begins a text (see `roles`).

        Raises:
            SpecialTokenError: if no token has the role, so that `prepend=tok.bos_id` never prepends
                nothing. `bos_token_id`, which other libraries look for, is None then.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 260, special_tokens=["<|bos|>", "<|eos|>"])
            >>> tok.bos_id, tok.eos_id
            (258, 259)
        """
        return roles.id_of(self, "bos")

    @property
    def eos_id(self) -> int:
        """The id of the special token that ends a text (see `roles`); else as `bos_id`."""
        return roles.id_of(self, "eos")

    @property
    def bos_token_id(self) -> int | None:
        """The id of the special token that begins a text, or None, as other libraries have it."""
        return self.special_tokens.get(self.roles.get("bos", ""))

    @property
    def eos_token_id(self) -> int | None:
        """The id of the special token that ends a text, or None, as other libraries have it.

        Libraries that constrain what a model generates stop there. For the answers of a chat model
        this should be the end of a turn: `tok.with_roles(eos=tok.roles["end_of_turn"])`.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 266)
            >>> tok.with_roles(eos="<|assistant_end|>").eos_token_id
            261
        """
        return self.special_tokens.get(self.roles.get("eos", ""))

    @property
    def pad_token_id(self) -> int | None:
        """The id of the special token that fills rows, or None, as other libraries have it."""
        return self.special_tokens.get(self.roles.get("pad", ""))

    @property
    def special_token_ids(self) -> list[int]:
        """The ids of the special tokens.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"]).special_token_ids
            [258]
        """
        return list(self.special_tokens.values())

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each id: of a special token its name, nothing where no token has the id.

        It is a property because llguidance asks for one; a new list is made each time.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"]).tokens[256:]
            [b'hi', b' hi', b'<|bos|>']
        """
        return all_tokens(self)

    def __call__(self, text: str) -> list[int]:
        """The ids of a text, as `encode` gives them, for libraries that call a tokenizer.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hi hi"], 266)("hi hi")
            [256, 32, 256]
        """
        return self.encode(text)

    def with_special_tokens(self, names: Sequence[str]) -> Self:
        """Make a tokenizer with the same tokens and more special tokens.

        All ids stay. A new special token takes the lowest id that is reserved for one (by a name
        such as `<|reserved_0|>`, as `bytepair.train(..., reserved=16)` makes them, and Llama 3 has
        them), and if there is none, the id behind the last.

        Args:
            names: the names, in the order that their ids shall have.

        Raises:
            SpecialTokenError: if a name is that of a special token, or the text of an ordinary
                token, or empty.
            TypeError: if the names have no order.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 260, special_tokens=["<|bos|>"], reserved=1)
            >>> tok.with_special_tokens(["<|tool|>", "<|image|>"]).special_tokens
            {'<|bos|>': 258, '<|tool|>': 259, '<|image|>': 260}
        """
        return type(self)(_core.with_special_tokens(self, added(self, names)))

    def with_sentencepiece_ids(self) -> Self:
        """Make a tokenizer with the same tokens and the ids that `run.c` of llama2.c expects.

        They are 0 for what is unknown, 1 and 2 for the special tokens that begin and end (the end
        of a turn, where the same token does both), 3 to 258 for the bytes, then the other tokens in
        their order, and the other special tokens. `<unk>`, `<s>` and `</s>` are added where there
        are none. What was encoded by the old ids has to be encoded again.

        Raises:
            VocabularyError: if a byte has no token.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269).with_sentencepiece_ids()
            >>> tok.special_tokens["<|bos|>"], tok.encode("a"), tok.encode("hello")
            (1, [100], [262])
        """
        from bytepair.formats.renumber import with_sentencepiece_ids

        return type(self)(with_sentencepiece_ids(self))

    @property
    def chat_template(self) -> str | None:
        """How conversations are written, as a template in Jinja; None if none is known.

        `bytepair.chat.JinjaTemplate` renders it. GGUF and Hugging Face files hold it. nanochat's
        special tokens bring nanochat's.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hello hello"], vocab_size=269).chat_template[:17]
            "{{- '<|bos|>' -}}"
            >>> bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"]).chat_template is None
            True
        """
        return roles.chat_template(self)

    def with_chat_template(self, template: str | None) -> Self:
        """Make a tokenizer with the same values and another chat template.

        Args:
            template: the template in Jinja, for instance the text of `chat_template.jinja`; None
                means that there is none. It is kept as it is, and checked when it is rendered.

        Returns:
            The tokenizer, equal to this one: templates do not count. They are saved with it.

        Raises:
            TypeError: if the template is no text.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"])
            >>> tok.with_chat_template("{{ messages[0].content }}").chat_template
            '{{ messages[0].content }}'
        """
        if not isinstance(template, str | None):
            raise TypeError(f"a chat template is a str or None, not {type(template).__name__}")
        return self.with_notes({roles.TEMPLATE: template or ""})

    def save(
        self, folder: str | os.PathLike[str], *, tables: bool = True, overwrite: bool = False
    ) -> Path:
        """Write the tokenizer into a folder, which is made if it is not there.

        The file is written under another name, synced and renamed: whatever happens, the folder
        holds the old tokenizer or the new one, whole, and a process that has loaded the old one
        keeps it. The same tokenizer always gives the same file, and may be saved again.

        Args:
            folder: where `tokenizer.bytepair` goes.
            tables: whether the file holds what `load` would else have to make: it loads in no time,
                and is three to four times larger. Small vocabularies are saved without.
            overwrite: whether another tokenizer that is there may be replaced.

        Returns:
            The path of the file.

        Raises:
            OverwriteError: if the folder holds another tokenizer (one with another fingerprint),
                and `overwrite` does not allow to replace it.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.save(folder)
            ...     path.name, bytepair.load(folder) == tok
            ('tokenizer.bytepair', True)
        """
        path = Path(folder) / FILE_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write(path, tables=tables, overwrite=overwrite)
        return path

    def _write(self, path: Path, *, tables: bool = True, overwrite: bool) -> None:
        from bytepair.formats import existing

        data = self.to_bytes(tables=tables)
        if not overwrite:
            existing.check(self, path, lambda new: new.write_bytes(data), _core.Model.map)
        write_whole(path, data)

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        lossy: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write the tokenizer for another library.

        Files are written whole or not at all. `bytepair.load` reads them back.

        Args:
            path: the file, or the folder for formats of several files.
            format: the format: a name of the table in `docs/formats.md`, such as `huggingface` or
                `tiktoken`; None means the one that the name of the file says.
            lossy: whether to write a format that cannot hold all of the tokenizer.
            overwrite: whether files of another tokenizer that are there may be replaced.

        Returns:
            The path.

        Raises:
            LossError: if something would be lost, and `lossy` does not allow it; the message lists
                what.
            OverwriteError: if a file would be replaced that is not of an equal tokenizer, and
                `overwrite` does not allow it.
            ValueError: if there is no such format, or it is only read.

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

    def export_losses(self, format: str | os.PathLike[str]) -> list[str]:
        """Ask what would be lost if the tokenizer were written in a format.

        Args:
            format: a name of the table in `docs/formats.md`, such as `gguf`; or a path whose name
                says the format, as in `export`.

        Returns:
            A sentence for each thing that the format cannot hold, or that the programs which read
            it do in another way; nothing if it can hold all.

        Raises:
            ValueError: if there is no such format.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> tok.export_losses("huggingface"), tok.export_losses("tiktoken")
            ([], ['the split pattern', 'the special tokens'])
        """
        from bytepair.formats import registry

        named = registry.of_path(Path(format)) if isinstance(format, os.PathLike) else format
        return registry.losses(self, named)

    def with_vocab_size(self, vocab_size: int) -> Self:
        """Cut the vocabulary down to what training for fewer ids would have given.

        Args:
            vocab_size: how many ids the result has, special tokens included; these get new ids.

        Raises:
            VocabularyError: if there are fewer ids, or the tokenizer was not made by training.

        Example:
            >>> import bytepair
            >>> large = bytepair.train(["hello hello"], 269)
            >>> large.with_vocab_size(267) == bytepair.train(["hello hello"], 267)
            True
        """
        return type(self)(_core.with_vocab_size(self, vocab_size))._with_roles_of(self)

    def prune(
        self,
        keep: Keep = None,
        *,
        vocab_size: int | None = None,
        drop: Iterable[int] | None = None,
    ) -> Pruned:
        """Leave out tokens, and keep the ids of all texts that do not need them.

        Special tokens and single bytes always stay, and so does every token that merging a kept one
        needs. A text whose ids all stay has the same tokens as before: its new ids are
        `pruned.ids[old_ids]`. Other texts are merged by what is left. The new ids have no holes and
        the order of the old ones.

        Args:
            keep: what stays. `bytepair.Counts` (by the split pattern of this tokenizer): the tokens
                that occur in that corpus. Ids: those tokens. A number: the tokens of the lowest
                ids, so that there are at most so many in all.
            vocab_size: of `Counts`, keep at most this many ids, special tokens included: the token
                of least use goes first, of those that no other needs, and its use falls to its
                parts.
            drop: in place of `keep`, the ids that go, for instance
                `bytepair.evaluate.unreachable(tok)`; those that others need stay.

        Raises:
            VocabularyError: if there is no room for the special tokens and bytes.
            CountsError: if the counts have another pattern.
            UnknownIdError: if an id stands for nothing.
            TypeError: if it is not clear what stays.

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
        return Pruned(type(self)(model), ids)

    def parts_in(self, old: _core.Tokenizer) -> TokenParts:
        """The ids of an old tokenizer of which each token of this one consists.

        They are what the bytes of the token, as one pretoken, are under the old tokenizer: the
        token itself, where that has it. A special token is the one of the same name, or else its
        name. An id without a token has no parts.

        Args:
            old: the tokenizer of the embeddings that there are: this one before `bytepair.extend`
                or `with_special_tokens`, or any other.

        Returns:
            The parts in two int64 arrays: new id `i` has `ids[offsets[i]:offsets[i + 1]]`.
            `torch.nn.functional.embedding_bag(ids, weight, offsets, include_last_offset=True)`
            gives the mean of the old rows for each new id.

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
        """The same with the roles and the chat template of another."""
        kept = roles.kept(other)
        return self.with_notes(kept) if kept else self

    def compression_curve(self) -> NDArray[np.uint64]:
        """How many tokens the training text had after each merge, and before the first.

        uint64, one more than there are merges; empty if the tokenizer was not made by training. The
        bytes of the text over these numbers are the bytes per token of every smaller vocabulary.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hello hello"], 269).compression_curve().tolist()
            [11, 9, 7, 5, 3]
        """
        import numpy as np

        size = self.notes.get("text_bytes")
        made = self.merge_counts()
        if size is None or len(made) != len(self.merges()):
            return np.empty(0, np.uint64)
        fallen = np.concatenate([np.zeros(1, np.uint64), np.cumsum(made, dtype=np.uint64)])
        return np.uint64(int(size)) - fallen

    def bytes_per_token_array(self) -> NDArray[np.int32]:
        """How many bytes each id stands for; 0 for special tokens and ids that stand for nothing.

        It is what turns losses per token into bits per byte: `bytepair.evaluate.bits_per_byte`.

        Returns:
            int32, one for each id.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hello hello"], 269).bytes_per_token_array()[255:].tolist()
            [1, 2, 3, 2, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        """
        return bytes_per_token(self)

    def to_tiktoken(self, name: str = "bytepair") -> tiktoken.Encoding:
        """Hand the vocabulary to tiktoken.

        Its ids are the same for every text, if the split pattern matches everything, as all named
        patterns do (tiktoken drops text that no match covers), and if the merge rule is that of
        ranks.

        Args:
            name: the name of the encoding.

        Raises:
            ValueError: if the merge rule is that of merges, which tiktoken does not have, or texts
                are normalized, which it does not do.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=270)
            >>> tok.to_tiktoken().encode_ordinary("hello") == tok.encode("hello")
            True
        """
        from bytepair._internal.extras import tiktoken
        from bytepair.formats.tiktoken import values

        return tiktoken.Encoding(name, **values(self, exact=True))

    def to_huggingface(self, *, special: bool = True) -> tokenizers.Tokenizer:
        """Hand the vocabulary to Hugging Face; for `transformers`, wrap what comes out.

        Its ids are the same; `bytepair.formats.huggingface` says what of that is proved. Letters
        and white space are those of the Unicode version that `tokenizers` was built with.

        Args:
            special: whether special tokens in texts become their ids, as is usual there; if not,
                they are text, as in `encode`.

        Raises:
            ImportError: if the package `tokenizers` is not installed.
            LossError: if a special token looks like an ordinary one.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> tok.to_huggingface().encode("hello").ids == tok.encode("hello")
            True
        """
        from bytepair.formats.huggingface import to_huggingface

        return to_huggingface(self, special=special)

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
        """Show how a text is split, or ids as their tokens, for a terminal or a notebook.

        Args:
            text_or_ids: a text, which is encoded, or ids.
            mask: if given, for each id whether a model is trained on it: its token is green where
                it is 1 and red where it is 0. Else each token has its own background.
            format: "terminal", or "html" for what a notebook shows as such; there, the id of a
                token appears when the mouse is over it.
            special: of a text, as in `encode`: which special tokens in it are their ids.
            with_ids: whether each token is followed by its id.
            color: of a terminal, whether to use colours; None means: unless `NO_COLOR` is set.
                Without, tokens are divided by `|`, and stand in brackets where the mask is 1.

        Returns:
            The tokens. Bytes that are no whole character are shown as `<E4>`, characters that
            cannot be seen as `<U+200D>`, special tokens as `⟪<|bos|>⟫`, which no text is.

        Raises:
            ValueError: if there are more or fewer entries of the mask than ids, or there is no such
                format.
            SpecialTokenError: as in `encode`.
            UnknownIdError: if an id stands for nothing.

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
        """The values that tell tokenizers apart and some tokens, as a notebook shows them."""
        return summary(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the native bytes, with tables, since it is to be used at once."""
        return type(self).from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        """Name the values that tell tokenizers apart."""
        names = (name for name, regex in _core.PATTERNS.items() if regex == self.pattern)
        pattern = next(names, self.pattern)
        return (
            f"<bytepair.Tokenizer: {self.vocab_size:,} ids, {len(self.special_tokens)} of them "
            f"special, pattern {pattern}, rule {self.merge_rule}, {self.fingerprint[:12]}>"
        )
