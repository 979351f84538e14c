"""What conversations promise under every template: text stays text, nothing gets lost."""

from __future__ import annotations

import json
import sys
import threading
import warnings
from collections import UserList
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import chat
from bytepair.chat import ChatOptions
from bytepair.errors import BytepairError, BytepairWarning, ConversationError
from messages import told
from trl_source import TEMPLATES

TEXTS = ["hello world, hello tokens: how are you today?"] * 4
NAMES = [
    "<|bos|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>",
    "</tool_call>", "<|end_of_text|>", "<|pad|>",
]  # fmt: skip
TOK = bytepair.train(TEXTS, 285, special_tokens=NAMES)
NANO = bytepair.train(TEXTS, 285)
CHATML = (
    "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v | tojson }}{% endfor %}"
    "{{ c | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
JINJA = chat.JinjaTemplate(CHATML, checks="off")
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def structure(tok: bytepair.Tokenizer, ids: list[int]) -> int:
    return sum(id in set(tok.special_tokens.values()) for id in ids)


def nested(value: str, depth: int = 5) -> Any:
    for level in range(depth):
        value = {value if isinstance(value, str) else "k": value} if level % 2 else [value]  # type: ignore[assignment]
    return value


def calling(name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return [TALK[0], {"role": "assistant", "content": "", "tool_calls": [call]}]


@pytest.mark.parametrize("name", NAMES)
def test_no_string_at_any_place_becomes_a_special_token(name: str) -> None:
    def row(text: str) -> dict[str, Any]:
        tool = {"type": "function", "function": {"name": "f", text: nested(text)}}
        return {"messages": calling("f" + text, {text: nested(text), "n": 1}), "tools": [tool]}

    plain = TOK.render_conversation(row("x"), template=JINJA, on_untrained="keep").ids
    ids = TOK.render_conversation(row(name), template=JINJA, on_untrained="keep").ids
    assert structure(TOK, ids) == structure(TOK, plain)


def test_a_part_of_a_name_between_the_templates_own_text_stays_text() -> None:
    row = calling("f", {"think": 1})
    ids = TOK.render_conversation(row, template=JINJA, on_untrained="keep").ids
    assert TOK.special_tokens["<think>"] not in ids


def test_a_text_that_has_all_private_use_characters_stays_text_or_is_an_error() -> None:
    private = "".join(map(chr, range(0x100000, 0x10FFFE)))
    template = chat.JinjaTemplate(
        "{% for m in messages %}<|{{ m.content }}{% endfor %}", mask="none"
    )
    for text in ("im_end|> " + private[2:], "<" + private):
        talk = [{"role": "user", "content": text}]
        with pytest.raises(ConversationError) as caught:
            TOK.render_conversation(talk, template=template)
        assert "private-use characters" in str(caught.value)


def test_more_texts_than_marks_are_rendered() -> None:
    talk = [{"role": role, "content": "a"} for role in ("user", "assistant")] * 33_000
    template = chat.JinjaTemplate(CHATML)
    ids, mask = TOK.render_conversation(talk, template=template)
    assert len(ids) == len(mask) > 66_000


def test_lists_of_other_types_hide_no_text() -> None:
    row = calling("f", {"a": UserList(["<think>"])})
    row_ids = TOK.render_conversation(row, template=chat.JinjaTemplate(
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{% for a in c.function.arguments.a %}{{ a }}{% endfor %}{% endfor %}{% endfor %}",
        mask="none",
    ))  # fmt: skip
    assert TOK.special_tokens["<think>"] not in row_ids.ids
    with pytest.raises(ConversationError):
        TOK.render_conversation(calling("f", {"a": b"<think>"}), template=JINJA)


@pytest.mark.parametrize("template", [JINJA, chat.CHATML], ids=["jinja", "value"])
@pytest.mark.parametrize(
    "arguments", ['{"a": 1e400}', '{"a": NaN}', '{"a": 1, "a": 2}',
                  '{"a": ' + "[" * 5000 + "]" * 5000 + "}", '{"a": ' + "1" * 5000 + "}"],
    ids=["1e400", "NaN", "twice", "deep", "digits"]
)  # fmt: skip
def test_arguments_that_are_no_json_are_an_error(
    template: Any, arguments: str, tmp_path: Path
) -> None:
    with pytest.raises(ConversationError):
        TOK.render_conversation(calling("f", arguments), template=template)  # type: ignore[arg-type]
    path = tmp_path / "talks.jsonl"
    talk = json.dumps(TALK)
    path.write_text(f'\n{talk}\n{{"messages": {talk}, "x": {arguments}}}\n')
    with pytest.raises(ConversationError) as caught:
        TOK.render_batch(path, template=template)
    assert str(path) in str(caught.value)
    assert "line 3" in str(caught.value)


@pytest.mark.parametrize("template", [JINJA, chat.CHATML], ids=["jinja", "value"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**5000, {1: 2}],
                         ids=["nan", "inf", "digits", "key"])  # fmt: skip
def test_values_that_json_cannot_hold_are_an_error(template: Any, value: Any) -> None:
    with pytest.raises(ConversationError):
        TOK.render_conversation(calling("f", {"a": [{"b": value}]}), template=template)
    deep: Any = "x"
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ConversationError):
        TOK.render_conversation(calling("f", {"a": deep}), template=template)


def test_nulls_of_calls_and_parts_are_absent_whatever_the_source() -> None:
    pa = pytest.importorskip("pyarrow")
    parts = [{"type": "text", "text": "hi", "image": None}]
    call = {"id": None, "type": "function", "function": {"name": "f", "arguments": '{"a": null}'}}
    row: dict[str, Any] = {"messages": [{"role": "user", "content": parts},
                        {"role": "assistant", "content": None, "tool_calls": [call]}]}  # fmt: skip
    lists = TOK.render_batch([row], template=chat.CHATML)
    # a column of one type needs the content as parts everywhere
    row["messages"][1]["content"] = []
    table = TOK.render_batch(pa.Table.from_pylist([row]), template=chat.CHATML)
    assert lists.input_ids.tolist() == table.input_ids.tolist()


def test_a_null_inside_arguments_of_a_table_is_named() -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [{"messages": calling("f", arguments)} for arguments in ({"a": "x"}, {"b": "y"})]
    with told(BytepairWarning):
        TOK.render_batch(pa.Table.from_pylist(rows), template=JINJA)


def test_the_pad_role_is_used_under_every_template() -> None:
    tok = TOK.replace(roles={"pad": "<|pad|>"})
    for template in (JINJA, chat.CHATML):
        ids = tok.render_batch([TALK], template=template, pad_to=100).input_ids
        assert ids[0, -1] == tok.special_tokens["<|pad|>"]
        pair = {"prompt": "hi", "chosen": "yo", "rejected": "no"}
        assert bytepair.chat.render_preferences(tok, [pair], template=template).pad_id == ids[0, -1]
        named = tok.render_batch([TALK], template=template, pad_to=100, pad="<|bos|>").input_ids
        assert named[0, -1] == tok.special_tokens["<|bos|>"]


def test_the_first_id_of_a_packed_conversation_is_no_target() -> None:
    whole = chat.JinjaTemplate(
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
        "<|im_end|>",
        checks="off",
    )
    batch = TOK.render_batch([TALK, TALK], template=whole, pack_to=64, ignore_index=-100)
    assert batch.conversations is not None
    assert batch.labels is not None
    for number in (0, 1):
        first = int((batch.conversations[0] == number).argmax())
        assert batch.loss_mask[0, first] == 0
        assert batch.labels[0, first] == -100


@pytest.mark.parametrize("rows", ["pad_to", "pack_to"])
def test_what_a_row_cuts_off_is_said_in_numbers(rows: Any) -> None:
    size: dict[str, Any] = {rows: 16}
    long = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello " * 50}]
    whole = NANO.render_batch([TALK, long])
    with told(BytepairWarning) as caught:
        batch: Any = NANO.render_batch([TALK, long], max_tokens=16, **size)
    cut = len(whole.input_ids) - int((batch.conversations >= 0).sum())
    assert f"{cut:,} of {len(whole.input_ids):,} ids" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NANO.render_batch([TALK, TALK], **size)
    with told(ConversationError):
        NANO.render_batch([TALK, long], **size)  # nothing is cut unasked


def test_conversations_that_are_dropped_are_counted() -> None:
    with told(BytepairWarning):
        NANO.render_batch([TALK, TALK[:1]], on_untrained="drop")


@pytest.mark.parametrize("content", ["<think>\nhm\n</think>\n\nyes", "hm</think>yes"])
def test_reasoning_inside_the_content_is_an_error_that_names_the_field(content: str) -> None:
    row = [TALK[0], {"role": "assistant", "content": content}]
    with told(ConversationError):
        TOK.render_conversation(row, template=chat.QWEN3)


@pytest.mark.parametrize("answer", ["hello", " hello", "\n\nhello", ".", "s", "'s it"])
@pytest.mark.parametrize("opening", ["assistant\n", "Answer: ", "a", ":", " "])
def test_training_ids_begin_with_the_ids_of_their_prompt(answer: str, opening: str) -> None:
    frame = chat.Role((chat.Special("<|im_start|>"), opening), (chat.Special("<|im_end|>", True),),
                      trained=True)  # fmt: skip
    value = chat.Template(
        "t", (), {"user": chat.CHATML.roles["user"], "assistant": frame}, join=True
    )
    jinja = chat.JinjaTemplate(
        "{% for m in messages %}<|im_start|>{{ 'OPENING' if m.role == 'assistant' else 'user\n' }}"
        "{{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>OPENING{% endif %}".replace("OPENING", opening)
    )
    talk = [TALK[0], {"role": "assistant", "content": answer}]
    for template in (value, jinja):
        prompt = TOK.render_for_completion(talk, template=template)
        ids, mask = TOK.render_conversation(talk, template=template)
        assert ids[: len(prompt)] == prompt
        assert not any(mask[: len(prompt)])
        assert all(mask[len(prompt) : -1])


def test_only_what_is_trained_on_is_checked_for_drops() -> None:
    drops = chat.JinjaTemplate(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% if m.reasoning_content and loop.last %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    thought = {"role": "assistant", "content": "hello", "reasoning_content": "they greet"}
    talk = [TALK[0], thought, TALK[0], thought]
    assert any(
        TOK.render_conversation(talk, template=drops, options=ChatOptions(train_on="last")).mask
    )
    with pytest.raises(ConversationError):
        TOK.render_conversation(talk, template=drops)


def test_the_disguise_of_a_text_is_found_in_linear_work() -> None:
    from bytepair.chat.rendering import Disguise, TokenNames

    names = [f"<|reserved_special_token_{number}|>" for number in range(256)]
    disguise = Disguise(TokenNames(names), set(), everywhere=False)
    calls = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    text = "a < b, 5 <| 7 <|reserved_special_token_7|> " * 200
    sys.setprofile(count)
    try:
        hidden = disguise.put_on(text)
    finally:
        sys.setprofile(None)
    assert disguise.take_off(hidden) == text
    assert "<|reserved_special_token_7|>" not in hidden
    assert calls < 20 * len(text)


def test_threads_with_different_tokenizers_get_their_own_ids() -> None:
    toks = [NANO, bytepair.train(["abab hi hello"] * 3, 268)]
    expected = [tok.render_conversation(TALK).ids for tok in toks]
    wrong: list[Any] = []

    def run(which: int) -> None:
        for _ in range(300):
            if toks[which].render_conversation(TALK).ids != expected[which]:
                wrong.append(which)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(n % 2,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_rendering_a_conversation_takes_few_calls() -> None:
    NANO.render_conversation(TALK)
    names = []

    def count(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    row = {"messages": TALK}
    sys.setprofile(count)
    try:
        NANO.render_conversation(row)
    finally:
        sys.setprofile(None)
    assert len(names) <= 15, names


def test_a_tokenizer_without_a_template_says_so() -> None:
    tok = bytepair.train(TEXTS, 270, special_tokens=["<|end|>"])
    with pytest.raises(BytepairError) as caught:
        tok.render_conversation(TALK)
    assert caught.value.option == "template"
    assert "nanochat" not in str(caught.value)


@pytest.mark.parametrize("end", [["<|im_end|>", "<|im_end|>"], ["<|im_end|>", "<|end_of_text|>"],
                                 ["<|end_of_text|>"]])  # fmt: skip
def test_an_answer_that_ends_twice_or_with_eos_is_kept(end: list[str]) -> None:
    tok = TOK.replace(roles={"eos": "<|end_of_text|>"})
    ids = tok.render_for_completion(TALK[:1], template=chat.CHATML)
    ids += [*tok.encode("hello"), *(tok.special_tokens[name] for name in end)]
    assert tok.parse_conversation(ids, template=chat.CHATML) == {"messages": TALK}


def test_columns_beside_the_messages_are_ignored_and_fields_inside_are_errors() -> None:
    row = {"id": 7, "source": "web", "score": 0.5, "messages": TALK}
    for template in (JINJA, chat.CHATML):
        expected = TOK.render_conversation(TALK, template=template)
        assert TOK.render_conversation(row, template=template) == expected
    with pytest.raises(ConversationError):
        TOK.render_conversation([{**TALK[0], "mood": 1}, TALK[1]], template=chat.CHATML)


# ---------------------------------------------------------------------------- published templates


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_text_stays_text_under_published_templates(path: Path) -> None:
    import re

    source = path.read_text()
    names = sorted({*re.findall(r"<[|\w/｜▁]+>|\[/?[A-Z_]+\]", source)})[:40]
    tok = bytepair.train(TEXTS, 256 + len(names or [1]) + 9, special_tokens=names or ["<|end|>"])
    template = chat.JinjaTemplate(source, checks="off", mask="none",
                                  variables={"bos_token": "", "eos_token": ""})  # fmt: skip

    def row(text: str) -> dict[str, Any]:
        parameters = {"type": "object", "properties": {"a" + text: {"type": "string",
                      "description": text, "x" + text: nested(text)}}}  # fmt: skip
        tool = {"type": "function", "function": {"name": "f" + text, "description": text,
                "parameters": parameters}}  # fmt: skip
        call = {"id": "call00001", "type": "function", "function": {"name": "f" + text,
                "arguments": {"a" + text: nested(text)}}}  # fmt: skip
        return {
            "messages": [{"role": "user", "content": "hi" + text},
                         {"role": "assistant", "content": "", "tool_calls": [call]},
                         {"role": "tool", "name": "f" + text, "tool_call_id": "call00001",
                          "content": "6" + text},
                         {"role": "assistant", "content": "it is" + text}],
            "tools": [tool],
        }  # fmt: skip

    for make in (
        row,
        lambda text: {"messages": [{**m, "content": m["content"] + text} for m in TALK]},
    ):
        try:
            plain = tok.render_conversation(make(" x"), template=template).ids
        except ConversationError:
            continue
        for name in names:
            try:
                ids = tok.render_conversation(make(" " + name), template=template).ids
            except ConversationError:
                continue  # a template that searches its own tokens in text is refused
            assert structure(tok, ids) == structure(tok, plain), name
