"""What of `bytepair.chat` is a method of `Tokenizer`; each calls one function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bytepair import _core
from bytepair.chat.parser import parse
from bytepair.chat.renderer import render, render_for_completion
from bytepair.chat.segments import Conversation, Truncate, Untrained
from bytepair.chat.template import NANOCHAT, Template
from bytepair.chat.view import Html, summary, to_html, visualize

if TYPE_CHECKING:
    from bytepair.chat.batch import ConversationSource, RenderedBatch
    from bytepair.chat.jinja import JinjaTemplate


class ChatMethods(_core.Tokenizer):
    """The methods of a tokenizer that deal with conversations."""

    __slots__ = ()

    def render_conversation(
        self,
        conversation: Conversation,
        max_tokens: int | None = 2048,
        *,
        template: Template | JinjaTemplate = NANOCHAT,
        truncate: Truncate = "tokens",
        untrained: Untrained = "error",
    ) -> tuple[list[int], list[int]]:
        """Render a conversation to train on.

        Args:
            conversation: `{"messages": [{"role": ..., "content": ...}, ...]}`, or the list of
                messages. Under nanochat's template, the content of the assistant may be a list of
                parts: `{"type": "text" | "python" | "python_output", "text": ...}`.
            max_tokens: keep so many ids at most; None keeps all.
            template: how the conversation is written.
            truncate: "tokens" cuts after `max_tokens` ids, as nanochat does; "messages" drops whole
                messages from the end until it fits.
            untrained: "error" refuses a mask that is all 0 or all 1, "keep" returns it.

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
        return render(
            self,
            conversation,
            template=template,
            max_tokens=max_tokens,
            truncate=truncate,
            untrained=untrained,
        )

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
        return render_for_completion(self, conversation, template=template)

    def render_batch(
        self,
        conversations: ConversationSource,
        *,
        template: Template | JinjaTemplate = NANOCHAT,
        max_tokens: int | None = 2048,
        truncate: Truncate = "tokens",
        untrained: Literal["error", "keep", "drop"] = "error",
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
            max_tokens: keep so many ids of each at most; None keeps all. Rows limit it too.
            truncate: what truncation may cut, as in `render_conversation`.
            untrained: what happens to a conversation whose mask is all 0 or all 1: "error", "keep",
                or "drop" to leave it out.
            pad_to: put each conversation in a row of so many ids.
            pack_to: put conversations side by side in rows of so many ids, best fit; none is cut at
                the end of a row, so each begins with its first id.
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
        from bytepair.chat.batch import render_batch

        return render_batch(
            self,
            conversations,
            template=template,
            max_tokens=max_tokens,
            truncate=truncate,
            untrained=untrained,
            pad_to=pad_to,
            pack_to=pack_to,
            pad=pad,
            ignore_index=ignore_index,
            threads=threads,
        )

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
        return parse(ids, self, template=template)

    def visualize(
        self,
        ids: Sequence[int],
        mask: Sequence[int] | None = None,
        with_ids: bool = False,
        *,
        color: bool | None = None,
    ) -> str:
        """Show ids as their tokens, divided by `|`, for a terminal.

        Special tokens stand in `⟪` and `⟫`, which no text does, and with colours are reversed.

        Args:
            ids: the ids.
            mask: if given, tokens are green where it is 1 and red where it is 0.
            with_ids: whether each token is followed by its id, in grey.
            color: whether to use colours; None means: unless `NO_COLOR` is set. Without them,
                tokens that are trained on stand in square brackets.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi"], vocab_size=265)
            >>> tok.visualize(tok.encode("hi"), [0, 1], color=False)
            'h|[i]'
        """
        return visualize(self, ids, mask, with_ids=with_ids, color=color)

    def to_html(self, ids: Sequence[int], mask: Sequence[int] | None = None) -> Html:
        """Show ids as their tokens in a notebook; ids appear when the mouse is over a token.

        Special tokens are light on dark, text is dark on light.

        Args:
            ids: the ids.
            mask: if given, tokens are green where it is 1 and red where it is 0.

        Returns:
            A `str` of HTML that a notebook shows as such.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hi"], vocab_size=265)
            >>> "id 104" in tok.to_html(tok.encode("hi"))
            True
        """
        return to_html(self, ids, mask)

    def _repr_html_(self) -> str:
        """The values that tell tokenizers apart and some tokens, as a notebook shows them."""
        return summary(self)
