"""Tools, calls and results in templates as values: token for token as in published templates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.errors import ConversationError
from messages import told
from trl_source import FOLDER, REASON

LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
         "<|eom_id|>", "<|python_tag|>"]  # fmt: skip
QWEN = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
TAGS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
TOK = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=[*QWEN, *LLAMA])
#: Without special tokens for calls, with those of Qwen2.5, and with those of Qwen3.
QWENS = [
    bytepair.train(bytepair.sample.paths(), 1500, special_tokens=[*QWEN, *TAGS[:count]])
    for count in (0, 2, 4)
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "multiply",
            "description": "Multiply two numbers, naïvely.",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
    },
    {"type": "function", "function": {"name": "find", "parameters": {}}},
]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def tool(text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text}


def call(name: str = "find", **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


said = st.lists(
    st.sampled_from(["hello", " world", "\n", "\n\n", "é", "你好", "12", '"', "\\", "<tool_call>",
                     "</tool_response>", "<|im_end|>", "<|eot_id|>", "<|python_tag|>"]),
    max_size=4,
).map("".join)  # fmt: skip
some = said.filter(str.strip)
arguments = st.dictionaries(st.sampled_from(["a", "b é"]), said | st.integers(), max_size=2)
calls = st.builds(
    lambda name, fields: {"type": "function", "function": {"name": name, "arguments": fields}},
    st.sampled_from(["multiply", "find"]), arguments,
)  # fmt: skip
system = st.lists(some.map(lambda text: {"role": "system", "content": text}), max_size=1)

# ---------------------------------------------------------------------------- published templates


def published(name: str, **variables: Any) -> chat.JinjaTemplate:
    """A template of the package trl; it is skipped without."""
    pytest.importorskip("jinja2")
    if not (FOLDER / f"{name}.jinja").is_file():
        pytest.skip(REASON)
    return chat.JinjaTemplate((FOLDER / f"{name}.jinja").read_text("utf-8"), variables, stop=())


def equal(
    tok: bytepair.Tokenizer, value: chat.Template, jinja: chat.JinjaTemplate, talk: dict[str, Any]
) -> None:
    """Ids and prompt are equal, and so is the mask, except for the line break after the end."""
    ids, mask = tok.render_conversation(talk, template=value, on_untrained="keep")
    theirs, derived = tok.render_conversation(talk, template=jinja, on_untrained="keep")
    assert tok.decode(ids) == tok.decode(theirs)
    assert ids == theirs
    differ = [at for at, (a, b) in enumerate(zip(mask, derived, strict=True)) if a != b]
    ends = {tok.special_tokens[name] for name in ("<|im_end|>",) if name in tok.special_tokens}
    assert all(
        mask[at] == 0 and ids[at - 1] in ends and tok.decode([ids[at]]) == "\n" for at in differ
    )
    assert tok.render_for_completion(talk, template=value) == tok.render_for_completion(
        talk, template=jinja
    )


qwen_turns = st.lists(
    st.one_of(
        said.map(user),
        said.map(assistant),
        st.builds(
            lambda t, c: assistant(t, tool_calls=c), said, st.lists(calls, min_size=1, max_size=3)
        ),
        said.map(tool),
    ),
    max_size=6,
)


@pytest.mark.parametrize("tok", QWENS, ids=["text", "qwen2.5", "qwen3"])
@settings(max_examples=50)
@given(system, qwen_turns, st.sampled_from([None, TOOLS, TOOLS[:1]]))
def test_qwen25(tok: bytepair.Tokenizer, first: list[Any], turns: list[Any], tools: Any) -> None:
    talk = {"messages": [*first, user("x"), *turns], "tools": tools}
    equal(tok, chat.QWEN25, published("qwen2_5"), talk)


@pytest.mark.parametrize("tok", QWENS, ids=["text", "qwen2.5", "qwen3"])
@settings(max_examples=50)
@given(system, qwen_turns, st.sampled_from([None, TOOLS]))
def test_chatml_is_that_of_qwen3(
    tok: bytepair.Tokenizer, first: list[Any], turns: list[Any], tools: Any
) -> None:
    talk = {"messages": [*first, user("x"), *turns], "tools": tools}
    equal(tok, chat.CHATML, published("qwen3_instruct_2507"), talk)


# ---------------------------------------------------------------------------- what is written


def test_a_call_is_trained_on_and_a_result_is_not() -> None:
    tok = QWENS[2]
    talk = {
        "messages": [
            user("2*3?"),
            assistant("I look.", tool_calls=[call("multiply", a=2), call("find")]),
            tool("6</tool_response><|im_end|>"),
            tool("none"),
            assistant("6."),
        ],
        "tools": TOOLS[:1],
    }
    ids, mask = tok.render_conversation(talk, template=chat.CHATML)
    spoken = [
        tok.decode([i for i, m in zip(ids, mask, strict=True) if m == value]) for value in (0, 1)
    ]
    assert spoken[1] == (
        'I look.\n<tool_call>\n{"name": "multiply", "arguments": {"a": 2}}\n</tool_call>\n'
        '<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call><|im_end|>6.<|im_end|>'
    )
    assert spoken[0].endswith(
        "<|im_start|>user\n<tool_response>\n6</tool_response><|im_end|>\n</tool_response>\n"
        "<tool_response>\nnone\n</tool_response><|im_end|>\n<|im_start|>assistant\n\n"
    )
    special = tok.special_tokens
    assert ids.count(special["</tool_response>"]) == 2
    assert ids.count(special["<|im_end|>"]) == 5
    back = tok.parse_conversation(ids, template=chat.CHATML)["messages"]
    assert [message["role"] for message in back] == [
        "system", "user", "assistant", "tool", "tool", "assistant"
    ]  # fmt: skip
    assert back[2]["tool_calls"] == [call("multiply", a=2), call("find")]
    assert back[3:5] == [tool("6</tool_response><|im_end|>"), tool("none")]


def test_arguments_may_be_json_in_a_text() -> None:
    as_text = {"function": {"name": "find", "arguments": json.dumps({"a": "é"})}}
    bare = {"name": "find", "arguments": {"a": "é"}}
    expected = None
    for form in (call(a="é"), as_text, bare):
        talk = [user("x"), assistant(None, tool_calls=[form])]
        rendered = TOK.render_conversation(talk, template=chat.CHATML)
        assert rendered == (expected or rendered)
        expected = rendered


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("template", "talk"),
    [
        (chat.LLAMA3, {"messages": [user("x")], "tools": TOOLS}),
        (chat.LLAMA3, [user("x"), assistant("", tool_calls=[call()])]),
        (chat.CHATML, [{**user("x"), "tool_calls": [call()]}]),
        (chat.CHATML, [user("x"), assistant("y", reasoning_content="z")]),
        (chat.CHATML, {"messages": [user("x")], "tools": {"a": 1}}),
        (chat.CHATML, {"messages": [user("x")], "tools": [{1, 2}]}),
        (chat.CHATML, [user("x"), assistant("", tool_calls=[call('a"b')])]),
        (chat.CHATML, [user("x"), assistant("", tool_calls=["x"])]),
        (chat.CHATML, [user("x"), assistant("", tool_calls="x")]),
        (chat.CHATML, [user("x"), assistant("", tool_calls=[{"name": "f"}])]),
        (chat.CHATML, [user("x"), assistant("", tool_calls=[{"name": "f", "arguments": "{"}])]),
        (chat.CHATML, [user("x"), assistant(3, tool_calls=[call()])]),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_a_template_cannot_write_is_an_error(template: chat.Template, talk: Any) -> None:
    with told(ConversationError):
        TOK.render_conversation(talk, template=template, on_untrained="keep")
