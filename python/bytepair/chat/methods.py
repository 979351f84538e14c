"""Conversations in, ids and a mask out, and back: what of `bytepair.chat` a `Tokenizer` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bytepair import _core
from bytepair.chat.parser import Parser
from bytepair.chat.renderer import nothing_to_learn, writer
from bytepair.chat.segments import (
    Conversation,
    OnUntrained,
    Origin,
    Segments,
    Truncate,
    items_of,
    messages_of,
    role_of,
)
from bytepair.chat.template import NANOCHAT, Template
from bytepair.errors import ConversationError

if TYPE_CHECKING:
    from bytepair.chat.batch import ConversationSource, RenderedBatch
    from bytepair.chat.jinja import JinjaTemplate


class ChatMethods(_core.Tokenizer):
    """The methods of a tokenizer that deal with conversations."""

    __slots__ = ()

    def render_conversation(
        self,
        conversation: Conversation,
        max_tokens: int | None = None,
        *,
        template: Template | JinjaTemplate = NANOCHAT,
        truncate: Truncate = "tokens",
        on_untrained: OnUntrained = "error",
    ) -> tuple[list[int], list[int]]:
        """Render a conversation to train on.

        Args:
            conversation: `{"messages": [{"role": ..., "content": ...}, ...]}`, or the list of
                messages. Under nanochat's template, the content of the assistant may be a list of
                parts: `{"type": "text" | "python" | "python_output", "text": ...}`.
            max_tokens: keep this many ids at most; None, the default, keeps all.
            template: how the conversation is written.
            truncate: "tokens" cuts after `max_tokens` ids, as nanochat does; "messages" drops whole
                messages from the end until it fits.
            on_untrained: "error" refuses a mask that is all 0 or all 1, "keep" returns it.

        Returns:
            The ids, and a mask of the same length: 1 where the model is trained on the id.

        Raises:
            ConversationError: if the conversation breaks a rule of the template, or has nothing to
                train on; the message names the place and the rule.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
            >>> ids, mask = tok.render_conversation(talk)
            >>> mask
            [0, 0, 0, 0, 0, 0, 1, 1, 1]
        """
        write, out = writer(self, template), Segments()
        write.write(conversation, out)
        ids, mask, _ = out.encode(
            self, join=write.join, max_tokens=max_tokens, truncate=truncate, threads=1
        )
        trained = int(mask.sum())
        if on_untrained == "error" and trained in (0, len(mask)):
            raise ConversationError(nothing_to_learn(trained, len(mask), max_tokens))
        return ids.tolist(), mask.tolist()

    def render_for_completion(
        self,
        conversation: Conversation,
        *,
        template: Template | JinjaTemplate = NANOCHAT,
    ) -> list[int]:
        """Render a prompt: everything before the assistant's last message, and its start.

        Args:
            conversation: as in `render_conversation`. If it ends with a message of the assistant,
                that one is left out.
            template: how the conversation is written.

        Raises:
            ConversationError: if the conversation breaks a rule of the template.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi"], vocab_size=265)
            >>> ids = tok.render_for_completion([{"role": "user", "content": "hi"}])
            >>> tok.decode(ids)
            '<|bos|><|user_start|>hi<|user_end|><|assistant_start|>'
        """
        messages = messages_of(conversation)
        if role_of(len(messages) - 1, messages[-1]) == template.prompted:
            messages = messages[:-1]
        if not messages:
            raise ConversationError("there is nothing before the message that is to be completed")
        fields = conversation if isinstance(conversation, dict | Mapping) else {}
        write, out = writer(self, template), Segments()
        write.prompt({**fields, "messages": messages}, out)
        ids, _, _ = out.encode(self, join=write.join, max_tokens=None, truncate="tokens", threads=1)
        return list(ids.tolist())

    def render_turn(
        self,
        ids: Sequence[int],
        messages: Conversation,
        *,
        mask: Sequence[int] | None = None,
        template: Template | JinjaTemplate = NANOCHAT,
        prompt: bool = True,
        history: Conversation | None = None,
    ) -> tuple[list[int], list[int]]:
        """Go on from ids that a model sampled: append messages, and the start of its next turn.

        The ids come back as they are, also those that `encode` would not give. If they end with a
        stop token, the model closed its turn; if they end within the turn, it is closed here. With
        no ids, the conversation begins.

        Args:
            ids: a prompt and what was sampled after it, up to the stop token.
            messages: what follows, for instance the results of tools; a list of messages, or a
                conversation. A first message of the assistant goes on with a turn that is open, as
                the output of a tool does in nanochat's template; that turn stays open if no message
                follows. With no messages the turn is closed, and none is opened.
            mask: that of the ids before the last ones that were sampled; the others get 1. None
                means that all of them get 0.
            template: how conversations are written. A `JinjaTemplate` must render a conversation as
                the beginning of a longer one, which is checked; its mask does not matter.
            prompt: whether the next turn of the assistant is opened.
            history: the conversation so far, for a `JinjaTemplate` that writes messages in another
                way depending on it; its last message is the one that was sampled.

        Returns:
            The ids with what follows, and a mask that is 1 only on what was sampled.

        Raises:
            ConversationError: if the ids do not end with a turn, the messages break a rule of the
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

        ids, write = [int(id) for id in ids], writer(self, template)
        so_far = turn.masked(ids, mask)
        out = turn.appended(write, ids, messages, prompt=prompt, history=history)
        more, _, _ = out.encode(
            self, join=write.join, max_tokens=None, truncate="tokens", threads=1
        )
        return [*ids, *more.tolist()], [*so_far, *[0] * len(more)]

    def encode_segments(
        self, segments: Iterable[tuple[str, Origin]], *, join: bool = False
    ) -> list[int]:
        """Encode text that anybody wrote beside special tokens that the program chooses.

        No untrusted text becomes the id of a special token, whatever the text and the vocabulary:
        not where it holds the name of one, not where a name is spread over several segments, and
        not in a tokenizer from Hugging Face, whose added tokens, special there or not, are all
        special tokens here.

        Args:
            segments: pairs of a text and its origin: `(text, "untrusted")` is encoded as `encode`
                does, `(name, "control")` is the id of the special token with that name.
            join: whether untrusted texts that touch are encoded as one text, as in a string that is
                put together first. If not, no token covers parts of two segments.

        Returns:
            The ids of all segments in order.

        Raises:
            SpecialTokenError: if a control segment is not the name of one special token.
            TypeError: if a segment is no pair, or its text no `str`.
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
        items = items_of(segments, self.special_tokens)
        out = Segments([*items], bytearray(len(items)), [len(items)])
        ids, _, _ = out.encode(self, join=join, max_tokens=None, truncate="tokens", threads=1)
        return list(ids.tolist())

    def render_batch(
        self,
        conversations: ConversationSource,
        *,
        template: Template | JinjaTemplate = NANOCHAT,
        max_tokens: int | None = None,
        truncate: Truncate = "tokens",
        on_untrained: Literal["error", "keep", "drop"] = "error",
        pad_to: int | None = None,
        pack_to: int | None = None,
        pad: str | None = None,
        ignore_index: int | None = None,
        threads: int | None = None,
    ) -> RenderedBatch:
        """Render a whole data set of conversations, on all threads, into arrays.

        Args:
            conversations: an iterable of conversations; the path of a jsonl file (each line a
                conversation or its list of messages) or of a parquet file with a column
                `messages`; or an Arrow table or column.
            template: how conversations are written.
            max_tokens: keep this many ids of each at most; None keeps all that fits a row.
            truncate: what truncation may cut, as in `render_conversation`.
            on_untrained: what happens to a conversation whose mask is all 0 or all 1: "error",
                "keep", or "drop" to leave it out.
            pad_to: put each conversation in a row of this many ids.
            pack_to: put conversations side by side in rows of this many ids, best fit; none is cut
                at the end of a row, so each begins with its first id.
            pad: the special token that fills rows; None means the template's.
            ignore_index: if given, `labels` are made, with this where the mask is 0.
            threads: how many threads encode; None means all.

        Returns:
            A `bytepair.chat.RenderedBatch`: arrays of `input_ids`, `loss_mask` and, if asked for,
            `labels`.

        Raises:
            ConversationError: as `render_conversation`; the message also names the conversation.
            SpecialTokenError: if the tokenizer lacks a special token of the template.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
            >>> tok.render_batch([talk, talk, talk], pack_to=20, ignore_index=-1).labels.shape
            (2, 20)
        """
        from bytepair.chat import batch

        width = batch.row_width(pad_to, pack_to)
        if width is not None:
            max_tokens = width if max_tokens is None else min(max_tokens, width)
        write = writer(self, template)
        out = batch.written(write, conversations)
        ids, mask, offsets = out.encode(
            self, join=write.join, max_tokens=max_tokens, truncate=truncate, threads=threads
        )
        made = batch.checked(ids, mask, offsets, on_untrained, max_tokens)
        if width is not None:
            filler = batch.pad_id(self, pad or template.padding())
            made = batch.laid_out(made, width, filler, packed=pack_to is not None)
        return made if ignore_index is None else batch.labelled(made, ignore_index)

    def parse_conversation(
        self, ids: Iterable[int], *, template: Template = NANOCHAT
    ) -> dict[str, Any]:
        """Turn ids back into the conversation that they were rendered from.

        What rendering does not keep does not come back: a merged system message is part of the
        first message, and text parts that touch are one. For a model that is still writing, feed a
        `bytepair.chat.Parser`.

        Args:
            ids: rendered ids; the last message may be incomplete.
            template: how the conversation was written; special tokens open and close its roles.

        Raises:
            ConversationError: if a special token stands where the template has none.
            UnknownIdError: if an id stands for nothing.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi yo"], vocab_size=265)
            >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
            >>> ids, mask = tok.render_conversation(talk)
            >>> tok.parse_conversation(ids) == {"messages": talk}
            True
        """
        parser = Parser(self, template)
        for id in ids:
            parser.feed(int(id))
        parser.finish()
        return parser.conversation
