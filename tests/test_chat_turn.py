"""Turns after sampled ids: the sampled ids stay, and the template writes what follows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.chat import render_turn
from bytepair.errors import ConversationError
from messages import told
from trl_source import REASON, TEMPLATES

NAMES = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|start_header_id|>",
         "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"]  # fmt: skip
TOK = bytepair.train(
    bytepair.sample.paths(),
    1500,
    special_tokens=[*bytepair.training.NANOCHAT_SPECIAL_TOKENS, *NAMES],
)
SPECIAL = TOK.special_tokens

CHATML_JINJA = """\
{%- for m in messages %}
    {%- if m.role == 'assistant' and m.tool_calls %}
        {{- '<|im_start|>assistant\\n' + m.content }}
        {%- for call in m.tool_calls %}
            {{- '\\n' if m.content or not loop.first }}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
        {%- endfor %}{{ '<|im_end|>\\n' }}
    {%- elif m.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}
        {%- endif %}{{ '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}
        {%- endif %}
    {%- else %}
        {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
STOPS = {"nanochat": "<|assistant_end|>", "chatml": "<|im_end|>", "llama3": "<|eot_id|>",
         "qwen2.5": "<|im_end|>", "jinja": "<|im_end|>"}  # fmt: skip
VALUES = [chat.NANOCHAT, chat.CHATML, chat.QWEN25, chat.LLAMA3]
JINJA = chat.JinjaTemplate(CHATML_JINJA, stop=("<|im_end|>",))
EVERY = [*VALUES, pytest.param(JINJA, marks=pytest.mark.skipif(
    importlib.util.find_spec("jinja2") is None, reason="needs the package jinja2"))]  # fmt: skip


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def tool(text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text}


def stop_of(template: Any) -> int:
    return SPECIAL[STOPS[template.name]]


def spelled(text: str, cuts: list[int]) -> list[int]:
    """Ids of a text that `encode` would not give: its parts are encoded apart."""
    data, places = text.encode(), sorted({0, *(cut % (len(text.encode()) + 1) for cut in cuts)})
    parts = [data[a:b] for a, b in zip(places, [*places[1:], len(data)], strict=True)]
    ranks = TOK.mergeable_ranks()
    return [
        id for part in parts for id in ([ranks[part]] if part in ranks else list(part_ids(part)))
    ]


def part_ids(part: bytes) -> list[int]:
    ranks = TOK.mergeable_ranks()
    return [ranks[bytes([byte])] for byte in part]


#: Texts that do not merge with the text of a template on either side.
words = st.lists(
    st.sampled_from(["hello", "world", "naïve", "你好", "x"]), min_size=1, max_size=3
).map(" ".join)
hard = st.lists(
    st.sampled_from(["hello", " x", "\n", "\n\n", " ", "é", *NAMES, "<|assistant_end|>"]),
    max_size=4,
).map("".join)
turns = st.lists(st.tuples(words, words), min_size=1, max_size=4)


# ---------------------------------------------------------------------------- results


@pytest.mark.parametrize("template", EVERY)
@settings(max_examples=60)
@given(turns, st.booleans())
def test_turn_by_turn_is_the_whole_conversation(
    template: Any, pairs: list[tuple[str, str]], ends: bool
) -> None:
    """Where a model samples what `encode` gives, the ids and masks are those of rendering."""
    ids: list[int] = []
    mask: list[int] = []
    talk: list[dict[str, Any]] = []
    for question, answer in pairs:
        more = [user(question)]
        ids, mask = render_turn(TOK, ids, more, mask=mask, template=template, history=talk)
        talk += more
        assert ids == TOK.render_for_completion(talk, template=template)
        ids = [*ids, *TOK.encode(answer), *([stop_of(template)] if ends else [])]
        talk.append(assistant(answer))
    ids, mask = render_turn(TOK, ids, [], mask=mask, template=template, history=talk)
    whole, trained = TOK.render_conversation(talk, template=template, on_untrained="keep")
    assert ids == whole
    if not ends:  # the stop token was not sampled
        trained = [m and id != stop_of(template) for id, m in zip(whole, trained, strict=True)]
    if template is JINJA:  # which trains on the line break after it, too
        behind = [0, *(id == stop_of(template) for id in whole[:-1])]
        trained = [m and not b for m, b in zip(trained, behind, strict=True)]
    assert mask == [int(m) for m in trained]


@pytest.mark.parametrize("template", EVERY)
@settings(max_examples=60)
@given(hard, hard, st.lists(st.integers(0, 99), max_size=9), st.booleans())
def test_what_was_sampled_stays(
    template: Any, question: str, answer: str, cuts: list[int], ends: bool
) -> None:
    past = [user("x"), assistant(answer)]
    prompt, mask = render_turn(TOK, [], [user("x")], template=template)
    sampled = [*spelled(answer, cuts), *([stop_of(template)] if ends else [])]
    ids, after = render_turn(
        TOK, [*prompt, *sampled], [user(question)], mask=mask, template=template, history=past
    )
    assert ids[: len(prompt) + len(sampled)] == [*prompt, *sampled]
    assert after == [0] * len(prompt) + [1] * len(sampled) + [0] * (
        len(ids) - len(mask) - len(sampled)
    )
    usual = [*prompt, *TOK.encode(answer), stop_of(template)]
    also, _ = render_turn(TOK, usual, [user(question)], template=template, history=past)
    more = ids[len(prompt) + len(sampled) :]
    assert more == ([] if ends else [stop_of(template)]) + also[len(usual) :]
    special = [id for id in ids if id in SPECIAL.values()]
    assert special == [id for id in also if id in SPECIAL.values()]


@pytest.mark.parametrize("template", [chat.CHATML, JINJA], ids=lambda t: t.name)
def test_results_of_tools(template: Any) -> None:
    if template is JINJA:
        pytest.importorskip("jinja2")
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    talk = [user("x"), assistant("", tool_calls=[call, call])]
    results = [tool("1<|im_end|>"), tool("2")]
    so_far, _ = TOK.render_conversation(talk, template=template)
    stop = len(so_far) - so_far[::-1].index(stop_of(template))
    how: dict[str, Any] = {"template": template, "history": talk}
    expected = TOK.render_for_completion([*talk, *results], template=template)
    for cut in {stop - 1, stop, len(so_far)}:
        assert render_turn(TOK, so_far[:cut], results, **how)[0] == expected
    alone = render_turn(TOK, so_far[:stop], results, **how, prompt=False)[0]
    assert (
        alone
        == TOK.render_conversation([*talk, *results], template=template, on_untrained="keep")[0]
    )


def test_the_output_of_a_tool_of_nanochat_goes_on_with_the_turn() -> None:
    ids, mask = render_turn(TOK, [], [user("1+1?")])
    sampled = [SPECIAL["<|python_start|>"], *TOK.encode("1+1"), SPECIAL["<|python_end|>"]]
    output = [{"type": "python_output", "text": "2<|output_end|>"}]
    ids, mask = render_turn(TOK, [*ids, *sampled], [assistant(output)], mask=mask)
    assert TOK.decode(ids).endswith("<|python_end|><|output_start|>2<|output_end|><|output_end|>")
    ids, mask = render_turn(TOK, [*ids, *TOK.encode("Two.")], [user("ok")], mask=mask)
    parts = [{"type": "python", "text": "1+1"}, *output, {"type": "text", "text": "Two."}]
    talk = [user("1+1?"), assistant(parts), user("ok")]
    assert ids == TOK.render_for_completion(talk)
    assert TOK.decode([id for id, m in zip(ids, mask, strict=True) if m]) == (
        "<|python_start|>1+1<|python_end|>Two."
    )
    closed, _ = render_turn(TOK, ids[:9], [assistant(output)], prompt=False)
    assert closed[-1] == SPECIAL["<|assistant_end|>"]


def test_a_special_token_that_ends_no_turn_is_kept() -> None:
    prompt, _ = render_turn(TOK, [], [user("x")], template=chat.LLAMA3)
    ids, _ = render_turn(TOK, [*prompt, SPECIAL["<|endoftext|>"]], [], template=chat.LLAMA3)
    assert ids == [*prompt, SPECIAL["<|endoftext|>"], SPECIAL["<|eot_id|>"]]


# ---------------------------------------------------------------------------- Jinja


def test_blocks_make_no_difference() -> None:
    pytest.importorskip("jinja2")
    assert TOK.chat_templates.get("default")
    nanochat = chat.JinjaTemplate(TOK.chat_templates["default"])
    prompt, mask = render_turn(TOK, [], [user("x")], template=nanochat)
    past = [user("x"), assistant("H")]
    for sampled in ([72], [72, SPECIAL["<|assistant_end|>"]]):
        ids = [*prompt, *sampled]
        expected = render_turn(TOK, ids, [user("y")], mask=mask)
        jinja = render_turn(TOK, ids, [user("y")], mask=mask, template=nanochat, history=past)
        assert jinja == expected


def test_a_template_that_is_not_prefix_stable_is_refused() -> None:
    pytest.importorskip("jinja2")
    thinks = CHATML_JINJA.replace(
        "{{- '<|im_start|>' + m.role + '\\n' + m.content",
        "{{- '<|im_start|>' + m.role + '\\n' + (m.reasoning_content or '' if loop.last else '') + "
        "m.content",
    )
    template = chat.JinjaTemplate(thinks)
    prompt, _ = render_turn(TOK, [], [user("x")], template=template)
    with told(ConversationError, "history"):
        render_turn(TOK, prompt, [user("y")], template=template)
    past = [user("x"), assistant("z", reasoning_content="why")]
    with told(ConversationError):
        render_turn(TOK, prompt, [user("y")], template=template, history=past)
    past = [user("x"), assistant("z")]
    plain, _ = render_turn(TOK, prompt, [user("y")], template=template, history=past)
    assert plain == render_turn(TOK, prompt, [user("y")], template=JINJA, history=past)[0]


def test_a_prompt_may_be_without_special_tokens() -> None:
    pytest.importorskip("jinja2")
    source = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}"
        "{{ '<|im_end|>' if m.role == 'assistant' else '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant:{{ ' ' }}{% endif %}"
    )
    template = chat.JinjaTemplate(source)
    talk = [user("x")]
    ids, _ = render_turn(TOK, [], talk, template=template)
    for sampled in ([72], [72, SPECIAL["<|im_end|>"]]):
        talk.append(assistant("H"))
        more = [user("y")]
        ids, _ = render_turn(TOK, [*ids, *sampled], more, template=template, history=talk)
        talk += more
    expected = "user: x\nassistant: H<|im_end|>user: y\nassistant: H<|im_end|>user: y\nassistant: "
    assert TOK.decode(ids) == expected


@pytest.mark.parametrize(
    "source",
    [
        CHATML_JINJA + "{% if add_generation_prompt %}<think>{% endif %}",
        CHATML_JINJA.replace("<|im_end|>", "END"),
        "{{ messages[0].system }}{{ raise_exception('no system') }}",
    ],
)
def test_templates_that_cannot_be_continued_are_refused(source: str) -> None:
    pytest.importorskip("jinja2")
    ids = [SPECIAL["<|im_start|>"], *TOK.encode("assistant\nhi")]
    with told(ConversationError):
        past = [user("a"), assistant("hi")]
        render_turn(TOK, ids, [user("x")], template=chat.JinjaTemplate(source), history=past)


@pytest.fixture(scope="module")
def every() -> bytepair.Tokenizer:
    """A tokenizer with every special token that the templates write."""
    pattern = r"<[|｜][^|｜>'\" ]+[|｜]?>|<[^|｜>'\" ]+[|｜]>|</?(?:think|tool_call)>|<\w+_of_turn>"
    names = {n for f in TEMPLATES for n in re.findall(pattern, f.read_text("utf-8"))}
    return bytepair.train(bytepair.sample.paths(), 2000, special_tokens=sorted(names | {"<|eos|>"}))


@pytest.mark.skipif(not TEMPLATES, reason=REASON)
@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_published_templates_continue_or_are_refused(file: Path, every: bytepair.Tokenizer) -> None:
    """The continued ids are those of rendering the whole conversation."""
    variables = {"bos_token": "<|bos|>", "eos_token": "<|eos|>"}
    template = chat.JinjaTemplate(file.read_text("utf-8"), variables, stop=())
    talk = [user("x"), assistant("hello"), user("y")]
    try:
        expected = every.render_for_completion(talk, template=template)
        before = every.render_for_completion(talk[:2], template=template)
        ids, _ = render_turn(
            every, [*before, *every.encode("hello")], talk[2:], template=template, history=talk[:2]
        )
    except ConversationError as error:
        if any(why in str(error) for why in REFUSED):
            return
        raise
    assert ids[: len(before)] == before
    assert every.decode(expected).endswith(every.decode(ids[len(before) :]))


#: What errors say that refuse a template.
REFUSED = (
    "not continue its prompt", "renders the turn differently when", "does not end the turn",
    "no attribute",
)  # fmt: skip


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("template", EVERY)
def test_ids_that_go_on_after_the_stop_token_are_refused(template: Any) -> None:
    prompt, _ = render_turn(TOK, [], [user("x")], template=template)
    ids = [*prompt, *TOK.encode("hi"), stop_of(template), *TOK.encode("more")]
    past = [user("x"), assistant("hi")]
    with told(ConversationError):
        render_turn(TOK, ids, [user("y")], template=template, history=past)


def test_what_is_no_turn_is_an_error() -> None:
    with told(ConversationError):
        render_turn(TOK, TOK.encode("hi"), [user("x")])
    with told(ConversationError):
        render_turn(TOK, [SPECIAL["<|user_start|>"]], [user("x")])
    opened = [SPECIAL["<|im_start|>"], *TOK.encode("user\nhi")]
    with told(ConversationError):
        render_turn(TOK, opened, [user("x")], template=chat.CHATML)
    prompt, _ = render_turn(TOK, [], [user("x")])
    with told(ConversationError):
        render_turn(TOK, prompt, [user("x"), user("y")])
    with told(ConversationError):
        render_turn(TOK, prompt, [{"role": "cat", "content": "x"}])
    with told(ConversationError):
        render_turn(TOK, [], [])
    with told(ValueError):
        render_turn(TOK, prompt[:4], [user("x")], mask=[0] * 9)
    with told(ConversationError):
        render_turn(
            TOK,
            [SPECIAL["<|im_end|>"]],
            {"messages": [user("x")], "tools": [{}]},
            template=chat.CHATML,
        )
    bare = chat.Template("bare", (), {"user": chat.Role(("Q",)), "assistant": chat.Role(("A",))})
    with told(ConversationError):
        render_turn(TOK, [65], [user("x")], template=bare)


def test_a_closed_turn_of_another_role_can_be_continued() -> None:
    ids = TOK.render_conversation([user("x")], on_untrained="keep")[0]
    both, _ = render_turn(TOK, ids, [assistant("y"), user("z")])
    assert both == TOK.render_for_completion([user("x"), assistant("y"), user("z")])
