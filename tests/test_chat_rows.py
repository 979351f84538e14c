"""Rows of conversations: the same from every source, and no field is lost without a word."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.chat import ChatOptions, render_turn
from bytepair.errors import ArgumentError, ConversationError
from conftest import refused
from loaders import conversation_batches
from messages import told

NAMES = [*bytepair.training.NANOCHAT_SPECIAL_TOKENS, "<|im_start|>", "<|im_end|>", "<tool_call>",
         "</tool_call>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
         "<|eot_id|>"]  # fmt: skip
#: Rows of one table with different arguments; the warning has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*is null in the arguments")

TOK = bytepair.train(bytepair.sample.paths(), 1200, special_tokens=NAMES)

JINJA = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "BEGIN{{ m.content }}{% for call in m.tool_calls %}{{ call.function | tojson }}{% endfor %}"
    "<|im_end|>END\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def jinja(source: str = JINJA, *, blocks: bool = False, **options: Any) -> chat.JinjaTemplate:
    begin, end = ("{% generation %}", "{% endgeneration %}") if blocks else ("", "")
    if blocks:
        begin = "{% if m.role == 'assistant' %}" + begin
        source = source.replace(
            "BEGIN{{ m.content }}{% for call in m.tool_calls %}{{ call.function | tojson }}"
            "{% endfor %}<|im_end|>END",
            begin + "{{ m.content }}<|im_end|>" + end + "{% else %}{{ m.content }}<|im_end|>"
            "{% endif %}{{ '' }}",
        )
    source = source.replace("BEGIN", "").replace("END", "")
    return chat.JinjaTemplate(source, stop=("<|im_end|>",), **options)


BLOCKS, PREFIXES = jinja(blocks=True), jinja()
VALUES = [chat.NANOCHAT, chat.CHATML, chat.LLAMA3]
EVERY = [*VALUES, BLOCKS, PREFIXES]


def user(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


def assistant(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def call(**arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "find", "arguments": arguments}}


def spoken(talk: Any, template: Any = chat.NANOCHAT, **options: Any) -> str:
    """What is trained on, as text."""
    on_untrained = options.pop("on_untrained", "error")
    ids, mask = TOK.render_conversation(
        talk, template=template, on_untrained=on_untrained, options=ChatOptions(**options)
    )
    return TOK.decode([id for id, on in zip(ids, mask, strict=True) if on])


def lists(batch: chat.RenderedBatch) -> list[tuple[list[int], list[int]]]:
    return [(ids.tolist(), mask.tolist()) for ids, mask in batch]


TALK = [user("hi"), assistant("hello")]
LONG = [*TALK, user("more"), assistant("that is all")]
FIND = {
    "type": "function",
    "function": {"name": "find", "description": "Finds.", "parameters": {"type": "object"}},
}
SUM = {"type": "function", "function": {"name": "sum", "parameters": {}}}


def in_order(value: Any) -> Any:
    """The value with sorted keys: PyArrow before 23 sorts those of structs, which it infers."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


#: Rows whose structs differ, so that a table adds nulls to them.
CALLS: list[dict[str, Any]] = in_order(
    [
        {
            "messages": [
                user("x"),
                assistant("", tool_calls=[call(a=1), call(b="é")]),
                {"role": "tool", "content": "6"},
                assistant("six", train=False),
                user("and?"),
                assistant("seven", weight=1),
            ],
            "tools": [FIND, SUM],
        },
        {"messages": [user("y"), assistant("z")]},
        {"messages": [user("y"), assistant("z", tool_calls=[call(c={"d": 1})])], "tools": [SUM]},
    ]
)

# ---------------------------------------------------------------------------- sources


def jsonl(rows: list[Any], folder: Path) -> Any:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(rows: list[Any], folder: Path) -> Any:
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    return folder / "rows.parquet"


def pandas(rows: list[Any], _: Path) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def polars(rows: list[Any], _: Path) -> Any:
    return pytest.importorskip("polars").DataFrame(rows, infer_schema_length=None)


def dataset(rows: list[Any], _: Path) -> Any:
    return pytest.importorskip("datasets").Dataset.from_list(rows)


SOURCES: dict[str, Callable[[list[Any], Path], Any]] = {
    "jsonl": jsonl,
    "parquet": parquet,
    "pandas": pandas,
    "polars": polars,
    "datasets": dataset,
    "table": lambda rows, _: pa.Table.from_pylist(rows),
    "batch": lambda rows, _: pa.RecordBatch.from_pylist(rows),
    "chunks": lambda rows, _: pa.concat_tables(
        [pa.Table.from_pylist(rows)[:1], pa.Table.from_pylist(rows)[1:]]
    ),
    "reader": lambda rows, _: pa.Table.from_pylist(rows).to_reader(),
    "structs": lambda rows, _: pa.array(rows),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("template", [chat.CHATML, PREFIXES], ids=["value", "jinja"])
def test_a_row_is_the_same_from_every_source(source: str, template: Any, tmp_path: Path) -> None:
    expected = lists(TOK.render_batch(CALLS, template=template))
    assert "null" not in "".join(TOK.decode(ids) for ids, _ in expected)
    rows = SOURCES[source](CALLS, tmp_path)
    assert lists(TOK.render_batch(rows, template=template)) == expected
    assert expected == [TOK.render_conversation(row, template=template) for row in CALLS]


@pytest.mark.parametrize("source", ["jsonl", "parquet", "polars", "datasets", "table", "structs"])
@pytest.mark.filterwarnings("ignore:.*are cut off")
def test_batches_take_the_same_sources(source: str, tmp_path: Path) -> None:
    ours, theirs = (
        next(conversation_batches(rows, TOK, 2, 150, template=chat.CHATML))
        for rows in (SOURCES[source](CALLS, tmp_path), CALLS)
    )
    assert [array.tolist() for array in ours] == [array.tolist() for array in theirs]


def test_the_values_of_maps_are_kept() -> None:
    """In a map, unlike a struct, a null is a value of the row."""
    kind = pa.struct({"name": pa.string(), "arguments": pa.map_(pa.string(), pa.string())})
    message = pa.struct({"role": pa.string(), "content": pa.string(), "tool_calls": pa.list_(kind)})
    calls = [{"name": "find", "arguments": [("a", "1"), ("b", None)]}]
    rows = [[{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": calls}]]
    batch = TOK.render_batch(pa.array(rows, pa.list_(message)), template=chat.CHATML)
    expected = '<tool_call>\n{"name": "find", "arguments": {"a": "1", "b": null}}\n</tool_call>'
    assert expected in TOK.decode(batch[0][0])


def test_lists_are_no_keys_of_a_map() -> None:
    kind = pa.map_(pa.list_(pa.string()), pa.string())
    table = pa.table({"messages": [TALK], "more": pa.array([[(["a"], "1")]], kind)})
    with told(ConversationError):
        TOK.render_batch(table)


def test_a_null_in_a_list_is_a_value() -> None:
    talk = [user("x"), assistant("", tool_calls=[call(b=None)])]
    assert '{"b": null}' in spoken(talk, chat.CHATML)


@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
def test_fields_without_a_value_are_absent(template: Any) -> None:
    none: dict[str, Any] = {"name": None, "tool_calls": None, "weight": None, "train": None}
    row = {"messages": [user("hi", **none), assistant("hello", **none)], "tools": None, "id": None}
    expected = TOK.render_conversation(TALK, template=template)
    assert TOK.render_conversation(row, template=template) == expected
    row = {"messages": [user("hi"), assistant("hello", tool_calls=[])], "tools": []}
    assert TOK.render_conversation(row, template=template) == expected


@pytest.mark.parametrize("name", ["messages", "conversations", "conversation"])
def test_the_messages_have_one_of_three_names(name: str, tmp_path: Path) -> None:
    expected = lists(TOK.render_batch([TALK]))
    for source in (lambda rows, _: rows, jsonl, parquet):
        assert lists(TOK.render_batch(source([{name: TALK}], tmp_path))) == expected


# ---------------------------------------------------------------------------- unknown fields


@pytest.mark.parametrize("source", ["list", *SOURCES])
@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
def test_columns_beside_the_messages_are_ignored(
    source: str, template: Any, tmp_path: Path
) -> None:
    row = {"messages": TALK, "metadata": {"a": 1}, "source": "web"}
    rows = [row] if source == "list" else SOURCES[source]([row], tmp_path)
    batch = TOK.render_batch(rows, template=template)
    assert lists(batch) == [TOK.render_conversation(TALK, template=template)]


@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
def test_an_unknown_field_of_a_message_is_an_error(template: Any) -> None:
    for field in ("date", "name", "function_call", "tool_call_id"):
        talk = [user("hi", **{field: "x"}), assistant("hello")]
        with told(ConversationError, field):
            TOK.render_conversation(talk, template=template)
        with told(ConversationError, field):
            TOK.render_for_completion(talk, template=template)
        with told(ConversationError, field):
            render_turn(TOK, [], talk, template=template)
        expected = TOK.render_conversation(TALK, template=template)
        ignoring: dict[str, Any] = {
            "template": template,
            "options": ChatOptions(ignore_fields={field}),
        }
        assert TOK.render_conversation(talk, **ignoring) == expected
        assert render_turn(TOK, [], talk[:1], **ignoring)[0] == TOK.render_for_completion(
            talk, **ignoring
        )


def test_unknown_fields_of_calls_and_parts_are_errors() -> None:
    odd = {"function": {"name": "find", "arguments": {}, "strict": True}}
    for template in (chat.CHATML, PREFIXES):
        if template is PREFIXES:
            template = jinja(JINJA.replace("call.function |", "call.function.name |"), checks="off")
        with told(ConversationError):
            TOK.render_conversation([user("x"), assistant("", tool_calls=[odd])], template=template)
    part = {"type": "text", "text": "x", "cache_control": "no"}
    with told(ConversationError):
        TOK.render_conversation([user("x"), assistant([part])])


def test_a_field_that_a_template_names_is_used() -> None:
    source = "{{ title }}" + JINJA.replace("{{ m.role }}", "{{ m.role }}{{ m.name }}")
    talk = [user("hi", name="Ann"), assistant("hello")]
    row = {"messages": talk, "title": "Greetings"}
    ids, _ = TOK.render_conversation(row, template=jinja(source))
    assert TOK.decode(ids).startswith("Greetings<|im_start|>userAnn\nhi")


def test_a_name_that_a_template_leaves_out_is_an_error() -> None:
    """`name` is also that of a tool, so a template may mention it and still drop it."""
    source = JINJA.replace("call.function |", "call.function.name |")
    talk = [user("hi", name="Ann"), assistant("hello")]
    with told(ConversationError):
        TOK.render_conversation(talk, template=jinja(source))


@pytest.mark.parametrize("field", ["bos_token", "add_generation_prompt", "raise_exception"])
def test_a_row_cannot_set_the_variables_of_templates(field: str) -> None:
    source = "{{ bos_token }}{% if not messages %}{{ raise_exception('none') }}{% endif %}" + JINJA
    template = jinja(source, variables={"bos_token": "<|bos|>"})
    row = {"messages": TALK, field: "x"}
    expected = TOK.render_conversation(TALK, template=template)
    assert TOK.render_conversation(row, template=template) == expected
    with told(ConversationError):
        TOK.render_conversation(
            {"messages": TALK, "chat_template_kwargs": {field: "x"}}, template=template
        )


def test_arguments_of_the_template_in_a_row() -> None:
    template = jinja("{% if think %}Think!{% endif %}" + JINJA)
    row = {"messages": TALK, "chat_template_kwargs": {"think": True}}
    assert TOK.decode(TOK.render_conversation(row, template=template)[0]).startswith("Think!")
    with told(ConversationError):
        TOK.render_conversation(row)
    with told(ConversationError):
        TOK.render_conversation({"messages": TALK, "chat_template_kwargs": 3}, template=template)


# ---------------------------------------------------------------------------- calls and results


def result(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, **fields}


def test_results_are_matched_with_their_calls() -> None:
    called = [{**call(), "id": "1"}, {"id": "2", "function": {"name": "sum", "arguments": {}}}]
    talk = [user("x"), assistant("", tool_calls=called)]
    first, second = result("a", tool_call_id="1"), result("b", tool_call_id="2")
    for template in (chat.CHATML, PREFIXES):
        ids, _ = TOK.render_conversation([*talk, first, second], template=template)
        assert TOK.decode(ids).count("find") == 1
        for results in [
            [second, first],
            [result("a", tool_call_id="3")],
        ]:
            with told(ConversationError):
                TOK.render_conversation([*talk, *results], template=template)
    writes = jinja(JINJA.replace("{{ m.content }}", "{{ m.content }}{{ m.tool_call_id }}"))
    TOK.render_conversation([*talk, second, first], template=writes)


def test_tools_may_be_json_in_a_string() -> None:
    talk = CALLS[0]
    as_text = {**talk, "tools": json.dumps(talk["tools"])}
    for template in (chat.CHATML, PREFIXES):
        expected = TOK.render_conversation(talk, template=template)
        assert TOK.render_conversation(as_text, template=template) == expected
        bare = {"messages": [user("hi"), assistant("hello")]}
        assert TOK.render_conversation({**bare, "tools": ""}, template=template) == (
            TOK.render_conversation(bare, template=template)
        )
        with told(ConversationError):
            TOK.render_conversation({**talk, "tools": "find"}, template=template)


@pytest.mark.parametrize("template", [chat.CHATML, PREFIXES], ids=["value", "jinja"])
def test_a_missing_content_is_empty(template: Any) -> None:
    called = {"role": "assistant", "tool_calls": [call(a=1)]}
    expected = TOK.render_conversation([user("x"), {**called, "content": ""}], template=template)
    for message in (called, {**called, "content": None}):
        assert TOK.render_conversation([user("x"), message], template=template) == expected
    nothing: list[Any] = [{"role": "user"}, {"role": "user", "content": None, "tool_calls": []}]
    for message in nothing:
        with told(ConversationError):
            TOK.render_conversation([message, assistant("x")], template=template)


def test_a_template_may_ask_whether_the_content_is_none() -> None:
    source = "{{ 'none' if m.content is none else m.content }}"
    template = jinja(JINJA.replace("{{ m.content }}", source))
    called = {"role": "assistant", "tool_calls": [call(a=1)]}
    assert "none{" in spoken([user("x"), called], template)


# ---------------------------------------------------------------------------- flags

OFF = [{"train": False}, {"weight": 0}, {"weight": 0.0}, {"train": False, "weight": 0}]
ON: list[dict[str, Any]] = [{"train": True}, {"weight": 1}, {"weight": 1.0}, {}]


@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
@pytest.mark.parametrize("off", OFF)
def test_a_turn_that_is_not_trained_on_has_the_mask_0(template: Any, off: dict[str, Any]) -> None:
    ids, mask = TOK.render_conversation(LONG, template=template)
    for at in (1, 3):
        talk = [{**m, **off} if i == at else m for i, m in enumerate(LONG)]
        ours, less = TOK.render_conversation(talk, template=template)
        assert ours == ids
        assert all(a >= b for a, b in zip(mask, less, strict=True))
        text = spoken(talk, template)
        assert ("hello" in text, "that is all" in text) == (at != 1, at != 3)
        assert text == spoken(LONG, template).replace(spoken(_only(at), template), "", 1)


def _only(at: int) -> list[dict[str, Any]]:
    return [{**m, "train": False} if m["role"] == "assistant" and i != at else m
            for i, m in enumerate(LONG)]  # fmt: skip


@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
@pytest.mark.parametrize("on", ON)
def test_a_turn_that_is_trained_on_is_as_always(template: Any, on: dict[str, Any]) -> None:
    talk = [user("hi", train=False), assistant("hello", **on)]
    expected = TOK.render_conversation(TALK, template=template)
    assert TOK.render_conversation(talk, template=template) == expected


@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
def test_flags_that_cannot_be_followed_are_errors(template: Any) -> None:
    broken: list[dict[str, Any]] = [
        {"weight": 2},
        {"weight": 0.5},
        {"train": "no"},
        {"train": True, "weight": 0},
        {"train": False},
    ]
    for fields in broken:
        with told(ConversationError):
            TOK.render_conversation([user("hi"), assistant("hello", **fields)], template=template)
    with told(ConversationError):
        TOK.render_conversation([user("hi", weight=1), assistant("x")], template=template)
    with told(ConversationError):
        render_turn(TOK, [], [user("hi"), assistant("x", train=True)], template=template)


def test_the_tokens_of_calls_and_parts_are_not_trained_on_either() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "python", "text": "b"}]
    assert spoken([user("x"), assistant(parts, train=False), user("y"), assistant("z")]) == (
        "z<|assistant_end|>"
    )
    called = assistant("", tool_calls=[call()], weight=0)
    assert spoken([user("x"), called, result("6"), assistant("six")], chat.CHATML) == (
        "six<|im_end|>"
    )


@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
def test_which_turns_are_trained_on_is_a_choice(template: Any) -> None:
    def chosen(talk: Any, train_on: Any) -> tuple[bool, bool]:
        text = spoken(talk, template, train_on=train_on, on_untrained="keep")
        batch = TOK.render_batch(
            [talk], template=template, options=ChatOptions(train_on=train_on), on_untrained="keep"
        )
        assert batch.loss_mask.sum() == sum(
            TOK.render_conversation(
                talk, template=template, options=ChatOptions(train_on=train_on), on_untrained="keep"
            )[1]
        )
        return "hello" in text, "that is all" in text

    first = [LONG[0], {**LONG[1], "train": True}, *LONG[2:]]
    not_last = [*LONG[:3], {**LONG[3], "weight": 0}]
    assert chosen(LONG, "all") == (True, True)
    assert chosen(LONG, "last") == chosen([*LONG, user("bye")], "last") == (False, True)
    assert chosen(not_last, "last") == (False, False)
    assert chosen(first, "flagged") == (True, False)
    assert chosen(LONG, "flagged") == (False, False)
    assert chosen(first, "last") == (False, True)


def test_only_turns_that_are_trained_on_must_be_stable() -> None:
    """Qwen3 drops the reasoning of earlier turns: training on the last one is still right."""
    forgets = JINJA.replace(
        "{{ m.content }}", "{{ m.content if loop.last else m.content.split('</think>')[-1] }}"
    )
    talk = [user("hi"), assistant("<think>a</think>b"), user("x"), assistant("<think>c</think>d")]
    with told(ConversationError):
        TOK.render_conversation(talk, template=jinja(forgets, checks="off"))
    last = spoken(talk, jinja(forgets, checks="off"), train_on="last")
    assert last == "<think>c</think>d<|im_end|>\n"


said = st.lists(st.sampled_from(["hello", " ", "\n", "é", "<|im_end|>", "x"]), max_size=3).map(
    "".join
)


@given(
    st.lists(st.tuples(said, said, st.sampled_from([None, True, False])), min_size=1, max_size=4)
)
def test_blocks_and_values_agree_about_flags(turns: list[tuple[str, str, bool | None]]) -> None:
    talk = []
    for question, answer, flag in turns:
        talk += [user(question), assistant(answer, train=flag)]
    ours = TOK.render_conversation(talk, template=chat.CHATML, on_untrained="keep")
    theirs = TOK.render_conversation(talk, template=BLOCKS, on_untrained="keep")
    assert ours == theirs


def test_blocks_of_unclear_owners_are_errors() -> None:
    glued = chat.JinjaTemplate(
        "{% generation %}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
        "{% endgeneration %}x",
        stop=("<|im_end|>",),
    )
    with told(ConversationError):
        TOK.render_conversation(LONG, template=glued, options=ChatOptions(train_on="last"))
    bare = chat.JinjaTemplate(
        "{% for m in messages %}{{ m.content }}{% generation %}<|im_end|>{% endgeneration %}"
        "{% endfor %}",
        stop=("<|im_end|>",),
    )
    ids, mask = TOK.render_conversation(LONG, template=bare, options=ChatOptions(train_on="last"))
    assert [at for at, on in enumerate(mask) if on] == [len(ids) - 1]
    early = chat.JinjaTemplate("{% generation %}x{% endgeneration %}" + bare.source)
    with told(ConversationError):
        TOK.render_conversation(LONG, template=early, options=ChatOptions(train_on="last"))


# ---------------------------------------------------------------------------- parts of content


@pytest.mark.parametrize(
    "template",
    [*EVERY, chat.JinjaTemplate(TOK.chat_templates["default"] or "")],
    ids=lambda t: t.name,
)
def test_a_list_of_text_parts_is_one_text(template: Any) -> None:
    halves = [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]
    system = {"role": "system", "content": "Be brief."}
    parts = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    expected = TOK.render_conversation([system, *TALK], template=template)
    talk = [parts, user(halves), assistant([{"type": "text", "text": "hello"}])]
    assert TOK.render_conversation(talk, template=template) == expected
    assert TOK.render_for_completion(talk, template=template) == TOK.render_for_completion(
        [system, *TALK], template=template
    )


def test_a_template_that_takes_lists_gets_them() -> None:
    source = "{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}"
    parts = [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]
    template = chat.JinjaTemplate(source, mask="none")
    assert TOK.decode(TOK.render_conversation([user(parts)], template=template)[0]) == "[h][i]"


def test_a_list_that_a_template_prints_is_an_error() -> None:
    picture = [{"type": "image", "url": "cat.png"}]
    with told(ConversationError):
        TOK.render_conversation([user(picture), assistant("x")], template=PREFIXES)


# ---------------------------------------------------------------------------- other formats

#: For each format a row, and the conversation that it is.
FORMATS: dict[str, list[tuple[dict[str, Any], Any]]] = {
    "sharegpt": [
        (
            {
                "conversations": [
                    {"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"},
                ],
            },
            TALK,
        ),
        (
            {
                "conversations": [
                    {"from": "human", "value": "x"},
                    {"from": "function_call", "value": '{"name": "find", "arguments": {"a": 1}}'},
                    {"from": "observation", "value": "6"},
                    {"from": "gpt", "value": "six", "weight": 0},
                    {"from": "human", "value": "y"},
                    {"from": "gpt", "value": "z"},
                ],
                "system": "Be brief.",
                "tools": json.dumps([FIND]),
            },
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    user("x"), assistant("", tool_calls=[call(a=1)]), result("6"),
                    assistant("six", weight=0), user("y"), assistant("z"),
                ],
                "tools": [FIND],
            },
        ),
    ],
    "alpaca": [
        ({"instruction": "hi", "input": "", "output": "hello"}, TALK),
        ({"instruction": "hi", "output": "hello"}, TALK),
        (
            {
                "instruction": "more", "input": "now", "output": "yes", "system": "Be brief.",
            },
            [{"role": "system", "content": "Be brief."}, user("more\nnow"), assistant("yes")],
        ),
    ],
    "completion": [
        ({"prompt": "hi", "completion": "hello"}, TALK),
        (
            {"prompt": LONG[:3], "completion": LONG[3:]},
            [LONG[0], {**LONG[1], "train": False}, *LONG[2:]],
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("source", ["list", "jsonl", "table"])
def test_rows_of_other_formats_by_name(kind: Any, source: str, tmp_path: Path) -> None:
    for row, talk in FORMATS[kind]:
        expected = lists(TOK.render_batch([talk], template=chat.CHATML))
        rows = [row] if source == "list" else SOURCES[source]([row], tmp_path)
        assert (
            lists(TOK.render_batch(rows, template=chat.CHATML, options=ChatOptions(rows=kind)))
            == expected
        )
        assert TOK.render_for_completion(
            row, template=chat.CHATML, options=ChatOptions(rows=kind)
        ) == (TOK.render_for_completion(talk, template=chat.CHATML))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_is_never_guessed(kind: str) -> None:
    with told(ConversationError):
        TOK.render_conversation(FORMATS[kind][0][0])


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("sharegpt", {"messages": TALK}),
        ("sharegpt", {"conversations": [{"from": "cat", "value": "x"}]}),
        ("sharegpt", {"conversations": [{"from": "function_call", "value": "x"}]}),
        ("sharegpt", TALK),
        ("alpaca", {"output": "x"}),
        ("alpaca", {"instruction": 3}),
        ("alpaca", {"instruction": "x", "output": "y", "history": [["y", "z"]]}),
        ("alpaca", {"instruction": "x", "output": 3}),
        ("completion", {"prompt": "x"}),
        ("completion", {"prompt": [3], "completion": "x"}),
    ],
)
def test_rows_that_are_not_of_their_format_are_errors(kind: Any, row: Any) -> None:
    with told(ConversationError):
        TOK.render_conversation(row, options=ChatOptions(rows=kind))


def test_options_have_few_values() -> None:
    for options in [
        {"rows": "openai"},
        {"train_on": "first"},
        {"ignore_fields": "id"},
        {"ignore_fields": [3]},
        {"ignore_fields": 3},
    ]:
        with told(ArgumentError):
            ChatOptions(**options)  # type: ignore[arg-type]


def test_the_face_of_nanochat_ignores_other_fields() -> None:
    from bytepair.compat.nanochat import RustBPETokenizer

    tok = RustBPETokenizer(TOK, "<|bos|>")
    row = {"messages": [user("hi", name="Ann"), assistant("hello", weight=0)], "letters": "AB"}
    assert tok.render_conversation(row) == tok.render_conversation({"messages": TALK})


# ---------------------------------------------------------------------------- lone surrogates

HALF = "hi \ud83d there"
WHOLE_TALK = [
    {"role": "user", "content": "hi \ud83d\ude00 there"},  # two halves are a character
    {"role": "assistant", "content": "yo"},
]
RENDERERS: dict[str, Any] = {
    "conversation": lambda talk, how: TOK.render_conversation(talk, options=how),
    "completion": lambda talk, how: TOK.render_for_completion(talk, options=how),
    "turn": lambda talk, how: render_turn(TOK, [], talk, options=how),
    "batch": lambda talk, how: list(TOK.render_batch([WHOLE_TALK, talk], options=how)[1][0]),
    "batches": lambda talk, how: next(
        conversation_batches([WHOLE_TALK, talk], TOK, 2, 40, chat=how)
    )[0].tolist(),
}


@pytest.mark.parametrize("name", RENDERERS)
def test_a_lone_surrogate_is_an_error_or_replaced(name: str) -> None:
    render, talk = RENDERERS[name], [{"role": "user", "content": HALF}, WHOLE_TALK[1]]
    which = "conversation 1: " if name.startswith("batch") else ""
    with pytest.raises(ConversationError) as error:
        render(talk, ChatOptions())
    assert str(error.value) == (
        f"{which}the text has the lone surrogate \\ud83d, half of a character, at character 3, of "
        "'hi \\ud83d there'; repair it, or pass errors=\"replace\""
        + (', or pass errors="skip" to leave such rows out' if which else "")
    )
    repaired = [{"role": "user", "content": HALF.replace("\ud83d", "\ufffd")}, WHOLE_TALK[1]]
    assert render(talk, ChatOptions(errors="replace")) == render(repaired, ChatOptions())
    with refused("errors", "ignore"):
        ChatOptions(errors="ignore")  # type: ignore[arg-type]


def test_lone_surrogates_in_files(tmp_path: Path) -> None:
    rows = [{"messages": WHOLE_TALK}, {"messages": [{"role": "user", "content": HALF}]}]
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with told(ConversationError):
        TOK.render_batch(tmp_path / "talks.jsonl", on_untrained="keep")
    batch = TOK.render_batch(
        tmp_path / "talks.jsonl", on_untrained="keep", options=ChatOptions(errors="replace")
    )
    assert "hi \ufffd there" in TOK.decode(batch[1][0])


def repeated(depth: int) -> pa.Array:
    """Lists in lists, in each of which both items are the same."""
    both, values = [pa.array([n, n], pa.int32()) for n in (0, 2)], pa.array(["hi", "yo"])
    for _ in range(depth):
        values = pa.ListViewArray.from_arrays(*both, values)
    return values


USER = pa.array([{"role": "user", "content": "hi"}])
NULLS = pa.Array.from_buffers(pa.null(), 1 << 40, [None])
ONCE = pa.array([[{"role": "user", "content": "hi"}]])


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "messages",
    [
        repeated(40),
        pa.ListViewArray.from_arrays([0] * 9, [1] * 9, USER),
        pa.RunEndEncodedArray.from_arrays(pa.array([1 << 40]), ONCE),
        pa.DictionaryArray.from_arrays(pa.array([0] * 9, pa.int8()), ONCE),
        pa.array(["hi"] * 9).dictionary_encode(),
        NULLS,
        pa.LargeListArray.from_arrays([0, 1 << 40], NULLS),
    ],
    ids=lambda messages: str(messages.type)[:20],
)
def test_what_a_table_repeats_without_having_it_is_refused(messages: pa.Array) -> None:
    table = pa.table({"messages": messages})
    with told(ConversationError):
        TOK.render_batch(table, options=ChatOptions(errors="skip"))


def test_a_file_of_few_bytes_has_few_values(tmp_path: Path) -> None:
    zeros = pa.array(np.zeros(1 << 20, np.int8))
    table = pa.table({f"{n}": zeros for n in range(4)})
    with pa.ipc.new_file(
        tmp_path / "a.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as out:
        out.write_table(table)
    with told(ConversationError, "states 5,242,880 values"):
        TOK.render_batch(tmp_path / "a.arrow")


def test_a_number_that_python_cannot_hold_is_an_error(tmp_path: Path) -> None:
    scale = -(2**31) + 1
    number = pa.Array.from_buffers(
        pa.decimal128(5, scale), 1, [None, pa.py_buffer(bytes([7, *[0] * 15]))]
    )
    table = pa.table({"messages": ONCE, "score": number})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as out:
        out.write_table(table)
    with told(ConversationError, "a.arrow is not valid"):
        TOK.render_batch(tmp_path / "a.arrow")


def test_an_array_is_validated_before_anything_reads_it(tmp_path: Path) -> None:
    table = pa.table({"messages": pa.array([["a", "b", "c"]])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    lengths, forged = (struct.pack("<4q", 1, 0, count, 0) for count in (3, 1 << 55))
    data = sink.getvalue().to_pybytes()
    (tmp_path / "a.arrow").write_bytes(data.replace(lengths, forged))
    with told(ConversationError, "a.arrow is not valid", "too small"):
        TOK.render_batch(tmp_path / "a.arrow")
