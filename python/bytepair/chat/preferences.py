"""Renders preference pairs to ids of the prompt and of both answers, with masks.

A row has a `prompt`, and two answers to it, `chosen` and `rejected`. The prompt is encoded alone,
as it is when the model is used, and each answer is encoded after it. So no token crosses the
boundary, whatever the texts on its two sides are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import place_of, refuse
from bytepair.chat.batch import Gathered, gathered, pad_id, saved
from bytepair.chat.renderer import TemplateOrName, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, read_row
from bytepair.chat.segments import Encoded, Segments, Writer
from bytepair.chat.sources import ConversationSource, read
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
    """Rendered preference pairs.

    Sequence `2 * i` is the prompt of pair `i` and its better answer; sequence `2 * i + 1` is the
    prompt and the other answer.

    Attributes:
        input_ids: int32, the ids of all sequences.
        completion_mask: uint8, 1 where the assistant writes the id in an answer, else 0.
        offsets: int64, the start of each sequence, and the end of the last.
        prompt_lengths: int64, the number of ids in the prompt of each pair.
        pad_id: the id that fills rows; None if the template names no such token.
    """

    input_ids: NDArray[np.int32]
    completion_mask: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    prompt_lengths: NDArray[np.int64]
    pad_id: int | None = None

    def __len__(self) -> int:
        return len(self.prompt_lengths)

    def __iter__(self) -> Iterator[Preference]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Preference:
        """One pair.

        Raises:
            ArgumentError: if the index is no integer; there are no slices.
            IndexError: if there is no such pair.
        """
        index = place_of("pair", index, len(self))
        start, middle, end = self.offsets[2 * index : 2 * index + 3]
        length = self.prompt_lengths[index]
        chosen, rejected = slice(start + length, middle), slice(middle + length, end)
        return Preference(
            self.input_ids[start : start + length],
            self.input_ids[chosen],
            self.input_ids[rejected],
            self.completion_mask[chosen],
            self.completion_mask[rejected],
        )

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
        lengths = np.diff(self.offsets)
        longest = int(lengths.max(initial=0))
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
        shape = 2 * len(self), width
        ids = np.full(shape, self.pad_id, np.int64)
        mask, attention = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        order = [*range(0, len(ids), 2), *range(1, len(ids), 2)]
        for row, number in enumerate(order):
            here, length = slice(*self.offsets[number : number + 2]), lengths[number]
            ids[row, :length], mask[row, :length] = self.input_ids[here], self.completion_mask[here]
            attention[row, :length] = 1
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
    segments, places = _segments(write, pairs, options)
    encoded = segments.encode(
        tokenizer, join=write.join, max_tokens=max_tokens, errors="replace", threads=threads
    )
    filler = None
    try:
        filler = pad_id(tokenizer, write.template, pad)
    except SpecialTokenError:
        if pad:
            raise
    return _batch(encoded, places, on_untrained, filler)


def _segments(
    writer: Any, pairs: ConversationSource, options: ChatOptions
) -> tuple[Segments, list[str]]:
    """The segments of each prompt alone, then with the better answer, then with the other one.

    Each of the three has the place of the pair.
    """
    out = Gathered()
    segments = out.segments

    def write(row: Any) -> None:
        count, *answers = _read(row, writer, options)
        halves = [writer.halves(answer, count, options) for answer in answers]
        segments.items += halves[0][0][0]
        segments.trained += halves[0][0][1]
        segments.ends.append(len(segments.items))
        for (prompt, mask), (answer, answer_mask) in halves:
            segments.items += [*prompt, None, *answer]  # no token crosses the boundary
            segments.trained += mask + b"\0" + answer_mask
            segments.ends.append(len(segments.items))

    rows = ((place.replace("conversation", "pair"), row) for place, row in read(pairs, options))
    for place, _ in gathered(rows, out, options, write):
        out.places += [place] * 3  # one for each end
    out.warn(f"{len(segments.ends) // 3 + out.skipped:,} pairs")
    return segments, out.places


def _batch(
    encoded: Encoded, places: Sequence[str], on_untrained: str, pad_id: int | None
) -> PreferenceBatch:
    """The pairs whose segments were encoded, but for those to learn nothing from."""
    ids, mask, ends = encoded.ids.view(np.int32), encoded.mask, encoded.offsets.tolist()
    sequences, prompt_lengths = [], []
    for number in range(len(ends) // 3):
        prompt, chosen, rejected = (
            slice(*ends[at : at + 2]) for at in range(3 * number, 3 * number + 3)
        )
        why = _nothing_to_learn(ids, mask, chosen, rejected)
        if why and on_untrained == "error":
            raise ConversationError(
                f"{places[3 * number]}: {why}",
                option="on_untrained",
                value=on_untrained,
                hint='pass on_untrained="drop" to drop such pairs, or "keep"',
            )
        if not why or on_untrained == "keep":
            sequences += [chosen, rejected]
            parts = (prompt, chosen, rejected)
            prompt_lengths.append(min(part.stop - part.start for part in parts))
    lengths = [one.stop - one.start for one in sequences]
    return PreferenceBatch(
        np.concatenate([ids[:0], *(ids[one] for one in sequences)]),
        np.concatenate([mask[:0], *(mask[one] for one in sequences)]),
        np.cumsum([0, *lengths], dtype=np.int64),
        np.array(prompt_lengths, np.int64),
        pad_id,
    )


def _nothing_to_learn(ids: Any, mask: Any, chosen: slice, rejected: slice) -> str:
    """Why a pair teaches nothing; empty if it does."""
    for name, part in (("chosen", chosen), ("rejected", rejected)):
        if not mask[part].any():
            return f"nothing of {name} is trained on, or it is cut off by max_tokens"
    return "chosen and rejected are equal" if np.array_equal(ids[chosen], ids[rejected]) else ""


# ---------------------------------------------------------------------------- rows


def _read(row: Any, writer: Writer, options: ChatOptions) -> tuple[int, Row, Row]:
    """The number of messages in the prompt, and the conversations with the two answers."""
    if not isinstance(row, Mapping):
        raise ConversationError(f"a pair must be a mapping, not {type(row).__name__}")
    more = {k: v for k, v in row.items() if v is not None and k not in options.ignore_fields}
    answers = []
    for name in ("chosen", "rejected"):
        value = more.pop(name, None)
        if not isinstance(value, str) and not _is_messages(value):
            raise ConversationError(f'a pair must have a text or a list of messages under "{name}"')
        answers.append(value)
    prompt, chosen, rejected = _sides(more.pop("prompt", None), *answers)
    quiet = [{**message, "train": False} for message in prompt]
    rows = [
        read_row({"messages": [*quiet, *answer], **more}, writer, options)
        for answer in (chosen, rejected)
    ]
    return len(prompt), rows[0], rows[1]


def _sides(prompt: Any, chosen: Any, rejected: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The messages of the prompt and of both answers."""
    if isinstance(chosen, str) != isinstance(rejected, str):
        raise ConversationError("chosen and rejected must both be texts, or both lists of messages")
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if isinstance(chosen, str):
        if not _is_messages(messages):
            raise ConversationError('a pair must have a text or a list of messages under "prompt"')
        chosen, rejected = ([{"role": "assistant", "content": t}] for t in (chosen, rejected))
        return list(messages), chosen, rejected
    begin = chosen[0].get("role") == rejected[0].get("role") == "assistant"
    if _is_messages(prompt) or (prompt is not None and begin):
        return list(messages), list(chosen), list(rejected)
    both = takewhile(lambda pair: pair[0] == pair[1], zip(chosen, rejected, strict=False))
    shared = [message for message, _ in both]
    count = len(shared)
    if not shared or count in (len(chosen), len(rejected)):
        raise ConversationError(
            "without a prompt, chosen and rejected must begin with the same messages, and end with "
            "different ones"
        )
    if prompt is not None and shared[-1].get("content") != prompt:
        raise ConversationError(
            "the prompt is a text, but not that of the last message that chosen and rejected share"
        )
    return shared, list(chosen[count:]), list(rejected[count:])


def _is_messages(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(message, Mapping) for message in value)
