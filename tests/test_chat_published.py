"""Text never becomes structure, and prompts begin training ids: chat templates of all shapes."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

import bytepair
from bytepair import chat
from bytepair.chat import ChatOptions
from bytepair.errors import ConversationError
from made_templates import MADE
from trl_source import TEMPLATES as PUBLISHED

TEMPLATES: Final = {**MADE, **{path.stem: path.read_text("utf-8") for path in PUBLISHED}}

#: How the names of special tokens look in the sources of templates.
NAME: Final = re.compile(r"<[|｜][^<>\s{}'\"]+[|｜]>|</?[a-z_]+>|\[/?[A-Z_]{3,}\]")


def nested(value: str) -> Any:
    return {value: [{"a": [value, {value: value}]}]}


def rows(text: str) -> list[list[Any]]:
    """Messages and tools with a text at every string, the longest rows first."""
    call = {"type": "function", "function": {"name": f"f{text}", "arguments": nested(text)}}
    question = {"role": "user", "content": f"what {text} is it"}
    answer = {"role": "assistant", "content": f"it is {text} nine"}
    calling = {"role": "assistant", "content": f"so {text}", "tool_calls": [call]}
    result = {"role": "tool", "name": f"f{text}", "content": f"nine {text}"}
    parameters = {"type": "object", "properties": {f"p{text}": {"type": "string"}}}
    function = {"name": f"f{text}", "description": text, "parameters": parameters}
    tools = [{"type": "function", "function": function}]
    system = {"role": "system", "content": f"be {text} brief"}
    talk = [question, answer]
    return [
        [[system, question, calling, result, answer], tools],
        [[question, calling, result, answer], tools],
        [[system, question, answer], tools],
        [[system, question, answer, question, answer], None],
        [[question, answer, question, answer], None],
        [[one | {"content": [{"type": "text", "text": one["content"]}]} for one in talk], None],
    ]


def tokenizer(source: str) -> bytepair.Tokenizer:
    names = sorted({"<|bos|>", "<|eos|>", *NAME.findall(source)})
    tok = bytepair.train(["what is it? it is nine"] * 4, 256 + 8 + len(names), special_tokens=names)
    return tok.replace(roles={"bos": "<|bos|>", "eos": "<|eos|>"})


def structure(tok: bytepair.Tokenizer, ids: list[int]) -> list[int]:
    special = set(tok.special_tokens.values())
    return [id for id in ids if id in special]


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_string_of_a_conversation_becomes_a_special_token(name: str) -> None:
    source = TEMPLATES[name]
    tok = tokenizer(source)
    template = chat.JinjaTemplate(source, mask="none")
    rendered = 0
    for index, (messages, tools) in enumerate(rows("x")):
        try:
            plain = tok.render_conversation(
                {"messages": messages, "tools": tools}, template=template
            )
        except ConversationError:
            continue
        for token in tok.special_tokens:
            planted, functions = rows(token)[index]
            row = {"messages": planted, "tools": functions}
            try:
                ids = tok.render_conversation(row, template=template).ids
            except ConversationError:
                continue  # the template searches texts for this name
            rendered += 1
            assert structure(tok, ids) == structure(tok, plain.ids), (index, token)
    assert rendered


@pytest.mark.parametrize("name", TEMPLATES)
def test_training_ids_begin_with_the_ids_of_their_prompt(name: str) -> None:
    source = TEMPLATES[name]
    tok = tokenizer(source)
    template = chat.JinjaTemplate(source)
    for messages, tools in rows("x"):
        row = {"messages": messages, "tools": tools}
        try:
            ids, mask = tok.render_conversation(
                row, template=template, options=ChatOptions(train_on="last")
            )
        except ConversationError:
            continue
        prompt = tok.render_for_completion({**row, "messages": messages[:-1]}, template=template)
        assert ids[: len(prompt)] == prompt, mask.index(1)
