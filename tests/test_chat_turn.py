"""Turns after sampled ids: the sampled ids stay, and the template writes what follows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.chat import render_turn
from bytepair.errors import ConversationError
from messages import told

NAMES = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|start_header_id|>",
         "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"]  # fmt: skip
TOK = bytepair.train(
    bytepair.sample.paths(),
    1500,
    special_tokens=[*bytepair.training.NANOCHAT_SPECIAL_TOKENS, *NAMES],
)
SPECIAL = TOK.special_tokens

STOPS = {"nanochat": "<|assistant_end|>", "chatml": "<|im_end|>", "llama3": "<|eot_id|>",
         "qwen2.5": "<|im_end|>"}  # fmt: skip
VALUES = [chat.NANOCHAT, chat.CHATML, chat.QWEN25, chat.LLAMA3]


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


@pytest.mark.parametrize("template", VALUES, ids=lambda t: t.name)
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
        ids, mask = render_turn(TOK, ids, more, mask=mask, template=template)
        talk += more
        assert ids == TOK.render_for_completion(talk, template=template)
        ids = [*ids, *TOK.encode(answer), *([stop_of(template)] if ends else [])]
        talk.append(assistant(answer))
    ids, mask = render_turn(TOK, ids, [], mask=mask, template=template)
    whole, trained = TOK.render_conversation(talk, template=template, on_untrained="keep")
    assert ids == whole
    if not ends:  # the stop token was not sampled
        trained = [m and id != stop_of(template) for id, m in zip(whole, trained, strict=True)]
    assert mask == [int(m) for m in trained]


@pytest.mark.parametrize("template", VALUES, ids=lambda t: t.name)
@settings(max_examples=60)
@given(hard, hard, st.lists(st.integers(0, 99), max_size=9), st.booleans())
def test_what_was_sampled_stays(
    template: Any, question: str, answer: str, cuts: list[int], ends: bool
) -> None:
    prompt, mask = render_turn(TOK, [], [user("x")], template=template)
    sampled = [*spelled(answer, cuts), *([stop_of(template)] if ends else [])]
    ids, after = render_turn(
        TOK, [*prompt, *sampled], [user(question)], mask=mask, template=template
    )
    assert ids[: len(prompt) + len(sampled)] == [*prompt, *sampled]
    assert after == [0] * len(prompt) + [1] * len(sampled) + [0] * (
        len(ids) - len(mask) - len(sampled)
    )
    usual = [*prompt, *TOK.encode(answer), stop_of(template)]
    also, _ = render_turn(TOK, usual, [user(question)], template=template)
    more = ids[len(prompt) + len(sampled) :]
    assert more == ([] if ends else [stop_of(template)]) + also[len(usual) :]
    special = [id for id in ids if id in SPECIAL.values()]
    assert special == [id for id in also if id in SPECIAL.values()]


@pytest.mark.parametrize("template", [chat.CHATML], ids=lambda t: t.name)
def test_results_of_tools(template: Any) -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    talk = [user("x"), assistant("", tool_calls=[call, call])]
    results = [tool("1<|im_end|>"), tool("2")]
    so_far, _ = TOK.render_conversation(talk, template=template)
    stop = len(so_far) - so_far[::-1].index(stop_of(template))
    expected = TOK.render_for_completion([*talk, *results], template=template)
    for cut in {stop - 1, stop, len(so_far)}:
        assert render_turn(TOK, so_far[:cut], results, template=template)[0] == expected


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


def test_a_special_token_that_ends_no_turn_is_kept() -> None:
    prompt, _ = render_turn(TOK, [], [user("x")], template=chat.LLAMA3)
    ids, _ = render_turn(TOK, [*prompt, SPECIAL["<|endoftext|>"]], [], template=chat.LLAMA3)
    assert ids == [*prompt, SPECIAL["<|endoftext|>"], SPECIAL["<|eot_id|>"]]


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("template", VALUES, ids=lambda t: t.name)
def test_ids_that_go_on_after_the_stop_token_are_refused(template: Any) -> None:
    prompt, _ = render_turn(TOK, [], [user("x")], template=template)
    ids = [*prompt, *TOK.encode("hi"), stop_of(template), *TOK.encode("more")]
    with told(ConversationError):
        render_turn(TOK, ids, [user("y")], template=template)


def test_a_template_in_jinja_cannot_be_continued() -> None:
    pytest.importorskip("jinja2")
    template = chat.JinjaTemplate(TOK.chat_templates["default"])
    prompt, _ = render_turn(TOK, [], [user("x")], template=template)
    assert prompt == TOK.render_for_completion([user("x")])
    with told(ConversationError, "template"):
        render_turn(TOK, prompt, [user("y")], template=template)


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


def test_a_closed_turn_of_another_role_is_an_error() -> None:
    ids = TOK.render_conversation([user("x")], on_untrained="keep")[0]
    with told(ConversationError):
        render_turn(TOK, ids, [assistant("y"), user("z")])
