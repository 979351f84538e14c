"""The class `Tokenizer`.

Encoding, decoding and lookups are implemented in Rust (`bytepair._core.Tokenizer`, the base class).
Longer methods are plain functions in the files beside this one, which a method imports when it is
called, so that a program that loads a tokenizer and encodes does not wait for other imports.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from bytepair import _core
from bytepair._internal.checks import (
    DOCUMENT_BYTES,
    check_choice,
    check_many,
    check_whole,
    integers,
)
from bytepair._internal.hints import NotHere, missing, unknown_keyword
from bytepair.properties import roles as roles_of
from bytepair.properties.tokens import AddedToken, pattern_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bytepair.chat.batch import RenderedBatch
    from bytepair.chat.renderer import TemplateOrName
    from bytepair.chat.rows import ChatOptions
    from bytepair.chat.segments import Conversation, RenderedIds
    from bytepair.chat.template import Template
    from bytepair.corpus.column import Errors
    from bytepair.corpus.rows import ConversationSource
    from bytepair.formats.parts import WrittenFormat
    from bytepair.tokenizer.results import Ids, SpecialMode


class Tokenizer(_core.Tokenizer):
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

    # Names that other libraries have for what stands elsewhere; getting one is an error.
    load = from_pretrained = from_file = from_str = from_directory = NotHere(
        "bytepair.load(path_or_name)"
    )
    train = train_from_iterator = train_new_from_iterator = NotHere(
        "bytepair.train(texts, vocab_size)"
    )

    if not TYPE_CHECKING:  # so that type checkers know all attributes

        def __getattr__(self, name: str) -> Any:
            raise missing(name)

    # ------------------------------------------------------------------ from values and bytes

    @classmethod
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
    def from_ranks(
        cls,
        mergeable_ranks: dict[bytes, int],
        *,
        pattern: str | Sequence[str],
        special_tokens: dict[str, int] | list[AddedToken] | None = None,
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
        rules = _rules(pattern, normalizer)
        return cls(_core.Model.from_parts(mergeable_ranks, rules, special_tokens or {}))

    @classmethod
    def from_merges(
        cls,
        tokens: dict[bytes, int],
        merges: list[tuple[bytes, bytes]],
        *,
        pattern: str | Sequence[str],
        special_tokens: dict[str, int] | list[AddedToken] | None = None,
        ignore_merges: bool = False,
        normalizer: str | Sequence[str] | None = None,
    ) -> Self:
        """Create a tokenizer from a vocabulary and a list of merges, as in Hugging Face tokenizers.

        `tokens` are the bytes of each token and its id, and `merges` the pairs of tokens to merge,
        in order; each must produce a token. With `ignore_merges`, a pretoken that is a token
        becomes that token without merging. All else is as in `from_ranks`.

        Example:
            >>> import bytepair
            >>> tokens = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257}
            >>> tok = bytepair.Tokenizer.from_merges(tokens, [(b"a", b"b")], pattern="gpt4")
            >>> tok.encode("abc")
            [256, 99]
        """
        rules, special = _rules(pattern, normalizer), special_tokens or {}
        model = _core.Model.from_parts(
            tokens, rules, special, merges=merges, ignore_merges=ignore_merges
        )
        return cls(model)

    # ------------------------------------------------------------------ roles and changes

    def replace(
        self,
        *,
        special_tokens: Sequence[str] | Mapping[str, int | None] | None = None,
        vocab_size: int | None = None,
        roles: Mapping[str, str | None] | None = None,
        chat_template: str | Mapping[str, str | None] | None = None,
        notes: Mapping[str, str] | None = None,
        repeats: int | None = None,
    ) -> Self:
        """A copy with other properties; what is not passed stays.

        Args:
            special_tokens: names of special tokens to add, in the order of their ids, or names and
                ids. Existing ids do not change. A name without an id gets the lowest reserved id
                (one with a name such as `<|reserved_0|>`, as created by
                `TrainOptions(reserved=16)` and in Llama 3), or else the id after the last
                one.
            vocab_size: truncate the vocabulary to this size, including special tokens, which get
                new ids; the result equals training to the smaller size.
            roles: names of special tokens by role: `bos`, `eos`, `pad`, `end_of_turn`; None removes
                a role.
            chat_template: the Jinja template, such as the text of `chat_template.jinja`, or several
                by name; "" or None removes one. It is stored unchanged.
            notes: keys and values about the origin, such as `name`, `date` or `license`.
            repeats: the maximum size in bytes of the cache of repeated text, which stores text that
                was encoded more than twice and its ids, to speed up prompts with a common prefix; 0
                disables it. At first it is 32 MiB; it is not saved.

        Returns:
            The copy. It is equal to this tokenizer unless special tokens or the size differ.

        Raises:
            SpecialTokenError: if a name is empty, taken, or equal to an ordinary token, or a role
                is given to what is no special token.
            VocabularyError: if the tokenizer is smaller than `vocab_size`, or was not created by
                training.

        Example:
            >>> import bytepair
            >>> options = bytepair.TrainOptions(reserved=1)
            >>> tok = bytepair.train(["hi hi"], 260, special_tokens=["<|bos|>"], options=options)
            >>> tok = tok.replace(special_tokens=["<|tool|>", "<|image|>"])
            >>> tok.special_tokens
            {'<|bos|>': 258, '<|tool|>': 259, '<|image|>': 260}
            >>> tok.replace(roles={"eos": "<|tool|>"}, notes={"name": "hi"}).eos_token_id
            259
        """
        from bytepair.tokenizer.vocabulary import replaced

        new = replaced(self, special_tokens, vocab_size, roles, chat_template, notes)
        if repeats is None or check_whole("repeats", repeats) == _core.repeats(new):
            return new
        return type(self)(_core.with_repeats(new, repeats))

    @property
    def roles(self) -> dict[str, str]:
        """The special tokens with a role, by role.

        The roles are `bos` and `eos` (begin and end a text), `pad` (pads rows) and `end_of_turn`
        (ends a message of a conversation). Roles do not affect encoding or equality; GGUF and
        Hugging Face files contain them. They are known for published vocabularies and nanochat's,
        and derived from names such as `<|eos|>`; `replace` sets them.

        Example:
            >>> import bytepair
            >>> roles = bytepair.train(["hello hello"], vocab_size=269).roles
            >>> roles["bos"], roles["end_of_turn"]
            ('<|bos|>', '<|assistant_end|>')
        """
        return roles_of.roles(self)

    @property
    def bos_token_id(self) -> int | None:
        """The id of the special token that begins a text (see `roles`), or None."""
        return self.special_tokens.get(self.roles.get("bos", ""))

    @property
    def eos_token_id(self) -> int | None:
        """The id of the special token that ends a text (see `roles`), or None.

        For a chat model it should be the end of a turn:
        `tok.replace(roles={"eos": tok.roles["end_of_turn"]})`.
        """
        return self.special_tokens.get(self.roles.get("eos", ""))

    @property
    def pad_token_id(self) -> int | None:
        """The id of the special token that pads rows (see `roles`), or None."""
        return self.special_tokens.get(self.roles.get("pad", ""))

    # ------------------------------------------------------------------ many texts

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

    def encode_file(
        self,
        path: str | os.PathLike[str],
        *,
        separator: str | bytes | None = None,
        errors: Errors = "strict",
        column: str = "text",
        max_document_bytes: int = DOCUMENT_BYTES,
        memory_map: bool = True,
        special: SpecialMode = None,
        prepend: str | int | None = None,
        append: str | int | None = None,
        threads: int | None = None,
    ) -> tuple[Ids, NDArray[np.int64]]:
        """Encode a file in parallel.

        The suffix determines how the file is read, as for `bytepair.train`. Plain text is
        memory-mapped and must not be modified meanwhile: ids would be wrong, and if it is
        truncated, the system ends the process (SIGBUS); `memory_map=False` reads it instead. With a
        named split pattern, a long document is divided between threads at places that do not change
        the ids, unless special tokens are searched.

        Args:
            path: the file.
            separator: the string between two documents of plain text; it is not part of them. None
                means that the file is one document. As with `str.split`, n separators give n + 1
                documents.
            errors: as in `bytepair.Reading`.
            column: as in `bytepair.Reading`.
            max_document_bytes: as in `bytepair.Reading`; plain text has no limit.
            memory_map: whether to map a file of plain text instead of reading it.
            special: as in `encode`.
            prepend: as in `encode`, for each document.
            append: as in `encode`, for each document.
            threads: as in `bytepair.train`.

        Returns:
            The ids of all documents, concatenated, and the offsets, one more than documents:
            document `i` has the ids `ids[offsets[i]:offsets[i + 1]]`.

        Raises:
            OSError: if the file cannot be read.
            CorpusError: if the file is not UTF-8, or not valid for its suffix; the message contains
                the place.
            ArgumentError: if the separator is empty, or given for a file that is not plain text.

        Example:
            >>> import bytepair, pathlib, tempfile
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "texts.txt")
            ...     _ = path.write_text("hello!|ho")
            ...     ids, offsets = tok.encode_file(path, separator="|")
            >>> ids.tolist(), offsets.tolist()
            ([259, 33, 104, 111], [0, 2, 4])
        """
        from bytepair.corpus.source import Reading
        from bytepair.tokenizer.results import encode_file

        return encode_file(
            self, path, separator, Reading(column, errors, max_document_bytes=max_document_bytes),
            memory_map=memory_map, special=special, prepend=prepend, append=append, threads=threads,
        )  # fmt: skip

    def encode_stream(self, texts: Iterable[str], *, special: SpecialMode = None) -> Iterator[int]:
        """Encode pieces of one text, such as the lines of a file, without holding all of it.

        With a named split pattern, little more than 64 KiB of text is buffered. With a custom
        pattern, text is buffered up to a safe split point, and completely if only the regex
        engine splits it (`bytepair.tokenizer.split_engine`).

        Args:
            texts: the pieces, an iterable of str; a piece may end anywhere.
            special: as in `encode`.

        Yields:
            The ids of the whole text: `encode("".join(texts), special=special)`, with its errors.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> list(tok.encode_stream(["hel", "lo", "!"]))
            [259, 33]
        """
        encoder = _core.EncodeStream(self, special=special)
        for text in check_many("texts", texts):
            yield from encoder.push(text)
        yield from encoder.flush()

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
            ArgumentError: if the mask and the ids have different lengths.
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
        from bytepair._internal.drawing import html, terminal

        check_choice("format", format, ("terminal", "html"))
        if isinstance(text_or_ids, str):
            text_or_ids = self.encode(text_or_ids, special=special)
        if format == "html":
            return html(self, text_or_ids, mask, with_ids=with_ids)
        return terminal(self, text_or_ids, mask, with_ids=with_ids, color=color)

    # ------------------------------------------------------------------ conversations

    @property
    def chat_templates(self) -> dict[str, str]:
        """All chat templates (Jinja), by name.

        The one named `default` is used if none is named; a tokenizer with nanochat's special tokens
        has nanochat's. Files may have others, such as `tool_use` for conversations with tools.
        `bytepair.chat.JinjaTemplate` renders one; GGUF and Hugging Face files contain them.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"])
            >>> tok.replace(chat_template={"tool_use": "{{ tools }}"}).chat_templates
            {'tool_use': '{{ tools }}'}
        """
        return roles_of.chat_templates(self)

    def render_conversation(
        self,
        conversation: Conversation,
        max_tokens: int | None = None,
        *,
        template: TemplateOrName = None,
        options: ChatOptions | None = None,
        on_untrained: Literal["error", "keep"] = "error",
    ) -> RenderedIds:
        """Render a conversation for training.

        Args:
            conversation: `{"messages": [{"role": ..., "content": ...}, ...]}`, or the list of
                messages. The content is a string or a list of parts, `{"type": "text", "text":
                ...}`; with nanochat's template, the assistant may have parts of the types "text",
                "python" and "python_output".
            max_tokens: the maximum number of ids; None, the default, means no limit.
            template: the chat template; or the name of one of the tokenizer's, such as "tool_use"
                (see `chat_templates`). None means the tokenizer's own, or nanochat's without one.
            options: a `bytepair.chat.ChatOptions`: how the conversation is read, what of it is
                trained on, and how it is truncated.
            on_untrained: "error" rejects a mask that is all 0 or all 1, "keep" returns it.

        Returns:
            The ids, and a mask of the same length: 1 where the model is trained on the id.

        Raises:
            ConversationError: if the conversation is invalid for the template, has a field that is
                not used, or has nothing to train on; the message contains the place and the rule.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
            >>> ids, mask = tok.render_conversation(talk)
            >>> mask
            [0, 0, 0, 0, 0, 0, 1, 1, 1]
        """
        from bytepair.chat.prompt import render_fitted
        from bytepair.chat.renderer import nothing_to_learn, writer
        from bytepair.chat.rows import DEFAULT, read_row
        from bytepair.chat.segments import RenderedIds, Segments

        options = options or DEFAULT
        write, out = writer(self, template), Segments()
        row = read_row(conversation, write, options)
        if options.truncate == "turns":
            encoded = render_fitted(write, row, options, max_tokens)
        else:
            write.write(row, out, options)
            encoded = out.encode(
                self, join=write.join, max_tokens=max_tokens, errors=options.errors
            )  # fmt: skip
        ids, mask = encoded.ids.tolist(), encoded.mask.tolist()
        trained = sum(mask)
        if on_untrained == "error" and write.has_mask and trained in (0, len(mask)):
            raise nothing_to_learn(trained)
        return RenderedIds(ids, mask)

    def render_for_completion(
        self,
        conversation: Conversation,
        *,
        template: TemplateOrName = None,
        options: ChatOptions | None = None,
        max_tokens: int | None = None,
        drop: Literal["oldest"] | None = None,
        continue_final_message: bool = False,
    ) -> list[int]:
        """Render a prompt: the conversation, and the start of the assistant's next message.

        Args:
            conversation: as in `render_conversation`. If it ends with a message of the assistant,
                this message is dropped, unless `continue_final_message`.
            template: as in `render_conversation`.
            options: as in `render_conversation`.
            max_tokens: the maximum number of ids; None means no limit.
            drop: "oldest" leaves out the oldest turns of a longer prompt, but never the last one:
                messages of the user with all that follows each. What comes before the first turn is
                kept. With None, a longer prompt is an error.
            continue_final_message: whether the prompt goes on with the text of a last message that
                the assistant has begun and is to complete.

        Raises:
            ConversationError: if the conversation is invalid for the template, or does not fit.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi"], vocab_size=265)
            >>> ids = tok.render_for_completion([{"role": "user", "content": "hi"}])
            >>> tok.decode(ids)
            '<|bos|><|user_start|>hi<|user_end|><|assistant_start|>'
        """
        from bytepair.chat.prompt import render_prompt
        from bytepair.chat.rows import DEFAULT

        return render_prompt(
            self, conversation, template=template, options=options or DEFAULT,
            max_tokens=max_tokens, drop=drop, continue_final_message=continue_final_message,
        )  # fmt: skip

    def render_batch(
        self,
        conversations: ConversationSource,
        *,
        template: TemplateOrName = None,
        options: ChatOptions | None = None,
        max_tokens: int | None = None,
        on_untrained: Literal["error", "keep", "drop"] = "error",
        pad_to: int | None = None,
        pack_to: int | None = None,
        pad: str | None = None,
        ignore_index: int | None = None,
        threads: int | None = None,
    ) -> RenderedBatch:
        """Render a data set of conversations to arrays, in parallel.

        Args:
            conversations: an iterable of conversations; the path of a jsonl file (one conversation
                or list of messages per line) or of a parquet file with a column `messages`; an
                Arrow table or column, a data frame of pandas or polars, or a data set of Hugging
                Face. A null that a table has in place of a field means that there is no field.
            template: as in `render_conversation`.
            options: as in `render_conversation`.
            max_tokens: the maximum number of ids of each conversation, for `truncate` of `options`;
                None means the row width if `truncate` names what to drop, else no limit: then a
                conversation longer than a row is an error.
            on_untrained: what to do with a conversation whose mask is all 0 or all 1: "error",
                "keep", or "drop".
            pad_to: pad each conversation to a row of this many ids.
            pack_to: pack conversations into rows of this many ids (best fit).
            pad: the special token that pads rows; None means the template's.
            ignore_index: if given, `labels` are created, with this value where the mask is 0.
            threads: as in `bytepair.train`.

        Returns:
            A `bytepair.chat.RenderedBatch` with the arrays `input_ids`, `loss_mask` and, with
            `ignore_index`, `labels`; of rows also `position_ids` and `lengths`. `statistics` says
            how many conversations were read, skipped, dropped and cut.

        Raises:
            ConversationError: as in `render_conversation`; the message also contains the place of
                the conversation: its file and line, or its index. With `errors="skip"` in
                `options`, such a conversation is left out.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
            >>> tok.render_batch([talk, talk, talk], pack_to=20, ignore_index=-1).labels.shape
            (2, 20)
        """
        from bytepair.chat.batch import render
        from bytepair.chat.rows import DEFAULT

        return render(
            self, conversations, options or DEFAULT,
            template=template, max_tokens=max_tokens, on_untrained=on_untrained, pad_to=pad_to,
            pack_to=pack_to, pad=pad, ignore_index=ignore_index, threads=threads,
        )  # fmt: skip

    def parse_conversation(
        self, ids: Iterable[int], *, template: Template | None = None
    ) -> dict[str, Any]:
        """Convert ids back to the conversation that they were rendered from.

        Information lost in rendering is not restored: a merged system message is part of the first
        message, and adjacent text parts become one. During generation, use `bytepair.chat.Parser`.

        Args:
            ids: rendered ids; the last message may be incomplete.
            template: the template of the conversation; special tokens must open and close its
                roles. None means nanochat's.

        Raises:
            ConversationError: if a special token occurs where the template does not allow it, or
                no template is given, and the tokenizer's own is in Jinja.
            UnknownIdError: if an id is not in the vocabulary.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
            >>> ids, mask = tok.render_conversation(talk)
            >>> tok.parse_conversation(ids) == {"messages": talk}
            True
        """
        from bytepair.chat.parser import Parser

        parser = Parser(self, template)
        for id in integers("ids", ids):
            parser.feed(id)
        parser.finish()
        return parser.conversation

    # ------------------------------------------------------------------ files and other libraries

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
            NotAFolderError: if this is a file, or has the name of one, such as `tokenizer.json`;
                `export` writes files.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.save(folder)
            ...     path.name, bytepair.load(folder) == tok
            ('tokenizer.bytepair', True)
        """
        from bytepair.formats import writing

        return writing.save(self, Path(folder), tables=tables, overwrite=overwrite)

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

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.export(f"{folder}/tokenizer.json")
            ...     bytepair.load(path) == tok
            True
        """
        from bytepair.formats import writing

        return writing.export(self, Path(path), format, lossy=lossy, overwrite=overwrite)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as native bytes, with tables, so that unpickling is fast."""
        return _unpickled, (type(self), self.to_bytes(), _core.repeats(self))

    def __repr__(self) -> str:
        pattern = pattern_text(self)
        return (
            f"<bytepair.Tokenizer: {self.vocab_size:,} ids, {len(self.special_tokens)} of them "
            f"special, pattern {pattern}, rule {self.merge_rule}, {self.fingerprint[:12]}>"
        )


def _rules(pattern: str | Sequence[str], normalizer: str | Sequence[str] | None) -> _core.TextRules:
    names = [normalizer] if isinstance(normalizer, str) else list(normalizer or ())
    return _core.TextRules(_core.pattern(pattern), normalizer=names)


def _unpickled(kind: type[Tokenizer], data: bytes, repeats: int) -> Tokenizer:
    return kind(_core.with_repeats(kind.from_bytes(data), repeats))
