"""Rendering conversations: the rules of the mask one by one, and an independent plain rendering."""

from __future__ import annotations

import gzip
import json
from collections import UserDict
from collections.abc import Callable
from itertools import groupby
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
from bytepair.chat import ChatOptions
from bytepair.chat.rows import role_of
from bytepair.errors import ConversationError, CorpusError, SpecialTokenError
from conftest import refused
from messages import told

SPECIAL = bytepair.training.NANOCHAT_SPECIAL_TOKENS
FOREIGN = ("<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>")
MORE = (*FOREIGN, "<|end_header_id|>", "<|eot_id|>")

TOK = bytepair.train(
    ["user assistant hello world, what is 1+1?\n\nIt is 2. <|im_start|> print('2')\n" * 4],
    vocab_size=310,
    special_tokens=(*SPECIAL, *MORE),
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(content: str | list[dict[str, str]]) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def part(kind: str, text: str) -> dict[str, str]:
    return {"type": kind, "text": text}


TALK = [user("hi"), assistant("hello")]
TOOLS = [
    user("what is 1+1?"),
    assistant([part("text", "It "), part("python", "1+1"), part("python_output", "2")]),
]


def spoken(ids: list[int], mask: list[int], value: int) -> str:
    """The tokens whose mask is `value`, as text."""
    return TOK.decode([id for id, trained in zip(ids, mask, strict=True) if trained == value])


# ---------------------------------------------------------------------------- the mask, by rule


def test_what_the_assistant_says_is_trained_on() -> None:
    ids, mask = TOK.render_conversation(TALK)
    assert spoken(ids, mask, 1) == "hello<|assistant_end|>"


def test_the_rest_of_a_conversation_is_not_trained_on() -> None:
    ids, mask = TOK.render_conversation(TALK)
    assert spoken(ids, mask, 0) == "<|bos|><|user_start|>hi<|user_end|><|assistant_start|>"


def test_every_turn_of_the_assistant_is_trained_on() -> None:
    ids, mask = TOK.render_conversation([*TALK, user("1"), assistant("world")])
    assert spoken(ids, mask, 1) == "hello<|assistant_end|>world<|assistant_end|>"


def test_a_tool_call_is_trained_on_with_its_tokens() -> None:
    ids, mask = TOK.render_conversation(TOOLS)
    assert spoken(ids, mask, 1) == "It <|python_start|>1+1<|python_end|><|assistant_end|>"


def test_the_output_of_a_tool_is_not_trained_on_nor_its_tokens() -> None:
    ids, mask = TOK.render_conversation(TOOLS)
    assert spoken(ids, mask, 0).endswith("<|assistant_start|><|output_start|>2<|output_end|>")


def test_a_system_message_is_joined_to_the_first_user_message() -> None:
    system = {"role": "system", "content": "sys"}
    assert TOK.render_conversation([system, *TALK]) == TOK.render_conversation(
        [user("sys\n\nhi"), assistant("hello")]
    )


def test_the_conversation_given_is_not_changed() -> None:
    talk = {"messages": [{"role": "system", "content": "sys"}, *TALK]}
    before = json.dumps(talk)
    TOK.render_conversation(talk)
    TOK.render_for_completion(talk)
    assert json.dumps(talk) == before


def test_parts_are_encoded_apart() -> None:
    token = max(TOK.mergeable_ranks(), key=len).decode()
    halves = [part("text", token[:2]), part("text", token[2:])]
    ids, _ = TOK.render_conversation([user("x"), assistant(halves)])
    expected = TOK.encode(token[:2]) + TOK.encode(token[2:])
    assert expected != TOK.encode(token)
    assert ids[-1 - len(expected) : -1] == expected


# ---------------------------------------------------------------------------- a plain rendering


def plainly(conversation: dict[str, Any]) -> tuple[list[int], list[int]]:
    """nanochat's rendering, written again with tiktoken alone."""
    encoding = bytepair.compat.to_tiktoken(TOK)
    special, text = encoding.encode_single_token, encoding.encode_ordinary
    rows: list[tuple[list[int], int]] = [([special("<|bos|>")], 0)]
    messages = conversation["messages"]
    if messages[0]["role"] == "system":
        joined = messages[0]["content"] + "\n\n" + messages[1]["content"]
        messages = [user(joined), *messages[2:]]
    for message in messages:
        role, content = message["role"], message["content"]
        rows.append(([special(f"<|{role}_start|>")], 0))
        parts = [part("text", content)] if isinstance(content, str) else content
        for piece in parts:
            ids = text(piece["text"])
            if piece["type"] == "python":
                ids = [special("<|python_start|>"), *ids, special("<|python_end|>")]
            if piece["type"] == "python_output":
                ids = [special("<|output_start|>"), *ids, special("<|output_end|>")]
            rows.append((ids, int(role == "assistant" and piece["type"] != "python_output")))
        rows.append(([special(f"<|{role}_end|>")], int(role == "assistant")))
    return [i for ids, _ in rows for i in ids], [m for ids, m in rows for _ in ids]


texts = st.one_of(
    st.text(max_size=20),
    st.lists(st.sampled_from([*SPECIAL, *MORE, "<|", "bos|>", "\n", " hello"]), max_size=4).map(
        "".join
    ),
)
parts_of = st.builds(part, st.sampled_from(["text", "python", "python_output"]), texts)
contents = st.one_of(texts, st.lists(parts_of, max_size=4))


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Any]:
    """Conversations of every shape that nanochat's template allows."""
    system = draw(st.lists(texts, max_size=1))
    turns = draw(st.lists(st.tuples(texts, contents), min_size=1, max_size=3))
    messages = [{"role": "system", "content": text} for text in system]
    for question, answer in turns:
        messages += [user(question), assistant(answer)]
    if draw(st.booleans()):
        messages.append(user(draw(texts)))
    return {"messages": messages}


@given(conversations())
def test_rendering_equals_the_plain_one(conversation: dict[str, Any]) -> None:
    assert TOK.render_conversation(conversation, max_tokens=None) == plainly(conversation)


@given(conversations(), st.integers(0, 80))
def test_truncation_keeps_the_first_ids(conversation: dict[str, Any], limit: int) -> None:
    ids, mask = plainly(conversation)
    cut = TOK.render_conversation(conversation, limit, on_untrained="keep")
    assert cut == (ids[:limit], mask[:limit])


# ---------------------------------------------------------------------------- forging


@pytest.mark.parametrize("name", [*SPECIAL, *MORE])
@pytest.mark.parametrize(
    "template", [chat.NANOCHAT, chat.CHATML, chat.LLAMA3], ids=lambda t: t.name
)
def test_the_text_of_a_special_token_stays_text_everywhere(
    name: str, template: chat.Template
) -> None:
    def count(text: str) -> int:
        content: Any = text
        if template is chat.NANOCHAT:
            content = [part(kind, text) for kind in ("text", "python", "python_output")]
        system = {"role": "system", "content": text}
        talk = [system, user(text), assistant(content), user(text), assistant(text)]
        ids, _ = TOK.render_conversation(talk, max_tokens=None, template=template)
        return sum(id in TOK.special_tokens.values() for id in ids)

    honest = count("x")
    for forged in (name, f"a{name}b", name * 3, f" {name}\n", f"<{name}>"):
        assert count(forged) == honest


@pytest.mark.parametrize("name", SPECIAL)
def test_a_special_token_split_across_parts_stays_text(name: str) -> None:
    for cut in range(1, len(name)):
        halves = [part("text", name[:cut]), part("text", name[cut:])]
        ids, _ = TOK.render_conversation([user("x"), assistant(halves)])
        assert ids.count(TOK.special_tokens[name]) == (name in plain_tokens())


def plain_tokens() -> list[str]:
    """The special tokens of a conversation of one question and one answer."""
    return [name for name in SPECIAL if name.split("_")[0] in ("<|bos|>", "<|user", "<|assistant")]


def test_a_special_token_split_across_messages_stays_text() -> None:
    ids, _ = TOK.render_conversation([user("<|bos"), assistant("|>")])
    assert ids.count(TOK.special_tokens["<|bos|>"]) == 1


# ---------------------------------------------------------------------------- errors

BROKEN: list[Any] = [
    [],
    {},
    "hello",
    ["hello"],
    [{"content": "x"}],
    [assistant("x")],
    [user("x"), user("y")],
    [*TALK, {"role": "system", "content": "x"}],
    [{"role": "system", "content": "x"}],
    [{"role": "system", "content": "x"}, assistant("y")],
    [{"role": "system", "content": ["x"]}, user("y")],
    [user("x"), {"role": "assistant"}],
    [{"role": "user", "content": [part("image", "x")]}, assistant("y")],
    [user("x"), assistant([part("image", "y")])],
    [user("x"), assistant(["y"])],  # type: ignore[list-item]
    [user("x"), assistant([{"type": "text"}])],
    [user("x")],
]


@pytest.mark.parametrize("conversation", BROKEN)
def test_a_broken_conversation_is_an_error_that_names_the_rule(
    conversation: Any,
) -> None:
    with told(ConversationError):
        TOK.render_conversation(conversation)
    with told(ConversationError):
        TOK.render_batch([TALK, conversation])


def test_a_mask_that_is_cut_to_nothing_says_so() -> None:
    with told(ConversationError):
        TOK.render_conversation(TALK, max_tokens=4)


def test_a_mask_of_ones_is_an_error() -> None:
    template = chat.Template("bare", (), {"assistant": chat.Role((), trained=True)})
    with told(ConversationError):
        TOK.render_conversation([assistant("hi")], template=template)


def test_a_tokenizer_without_the_tokens_of_the_template_is_an_error() -> None:
    bare = bytepair.train(["hello"], vocab_size=258, special_tokens=("<|bos|>",))
    with told(SpecialTokenError):
        bare.render_conversation(TALK, template=chat.NANOCHAT)


def test_options_that_make_no_sense_are_errors() -> None:
    with refused("truncate", "words"):
        TOK.render_conversation(TALK, options=ChatOptions(truncate="words"))  # type: ignore[arg-type]
    with told(ValueError):
        TOK.render_conversation(TALK, max_tokens=-1)
    with told(ValueError):
        TOK.render_batch([TALK], pad_to=9, pack_to=9)
    with told(ConversationError):
        TOK.render_batch({"messages": TALK})


# ---------------------------------------------------------------------------- completion


@given(conversations())
def test_a_prompt_ends_before_the_reply(conversation: dict[str, Any]) -> None:
    messages = conversation["messages"]
    prompt = messages[:-1] if messages[-1]["role"] == "assistant" else messages
    expected = [*plainly({"messages": prompt})[0], TOK.special_tokens["<|assistant_start|>"]]
    assert TOK.render_for_completion(conversation) == expected


def test_nothing_before_the_reply_is_an_error() -> None:
    with told(ConversationError):
        TOK.render_for_completion([assistant("x")])


# ---------------------------------------------------------------------------- other templates


def written(messages: list[dict[str, Any]], template: chat.Template) -> str:
    """A conversation as the string that a template writes."""
    show = lambda piece: piece.name if isinstance(piece, chat.Special) else piece  # noqa: E731
    pieces = list(template.begin)
    for message in messages:
        role = template.roles[message["role"]]
        content = message["content"].strip() if template.strip else message["content"]
        pieces += [*role.open, content, *role.close]
    return "".join(map(show, pieces))


@pytest.mark.parametrize("template", [chat.CHATML, chat.LLAMA3], ids=lambda t: t.name)
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="<")), min_size=2, max_size=4)
)
def test_joined_templates_encode_like_their_string(
    template: chat.Template, texts: list[str]
) -> None:
    roles = ["system", "user", "assistant", "user"]
    texts[2:3] = [
        text.lstrip() for text in texts[2:3]
    ]  # an answer is encoded apart from its prompt
    talk = [{"role": r, "content": t} for r, t in zip(roles, texts, strict=False)]
    ids, mask = TOK.render_conversation(talk, template=template, on_untrained="keep")
    assert ids == TOK.encode(written(talk, template), special="all")
    assert len(mask) == len(ids)


@pytest.mark.parametrize(
    ("template", "end"), [(chat.CHATML, "<|im_end|>"), (chat.LLAMA3, "<|eot_id|>")]
)
def test_other_templates_train_on_the_reply_and_its_end(template: chat.Template, end: str) -> None:
    ids, mask = TOK.render_conversation(TALK, template=template)
    assert spoken(ids, mask, 1) == f"hello{end}"


def test_roles_may_follow_each_other_where_the_template_says_nothing() -> None:
    talk = [user("a"), user("b"), assistant("c")]
    ids, _ = TOK.render_conversation(talk, template=chat.CHATML)
    assert TOK.parse_conversation(ids, template=chat.CHATML) == {"messages": talk}
    with told(ConversationError):
        TOK.render_conversation(
            [user("a"), {"role": "system", "content": "b"}], template=chat.CHATML
        )
    with told(ConversationError):
        TOK.render_conversation([{"role": "cat", "content": "b"}], template=chat.CHATML)


def test_a_template_that_names_a_role_it_lacks_is_an_error() -> None:
    with told(ValueError):
        chat.Template("none", (), {})


# ---------------------------------------------------------------------------- batches


def rows(batch: chat.RenderedBatch) -> list[tuple[list[int], list[int]]]:
    return [(ids.tolist(), mask.tolist()) for ids, mask in batch]


@pytest.mark.filterwarnings("ignore::bytepair.errors.SkippedWarning")
@pytest.mark.parametrize("threads", [1, 3])
@given(st.lists(conversations(), max_size=6))
def test_a_batch_is_each_conversation(threads: int, talks: list[dict[str, Any]]) -> None:
    batch = TOK.render_batch(talks, max_tokens=30, on_untrained="keep", threads=threads)
    assert rows(batch) == [TOK.render_conversation(t, 30, on_untrained="keep") for t in talks]


@pytest.mark.filterwarnings("ignore::bytepair.errors.SkippedWarning")
@given(st.lists(conversations(), max_size=6))
def test_dropping_removes_conversations_with_nothing_to_train_on(
    talks: list[dict[str, Any]],
) -> None:
    rest = rows(TOK.render_batch(talks, max_tokens=12, on_untrained="drop"))
    every = rows(TOK.render_batch(talks, max_tokens=12, on_untrained="keep"))
    assert rest == [(ids, mask) for ids, mask in every if 0 < sum(mask) < len(mask)]


def test_padding() -> None:
    batch = TOK.render_batch([TALK, TOOLS], pad_to=40, ignore_index=-100)
    plain = rows(TOK.render_batch([TALK, TOOLS]))
    assert batch.labels is not None
    assert batch.input_ids.shape == batch.loss_mask.shape == batch.labels.shape == (2, 40)
    for row, (ids, mask) in enumerate(plain):
        n = len(ids)
        assert batch.input_ids[row, :n].tolist() == ids
        assert set(batch.input_ids[row, n:].tolist()) == {TOK.special_tokens["<|bos|>"]}
        assert batch.loss_mask[row].tolist() == mask + [0] * (40 - n)
        expected = [id if m else -100 for id, m in zip(ids, mask, strict=True)]
        assert batch.labels[row].tolist() == expected + [-100] * (40 - n)


@pytest.mark.filterwarnings("ignore::bytepair.errors.SkippedWarning")
@given(st.lists(conversations(), min_size=1, max_size=8))
def test_packing_keeps_every_conversation_whole(talks: list[dict[str, Any]]) -> None:
    batch = TOK.render_batch(talks, pack_to=64, max_tokens=64, on_untrained="keep")
    plain = rows(TOK.render_batch(talks, max_tokens=64, on_untrained="keep"))
    owners = batch.conversations
    assert owners is not None
    for number, (ids, mask) in enumerate(plain):
        row, columns = np.nonzero(owners == number)
        assert len(set(row.tolist())) == 1
        assert columns.tolist() == list(range(columns[0], columns[0] + len(ids)))
        assert batch.input_ids[row, columns].tolist() == ids
        assert batch.loss_mask[row, columns].tolist() == mask
    assert batch.loss_mask[owners == -1].sum() == 0
    assert len(batch) <= len(talks)


def test_sources(tmp_path: Path) -> None:
    talks = [{"messages": TALK}, {"messages": [user("1"), assistant("2")]}]
    expected = rows(TOK.render_batch(talks))
    bare = "\n".join(json.dumps(talk["messages"]) for talk in talks)
    (tmp_path / "bare.jsonl").write_text(bare + "\n\n")
    (tmp_path / "bare.jsonl.gz").write_bytes(gzip.compress(bare.encode()))
    (tmp_path / "named.jsonl").write_text("\n".join(map(json.dumps, talks)))
    other = ({"conversations": talk["messages"]} for talk in talks)
    (tmp_path / "other.jsonl").write_text("\n".join(map(json.dumps, other)))
    table = pa.Table.from_pylist(talks)
    pq.write_table(table, tmp_path / "talks.parquet")
    for source in ("bare.jsonl", "bare.jsonl.gz", "named.jsonl", "other.jsonl", "talks.parquet"):
        assert rows(TOK.render_batch(tmp_path / source)) == expected
    assert rows(TOK.render_batch([tmp_path / "bare.jsonl"])) == expected
    for arrow in (table, table["messages"], table["messages"].chunk(0), table.to_batches()[0]):
        assert rows(TOK.render_batch(arrow)) == expected


def test_sources_that_hold_no_conversations_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.jsonl").write_text(json.dumps(TALK) + "\n{")
    with told(ConversationError):
        TOK.render_batch(tmp_path / "broken.jsonl")
    with told(ConversationError):
        TOK.render_batch(pa.table({"text": ["x"]}))
    (tmp_path / "talks.txt").write_text("hello")
    with told(ConversationError):
        TOK.render_batch(tmp_path / "talks.txt")
    monkeypatch.chdir(tmp_path)  # a message shows the beginning of a long path
    with told(CorpusError):
        TOK.render_batch(Path("talks.jsonl"))
    (tmp_path / "short.jsonl").write_bytes(b'{"messages": "\xff"}')
    with told(CorpusError):
        TOK.render_batch(tmp_path / "short.jsonl")


def test_arrow_out() -> None:
    ragged = TOK.render_batch([TALK, TOOLS], ignore_index=-1)
    table = ragged.to_arrow()
    assert table.column_names == ["input_ids", "loss_mask", "labels"]
    assert table["input_ids"].to_pylist() == [ids for ids, _ in rows(ragged)]
    padded = TOK.render_batch([TALK, TOOLS], pad_to=32)
    assert padded.to_arrow()["input_ids"].to_pylist() == padded.input_ids.tolist()


def test_an_empty_batch() -> None:
    assert len(TOK.render_batch([])) == 0
    assert TOK.render_batch([], pack_to=8).input_ids.shape == (0, 8)


def test_a_batch_is_indexed_like_a_list() -> None:
    batch = TOK.render_batch([TALK, TOOLS])
    assert batch[-1][0].tolist() == batch[1][0].tolist()
    with pytest.raises(IndexError):
        batch[2]


# ---------------------------------------------------------------------------- parsing back


def normal(conversation: dict[str, Any]) -> dict[str, Any]:
    """A conversation as rendering keeps it."""
    messages = conversation["messages"]
    if messages[0]["role"] == "system":
        joined = messages[0]["content"] + "\n\n" + messages[1]["content"]
        messages = [user(joined), *messages[2:]]
    return {"messages": [{**m, "content": normal_content(m["content"])} for m in messages]}


def normal_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts: list[dict[str, str]] = []
    for piece in content:
        if piece["type"] == "text" and parts and parts[-1]["type"] == "text":
            parts[-1]["text"] += piece["text"]
        elif piece["type"] != "text" or piece["text"]:
            parts.append(dict(piece))
    plain = all(piece["type"] == "text" for piece in parts)
    return "".join(piece["text"] for piece in parts) if plain else parts


@given(conversations())
def test_parsing_is_the_inverse_of_rendering(conversation: dict[str, Any]) -> None:
    ids, _ = TOK.render_conversation(conversation, max_tokens=None)
    assert TOK.parse_conversation(ids) == normal(conversation)


@pytest.mark.parametrize("template", [chat.CHATML, chat.LLAMA3], ids=lambda t: t.name)
@given(st.lists(texts.map(str.strip), min_size=2, max_size=2))
def test_parsing_other_templates(template: chat.Template, strings: list[str]) -> None:
    talk = [user(strings[0]), assistant(strings[1])]
    ids, _ = TOK.render_conversation(talk, max_tokens=None, template=template)
    assert TOK.parse_conversation(ids, template=template) == {"messages": talk}


def test_a_prompt_parses_to_a_message_that_is_open() -> None:
    parser = chat.Parser(TOK)
    for id in TOK.render_for_completion(TALK):
        parser.feed(id)
    assert parser.messages == [user("hi")]
    assert parser.conversation == {"messages": [user("hi"), assistant("")]}


def test_a_stream_tells_when_a_tool_call_is_complete() -> None:
    parser = chat.Parser(TOK)
    events = [event for id in TOK.render_conversation(TOOLS)[0] for event in parser.feed(id)]
    reply = events[events.index(chat.MessageEnd(TOOLS[0])) + 1 :]
    called = {"name": "python", "arguments": {"code": "1+1"}}
    assert [e for e in reply if not isinstance(e, chat.TextDelta)] == [
        chat.ToolCall({"type": "function", "function": called}),
        chat.MessageEnd(TOOLS[1]),
    ]
    said = [(e.part, e.text) for e in reply if isinstance(e, chat.TextDelta)]
    assert [part for part, _ in groupby(said, lambda one: one[0])] == [
        "text", "python", "python_output"
    ]  # fmt: skip
    assert "".join(text for _, text in said) == "It 1+12"


def test_a_stream_holds_characters_back_until_they_are_whole() -> None:
    parser = chat.Parser(TOK)
    for id in TOK.render_for_completion(TALK):
        parser.feed(id)
    deltas = [parser.feed(id) for id in TOK.encode("é")]
    assert deltas[:-1] == [[]] * (len(deltas) - 1)
    assert deltas[-1] == [chat.TextDelta("é")]
    parser.feed(TOK.encode("é")[0])
    assert parser.finish() == [chat.TextDelta("�")]


@pytest.mark.parametrize(
    "tokens",
    [
        ["<|bos|>", "<|user_end|>"],
        ["<|user_start|>", "<|bos|>"],
        ["<|assistant_start|>", "<|python_start|>", "<|output_end|>"],
    ],
)
def test_tokens_out_of_place_are_errors(tokens: list[str]) -> None:
    with told(ConversationError):
        TOK.parse_conversation([TOK.special_tokens[name] for name in tokens])


# ---------------------------------------------------------------------------- pictures


def test_pictures_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, mask = TOK.encode("hé", append="<|bos|>"), [0, 1, 1, 0]
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = TOK.show(ids, mask)
    assert coloured.startswith("\x1b[91mh\x1b[0m|\x1b[92m<C3>\x1b[0m|\x1b[92m<A9>\x1b[0m|")
    assert coloured.endswith("|\x1b[1;7m\x1b[91m⟪<|bos|>⟫\x1b[0m")
    assert TOK.show(ids, mask, with_ids=True).count("\x1b[90m(") == 4
    monkeypatch.setenv("NO_COLOR", "1")
    assert TOK.show(ids, mask, with_ids=True) == (
        f"h(104)|[<C3>](195)|[<A9>](169)|⟪<|bos|>⟫({TOK.special_tokens['<|bos|>']})"
    )
    with told(ValueError):
        TOK.show(ids, [1])


def test_pictures_in_a_notebook() -> None:
    ids = TOK.encode("<b>\n")
    shown = TOK.show(ids, [1] * len(ids), format="html")
    assert "<b>" not in shown
    assert shown._repr_html_() == str(shown)  # type: ignore[attr-defined]
    assert f"id {ids[0]}" in shown


# ---------------------------------------------------------------------------- Jinja

CHATML_JINJA = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}"
    "{% endgeneration %}{{ '\n' }}"
    "{% else %}{{ message['content'] + '<|im_end|>' + '\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@given(st.lists(texts, min_size=2, max_size=2))
def test_jinja_renders_like_the_same_template_as_a_value(strings: list[str]) -> None:
    jinja = chat.JinjaTemplate(CHATML_JINJA, stop=("<|im_end|>",))
    talk = [user(strings[0]), assistant(strings[1])]
    expected = TOK.render_conversation(talk, None, template=chat.CHATML)
    assert TOK.render_conversation(talk, None, template=jinja) == expected
    assert TOK.render_for_completion(talk, template=jinja) == TOK.render_for_completion(
        talk, template=chat.CHATML
    )


#: Two text parts in a row, which nanochat encodes apart and a string cannot tell apart.
TOUCH = ("text", "text")


def without_touching_texts(conversation: dict[str, Any]) -> dict[str, Any]:
    """A conversation with all but the first of the text parts in a row left out."""

    def apart(content: Any) -> Any:
        before = ["", *(piece["type"] for piece in content)]
        return [p for p, kind in zip(content, before, strict=False) if (p["type"], kind) != TOUCH]

    return {
        "messages": [
            m if isinstance(m["content"], str) else assistant(apart(m["content"]))
            for m in conversation["messages"]
        ]
    }


@given(conversations().map(without_touching_texts))
def test_nanochat_in_jinja_is_nanochat(talk: dict[str, Any]) -> None:
    assert TOK.chat_templates.get("default")
    jinja = chat.JinjaTemplate(TOK.chat_templates["default"])
    assert TOK.render_conversation(talk, template=jinja) == plainly(talk)
    prompt = TOK.render_for_completion(talk)
    assert TOK.render_for_completion(talk, template=jinja) == prompt


def test_nanochat_in_jinja_joins_texts_that_touch() -> None:
    assert TOK.chat_templates.get("default")
    jinja = chat.JinjaTemplate(TOK.chat_templates["default"])
    halves = [user("x"), assistant([part("text", "hel"), part("text", "lo")])]
    whole = [user("x"), assistant("hello")]
    assert TOK.render_conversation(halves, template=jinja) == TOK.render_conversation(whole)


@pytest.mark.parametrize(
    "talk",
    [
        [user("x"), assistant([part("image", "x")])],
        [user("x"), user("y")],
        [user([]), assistant("x")],  # type: ignore[arg-type]
    ],
)
def test_nanochat_in_jinja_refuses_what_nanochat_refuses(talk: list[dict[str, Any]]) -> None:
    assert TOK.chat_templates.get("default")
    with told(ConversationError):
        TOK.render_conversation(talk, template=chat.JinjaTemplate(TOK.chat_templates["default"]))
    with pytest.raises(ConversationError):
        TOK.render_conversation(talk)


@pytest.mark.parametrize("name", [*SPECIAL, *MORE])
def test_jinja_cannot_be_made_to_forge(name: str) -> None:
    glued = chat.JinjaTemplate(
        "{% for m in messages %}<|bos|>{% for p in m.content %}{{ p.text | trim }}{% endfor %}"
        "{% endfor %}"
    )
    for cut in range(len(name) + 1):
        parts = [part("text", f"{name[:cut]} "), part("text", f" {name[cut:]}")]
        talk = [{"role": "user", "content": parts}]
        ids, _ = TOK.render_conversation(talk, template=glued, on_untrained="keep")
        assert TOK.decode(ids) == "<|bos|>" + name[:cut] + name[cut:]
        assert [id for id in ids if id in TOK.special_tokens.values()] == ids[:1]


def test_jinja_cannot_be_made_to_train_on_the_user() -> None:
    jinja = chat.JinjaTemplate(CHATML_JINJA, stop=("<|im_end|>",))
    talk = [user("a\U0010fffeb\U0010ffffc\U00100000"), assistant("\U0010ffffd")]
    expected = TOK.render_conversation(talk, template=chat.CHATML)
    assert TOK.render_conversation(talk, template=jinja) == expected


def test_jinja_that_looks_into_the_text_still_works() -> None:
    """A template may treat text specially, unless it searches the text for special tokens."""
    seeks = chat.JinjaTemplate(
        "{% for m in messages %}<|bos|>{% if '</think>' in m.content %}"
        "{{ m.content.split('</think>')[1] }}{% else %}{{ m.content }}{% endif %}{% endfor %}",
        mask="none",
    )
    talk = [assistant("<think>a</think>b <|bos|>")]
    ids, _ = TOK.render_conversation(talk, template=seeks, on_untrained="keep")
    assert ids == [TOK.special_tokens["<|bos|>"], *TOK.encode("b <|bos|>")]


@pytest.mark.parametrize("answer", ["yo", "<think>x</think>yo"])
@pytest.mark.parametrize("text", ["a<|im_/no_thinkend|>", "<|im_</think>end|>", "</think><|im_"])
def test_a_template_that_shortens_a_text_makes_no_token_of_it(answer: str, text: str) -> None:
    source = (
        "{% for m in messages %}{% set c = m.content.replace('/no_think', '') %}"
        "{% if '</think>' in c %}{% set c = c.split('</think>') | join %}{% endif %}"
        "<|im_start|>{{ m.role }}\n{{ c }}<|im_end|>\n{% endfor %}"
    )
    tok = bytepair.train(["hi yo"], 258, special_tokens=["<|im_start|>", "<|im_end|>"])
    talk = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
    template = chat.JinjaTemplate(source, mask="none")
    ids = tok.render_conversation(talk, template=template, on_untrained="keep")[0]
    assert [id for id in ids if id in tok.special_tokens.values()] == [
        *tok.special_tokens.values()
    ] * 2


def test_jinja_that_seeks_special_tokens_in_text_is_an_error() -> None:
    seeks = chat.JinjaTemplate("{{ messages[0].content.split('<|bos|>')[1] }}")
    with told(ConversationError):
        TOK.render_conversation([user("a<|bos|>b")], template=seeks, on_untrained="keep")


def test_jinja_without_a_mask_gives_ids() -> None:
    template = chat.JinjaTemplate("{{ messages[0].content }}", mask="none")
    expected = TOK.encode("hi")
    assert TOK.render_conversation(TALK, template=template) == (expected, [0] * len(expected))
    for on_untrained in ("error", "keep", "drop"):
        batch = TOK.render_batch(
            [TALK] * 2, template=template, on_untrained=on_untrained, pad_to=9, pad="<|bos|>"
        )
        assert batch.input_ids[:, : len(expected)].tolist() == [expected] * 2
        assert not batch.loss_mask.any()


def test_jinja_errors() -> None:
    raising = chat.JinjaTemplate("{{ raise_exception('roles must alternate') }}")
    with told(ConversationError):
        TOK.render_conversation(TALK, template=raising)
    with told(ConversationError):
        TOK.render_conversation(TALK, template=chat.JinjaTemplate("{% if %}"))
    escaping = chat.JinjaTemplate("{{ messages.__class__.__mro__ }}")
    with told(ConversationError):
        TOK.render_conversation(TALK, template=escaping)


def test_jinja_has_what_transformers_gives_templates() -> None:
    template = chat.JinjaTemplate(
        "{{ bos_token }}{{ tools | tojson(ensure_ascii=False) }}"
        "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m.content }}"
        "{% endfor %}{{ strftime_now('%Y') | length }}",
        variables={"bos_token": "<|bos|>", "tools": [{"name": "é<|bos|>"}]},
        mask="none",
    )
    ids, _ = TOK.render_conversation(TALK, template=template, on_untrained="keep")
    assert TOK.decode(ids) == '<|bos|>[{"name": "é<|bos|>"}]hi4'


def _batch_of(template: Any) -> Callable[[], chat.RenderedBatch]:
    return lambda: TOK.render_batch([TALK, TALK], template=template, pack_to=30, pad="<|im_end|>")


def test_jinja_in_batches() -> None:
    jinja = chat.JinjaTemplate(CHATML_JINJA, stop=("<|im_end|>",))
    ours, theirs = _batch_of(jinja)(), _batch_of(chat.CHATML)()
    assert ours.input_ids.tolist() == theirs.input_ids.tolist()
    assert ours.loss_mask.tolist() == theirs.loss_mask.tolist()


def test_a_role_is_read_in_one_way() -> None:
    class Odd:
        """An object that has `get`, but is no mapping."""

        get = {"role": "user"}.get

    assert role_of(0, UserDict({"role": "user"})) == role_of(0, {"role": "user"}) == "user"
    for message in (Odd(), "user", None, {"role": 3}):
        with told(ConversationError):
            role_of(4, message)
