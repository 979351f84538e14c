"""Renders preference pairs to ids of the prompt and of both answers, with masks.

A row has a `prompt`, and two answers to it, `chosen` and `rejected`. The prompt is encoded alone,
as it is when the model is used, and each answer is encoded after it. So no token crosses the
boundary, whatever the texts on its two sides are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_whole, place_of, refuse
from bytepair.chat.batch import Gathered, gathered, pad_id, saved
from bytepair.chat.renderer import TemplateOrName, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, read_row
from bytepair.chat.segments import BREAK, Encoded, Items, Segments, Writer
from bytepair.chat.sources import ConversationSource, read
from bytepair.chat.template import ASSISTANT
from bytepair.errors import ArgumentError, ConversationError, SpecialTokenError

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


@dataclass(frozen=True, eq=False)
class PreferenceBatch:
    """Rendered preference pairs, a sequence.

    Attributes:
        pairs: the pairs.
        pad_id: the id that fills rows; None if the template names no such token.
    """

    pairs: Sequence[Preference]
    pad_id: int | None = None

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Preference]:
        return iter(self.pairs)

    def __getitem__(self, index: int) -> Preference:
        """One pair.

        Raises:
            ArgumentError: if the index is no integer; there are no slices.
            IndexError: if there is no such pair.
        """
        return self.pairs[place_of("pair", index, len(self))]

    def padded(self, pad_to: int | None = None) -> dict[str, NDArray[np.int64]]:
        """Arrange all pairs in rows: first the prompts with the better answers, then the others.

        Args:
            pad_to: the number of ids in a row; None means that of the longest sequence.

        Returns:
            `input_ids`, `attention_mask` (0 in the padding, which is on the right) and
            `completion_mask`, each int64 of the shape (2 * pairs, width). These are the names and
            the order of the batches of TRL's `DPOTrainer`.

        Raises:
            ArgumentError: if a sequence is longer than a row.
            SpecialTokenError: if no token is known that fills rows.
        """
        answers = [(one.prompt_ids, one.chosen_ids, one.chosen_mask) for one in self]
        answers += [(one.prompt_ids, one.rejected_ids, one.rejected_mask) for one in self]
        longest = max((len(prompt) + len(ids) for prompt, ids, _ in answers), default=0)
        width = longest if pad_to is None else pad_to
        if longest > width:
            raise ArgumentError(
                f"pad_to is {width}, but a pair has {longest} ids",
                option="pad_to",
                hint=f"render with max_tokens={width!r}",
            )
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

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the table of `to_arrow` to a new parquet file, or replace one; return its path."""
        return saved(self.to_arrow(), path, overwrite=overwrite)


# ---------------------------------------------------------------------------- rendering


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
        A `bytepair.chat.PreferenceBatch`, a sequence of pairs; `padded()` gives arrays.

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
    for option in ("rows", "train_on", "truncate", "require"):
        value, only = getattr(options, option), getattr(DEFAULT, option)
        if value != only:
            raise refuse(option, value, f"{only!r} for preference pairs")
    limit = None if max_tokens is None else check_whole("max_tokens", max_tokens)
    filler = None
    try:
        filler = pad_id(tokenizer, write.template, pad)
    except SpecialTokenError:
        if pad:
            raise
    out = Gathered()

    def write_pair(row: Any) -> None:
        """The segments of the prompt, of the better answer, and of the other one."""
        count, *answers = _read(row, write, options)
        prompt = Segments()
        write.prompt(Row(answers[0].messages[:count], answers[0].fields, {}), prompt)
        parts = [(prompt.items, bytes(len(prompt.items)))]
        parts += [_after(prompt, answer, count, write, options) for answer in answers]
        for items, trained in parts:
            out.segments.items += items
            out.segments.trained += trained
            out.segments.ends.append(len(out.segments.items))

    rows = ((place.replace("conversation", "pair"), row) for place, row in read(pairs, options))
    for place, _ in gathered(rows, out, options, write_pair):
        out.places += [place] * 3  # one for each end
    out.warn(len(out.places) // 3, "pairs")
    encoded = out.segments.encode(tokenizer, join=write.join, errors="replace", threads=threads)
    kept = _kept(_pairs(encoded, limit), out.places[::3], on_untrained)
    return PreferenceBatch([*kept], filler)


def _after(prompt: Segments, row: Row, count: int, writer: Any, options: ChatOptions) -> Items:
    """The segments of an answer: what a conversation adds to the prompt of its first messages."""
    if (begins := row.messages[count]["role"]) != ASSISTANT:
        raise ConversationError(
            f"an answer must begin with a message of {ASSISTANT!r}, not {begins!r}"
        )
    whole = Segments()
    writer.write_pair(row, whole, options)
    items, trained = _without(prompt.items, whole)
    if not writer.has_mask:  # an answer as a whole is what the model is to write
        trained = bytes([1] * len(trained))
    return items, trained


def _without(prompt: Iterable[str | int | None], whole: Segments) -> Items:
    """The segments of a conversation without those that it begins with.

    Texts are compared as a whole: where one is divided does not matter.
    """
    items, at = list(whole.items), 0
    for item in prompt:
        left = item
        while left not in ("", BREAK, None):
            found = items[at] if at < len(items) else None
            if found in (BREAK, None) and at < len(items):
                at += 1
            elif isinstance(found, str) and isinstance(left, str) and left.startswith(found):
                left, at = left.removeprefix(found), at + 1
            elif isinstance(found, str) and isinstance(left, str) and found.startswith(left):
                left, items[at] = "", found.removeprefix(left)
            elif found == left:
                left, at = "", at + 1
            else:
                raise ConversationError(
                    "the answer does not continue the prompt", hint="use a template where it does"
                )
    return items[at:], bytes(whole.trained[at:])


def _pairs(encoded: Encoded, limit: int | None) -> Iterator[Preference]:
    """The pairs whose parts were encoded one after the other."""
    ids, mask, offsets = encoded.ids.view(np.int32), encoded.mask, encoded.offsets.tolist()
    for first in range(0, len(offsets) - 1, 3):
        room, parts = limit, []
        for start, end in pairwise(offsets[first : first + 4]):
            parts.append(slice(start, end if room is None else min(end, start + room)))
            if limit is not None and len(parts) == 1:
                room = max(limit - (end - start), 0)
        prompt, chosen, rejected = parts
        yield Preference(ids[prompt], ids[chosen], ids[rejected], mask[chosen], mask[rejected])


def _kept(
    pairs: Iterable[Preference], places: Sequence[str], on_untrained: str
) -> Iterator[Preference]:
    """The pairs, but for those to learn nothing from."""
    for pair, place in zip(pairs, places, strict=True):
        why = ""
        for name, mask in (("chosen", pair.chosen_mask), ("rejected", pair.rejected_mask)):
            if not mask.any():
                why = why or f"nothing of {name} is trained on, or it is cut off by max_tokens"
        if not why and np.array_equal(pair.chosen_ids, pair.rejected_ids):
            why = "chosen and rejected are equal"
        if why and on_untrained == "error":
            raise ConversationError(
                f"{place}: {why}",
                option="on_untrained",
                value=on_untrained,
                hint='pass on_untrained="drop" to drop such pairs, or "keep"',
            )
        if not why or on_untrained == "keep":
            yield pair


# ---------------------------------------------------------------------------- rows


def _read(row: Any, writer: Writer, options: ChatOptions) -> tuple[int, Row, Row]:
    """The number of messages in the prompt, and the conversations with the two answers."""
    if not isinstance(row, Mapping):
        raise ConversationError(f"a pair must be a mapping, not {type(row).__name__}")
    more = {k: v for k, v in row.items() if v is not None and k not in options.ignore_fields}
    answers = more.pop("chosen", None), more.pop("rejected", None)
    if all(isinstance(answer, str) for answer in answers):
        lists = [[{"role": ASSISTANT, "content": answer}] for answer in answers]
    elif all(map(_is_messages, answers)):
        lists = [list(answer) for answer in answers]
    else:
        raise ConversationError(
            "a pair must have texts under chosen and rejected, or lists of messages under both"
        )
    prompt, *both = _sides(more.pop("prompt", None), *lists)
    quiet = [{**message, "train": False} for message in prompt]
    chosen, rejected = (
        read_row({"messages": [*quiet, *answer], **more}, writer, options) for answer in both
    )
    return len(prompt), chosen, rejected


def _sides(prompt: Any, chosen: list[Any], rejected: list[Any]) -> tuple[list[Any], ...]:
    """The messages of the prompt and of both answers."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    begin = chosen[0].get("role") == rejected[0].get("role") == ASSISTANT
    if _is_messages(prompt) or (isinstance(prompt, str) and begin):
        return list(messages), chosen, rejected
    both = takewhile(lambda pair: pair[0] == pair[1], zip(chosen, rejected, strict=False))
    shared = [message for message, _ in both]
    count = len(shared)
    if not shared or count in (len(chosen), len(rejected)):
        raise ConversationError(
            "without a prompt, a text or a list of messages, chosen and rejected must begin with "
            "the same messages, and end with different ones"
        )
    if prompt is not None and shared[-1].get("content") != prompt:
        raise ConversationError(
            "the prompt is a text, but not that of the last message that chosen and rejected share"
        )
    return shared, chosen[count:], rejected[count:]


def _is_messages(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(message, Mapping) for message in value)
