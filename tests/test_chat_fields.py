"""Training on content, reasoning or tool calls by choice, in templates of every kind."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.chat import ChatOptions
from bytepair.chat.template import FIELDS
from bytepair.errors import ArgumentError, ConversationError
from loaders import conversation_batches
from messages import told
from trl_source import FOLDER, REASON

NAMES = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>",
         "</tool_response>", "<think>", "</think>"]  # fmt: skip
TOK = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=NAMES)
BARE = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=NAMES[:2])

#: What Qwen3's training template writes, in few lines. A line break of the text is ¶ here, since
#: Jinja removes one after a block.
_ANSWER = (
    r"<think>¶{{ (m.reasoning_content or '').strip('\n') }}¶</think>¶¶{{ m.content.lstrip('\n') }}"
    "{% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}¶{% endif %}"
    '<tool_call>¶{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}¶</tool_call>{% endfor %}<|im_end|>"
)
_REST = (
    "{% for m in messages %}{% if m.role == 'tool' %}"
    "{% if loop.first or loop.previtem.role != 'tool' %}<|im_start|>user{% endif %}"
    "¶<tool_response>¶{{ m.content }}¶</tool_response>"
    "{% if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>¶{% endif %}"
    "{% else %}<|im_start|>{{ m.role }}¶"
    "{% if m.role == 'assistant' %}ANSWER¶{% else %}{{ m.content }}<|im_end|>¶{% endif %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant¶{% endif %}"
)


def jinja(mark: bool) -> chat.JinjaTemplate:
    answer = f"{{% generation %}}{_ANSWER}{{% endgeneration %}}" if mark else _ANSWER
    source = _REST.replace("ANSWER", answer).replace("¶", r"{{ '\n' }}")
    return chat.JinjaTemplate(source, name="blocks" if mark else "prefixes", stop=("<|im_end|>",))


JINJAS = [jinja(True), jinja(False)]
CHOICES = [list(some) for n in (1, 2, 3) for some in combinations(FIELDS, n)]


#: Texts that are not blank: in a rendered string, a blank text cannot be told from its frame.
def texts(*more: str) -> st.SearchStrategy[str]:
    pieces = ["hello", " world", "\n", "é", "12", "<tool_call>", "{", *more]
    return st.lists(st.sampled_from(pieces), min_size=1, max_size=3).map("".join).filter(str.strip)


def call(**arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "find", "arguments": arguments}}


@st.composite
def talks(draw: Any, *more: str) -> list[dict[str, Any]]:
    strings = texts(*more)
    talk: list[dict[str, Any]] = [{"role": "user", "content": "x"}]
    for _ in range(draw(st.integers(1, 3))):
        answer: dict[str, Any] = {"role": "assistant", "content": draw(st.just("") | strings)}
        if draw(st.booleans()):
            answer["reasoning_content"] = draw(strings)
        if "think>" in answer["content"] and not answer.get("reasoning_content"):
            answer["reasoning_content"] = "hm"  # tags in the content alone are an error
        if draw(st.booleans()):
            calls = draw(st.lists(strings.map(lambda text: call(a=text)), min_size=1, max_size=2))
            answer["tool_calls"] = calls
            talk += [answer, *({"role": "tool", "content": draw(strings)} for _ in calls)]
        else:
            talk += [answer, {"role": "user", "content": draw(strings)}]
    return [*talk, {"role": "assistant", "content": "the end"}]


def learned(tok: bytepair.Tokenizer, talk: Any, template: Any, **options: Any) -> str:
    ids, mask = tok.render_conversation(
        talk, template=template, on_untrained="keep", options=ChatOptions(**options)
    )
    return tok.decode([id for id, on in zip(ids, mask, strict=True) if on])


@pytest.mark.parametrize("template", JINJAS, ids=lambda t: t.name)
@settings(max_examples=80)
@given(talks("</think>x"), st.sampled_from(CHOICES), st.sampled_from(["all", "last"]))
def test_jinja_has_the_fields_of_a_value(
    template: Any, talk: list[Any], chosen: Any, train_on: Any
) -> None:
    compare(template, talk, train_fields=chosen, train_on=train_on)


def compare(template: Any, talk: list[Any], **options: Any) -> None:
    """Ids and mask are those of the value, except for the line break after the end of a turn."""
    how: Any = {"on_untrained": "keep", "options": ChatOptions(**options)}
    ids, mask = TOK.render_conversation(talk, template=chat.QWEN3, **how)
    theirs, other = TOK.render_conversation(talk, template=template, **how)
    assert ids == theirs
    differ = [at for at, (a, b) in enumerate(zip(mask, other, strict=True)) if a != b]
    end = TOK.special_tokens["<|im_end|>"]
    assert all(ids[at - 1] == end for at in differ)


@pytest.mark.parametrize("tok", [TOK, BARE], ids=["special", "text"])
@pytest.mark.parametrize("template", [chat.QWEN3, chat.CHATML], ids=lambda t: t.name)
@settings(max_examples=60)
@given(talks())
def test_fields_divide_what_is_trained_on(
    template: Any, tok: bytepair.Tokenizer, talk: list[Any]
) -> None:
    """Each id that is trained on belongs to one field; with `join`, a token may have two."""
    if template.reasoning is None:
        talk = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in talk]
    masks: dict[tuple[Any, ...], list[int]] = {}
    for chosen in CHOICES:
        masks[tuple(chosen)] = tok.render_conversation(
            talk, template=template, on_untrained="keep", options=ChatOptions(train_fields=chosen)
        )[1]
    whole = tok.render_conversation(talk, template=template, on_untrained="keep")[1]
    assert masks[FIELDS] == whole
    for fields, mask in masks.items():
        parts = [masks[(field,)] for field in fields]
        assert mask == [max(column) for column in zip(*parts, strict=True)]
    assert sum(sum(masks[(field,)]) for field in FIELDS) >= sum(whole)


def test_each_field_has_its_frame() -> None:
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "hm", "thinking": "why", "tool_calls": [call(a=1)]},
        {"role": "tool", "content": "3"},
        {"role": "assistant", "content": "done"},
    ]
    called = '\n<tool_call>\n{"name": "find", "arguments": {"a": 1}}\n</tool_call><|im_end|>'
    expected = {
        "content": "hmdone<|im_end|>",
        "reasoning": "<think>\nwhy\n</think>\n\n<think>\n\n</think>\n\n",
        "tool_calls": called,
    }
    for field, text in expected.items():
        assert learned(TOK, talk, chat.QWEN3, train_fields=[field]) == text
    batch = TOK.render_batch(
        [talk], template=chat.QWEN3, options=ChatOptions(train_fields=["tool_calls"])
    )
    assert batch.loss_mask.sum() == sum(
        TOK.render_conversation(
            talk, template=chat.QWEN3, options=ChatOptions(train_fields=["tool_calls"])
        )[1]
    )
    batches = conversation_batches(
        [talk], TOK, 1, 128, template=chat.QWEN3, chat=ChatOptions(train_fields=["tool_calls"])
    )
    _, targets = next(batches)
    assert TOK.decode([int(id) for id in targets[0] if id >= 0]) == called


def test_parts_of_nanochat_have_fields() -> None:
    tok = bytepair.train(bytepair.sample.paths(), 1500)
    parts = [{"type": "text", "text": "a"}, {"type": "python", "text": "1"},
             {"type": "python_output", "text": "1"}, {"type": "text", "text": "b"}]  # fmt: skip
    talk: list[Any] = [
        {"role": "user", "content": "x"}, {"role": "assistant", "content": parts},
    ]  # fmt: skip
    assert learned(tok, talk, None, train_fields=["content"]) == "ab<|assistant_end|>"
    assert learned(tok, talk, None, train_fields=["tool_calls"]) == (
        "<|python_start|>1<|python_end|>"
    )
    called = [talk[0], {"role": "assistant", "content": parts[:2]}]
    assert learned(tok, called, None, train_fields=["tool_calls"]) == (
        "<|python_start|>1<|python_end|><|assistant_end|>"
    )
    assert learned(tok, talk, None, train_fields=["reasoning"]) == ""


def test_fields_that_are_not_apart_are_errors() -> None:
    mixed = chat.JinjaTemplate(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{{ m.reasoning_content }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        stop=("<|im_end|>",),
    )
    talk = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "a", "reasoning_content": "b"},
    ]
    with told(ConversationError):
        TOK.render_conversation(talk, template=mixed, options=ChatOptions(train_fields=["content"]))
    asks = mixed.source.replace("{{ m.content }}", "{{ m.content * 2 }}")
    with told(ConversationError):
        TOK.render_conversation(
            talk,
            template=chat.JinjaTemplate(asks, stop=("<|im_end|>",)),
            options=ChatOptions(train_fields=["content"]),
        )
    for wrong in ("content", [], ["text"], [1]):
        with told(ArgumentError):
            ChatOptions(train_fields=wrong)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- TRL


@pytest.mark.skipif(not FOLDER.is_dir(), reason=REASON)
@pytest.mark.parametrize("mask", ["blocks", "prefixes"])
@settings(max_examples=60)
@given(talks(), st.sampled_from(CHOICES))
def test_qwen3_is_that_of_its_training(mask: Any, talk: list[Any], chosen: Any) -> None:
    source = (FOLDER / "qwen3_training.jinja").read_text("utf-8")
    template = chat.JinjaTemplate(source, stop=(), mask=mask)
    compare(template, talk, train_fields=chosen)
    for tok in (TOK, BARE):
        ours = tok.render_conversation(talk, template=chat.QWEN3)[0]
        assert ours == tok.render_conversation(talk, template=template)[0]
        assert tok.render_for_completion(talk, template=chat.QWEN3) == tok.render_for_completion(
            talk, template=template
        )
