"""Masks of Jinja templates without generation blocks, and what is refused beside them."""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
import bytepair.chat.jinja
from bytepair import chat
from bytepair._internal.sandbox import render
from bytepair.chat.rendering import Region, Rendering
from bytepair.errors import ConversationError, SpecialTokenError
from conftest import refused
from messages import told

pytest.importorskip("jinja2", reason="needs the package jinja2")

NAMES = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<|eot|>"]
TOK = bytepair.train(bytepair.sample.paths(), 1000, special_tokens=NAMES)

#: A template with tools and reasoning; what the assistant writes stands between BLOCK and END.
JINJA = """\
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}BLOCK
        {%- if m.reasoning_content and (KEEP or loop.last) %}
            {{- '<think>' + m.reasoning_content + '</think>' }}
        {%- endif %}
        {{- m.content }}
        {%- for call in m.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}
        {{- '<|im_end|>\\n' }}END
    {%- else %}
        {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def jinja_source(*, blocks: bool = False, keep: bool = True) -> str:
    begin, end = ("{%- generation %}", "{%- endgeneration %}") if blocks else ("", "")
    return JINJA.replace("BLOCK", begin).replace("END", end).replace("KEEP", str(keep).lower())


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def call(**arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "find", "arguments": arguments}}


TALK = [user("hi"), assistant("hello")]
LONG = [*TALK, user("more"), assistant("that is all")]
TOOLS = [{"type": "function", "function": {"name": "find", "description": "Finds a thing."}}]

said = st.lists(
    st.sampled_from(["hello", " world", "\n", "é", "你好", "12", "<", *NAMES, "\U0010fffe"]),
    max_size=4,
).map("".join)
replies = st.builds(
    lambda text, thought, calls: assistant(
        text,
        # tags in the content alone are an error
        **({"reasoning_content": thought or "hm"} if thought or "think>" in text else {}),
        **({"tool_calls": [call(a=argument) for argument in calls]} if calls else {}),
    ),
    said, st.none() | said, st.lists(said, max_size=2),
)  # fmt: skip
others = st.builds(lambda role, text: {"role": role, "content": text},
                   st.sampled_from(["user", "tool", "system"]), said)  # fmt: skip
talks = st.lists(others | replies, max_size=6).map(lambda turns: [user("x"), *turns])


# ---------------------------------------------------------------------------- prefixes


@given(talks, st.sampled_from([None, TOOLS]))
def test_a_derived_mask_is_that_of_blocks(talk: list[dict[str, Any]], tools: Any) -> None:
    conversation = {"messages": talk, "tools": tools}
    derived, reference = (
        TOK.render_conversation(
            conversation,
            template=chat.JinjaTemplate(jinja_source(blocks=blocks)),
            on_untrained="keep",
        )
        for blocks in (False, True)
    )
    assert derived == reference


def test_the_messages_of_blocks_are_found_in_one_pass() -> None:
    starts = Mock(wraps={message: 2 * message for message in range(9)})
    regions = [Region(at, at + 1) for at in range(0, 18, 2)]
    rendering = Rendering("x" * 18, starts, regions, Mock(), [], Mock())
    assert [region.owner for region in rendering.blocks_of((), range(9))] == [*range(9)]
    assert len(starts.mock_calls) == 1


def test_the_source_of_a_mask_can_be_chosen() -> None:
    blocks = "{% generation %}<|im_end|>{% endgeneration %}" + jinja_source()
    ids, mask = TOK.render_conversation(TALK, template=chat.JinjaTemplate(blocks, mask="prefixes"))
    assert (ids[0], mask[0]) == (TOK.special_tokens["<|im_end|>"], 0)
    assert TOK.decode([id for id, m in zip(ids, mask, strict=True) if m]) == "hello<|im_end|>\n"
    assert TOK.render_conversation(TALK, template=chat.JinjaTemplate(blocks))[1][0] == 1
    none = chat.JinjaTemplate(blocks, mask="none")
    untrained = TOK.render_conversation(TALK, template=none, on_untrained="keep")
    assert untrained == (ids, [0] * len(ids))
    with refused("mask", "block"):
        chat.JinjaTemplate(blocks, mask="block")  # type: ignore[arg-type]
    with refused("checks", "on"):
        chat.JinjaTemplate(blocks, checks="on")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "talk"),
    [
        (
            jinja_source(keep=False),
            [user("hi"), assistant("hello", reasoning_content="why"), *LONG],
        ),
        (jinja_source() + "{% if add_generation_prompt %}<think>{% endif %}", TALK),
        ("{% for m in messages %}{{ m.content }}{{ '<|im_end|>' if loop.last }}{% endfor %}", LONG),
        (
            "{% if messages[0].role != 'user' %}{{ raise_exception('user first') }}{% endif %}"
            + jinja_source(),
            [assistant("hello")],
        ),
    ],
)
def test_what_is_not_prefix_stable_is_refused(source: str, talk: list[dict[str, Any]]) -> None:
    template = chat.JinjaTemplate(source)
    with told(ConversationError):
        TOK.render_conversation(talk, template=template)


def test_a_prompt_needs_no_stable_template() -> None:
    template = chat.JinjaTemplate(jinja_source(keep=False))
    thought = [user("hi"), assistant("hello", reasoning_content="why"), user("x")]
    prompt = TOK.decode(TOK.render_for_completion(thought, template=template))
    assert "<|im_start|>assistant\nhello<|im_end|>\n" in prompt
    assert prompt.endswith("<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("turns", [1, 2, 64])
def test_a_template_runs_at_most_three_times(
    turns: int, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0

    def count(*args: Any) -> str:
        nonlocal runs
        runs += 1
        return render(*args)

    monkeypatch.setattr(bytepair.chat.jinja, "render", count)
    talk = [m for n in range(turns) for m in (user(f"what {n}?"), assistant(f"this {n}"))]
    template = chat.JinjaTemplate(jinja_source(blocks=blocks))
    ids, mask = TOK.render_conversation(talk, template=template)
    learned = TOK.decode([id for id, on in zip(ids, mask, strict=True) if on])
    assert learned == "".join(f"this {n}<|im_end|>\n" for n in range(turns))
    assert runs <= 3
    runs = 0
    TOK.render_for_completion([*talk, user("x")], template=template)
    assert runs <= 3


# ---------------------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("m.reasoning_content", {"reasoning_content": "why"}),
        ("m.reasoning_content", {"thinking": "why"}),
        ("m.tool_calls", {"tool_calls": [call(a="b")]}),
        ("m.content", {}),
        ("tools", {}),
    ],
)
def test_what_a_template_leaves_out_is_an_error(part: str, fields: dict[str, Any]) -> None:
    talk = {"messages": [user("hi"), assistant("hello", **fields)], "tools": TOOLS}
    source = jinja_source().replace(part, "''" if part == "m.content" else "none")
    with told(ConversationError):
        TOK.render_conversation(talk, template=chat.JinjaTemplate(source))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TOK.render_conversation(talk, template=chat.JinjaTemplate(source, checks="off"))
        TOK.render_conversation(talk, template=chat.JinjaTemplate(jinja_source()))
        TOK.render_for_completion(talk, template=chat.JinjaTemplate(source))


def test_a_block_may_begin_within_the_text_that_a_prompt_ends_with() -> None:
    source = jinja_source(blocks=True)
    early = source.replace(
        "{{- '<|im_start|>assistant\\n' }}{%- generation %}",
        "{{- '<|im_start|>assistant' }}{%- generation %}{{ '\\n' }}",
    )
    assert early != source
    talk = [user("hi"), assistant("hello")]
    ids, mask = TOK.render_conversation(talk, template=chat.JinjaTemplate(early))
    assert ids == TOK.render_conversation(talk, template=chat.JinjaTemplate(source))[0]
    learned = [id for id, on in zip(ids, mask, strict=True) if on]
    assert TOK.decode(learned) == "\nhello<|im_end|>\n"


def test_dropped_reasoning_within_the_content_is_found() -> None:
    plain = bytepair.train(["hello"], 262, special_tokens=NAMES[:3])
    without = jinja_source().replace("m.reasoning_content", "m.other")
    source = without.replace("{{- m.content }}", "{{- m.content.split('</think>')[-1] }}")
    talk = [user("hi"), assistant("<think>why</think>hello")]
    with told(ConversationError):
        plain.render_conversation(talk, template=chat.JinjaTemplate(source))
    plain.render_conversation(talk, template=chat.JinjaTemplate(without))


@pytest.mark.parametrize("template", [chat.JinjaTemplate(jinja_source()), chat.QWEN3])
def test_tags_in_the_content_are_read_as_reasoning_or_named(template: Any) -> None:
    tags = chat.ChatOptions(reasoning="tags")
    fields = [user("hi <think>"), assistant("hello", reasoning_content="why")]
    expected = TOK.render_conversation(fields, template=template)
    for said in (
        "<think>why</think>hello",
        "why\n</think>\n\nhello",
        "\n<think>why\n</think>hello",
    ):
        parts = [{"type": "text", "text": part} for part in said.partition("</think>")]
        for content in (said, parts):
            talk: list[Any] = [fields[0], {"role": "assistant", "content": content}]
            assert TOK.render_conversation(talk, template=template, options=tags) == expected
            with told(ConversationError):
                TOK.render_conversation(talk, template=template)
    unfinished = [user("hi"), assistant("<think>why")]
    with told(ConversationError):
        TOK.render_conversation(unfinished, template=template, options=tags)


@pytest.mark.timeout(20)
def test_white_space_before_a_tag_that_never_comes_takes_little_time() -> None:
    talk = [user("hi"), assistant(" " * 200_000 + "think>")]
    tags = chat.ChatOptions(reasoning="tags")
    TOK.render_conversation(talk, template=chat.QWEN3, options=tags)


def test_only_text_parts_must_be_rendered() -> None:
    picture = {"type": "image", "url": "cat.png"}
    source = jinja_source().replace("m.content", "(m.content if m.content is string else SAID)")
    talk = [{"role": "user", "content": [picture, {"type": "text", "text": "hi"}]}, TALK[1]]
    template = chat.JinjaTemplate(source.replace("SAID", "m.content[1].text"))
    expected = TOK.render_conversation(TALK, template=chat.JinjaTemplate(jinja_source()))
    assert TOK.render_conversation(talk, template=template) == expected
    with told(ConversationError):
        TOK.render_conversation(talk, template=chat.JinjaTemplate(source.replace("SAID", "'x'")))


def test_the_end_of_a_turn_must_be_learned() -> None:
    outside = jinja_source(blocks=True).replace(
        "{{- '<|im_end|>\\n' }}{%- endgeneration %}", "{%- endgeneration %}{{- '<|im_end|>\\n' }}"
    )
    with told(ConversationError):
        TOK.render_conversation(TALK, template=chat.JinjaTemplate(outside))
    endless = jinja_source().replace("{{- '<|im_end|>\\n' }}", "")
    with told(ConversationError):
        TOK.render_conversation(TALK, template=chat.JinjaTemplate(endless))


def test_the_end_of_a_turn_must_be_a_stop_token() -> None:
    other = jinja_source().replace("<|im_end|>", "<|eot|>")
    with told(ConversationError):
        TOK.render_conversation(TALK, template=chat.JinjaTemplate(other))
    with told(ConversationError):
        TOK.render_batch([TALK], template=chat.JinjaTemplate(other))
    expected = TOK.render_conversation(TALK, template=chat.JinjaTemplate(other, checks="off"))
    for stop in [("<|eot|>",), ()]:
        template = chat.JinjaTemplate(other, stop=stop)
        assert TOK.render_conversation(TALK, template=template) == expected
    named = TOK.replace(roles={"end_of_turn": "<|eot|>"})
    assert named.render_conversation(TALK, template=chat.JinjaTemplate(other)) == expected
    with told(SpecialTokenError):
        TOK.render_conversation(TALK, template=chat.JinjaTemplate(other, stop=("<x>",)))


def test_a_value_that_a_template_does_not_expect_is_an_error() -> None:
    with told(ConversationError):
        TOK.render_conversation([user(3)], template=chat.JinjaTemplate(jinja_source()))  # type: ignore[arg-type]
    hostile = chat.JinjaTemplate("{% set n = namespace() %}{% set n.__class__ = 1 %}")
    with told(ConversationError):
        TOK.render_conversation(TALK, template=hostile)
