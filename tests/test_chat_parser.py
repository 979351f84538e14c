"""Reasoning, tool calls and results in ids, parsed back: the inverse of rendering, id by id."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.chat.parser import Alphabet, AnswerParser
from bytepair.errors import ConversationError
from messages import told

ENDS = ["<|im_start|>", "<|im_end|>"]
TAGS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>",
        "</think>"]  # fmt: skip
LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
         "<|eom_id|>", "<|python_tag|>"]  # fmt: skip
#: With special tokens for calls and reasoning, and without.
TOK = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=[*ENDS, *TAGS, *LLAMA])
BARE = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=ENDS)
HERMES = [chat.CHATML, chat.QWEN25, chat.QWEN3]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: str | None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def tool(content: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content}


def texts(*more: str) -> st.SearchStrategy[str]:
    pieces = ["hello", " world", "\n", "\n\n", "é", "你好", "12", '"', "\\", "{", "}", '{"name": ']
    return st.lists(st.sampled_from([*pieces, *more]), max_size=5).map("".join)


def talks(strings: st.SearchStrategy[str], *, most: int = 3) -> st.SearchStrategy[list[Any]]:
    """Conversations of the user, the assistant and tools."""
    values = st.one_of(strings, st.integers(), st.lists(strings, max_size=2), st.none())
    arguments = st.dictionaries(st.sampled_from(["a", "b é"]) | strings, values, max_size=2)
    calls = st.builds(lambda name, fields: call(name, **fields), st.sampled_from("fgh"), arguments)
    called = st.lists(calls, min_size=1, max_size=most)
    return st.lists(
        st.one_of(
            strings.map(user),
            strings.map(assistant),
            strings.map(tool),
            st.builds(lambda text, calls: assistant(text, tool_calls=calls), strings, called),
        ),
        min_size=1,
        max_size=6,
    )


def thinking(draw: Any, messages: list[Any], strings: st.SearchStrategy[str]) -> list[Any]:
    """The messages, some of them with reasoning; tags in the content alone would be an error."""
    thoughts = [
        {**m, "reasoning_content": draw(strings)}
        if m["role"] == "assistant" and draw(st.booleans())
        else m
        for m in messages
    ]
    return [
        {**m, "reasoning_content": "hm"}
        if m["role"] == "assistant" and "think>" in m["content"] and not m.get("reasoning_content")
        else m
        for m in thoughts
    ]


@st.composite
def reasoned(draw: Any, strings: st.SearchStrategy[str]) -> list[Any]:
    return thinking(draw, draw(talks(strings)), strings)


def parsed(tok: bytepair.Tokenizer, talk: list[Any], template: chat.Template) -> list[Any]:
    """A conversation, rendered and parsed, with events that agree with it."""
    ids, _ = tok.render_conversation(talk, template=template, on_untrained="keep")
    parser = chat.Parser(tok, template)
    events = [event for id in ids for event in parser.feed(id)] + parser.finish()
    messages: list[Any] = parser.conversation["messages"]
    assert [e.message for e in events if isinstance(e, chat.MessageEnd)] == messages
    calls = [one for m in messages for one in m.get("tool_calls", ())]
    assert [e.call for e in events if isinstance(e, chat.ToolCall)] == calls
    heard: dict[str, str] = {"text": "", "reasoning": "", "tool_call": ""}
    for event in events:
        if isinstance(event, chat.TextDelta):
            heard[event.part] += event.text
    assert heard["reasoning"] == "".join(m.get("reasoning_content", "") for m in messages)
    assert heard["tool_call"].count('"arguments"') >= len(calls)
    contents = [m["content"] for m in messages if isinstance(m["content"], str)]
    if template.tools:
        assert heard["text"] == "".join(contents)
    assert tok.parse_conversation(ids, template=template) == {"messages": messages}
    return messages


def thought_of(message: dict[str, Any], strip: str) -> dict[str, Any]:
    """A message as the template of Qwen3 keeps it."""
    if message["role"] != "assistant":
        return message
    result = {**message, "content": message["content"].lstrip(strip)}
    thought = result.pop("reasoning_content", "").strip(strip)
    return {**result, "reasoning_content": thought} if thought else result


# ---------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("template", HERMES, ids=lambda t: t.name)
@settings(max_examples=60)
@given(st.data())
def test_calls_and_results_of_hermes_come_back(template: chat.Template, data: Any) -> None:
    """Where calls have special tokens, no text can be taken for a call."""
    strings = texts(
        *TAGS, "<|im_end|>", '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    )
    talk = data.draw(reasoned(strings) if template.reasoning else talks(strings))
    expected = [thought_of(m, "\n") if template.reasoning else m for m in talk]
    messages = parsed(TOK, talk, template)
    skipped = int(template.default_system is not None)
    assert messages[skipped:] == expected


@pytest.mark.parametrize("template", HERMES, ids=lambda t: t.name)
@settings(max_examples=60)
@given(st.data())
def test_so_do_those_without_special_tokens(template: chat.Template, data: Any) -> None:
    """There a text may not spell a tag."""
    strings = texts("<", "<tool", "</", "</th", "ink>").filter(lambda text: "</think>" not in text)
    talk = data.draw(reasoned(strings) if template.reasoning else talks(strings))
    expected = [thought_of(m, "\n") if template.reasoning else m for m in talk]
    skipped = int(template.default_system is not None)
    assert parsed(BARE, talk, template)[skipped:] == expected


@pytest.mark.parametrize("template", HERMES, ids=lambda t: t.name)
@pytest.mark.parametrize("tok", [TOK, BARE], ids=["special", "text"])
@settings(max_examples=60)
@given(st.lists(st.sampled_from([
    "hello", "\n", "<tool_call>", "</tool_call>", "<think>", "</think>", "{", '"', "\\", "}",
    '{"name": "f", "arguments": {"a": "b"}}', '{"name": "f", "parameters": {}}', "f.call(",
    '<|python_tag|>f.call(a="b")', "<|python_tag|>", ")", "<tool_response>", "é",
]), max_size=8), st.randoms(use_true_random=False))  # fmt: skip
def test_no_text_of_an_answer_is_lost(
    template: chat.Template, tok: bytepair.Tokenizer, pieces: list[str], rng: random.Random
) -> None:
    """Whatever is sampled is content, reasoning or a call; how it is cut makes no difference."""
    alphabet = Alphabet(tok.special_tokens.keys() & template.inner())
    special = [chat.Special(name) for name in template.inner()]
    strings = [alphabet.string([next((s for s in special if s.name == p), p)]) for p in pieces]
    whole = AnswerParser(template, alphabet)
    whole.feed("".join(strings))
    whole.end()
    cut = AnswerParser(template, alphabet)
    events = []
    rest = "".join(strings)
    while rest:
        count = rng.randint(1, 7)
        events += cut.feed(rest[:count])
        rest = rest[count:]
    events += cut.end()
    assert cut.fields() == whole.fields()
    fields = whole.fields()
    parts = {e.part for e in events if isinstance(e, chat.TextDelta)}
    if fields.keys() == {"content"} and parts <= {"text"} and "<think>" not in pieces:
        assert fields["content"] == "".join(pieces)
    letters = sum(text.count("hello") for text in _texts_of(fields))
    assert letters == "".join(pieces).count("hello")


def _texts_of(fields: dict[str, Any]) -> list[str]:
    calls = fields.get("tool_calls", [])
    return [fields["content"], fields.get("reasoning_content", ""), json.dumps(calls)]


# ---------------------------------------------------------------------------- nanochat's Python

NANOCHAT = bytepair.train(bytepair.sample.paths(), 1500)


def test_code_of_nanochat_is_a_call() -> None:
    ids, _ = bytepair.chat.render_turn(NANOCHAT, [], [user("1+1?")])
    special = NANOCHAT.special_tokens
    ids += [special["<|python_start|>"], *NANOCHAT.encode("1+1"), special["<|python_end|>"]]
    parser = chat.Parser(NANOCHAT)
    events = [event for id in ids for event in parser.feed(id)]
    assert events[-1] == chat.ToolCall(call("python", code="1+1"))
    code = {"type": "python", "text": "1+1"}
    assert parser.conversation["messages"][-1] == {"role": "assistant", "content": [code]}


@pytest.mark.parametrize(
    "talk",
    [
        [user("x"), tool("y")],
        [tool("y")],
        [user("x"), assistant("", tool_calls=[call("python", code="1")])],
    ],
)
def test_calls_in_fields_are_errors_under_nanochat(talk: list[Any]) -> None:
    with told(ConversationError):
        NANOCHAT.render_conversation(talk)


# ---------------------------------------------------------------------------- one by one


def answer(text: str, template: chat.Template = chat.CHATML) -> dict[str, Any]:
    parser = AnswerParser(template, Alphabet([]))
    parser.feed(text)
    parser.end()
    return parser.fields()


GOOD = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
F = [call("f", a=1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, {"content": "", "tool_calls": F}),
        (f"a\n{GOOD}\n{GOOD}", {"content": "a", "tool_calls": F * 2}),
        (f"a\n\n{GOOD}", {"content": "a\n", "tool_calls": F}),
        (f"{GOOD}then", {"content": "then", "tool_calls": F}),
        ('<tool_call>{"arguments": {"a": 1}, "name": "f"}', {"content": "", "tool_calls": F}),
        ('a <tool_call>{"name": "f"', {"content": 'a <tool_call>{"name": "f"'}),
        ("a\n<tool_call>no</tool_call>b", {"content": "a\n<tool_call>no</tool_call>b"}),
        (f'<tool_call>"</tool_call> {GOOD}', {"content": '<tool_call>"</tool_call> ',
                                             "tool_calls": F}),
        ('<tool_call>{"name": "f", "arguments": {"a": "</tool_call>"}}</tool_call>', None),
        ('<tool_call>{"name": 1, "arguments": {}}</tool_call>', None),
        ('<tool_call>{"name": "f", "arguments": []}</tool_call>', None),
        ('<tool_call>{"name": "f", "arguments": {}, "more": 1}</tool_call>', None),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", None),
        ("<think>no</think>", None),
    ],
)  # fmt: skip
def test_answers_of_hermes(text: str, expected: dict[str, Any] | None) -> None:
    assert answer(text) == (expected or {"content": text})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\na\n</think>\n\nb", {"content": "b", "reasoning_content": "a"}),
        ("<think>a</think>b", {"content": "b", "reasoning_content": "a"}),
        ("<think>\n\n</think>\n\nb", {"content": "b"}),
        ("<think>\nnever ends", {"content": "", "reasoning_content": "never ends"}),
        (f"<think>a</think>{GOOD}", {"content": "", "reasoning_content": "a", "tool_calls": F}),
        (f"<think>{GOOD}</think>", {"content": "", "reasoning_content": GOOD}),
        ("a <think>b</think>", {"content": "a <think>b</think>"}),
    ],
)
def test_answers_of_qwen3(text: str, expected: dict[str, Any]) -> None:
    assert answer(text, chat.QWEN3) == expected


def test_a_call_is_reported_when_it_is_complete() -> None:
    prompt = TOK.render_for_completion([user("x")], template=chat.QWEN3)
    parser = chat.Parser(TOK, chat.QWEN3)
    for id in prompt:
        parser.feed(id)
    talk = [user("x"), assistant("Hm.", thinking="a", tool_calls=F)]
    ids, _ = TOK.render_conversation(talk, template=chat.QWEN3)
    kinds: list[Any] = []
    for id in ids[len(prompt) :]:
        kinds += [e for e in parser.feed(id) if not isinstance(e, chat.TextDelta)]
        if id == TOK.special_tokens["</tool_call>"]:
            assert kinds[-1] == chat.ToolCall(F[0])
    message = assistant("Hm.", reasoning_content="a", tool_calls=F)
    assert kinds == [
        chat.ToolCall(F[0]), chat.MessageEnd(message),
    ]  # fmt: skip


def test_an_answer_that_is_cut_keeps_its_text() -> None:
    talk = [user("x"), assistant("Hm.", tool_calls=F)]
    ids, _ = TOK.render_conversation(talk, template=chat.CHATML)
    start = len(TOK.render_for_completion([user("x")], template=chat.CHATML))
    end = ids.index(TOK.special_tokens["</tool_call>"])
    for count in range(start, end):
        (_, message) = TOK.parse_conversation(ids[:count], template=chat.CHATML)["messages"]
        assert message["content"] == TOK.decode(ids[start:count]) or "tool_calls" in message


def test_a_text_of_the_user_that_spells_results_is_one_only_without_special_tokens() -> None:
    talk = [user("<tool_response>\na\n</tool_response>")]
    assert parsed(TOK, talk, chat.CHATML) == talk
    assert parsed(BARE, talk, chat.CHATML) == [tool("a")]
    for cut in ("<tool_response>", "<tool_response>\na", "<tool_resp"):
        assert parsed(BARE, [user(cut)], chat.CHATML) == [user(cut)]


@pytest.mark.timeout(30)
def test_text_after_a_message_is_read_in_time() -> None:
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    ids = TOK.render_conversation(talk, template=chat.CHATML)[0]
    parser = chat.Parser(TOK, chat.CHATML)
    for id in [*ids, *TOK.encode("x") * 200_000, *ids]:
        parser.feed(id)
    assert parser.conversation["messages"] == [*talk, *talk]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("template", "text"), [(chat.QWEN3, "<tool_call>"), (chat.CHATML, '<tool_call>{"name": "')]
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_long_message_is_read_in_time(role: str, template: chat.Template, text: str) -> None:
    """An id costs the same, however much of a message is open: here, each adds 4,096 bytes."""
    names = [*ENDS, *TAGS, *LLAMA]
    tok = bytepair.train(["x" * 4096], 268 + len(names), special_tokens=names)
    talk = [{"role": "user", "content": "a"}, {"role": role, "content": "§"}]
    ids = tok.render_conversation(talk, template=template, on_untrained="keep")[0]
    begun = ids[: ids.index(tok.encode("§")[0])] + tok.encode(text, special="all")
    parser = chat.Parser(tok, template)
    for id in begun + tok.encode("x" * 4096) * 10_000:
        parser.feed(id)
    content = parser.conversation["messages"][-1]["content"]
    assert content == text + "x" * 40_960_000


@pytest.mark.timeout(30)
def test_strings_that_never_end_are_read_in_time() -> None:
    text = '<tool_call>\\"</tool_call>' * 20_000
    assert answer(text + GOOD) == {"content": text, "tool_calls": F}


def test_the_default_template_is_that_of_the_tokenizer() -> None:
    held = BARE.replace(chat_template="{{ messages }}")
    with told(ConversationError):
        held.parse_conversation([])
    assert held.parse_conversation([], template=chat.CHATML) == {"messages": []}
