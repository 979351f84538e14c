"""The methods of `Tokenizer` that render and parse conversations.

Who only encodes does not wait for templates: each method imports what it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bytepair import _core
from bytepair._internal.checks import integers
from bytepair.errors import ConversationError
from bytepair.properties import roles
from bytepair.properties.roles import FIELDS

if TYPE_CHECKING:
    from bytepair.chat.batch import RenderedBatch
    from bytepair.chat.preferences import PreferenceBatch
    from bytepair.chat.renderer import TemplateOrName
    from bytepair.chat.rows import RowKind, TrainOn
    from bytepair.chat.segments import (
        Conversation,
        OnUntrained,
        Origin,
        RenderedIds,
        SurrogateErrors,
        Truncate,
    )
    from bytepair.chat.sources import ConversationSource
    from bytepair.chat.template import Template
    from bytepair.properties.roles import MessageField


class ChatMethods(_core.Tokenizer):
    """The methods of `Tokenizer` for conversations."""

    __slots__ = ()

    @property
    def chat_template(self) -> str | None:
        """The chat template (Jinja); None if unknown.

        `bytepair.chat.JinjaTemplate` renders it. GGUF and Hugging Face files contain it. A
        tokenizer with nanochat's special tokens has nanochat's template.

        Example:
            >>> import bytepair
            >>> bytepair.train(["hello hello"], vocab_size=269).chat_template[:17]
            "{{- '<|bos|>' -}}"
            >>> bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"]).chat_template is None
            True
        """
        return roles.chat_template(self)

    @property
    def chat_templates(self) -> dict[str, str]:
        """All chat templates (Jinja), by name.

        The one named `default` is `chat_template`. Files may have others, such as `tool_use` for
        conversations with tools.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi hi"], 259, special_tokens=["<|bos|>"])
            >>> tok.replace(chat_template={"tool_use": "{{ tools }}"}).chat_templates
            {'tool_use': '{{ tools }}'}
        """
        return roles.chat_templates(self)

    def render_conversation(
        self,
        conversation: Conversation,
        max_tokens: int | None = None,
        *,
        template: TemplateOrName = None,
        truncate: Truncate = "tokens",
        on_untrained: OnUntrained = "error",
        rows: RowKind = "messages",
        ignore_fields: Collection[str] = (),
        train_on: TrainOn = "all",
        train_fields: Collection[MessageField] = FIELDS,
        errors: SurrogateErrors = "strict",
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
            truncate: "tokens" truncates after `max_tokens` ids, as nanochat does; "messages" drops
                complete messages from the end until the rest fits.
            on_untrained: "error" rejects a mask that is all 0 or all 1, "keep" returns it.
            rows: what the fields of a conversation are: "messages", or "sharegpt", "alpaca" or
                "completion", formats of data sets.
            ignore_fields: the names of fields, of the conversation and of its messages, that are
                not read. Other columns beside the messages are left out if the template does not
                use them; a field inside a message that it does not use is an error.
            train_on: which turns of the assistant are trained on: "all", except messages with
                `"train": false` or `"weight": 0`; the "last" one; or the "flagged" ones, with
                `"train": true` or `"weight": 1`.
            train_fields: which fields of these turns are trained on: "content", "reasoning" and
                "tool_calls". The end of a turn belongs to its last field.
            errors: what to do with a lone surrogate, half of a character, in a text: "strict"
                raises an error, "replace" replaces it by U+FFFD, as `encode` does.

        Returns:
            The ids, and a mask of the same length: 1 where the model is trained on the id.

        Raises:
            ArgumentError: if an option has another value.
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
        from bytepair.chat.renderer import nothing_to_learn, writer
        from bytepair.chat.rows import read_row, row_options
        from bytepair.chat.segments import RenderedIds, Segments

        options = row_options(rows, ignore_fields, train_on, train_fields)
        write, out = writer(self, template), Segments()
        write.write(read_row(conversation, write, options), out, options)
        encoded = out.encode(
            self,
            join=write.join,
            max_tokens=max_tokens,
            truncate=truncate,
            errors=errors,
            threads=1,
        )
        ids, mask = encoded.ids, encoded.mask
        trained = int(mask.sum())
        if on_untrained == "error" and write.has_mask and trained in (0, len(mask)):
            why, hint = nothing_to_learn(trained, len(mask), max_tokens)
            raise ConversationError(why, option="on_untrained", value="error", hint=hint)
        return RenderedIds(ids.tolist(), mask.tolist())

    def render_for_completion(
        self,
        conversation: Conversation,
        *,
        template: TemplateOrName = None,
        rows: RowKind = "messages",
        ignore_fields: Collection[str] = (),
        errors: SurrogateErrors = "strict",
    ) -> list[int]:
        """Render a prompt: the conversation, and the start of the assistant's next message.

        Args:
            conversation: as in `render_conversation`. If it ends with a message of the assistant,
                this message is dropped.
            template: as in `render_conversation`.
            rows: as in `render_conversation`.
            ignore_fields: as in `render_conversation`.
            errors: as in `render_conversation`.

        Raises:
            ConversationError: if the conversation is invalid for the template.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi"], vocab_size=265)
            >>> ids = tok.render_for_completion([{"role": "user", "content": "hi"}])
            >>> tok.decode(ids)
            '<|bos|><|user_start|>hi<|user_end|><|assistant_start|>'
        """
        from bytepair.chat.renderer import writer
        from bytepair.chat.rows import Row, read_row, row_options
        from bytepair.chat.segments import Segments

        write, out = writer(self, template), Segments()
        row = read_row(conversation, write, row_options(rows, ignore_fields))
        if row.messages[-1]["role"] == write.template.prompted:
            row = Row(row.messages[:-1], row.fields, row.flags)
        if not row.messages:
            raise ConversationError("there is no message before the one to be completed")
        write.prompt(row, out)
        encoded = out.encode(
            self, join=write.join, max_tokens=None, truncate="tokens", errors=errors, threads=1
        )
        ids = encoded.ids
        return list(ids.tolist())

    def render_turn(
        self,
        ids: Sequence[int],
        messages: Conversation,
        *,
        mask: Sequence[int] | None = None,
        template: TemplateOrName = None,
        prompt: bool = True,
        history: Conversation | None = None,
        ignore_fields: Collection[str] = (),
        errors: SurrogateErrors = "strict",
    ) -> RenderedIds:
        """Continue from sampled ids: append messages, and the start of the assistant's next turn.

        The given ids are returned unchanged, even if `encode` would produce other ids for the same
        text. If they end with a stop token, the model closed its turn; if they end within the turn,
        it is closed here. Without ids, a new conversation begins.

        Args:
            ids: a prompt and the ids sampled after it, up to the stop token.
            messages: the messages to append, such as tool results: a list of messages, or a
                conversation. If the first one is from the assistant, it continues the open turn,
                as tool output does in nanochat's template; the turn stays open if no other message
                follows. With an empty list the turn is closed, and no turn is opened.
            mask: the mask of the ids before the last sampled ones, which get 1. None means 0 for
                all ids.
            template: as in `render_conversation`. A `JinjaTemplate` must render a conversation as
                a prefix of any longer one, which is checked; its mask does not matter.
            prompt: whether to open the next turn of the assistant.
            history: the conversation so far, required if a `JinjaTemplate` renders messages
                differently depending on it; its last message is the sampled one.
            ignore_fields: as in `render_conversation`.
            errors: as in `render_conversation`.

        Returns:
            The extended ids, and a mask that is 1 only for sampled ids.

        Raises:
            ConversationError: if the ids do not end with a turn, the messages are invalid for the
                template, or the template is not prefix-stable.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi"], vocab_size=266)
            >>> ids, mask = tok.render_turn([], [{"role": "user", "content": "hi"}])
            >>> ids += [104, 105, tok.special_tokens["<|assistant_end|>"]]  # not the token "hi"
            >>> ids, mask = tok.render_turn(ids, [{"role": "user", "content": "yo"}], mask=mask)
            >>> print(tok.decode(ids))
            <|bos|><|user_start|>hi<|user_end|><|assistant_start|>hi<|assistant_end|>...
            >>> mask
            [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]
        """
        from bytepair.chat import turn
        from bytepair.chat.renderer import writer
        from bytepair.chat.rows import read_row, row_options
        from bytepair.chat.segments import RenderedIds

        ids, write = integers("ids", ids), writer(self, template)
        so_far = turn.masked(ids, mask)
        options = row_options(ignore_fields=ignore_fields)
        row = read_row(messages, write, options, empty=bool(ids))
        past = None if history is None else read_row(history, write, options)
        out = turn.appended(write, ids, row, prompt=prompt, history=past)
        encoded = out.encode(
            self, join=write.join, max_tokens=None, truncate="tokens", errors=errors, threads=1
        )
        more = encoded.ids
        return RenderedIds([*ids, *more.tolist()], [*so_far, *[0] * len(more)])

    def encode_segments(
        self, segments: Iterable[tuple[str, Origin]], *, join: bool = False
    ) -> list[int]:
        """Encode a mixture of untrusted text and special tokens chosen by the program.

        Untrusted text never becomes the id of a special token: not if it contains the name of one,
        and not if a name is spread over several segments. Of the added tokens of Hugging Face that
        are not special, only those without a visible character (runs of white space) are found in
        it: `<tool_call>`, which is not special in Qwen's file, is not.

        Args:
            segments: pairs of a text and its origin: `(text, "untrusted")` is encoded as text,
                `(name, "control")` is the id of the special token with that name.
            join: whether adjacent untrusted texts are encoded as one text, as if they were
                concatenated. If not, no token spans two segments.

        Returns:
            The ids of all segments in order.

        Raises:
            SpecialTokenError: if a control segment is not the name of one special token.
            TypeError: if a segment is not a pair, or its text is not a `str`.
            ValueError: if an origin is neither "untrusted" nor "control".

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> ids = tok.encode_segments(
            ...     [("<|user_start|>", "control"), ("<|bos|>", "untrusted")]
            ... )
            >>> ids[0] == tok.special_tokens["<|user_start|>"], tok.special_tokens["<|bos|>"] in ids
            (True, False)
        """
        from bytepair.chat.segments import Segments, items_of, structural

        items = items_of(segments, structural(self))
        out = Segments([*items], bytearray(len(items)), [len(items)])
        encoded = out.encode(
            self, join=join, max_tokens=None, truncate="tokens", errors="replace", threads=1
        )
        ids = encoded.ids
        return list(ids.tolist())

    def render_batch(
        self,
        conversations: ConversationSource,
        *,
        template: TemplateOrName = None,
        max_tokens: int | None = None,
        truncate: Truncate = "tokens",
        on_untrained: Literal["error", "keep", "drop"] = "error",
        pad_to: int | None = None,
        pack_to: int | None = None,
        pad: str | None = None,
        ignore_index: int | None = None,
        rows: RowKind = "messages",
        ignore_fields: Collection[str] = (),
        train_on: TrainOn = "all",
        train_fields: Collection[MessageField] = FIELDS,
        errors: SurrogateErrors = "strict",
        threads: int | None = None,
    ) -> RenderedBatch:
        """Render a data set of conversations to arrays, in parallel.

        Args:
            conversations: an iterable of conversations; the path of a jsonl file (one conversation
                or list of messages per line) or of a parquet file with a column `messages`; an
                Arrow table or column, a data frame of pandas or polars, or a data set of Hugging
                Face. A null that a table has in place of a field means that there is no field.
            template: as in `render_conversation`.
            max_tokens: the maximum number of ids of each conversation; None means the row width, or
                no limit without rows.
            truncate: how to truncate, as in `render_conversation`.
            on_untrained: what to do with a conversation whose mask is all 0 or all 1: "error",
                "keep", or "drop".
            pad_to: pad each conversation to a row of this many ids.
            pack_to: pack conversations into rows of this many ids (best fit); conversations are not
                split across rows.
            pad: the special token that pads rows; None means the template's.
            ignore_index: if given, `labels` are created, with this value where the mask is 0.
            rows: as in `render_conversation`.
            ignore_fields: as in `render_conversation`.
            train_on: as in `render_conversation`.
            train_fields: as in `render_conversation`.
            errors: as in `render_conversation`.
            threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
                processors.

        Returns:
            A `bytepair.chat.RenderedBatch` with the arrays `input_ids`, `loss_mask` and, with
            `ignore_index`, `labels`.

        Raises:
            ArgumentError: if an option has another value.
            ConversationError: as in `render_conversation`; the message also contains the index of
                the conversation.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
            >>> tok.render_batch([talk, talk, talk], pack_to=20, ignore_index=-1).labels.shape
            (2, 20)
        """
        from bytepair.chat import batch
        from bytepair.chat.renderer import writer
        from bytepair.chat.rows import row_options

        width = batch.row_width(pad_to, pack_to)
        if width is not None:
            max_tokens = width if max_tokens is None else min(max_tokens, width)
        write = writer(self, template)
        out = batch.segments(
            write, conversations, row_options(rows, ignore_fields, train_on, train_fields)
        )
        encoded = out.encode(
            self,
            join=write.join,
            max_tokens=max_tokens,
            truncate=truncate,
            errors=errors,
            threads=threads,
        )
        ids, mask, offsets = encoded.ids, encoded.mask, encoded.offsets
        on_untrained = on_untrained if write.has_mask else "keep"
        batch.report_cut(encoded.lengths, offsets, max_tokens)
        rendered = batch.checked(ids, mask, offsets, on_untrained, max_tokens)
        if width is not None:
            filler = batch.pad_id(self, batch.padding(self, write.template, pad))
            rendered = batch.laid_out(rendered, width, filler, packed=pack_to is not None)
        return rendered if ignore_index is None else batch.labelled(rendered, ignore_index)

    def render_preferences(
        self,
        pairs: ConversationSource,
        *,
        template: TemplateOrName = None,
        max_tokens: int | None = None,
        on_untrained: Literal["error", "keep", "drop"] = "error",
        pad: str | None = None,
        ignore_fields: Collection[str] = (),
        train_fields: Collection[MessageField] = FIELDS,
        errors: SurrogateErrors = "strict",
        threads: int | None = None,
    ) -> PreferenceBatch:
        """Render preference pairs, as DPO and reward models are trained on, in parallel.

        The prompt is encoded alone, and each answer after it: no token crosses the boundary.

        Args:
            pairs: rows with `prompt`, `chosen` and `rejected`, from the sources of `render_batch`.
                Each is a list of messages; or a text: the user's, or an answer of the assistant. If
                there is no prompt, it is what the two lists of messages begin with; so it is if the
                prompt is a text and both lists contain it as a message. Other fields, such as
                `tools`, are those of conversations.
            template: as in `render_conversation`.
            max_tokens: the maximum number of ids of a prompt with an answer; the rest is cut off.
            on_untrained: what to do with a pair whose answers are equal, or one of which has
                nothing to train on: "error", "keep", or "drop".
            pad: the special token that pads rows; None means the template's.
            ignore_fields: as in `render_conversation`.
            train_fields: as in `render_conversation`.
            errors: as in `render_conversation`.
            threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
                processors.

        Returns:
            A `bytepair.chat.PreferenceBatch`, a sequence of pairs; `padded()` gives arrays.

        Raises:
            ArgumentError: if an option has another value.
            ConversationError: if a row is no pair, or breaks a rule of the template; the message
                contains its index.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo no"], vocab_size=265)
            >>> pairs = tok.render_preferences([{"prompt": "hi", "chosen": "yo", "rejected": "no"}])
            >>> tok.decode(pairs[0].prompt_ids), tok.decode(pairs[0].rejected_ids)
            ('<|bos|><|user_start|>hi<|user_end|><|assistant_start|>', 'no<|assistant_end|>')
            >>> pairs.padded()["input_ids"].shape
            (2, 9)
        """
        from bytepair.chat import preferences
        from bytepair.chat.batch import pad_id, padding
        from bytepair.chat.renderer import writer
        from bytepair.chat.rows import row_options

        write = writer(self, template)
        options = row_options("messages", ignore_fields, "all", train_fields)
        out = preferences.segments(write, pairs, options)
        encoded = out.encode(
            self,
            join=write.join,
            max_tokens=max_tokens,
            truncate="tokens",
            errors=errors,
            threads=threads,
        )
        ids, mask, offsets = encoded.ids, encoded.mask, encoded.offsets
        name = padding(self, write.template, pad)
        filler = pad_id(self, name) if pad or name in self.special_tokens else None
        return preferences.batch(ids, mask, offsets, on_untrained, filler)

    def parse_conversation(
        self, ids: Iterable[int], *, template: Template | None = None, tool_calls: bool = False
    ) -> dict[str, Any]:
        """Convert ids back to the conversation that they were rendered from.

        Information lost in rendering is not restored: a merged system message is part of the first
        message, and adjacent text parts become one. During generation, use `bytepair.chat.Parser`.

        Args:
            ids: rendered ids; the last message may be incomplete.
            template: the template of the conversation; special tokens must open and close its
                roles. None means nanochat's.
            tool_calls: whether parts of nanochat's that are calls of Python become `tool_calls` of
                messages, and their outputs messages of tools, as in other formats.

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

        parser = Parser(self, template, tool_calls=tool_calls)
        for id in integers("ids", ids):
            parser.feed(id)
        parser.finish()
        return parser.conversation
