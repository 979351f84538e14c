"""Renders preference pairs to ids of the prompt and of both answers, with masks.

A row has a `prompt`, and two answers to it, `chosen` and `rejected`. The prompt is encoded alone,
as it is when the model is used, and each answer is encoded after it. So no token crosses the
boundary, whatever the texts on its two sides are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_whole, refuse
from bytepair.chat.batch import gathered, pad_id
from bytepair.chat.renderer import TemplateOrName, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, messages_of, read_row
from bytepair.chat.segments import Encoded, Segments
from bytepair.chat.template import ASSISTANT
from bytepair.corpus.rows import ConversationSource, read_rows
from bytepair.errors import ConversationError, SpecialTokenError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, slots=True)
class Preference:
    """One preference pair.

    Attributes:
        prompt_ids: int32, the ids of the prompt, up to the start of the assistant's turn.
        chosen_ids: int32, the ids of the better answer.
        rejected_ids: int32, the ids of the other answer.
        chosen_mask: uint8, 1 where the assistant writes the id of the better answer, else 0.
        rejected_mask: uint8, the same for the other answer.
    """

    prompt_ids: NDArray[np.int32]
    chosen_ids: NDArray[np.int32]
    rejected_ids: NDArray[np.int32]
    chosen_mask: NDArray[np.uint8]
    rejected_mask: NDArray[np.uint8]


#: The names of the arrays of a pair.
COLUMNS: Final = tuple(field.name for field in fields(Preference))


class PreferenceBatch(list[Preference]):
    """Rendered preference pairs: a list of them.

    Attributes:
        pad_id: the id that fills rows; None if the template names no such token.
    """

    pad_id: int | None = None

    def padded(self) -> dict[str, NDArray[np.int64]]:
        """Arrange all pairs in rows: first the prompts with the better answers, then the others.

        Returns:
            `input_ids`, `attention_mask` (0 in the padding, which is on the right) and
            `completion_mask`, each int64 of the shape (2 * pairs, width). These are the names and
            the order of the batches of TRL's `DPOTrainer`.

        Raises:
            SpecialTokenError: if no token is known that fills rows.
        """
        answers = [(one.prompt_ids, one.chosen_ids, one.chosen_mask) for one in self]
        answers += [(one.prompt_ids, one.rejected_ids, one.rejected_mask) for one in self]
        width = max((len(prompt) + len(ids) for prompt, ids, _ in answers), default=0)
        if self.pad_id is None:
            raise SpecialTokenError(
                "the template names no token that fills rows",
                option="pad",
                hint="pass pad= to render_preferences",
            )
        shape = len(answers), width
        ids = np.full(shape, self.pad_id, np.int64)
        mask, attention = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, (prompt, answer, trained) in enumerate(answers):
            start, end = len(prompt), len(prompt) + len(answer)
            ids[row, :start], ids[row, start:end] = prompt, answer
            mask[row, start:end], attention[row, :end] = trained, 1
        return {"input_ids": ids, "attention_mask": attention, "completion_mask": mask}

    def to_arrow(self) -> pa.Table:
        """Convert to a table with a column for each attribute of `Preference`."""
        from bytepair._internal.extras import pyarrow as pa

        columns = {}
        for name in COLUMNS:
            kind = pa.large_list(pa.uint8() if name.endswith("mask") else pa.int32())
            columns[name] = pa.array([getattr(pair, name) for pair in self], kind)
        return pa.table(columns)


def render_preferences(
    tokenizer: _core.Tokenizer,
    pairs: ConversationSource,
    *,
    template: TemplateOrName = None,
    max_tokens: int | None = None,
    on_untrained: Literal["error", "keep", "drop"] = "error",
    pad: str | None = None,
    options: ChatOptions = DEFAULT,
    threads: int | None = None,
) -> PreferenceBatch:
    """Render preference pairs, as DPO and reward models are trained on, in parallel.

    The prompt is encoded alone, and each answer after it: no token crosses the boundary.

    Args:
        tokenizer: the tokenizer.
        pairs: rows with `prompt`, `chosen` and `rejected`, from the sources of `render_batch`.
            Each is a list of messages; or a text: the user's, or an answer of the assistant. If
            there is no prompt, it is what the two lists of messages begin with; so it is if the
            prompt is a text and both lists contain it as a message. Other fields, such as
            `tools`, are those of conversations.
        template: as in `Tokenizer.render_conversation`.
        max_tokens: the maximum number of ids of a prompt with an answer; the rest is cut off.
        on_untrained: what to do with a pair whose answers are equal, or one of which has
            nothing to train on: "error", "keep", or "drop".
        pad: the special token that pads rows; None means the template's.
        options: how rows are read; the answers are trained on as a whole, and cut at any id.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.

    Returns:
        A `bytepair.chat.PreferenceBatch`, a list of pairs; `padded()` gives arrays.

    Raises:
        ArgumentError: if an option has another value.
        ConversationError: if a row is no pair, or breaks a rule of the template; the message
            contains its index.
        SpecialTokenError: if the tokenizer lacks a special token of the template.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi yo no"], vocab_size=265)
        >>> rows = [{"prompt": "hi", "chosen": "yo", "rejected": "no"}]
        >>> pairs = bytepair.chat.render_preferences(tok, rows)
        >>> tok.decode(pairs[0].prompt_ids), tok.decode(pairs[0].rejected_ids)
        ('<|bos|><|user_start|>hi<|user_end|><|assistant_start|>', 'no<|assistant_end|>')
        >>> pairs.padded()["input_ids"].shape
        (2, 9)
    """
    write = writer(tokenizer, template)
    for option in ("rows", "train_on", "truncate"):
        value, only = getattr(options, option), getattr(DEFAULT, option)
        if value != only:
            raise refuse(option, value, f"{only!r} for preference pairs")
    limit = None if max_tokens is None else check_whole("max_tokens", max_tokens)
    filler = None
    with nullcontext() if pad else suppress(SpecialTokenError):  # only rows need one
        filler = pad_id(tokenizer, write.template, pad)
    rows = (
        (place.replace("conversation", "pair"), row)
        for place, row in read_rows(pairs, options.ignore_fields)
    )
    append = partial(_write, write, options, segments := Segments())
    places, *_ = gathered(rows, segments, options, append, "pairs")
    encoded = segments.encode(tokenizer, join=write.join, errors="replace", threads=threads)
    kept = PreferenceBatch()
    kept.pad_id = filler
    for place, pair in zip(places, _pairs(encoded, len(places), limit), strict=True):
        differ = not np.array_equal(pair.chosen_ids, pair.rejected_ids)
        if on_untrained == "keep" or (
            differ and pair.chosen_mask.any() and pair.rejected_mask.any()
        ):
            kept.append(pair)
        elif on_untrained != "drop":
            raise ConversationError(
                f"{place}: chosen and rejected are equal, or nothing of one of them is trained on",
                option="on_untrained",
                value=on_untrained,
                hint="raise max_tokens if it cuts them off, or pass "
                'on_untrained="drop" to drop such pairs, or "keep"',
            )
    return kept


def _write(writer: Any, options: ChatOptions, out: Segments, row: Any) -> None:
    """Append the segments of the prompt, of the better answer, and of the other one."""
    messages, answers, more = _read(row, options)
    count, quiet = len(messages), [{**message, "train": False} for message in messages]
    whole = [read_row({"messages": [*quiet, *one], **more}, writer, options) for one in answers]
    writer.prompt(Row(whole[0].messages[:count], whole[0].fields, {}), out)
    for answer in whole:
        if (begins := answer.messages[count]["role"]) != ASSISTANT:
            raise ConversationError(
                f"an answer must begin with a message of {ASSISTANT!r}, not {begins!r}"
            )
        start = len(out.items)
        writer.write_answer(answer, count, out, options)
        if not writer.has_mask:  # an answer as a whole is what the model is to write
            out.trained[start:] = bytes([1] * (len(out.items) - start))


def _pairs(encoded: Encoded, count: int, limit: int | None) -> Iterator[Preference]:
    """The pairs whose parts were encoded one after the other, cut to at most `limit` ids."""
    starts = encoded.offsets[1:-1]
    ids, mask = np.split(encoded.ids.view(np.int32), starts), np.split(encoded.mask, starts)
    for at in range(0, 3 * count, 3):
        prompt, chosen, rejected = ids[at : at + 3]
        room = None if limit is None else max(limit - len(prompt), 0)
        masks = mask[at + 1][:room], mask[at + 2][:room]
        yield Preference(prompt[:limit], chosen[:room], rejected[:room], *masks)


def _read(row: Any, options: ChatOptions) -> tuple[list[Any], list[list[Any]], dict[str, Any]]:
    """The messages of the prompt, those of both answers, and the other fields of a row."""
    if not isinstance(row, Mapping):
        raise ConversationError(f"a pair must be a mapping, not {type(row).__name__}")
    more = {k: v for k, v in row.items() if v is not None and k not in options.ignore_fields}
    prompt = more.pop("prompt", None)
    answers = [
        messages_of(name, more.pop(name, None), ASSISTANT) for name in ("chosen", "rejected")
    ]
    begin = all(answer[0].get("role") == ASSISTANT for answer in answers)
    if prompt is not None and (begin or not isinstance(prompt, str)):
        return messages_of("prompt", prompt, "user"), answers, more
    both = takewhile(lambda pair: pair[0] == pair[1], zip(*answers, strict=False))
    shared = [message for message, _ in both]
    if not shared or len(shared) in map(len, answers):
        raise ConversationError(
            "without a prompt, a text or a list of messages, chosen and rejected must begin with "
            "the same messages, and end with different ones"
        )
    if prompt is not None and shared[-1].get("content") != prompt:
        raise ConversationError(
            "the prompt is a text, but not that of the last message that chosen and rejected share"
        )
    return shared, [answer[len(shared) :] for answer in answers], more
