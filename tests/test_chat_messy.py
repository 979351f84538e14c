"""Messy data sets of conversations: skipped rows, statistics, usual files, cutting and packing."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.chat import CHATML, QWEN3, ChatOptions, RenderStatistics
from bytepair.errors import (
    BytepairError,
    ConversationError,
    CorpusError,
    SkippedWarning,
)
from bytepair.shards import ConversationBatches, ConversationOptions
from messages import told
from test_formats_attacks import replaced

TOK = bytepair.train(["hi yo, what is this? it is that"] * 3, vocab_size=279)
#: A tokenizer for ChatML, whose roles may come in any order.
CHAT = bytepair.train(
    ["hi yo, what is this? it is that"] * 3, vocab_size=272,
    special_tokens=["<|im_start|>", "<|im_end|>", "<|endoftext|>"],
)  # fmt: skip
#: A tokenizer for tools, in all templates.
WIDE = bytepair.train(
    ["hi yo"], vocab_size=283,
    special_tokens=[
        *TOK.special_tokens, *CHAT.special_tokens, "<|begin_of_text|>", "<|start_header_id|>",
        "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>", "<think>", "</think>",
        "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    ],
)  # fmt: skip
ASK, SAY = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}
TALK = [ASK, SAY]


def turns(count: int, text: str = "what is this?") -> list[dict[str, str]]:
    system = [{"role": "system", "content": "it is"}]
    pairs = [[{"role": "user", "content": f"{n} {text}"}, SAY] for n in range(count)]
    return system + [message for pair in pairs for message in pair]


# ---------------------------------------------------------------------------- skipped rows

BROKEN = [
    "{oops",
    json.dumps({"messages": []}),
    json.dumps({"messages": [{"role": "robot", "content": "hi"}, SAY]}),
    json.dumps([ASK, {"role": "assistant", "content": "half \ud83d"}]),
    json.dumps({"text": "no talk"}),
    json.dumps([{"role": "user", "content": None}, SAY]),
]


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    path = tmp_path / "talks.jsonl"
    lines = [json.dumps(TALK), "", *BROKEN, json.dumps(turns(2))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_broken_rows_are_skipped_and_named(messy: Path) -> None:
    with told(SkippedWarning) as caught:
        batch = TOK.render_batch(messy, options=ChatOptions(errors="skip"))
    good = TOK.render_batch([TALK, turns(2)])
    assert batch.input_ids.tolist() == good.input_ids.tolist()
    assert batch.offsets is not None
    assert good.offsets is not None
    assert batch.offsets.tolist() == good.offsets.tolist()
    assert batch.statistics is not None
    assert (batch.statistics.conversations, batch.statistics.skipped) == (8, 6)
    places = [reason.split(":")[0] for reason in batch.statistics.first_skipped]
    assert places == [f"{messy}, line {line}" for line in range(3, 9)]
    assert all(f"talks.jsonl, line {line}: " in str(caught[0].message) for line in range(3, 9))


def test_a_broken_row_is_an_error_with_its_file_and_line(messy: Path) -> None:
    for line in range(3, 9):
        lines = messy.read_text().splitlines()
        lines[2:8] = [text if n == line else "" for n, text in enumerate(lines[2:8], 3)]
        path = messy.with_name(f"{line}.jsonl")
        path.write_text("\n".join(lines))
        with told(ConversationError):
            TOK.render_batch(path)


def test_a_row_without_an_answer_or_too_long_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in (TALK, [ASK], turns(5))))
    with told(ConversationError):
        TOK.render_batch(path)
    with pytest.warns(SkippedWarning), told(ConversationError):
        TOK.render_batch(path, on_untrained="drop", pack_to=40)


def test_a_last_turn_that_does_not_fit_is_an_invalid_row() -> None:
    rows: Any = [TALK, [ASK, {**SAY, "content": "yo " * 99}], turns(5)]
    options = ChatOptions(truncate="turns", errors="skip")
    with pytest.warns(SkippedWarning) as caught:
        batch = TOK.render_batch(rows, max_tokens=40, options=options)
    assert [str(one.message)[:50] for one in caught] == [
        "1 of 3 conversations are skipped: conversation 1: ",
        "1 of 2 conversations are longer than 40 ids: 22 of",
    ]
    strict = replace(options, errors="strict")
    with told(SkippedWarning):
        short = TOK.render_batch([TALK, turns(5)], max_tokens=40, options=strict)
    assert batch.input_ids.tolist() == short.input_ids.tolist()
    assert batch.statistics is not None
    assert short.statistics is not None
    assert (batch.statistics.conversations, batch.statistics.skipped) == (3, 1)
    assert batch.statistics.cut == short.statistics.cut == 1
    with told(ConversationError):
        TOK.render_batch(rows, max_tokens=40, options=strict)


def test_flags_of_dropped_turns_are_dropped_with_them() -> None:
    options = ChatOptions(truncate="turns")
    rest = [SAY, ASK, {**SAY, "content": "done"}]
    flagged: Any = [SAY, ASK, {**SAY, "train": False}, *rest[1:]]
    whole = CHAT.render_conversation(rest, template=CHATML)
    found = CHAT.render_conversation(flagged, len(whole.ids), template=CHATML, options=options)
    assert found == whole


def test_other_files_beside_arrow_are_read(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{"messages": TALK}])
    with pa.ipc.new_stream(tmp_path / "data.arrow", table.schema) as stream:
        stream.write_table(table)
    (tmp_path / "state.json").write_text("{}")
    (tmp_path / "README.md").write_text("a card")
    assert len(TOK.render_batch(tmp_path)) == 1
    (tmp_path / "more.jsonl").write_text(json.dumps(turns(2)))
    assert len(TOK.render_batch(tmp_path)) == 2


def test_the_first_broken_row_is_named_whatever_is_wrong_with_it() -> None:
    half: Any = [ASK, {"role": "assistant", "content": "half \ud83d"}]
    for rows in ([TALK, half, []], [TALK, half, half], [TALK, [], half]):
        with told(ConversationError):
            TOK.render_batch(rows)


#: Rows of each kind, of which any part may be of the wrong type.
CALL = {"id": "c", "function": {"name": "python", "arguments": '{"expression": "1"}'}}
RESULT = {"role": "tool", "content": "1", "tool_call_id": "c"}
ROWS: dict[Any, dict[str, Any]] = {
    "messages": {
        "messages": [ASK, {**SAY, "tool_calls": [CALL]}, RESULT, {**SAY, "train": True}],
        "tools": [{"function": {"name": "python"}}],
    },
    "sharegpt": {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
    "alpaca": {"instruction": "a", "output": "b", "system": "c"},
    "completion": {"prompt": [ASK], "completion": "b", "label": True},
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS)
def test_any_part_of_a_row_may_be_of_the_wrong_type(kind: Any) -> None:
    part = {"type": [], "text": "a"}
    values: list[Any] = [
        None,
        True,
        1.5,
        "",
        "[" * 9_999,
        [],
        {},
        [[]],
        [part],
        {1: 2, "text": "a"},
    ]
    for strange in values:
        for row in replaced(ROWS[kind], strange):
            for template in (bytepair.chat.NANOCHAT, QWEN3, bytepair.chat.LLAMA3):
                with suppress(BytepairError):
                    options = ChatOptions(rows=kind)
                    WIDE.render_batch([row], template=template, options=options)


def test_at_most_ten_skipped_rows_are_named() -> None:
    rows: Any = [TALK, *[[]] * 12]
    with told(SkippedWarning):
        batch = TOK.render_batch(rows, options=ChatOptions(errors="skip"))
    assert batch.statistics is not None
    assert len(batch.statistics.first_skipped) == 10


def test_broken_pairs_are_skipped_and_named() -> None:
    pair = {"prompt": "hi", "chosen": "yo", "rejected": "it"}
    rows: Any = [pair, {**pair, "chosen": "half \ud83d"}, {"prompt": "hi"}, pair]
    with told(SkippedWarning):
        pairs = bytepair.chat.render_preferences(TOK, rows, options=ChatOptions(errors="skip"))
    assert len(pairs) == 2
    with told(ConversationError):
        bytepair.chat.render_preferences(TOK, rows)


def test_batches_go_on_without_broken_conversations() -> None:
    rows: Any = [TALK, [], turns(1)]
    options = ConversationOptions(chat=ChatOptions(errors="skip"))
    with told(SkippedWarning, "conversation 1: "):
        found = list(islice(ConversationBatches(rows, TOK, 2, 80, options), 3))
    plain = ConversationBatches([TALK, turns(1)], TOK, 2, 80)
    inside = {bytes(row) for inputs, _ in found for row in inputs}
    assert inside <= {bytes(row) for _ in range(40) for row in next(plain)[0]}
    with told(ConversationError):
        next(ConversationBatches(rows, TOK, 2, 80))


def test_statistics_are_what_one_counts() -> None:
    odd: list[Any] = [TALK, [SAY, ASK], [ASK], turns(9), turns(1)]
    with pytest.warns(SkippedWarning):
        batch = CHAT.render_batch(
            odd, template=CHATML, options=ChatOptions(truncate="turns"), pack_to=90,
            on_untrained="drop",
        )  # fmt: skip
    found = batch.statistics
    assert isinstance(found, RenderStatistics)
    whole = [
        len(CHAT.render_conversation(talk, template=CHATML, on_untrained="keep").ids)
        for talk in odd
    ]
    assert batch.conversations is not None
    assert (found.conversations, found.dropped, found.untrained) == (5, 1, 1)
    assert (found.cut, found.longest) == (1, max(whole))
    assert found.rows == len(batch)
    assert found.fill == (batch.conversations >= 0).mean()
    assert found.trained == batch.loss_mask.sum()
    assert found.ids == (batch.conversations >= 0).sum()
    assert "5 conversations, 1 dropped, 1 cut, 1 untrained, " in str(found)


# ---------------------------------------------------------------------------- usual files


def test_a_list_in_json_is_read_row_by_row(tmp_path: Path) -> None:
    alpaca = [{"instruction": "what is this?", "input": "", "output": "that"}]
    (tmp_path / "alpaca.json").write_text(json.dumps(alpaca, indent=2))
    options = ChatOptions(rows="alpaca")
    batch = TOK.render_batch(tmp_path / "alpaca.json", options=options)
    assert batch.input_ids.tolist() == TOK.render_batch(alpaca, options=options).input_ids.tolist()
    (tmp_path / "object.json").write_text("{}")
    with told(ConversationError):
        TOK.render_batch(tmp_path / "object.json")
    (tmp_path / "lines.json").write_text("[]\n[]\n")
    with told(ConversationError):
        TOK.render_batch(tmp_path / "lines.json")
    (tmp_path / "row.json").write_text(json.dumps([TALK, []]))
    with told(ConversationError):
        TOK.render_batch(tmp_path / "row.json")


@pytest.mark.parametrize("form", ["file", "stream"])
def test_arrow_files_and_folders_of_datasets_are_read(tmp_path: Path, form: str) -> None:
    table = pa.Table.from_pylist([{"messages": TALK}, {"messages": turns(2)}])
    new = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with new(tmp_path / "data.arrow", table.schema) as sink:
        sink.write_table(table)
    expected = TOK.render_batch(table).input_ids.tolist()
    assert TOK.render_batch(tmp_path / "data.arrow").input_ids.tolist() == expected
    (tmp_path / "state.json").write_text("{}")  # as `datasets.save_to_disk` writes a folder
    assert TOK.render_batch(tmp_path).input_ids.tolist() == expected
    (tmp_path / "data.arrow").write_bytes(b"ARROW1 no more")
    with told(ConversationError):
        TOK.render_batch(tmp_path / "data.arrow")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**31 - 1], pa.date32()),
        pa.array([2**62], pa.duration("s")),
        pa.array([1], pa.timestamp("s", tz="No/Where")),
        pa.array([b"\xff"]).view(pa.string()),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_values_of_a_file_that_are_none(tmp_path: Path, column: pa.Array, suffix: str) -> None:
    table, path = pa.table({"messages": [TALK], "more": column}), tmp_path / f"data.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as sink:
            sink.write_table(table)
    with told(ConversationError):
        TOK.render_batch(path)
    with told(ConversationError):
        next(ConversationBatches(table, TOK, 1, 32))


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_damage_and_columns_of_one_name_are_told(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(b"")
    with told(ConversationError):
        TOK.render_batch(path)
    talks = pa.array([TALK])
    table = pa.table([talks, talks], names=["messages", "messages"])
    if suffix == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as sink:
            sink.write_table(table)
    for source in (path, table):
        with told(ConversationError):
            TOK.render_batch(source)
    with told(ConversationError):
        next(ConversationBatches(table, TOK, 1, 32))


def test_offsets_of_a_table_that_lead_elsewhere_are_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 1 << 30, 4], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"text")])
    with told(ConversationError):
        TOK.render_batch(pa.table({"messages": [TALK, TALK], "more": texts}))


def test_the_batches_of_a_reader_are_checked_before_they_are_a_table() -> None:
    offsets = pa.py_buffer(np.array([0, 1 << 30, 4], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"text")])
    batch = pa.record_batch({"messages": pa.array([TALK, TALK]), "more": texts})
    with told(ConversationError):
        TOK.render_batch(pa.RecordBatchReader.from_batches(batch.schema, [batch]))


@pytest.mark.timeout(20)
def test_a_key_that_occurs_twice_is_found_in_time(tmp_path: Path) -> None:
    names = ",".join(f'"{number}":0' for number in range(100_000))
    (tmp_path / "a.jsonl").write_text(f'{{{names},"z":0,"z":0}}')
    with told(ConversationError):
        TOK.render_batch(tmp_path / "a.jsonl")


@pytest.mark.timeout(20)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_in_a_folder_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "data.arrow")
    with told(CorpusError):
        TOK.render_batch(tmp_path)


# ---------------------------------------------------------------------------- cutting and packing


def test_turns_keep_the_system_and_the_last_question() -> None:
    talk = turns(9)
    whole = TOK.render_conversation(talk).ids
    options = ChatOptions(truncate="turns")
    for limit in range(len(whole) - 1, 60, -7):
        ids, mask = TOK.render_conversation(talk, limit, options=options)
        kept = [talk[:1] + talk[1 + 2 * n :] for n in range(1, 9)]
        fitting = [TOK.render_conversation(rest) for rest in kept]
        assert (ids, mask) == next(one for one in fitting if len(one.ids) <= limit)
        with told(SkippedWarning):
            batch = TOK.render_batch([TALK, talk, TALK], max_tokens=limit, options=options)
        assert (batch[1][0].tolist(), batch[1][1].tolist()) == (ids, mask)
        assert batch[2][0].tolist() == TOK.render_conversation(TALK).ids
    with told(ConversationError):
        TOK.render_conversation(talk, 10, options=options)
    with told(ConversationError):
        TOK.render_batch([TALK, talk], max_tokens=10, options=options)


def test_flags_stay_with_their_messages_when_turns_are_dropped() -> None:
    talk: list[dict[str, Any]] = [dict(message) for message in turns(4)]
    talk[-1]["train"] = False
    short = TOK.render_conversation(talk[:1] + talk[-4:])
    limited = TOK.render_conversation(talk, len(short.ids), options=ChatOptions(truncate="turns"))
    assert limited == short


def test_position_ids_and_lengths_tell_conversations_apart() -> None:
    talks = [TALK, turns(1), TALK, turns(2), TALK]
    batch = TOK.render_batch(talks, pack_to=90)
    positions, lengths, owners = batch.position_ids, batch.lengths, batch.conversations
    assert positions is not None
    assert lengths is not None
    assert owners is not None
    sizes = [len(ids) for ids, _ in TOK.render_batch(talks)]
    assert sorted(size for row in lengths for size in row) == sorted(sizes)
    for row, row_lengths in enumerate(lengths):
        expected = [place for size in row_lengths for place in range(size)]
        assert positions[row].tolist() == expected + [0] * (90 - len(expected))
        assert (owners[row] >= 0).sum() == len(expected)
    table = batch.to_arrow()
    assert table["lengths"].to_pylist() == lengths
    assert table["position_ids"].to_pylist() == positions.tolist()
    assert TOK.render_batch(talks).position_ids is None
    assert TOK.render_batch(talks).lengths is None


# ---------------------------------------------------------------------------- more shapes


def test_the_developer_is_the_system_where_a_template_knows_no_other() -> None:
    def ids(role: str, template: Any) -> list[int]:
        talk = [{"role": role, "content": "it is"}, *TALK]
        return CHAT.render_conversation(talk, template=template).ids

    assert ids("developer", CHATML) == ids("system", CHATML)
    assert ids("developer", QWEN3) == ids("system", QWEN3)
    with told(ConversationError):
        CHAT.render_conversation(
            [ASK, {"role": "developer", "content": "it"}, SAY], template=CHATML
        )


def test_a_call_without_arguments() -> None:
    def ids(arguments: Any) -> list[int]:
        call = {"type": "function", "function": {"name": "now", "arguments": arguments}}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "content": "3"}
        return CHAT.render_conversation([ASK, said, result, SAY], template=QWEN3).ids

    assert ids("") == ids("{}") == ids({})


def test_a_prompt_goes_on_from_an_unfinished_message() -> None:
    begun = [
        *turns(2),
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yo it"},
    ]
    prompt = TOK.render_for_completion(begun, continue_final_message=True)
    whole = TOK.render_conversation(begun).ids
    assert prompt == whole[: len(prompt)]
    assert TOK.decode(prompt).endswith("<|assistant_start|>yo it")
    short = TOK.render_for_completion(
        begun, continue_final_message=True, max_tokens=len(prompt) - 1, drop="oldest"
    )
    assert TOK.decode(short).endswith("<|assistant_start|>yo it")
    assert len(short) < len(prompt)
    with told(ConversationError):
        TOK.render_for_completion([ASK], continue_final_message=True)


@pytest.mark.timeout(20)
def test_results_of_many_calls_are_checked_in_time() -> None:
    ids = [f"call {number}" for number in range(20_000)]
    calls = [{"id": id, "function": {"name": "f", "arguments": {}}} for id in ids]
    results = [{"role": "tool", "tool_call_id": id, "content": "x"} for id in ids]
    asked = [TALK[0], {"role": "assistant", "content": None, "tool_calls": calls}]
    with told(ConversationError):
        TOK.render_batch([[*asked, *results[:-1], {**results[0], "tool_call_id": "none"}]])
