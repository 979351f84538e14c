"""Jinja templates beside transformers, where it is installed: the same ids and the same mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import chat

pytestmark = pytest.mark.filterwarnings("ignore")
transformers: Any = pytest.importorskip("transformers", reason="needs the package transformers")

SOURCE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message['content'] | trim }}"
    "{{ '<|im_end|>' }}{% endgeneration %}\n"
    "{% else %}{{ message['content'] + '<|im_end|>' + '\n' }}{% endif %}{% endfor %}"
    "{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TOK = bytepair.train(
    bytepair.sample.paths(), 2000, special_tokens=["<|bos|>", "<|im_start|>", "<|im_end|>"]
)
said = st.lists(
    st.sampled_from(["hello", " world", "\n", "\n\n", "  ", "é", "你好", "12345", "<", "|>", "<|"]),
    min_size=1,
    max_size=6,
).map("".join)


@given(st.lists(st.tuples(said, said), min_size=1, max_size=3), st.booleans())
def test_rendering_equals_transformers(turns: list[tuple[str, str]], with_tools: bool) -> None:
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytepair.compat.to_huggingface(TOK), bos_token="<|bos|>"
    )
    theirs.chat_template = SOURCE
    tools = [{"name": "f", "é": 1}] if with_tools else None
    # with tools, the prompt is no prefix of the conversation
    variables = {"bos_token": "<|bos|>", "tools": tools}
    template = chat.JinjaTemplate(SOURCE, variables=variables, checks="off")
    talk: list[dict[str, Any]] = []
    for question, answer in turns:
        talk += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    ids, mask = TOK.render_conversation(talk, None, template=template)
    rendered = theirs.apply_chat_template(
        talk, tools=tools, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    assert ids == rendered["input_ids"]
    assert mask == rendered["assistant_masks"]
    prompt = theirs.apply_chat_template(
        talk[:-1], tools=tools, tokenize=True, add_generation_prompt=True, return_dict=False
    )
    assert TOK.render_for_completion(talk, template=template) == prompt


#: A tokenizer that normalizes, as those of Qwen.
NFC = bytepair.Tokenizer.from_ranks(
    TOK.mergeable_ranks(), pattern=TOK.pattern, special_tokens=TOK.special_tokens, normalizer="NFC"
)
combining = st.lists(
    st.sampled_from(["e", "e\u0301", "\u0301", "\u0323", "\u1112", "\u1161", "한", "x", " ", "\n"]),
    min_size=1,
    max_size=5,
).map("".join)


@given(st.lists(combining, min_size=2, max_size=4))
def test_text_that_is_normalized_has_the_mask_of_transformers(contents: list[str]) -> None:
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytepair.compat.to_huggingface(NFC), bos_token="<|bos|>"
    )
    # Where a character of a block combines with one outside, transformers finds no token for it.
    source = (
        "{% for m in messages %}{% if m.role == 'assistant' %}x{% generation %}{{ m.content }}"
        "<|im_end|>{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    roles = ["user", "assistant", "user", "assistant"]
    talk = [{"role": role, "content": text} for role, text in zip(roles, contents, strict=False)]
    rendered = theirs.apply_chat_template(
        talk, tokenize=True, return_dict=True, return_assistant_tokens_mask=True,
        chat_template=source,
    )  # fmt: skip
    template = chat.JinjaTemplate(source, checks="off")
    ids, mask = NFC.render_conversation(talk, template=template, on_untrained="keep")
    assert ids == rendered["input_ids"]
    assert mask == rendered["assistant_masks"]


CHAT = bytepair.train(bytepair.sample.paths(), 2000)


def part(kind: str, text: str) -> dict[str, str]:
    return {"type": kind, "text": text}


#: What an assistant says: text, and tool calls, each with its output or without. There are no two
#: texts in a row, and outputs come after calls.
calls = st.tuples(said, st.none() | said, st.none() | said).map(
    lambda parts: [
        part("python", parts[0]),
        *([part("python_output", parts[1])] if parts[1] is not None else []),
        *([part("text", parts[2])] if parts[2] is not None else []),
    ]
)
answers = st.one_of(
    said,
    st.tuples(said, st.lists(calls, max_size=3)).map(
        lambda parts: [part("text", parts[0]), *(piece for call in parts[1] for piece in call)]
    ),
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """nanochat's tokenizer after `from_pretrained`, `save_pretrained` and `from_pretrained`."""
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    CHAT.export(first, "huggingface")
    transformers.AutoTokenizer.from_pretrained(first).save_pretrained(second)
    return transformers.AutoTokenizer.from_pretrained(second)


@given(
    system=st.none() | said,
    turns=st.lists(st.tuples(said, answers), min_size=1, max_size=3),
)
def test_nanochat_is_rendered_there_token_for_token_and_mask_for_mask(
    saved: Any, system: str | None, turns: list[tuple[str, Any]]
) -> None:
    talk: list[dict[str, Any]] = []
    if system is not None:
        talk.append({"role": "system", "content": system})
    for question, answer in turns:
        talk += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    source = CHAT.chat_templates["default"]  # with the blocks that are comments in files
    rendered = saved.apply_chat_template(
        talk, tokenize=True, return_dict=True, return_assistant_tokens_mask=True,
        chat_template=source,
    )  # fmt: skip
    expected = CHAT.render_conversation(talk)
    assert (rendered["input_ids"], rendered["assistant_masks"]) == expected
    assert saved.apply_chat_template(talk, return_dict=False) == expected[0]
    prompt = saved.apply_chat_template(
        talk[:-1], tokenize=True, add_generation_prompt=True, return_dict=False
    )
    assert prompt == CHAT.render_for_completion(talk)


PYTHON: dict[str, Any] = {
    "type": "function",
    "function": {"name": "python", "arguments": {"code": "6 * 2"}},
}
#: Turns of nanochat as messages of other formats: calls, their results, and what comes after.
CALLS: dict[str, list[dict[str, Any]]] = {
    "a call": [{"role": "assistant", "content": "so ", "tool_calls": [PYTHON]},
               {"role": "tool", "content": "12"}, {"role": "assistant", "content": "it is 12"}],
    "two": [{"role": "assistant", "content": None, "tool_calls": [PYTHON]},
            {"role": "tool", "content": "12"},
            {"role": "assistant", "content": "", "tool_calls": [PYTHON]},
            {"role": "tool", "content": "12"}, {"role": "assistant", "content": "it is 12"}],
    "no result": [{"role": "assistant", "content": "so", "tool_calls": [PYTHON]}],
    "a result at the end": [{"role": "assistant", "content": "", "tool_calls": [PYTHON]},
                            {"role": "tool", "content": "12"}],
}  # fmt: skip
CODE, RESULT = {"type": "python", "text": "6 * 2"}, {"type": "python_output", "text": "12"}
ANSWER = {"type": "text", "text": "it is 12"}
#: The same turns as parts, and what follows the prompt of the last message.
PARTS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a call": ([{"type": "text", "text": "so "}, CODE, RESULT, ANSWER], "it is 12"),
    "two": ([CODE, RESULT, CODE, RESULT, ANSWER], "it is 12"),
    "no result": (
        [{"type": "text", "text": "so"}, CODE], "so<|python_start|>6 * 2<|python_end|>"
    ),
    "a result at the end": ([CODE, RESULT], ""),
}  # fmt: skip


def turn(name: str) -> dict[str, Any]:
    return {"role": "assistant", "content": PARTS[name][0]}


@pytest.mark.parametrize("name", CALLS)
def test_calls_and_results_are_messages_there_too(saved: Any, name: str) -> None:
    question = {"role": "user", "content": "hi"}
    for names in ([name], [name, "a call"]):
        talk = [message for one in names for message in (question, *CALLS[one])]
        parts = [message for one in names for message in (question, turn(one))]
        rendered = saved.apply_chat_template(
            talk, return_dict=True, return_assistant_tokens_mask=True,
            chat_template=CHAT.chat_templates["default"],
        )  # fmt: skip
        ids, mask = CHAT.render_conversation(parts)
        assert (rendered["input_ids"], rendered["assistant_masks"]) == (ids, mask)
        prompt = chat_prompt(saved, talk)
        assert ids[: len(prompt)] == prompt
        assert CHAT.decode(ids[len(prompt) :]) == PARTS[names[-1]][1] + "<|assistant_end|>"
    for call in ({**PYTHON["function"], "name": "f"}, {"name": "python", "arguments": {"x": "1"}}):
        talk = [question, {"role": "assistant", "content": "", "tool_calls": [call]}]
        with pytest.raises(Exception, match="one tool call, of python"):
            saved.apply_chat_template(talk)


def chat_prompt(theirs: Any, talk: list[Any]) -> list[int]:
    """The prompt of the last turn in transformers: without an answer at the end."""
    talk = talk[:-1] if talk[-1]["role"] == "assistant" else talk
    ids: list[int] = theirs.apply_chat_template(talk, add_generation_prompt=True, return_dict=False)
    return ids


def test_any_jinja_reads_the_templates_of_files(tmp_path: Path) -> None:
    """Plain Jinja and minijinja refuse the tag of generation blocks, so files have comments."""
    jinja2 = pytest.importorskip("jinja2")
    CHAT.export(tmp_path, "huggingface")
    source = (tmp_path / "chat_template.jinja").read_text(encoding="utf-8")
    CHAT.export(tmp_path / "x.gguf", "gguf", lossy=True)
    back = bytepair.load(tmp_path / "x.gguf")
    assert back.chat_templates == CHAT.chat_templates
    talk = [{"role": "user", "content": "hi"}, *CALLS["two"], {"role": "user", "content": "bye"}]

    def fail(message: str) -> None:
        raise ValueError(message)

    expected = CHAT.decode(CHAT.render_for_completion([talk[0], turn("two"), talk[-1]]))
    variables = {"messages": talk, "add_generation_prompt": True}
    plain = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    plain.globals["raise_exception"] = fail
    assert plain.from_string(source).render(variables) == expected
    minijinja = pytest.importorskip("minijinja", reason="needs the package minijinja")
    mini = minijinja.Environment(trim_blocks=True, lstrip_blocks=True)
    mini.add_function("raise_exception", fail)
    assert mini.render_str(source, **variables) == expected


def test_the_round_trip_is_equal(saved: Any, tmp_path: Path) -> None:
    saved.save_pretrained(tmp_path)
    for back in (bytepair.load(tmp_path), bytepair.load(saved)):
        assert back == CHAT
        assert back.fingerprint == CHAT.fingerprint
        assert (back.merge_rule, back.roles) == ("ranks", CHAT.roles)
        assert back.chat_templates.get("default") == CHAT.chat_templates.get("default")
        text = "Hello world, naïve 你好"
        assert bytepair.compat.to_tiktoken(back).encode_ordinary(text) == CHAT.encode(text)
        ids = ["bos_token_id", "eos_token_id", "pad_token_id"]
        assert [getattr(back, name) for name in ids] == [getattr(CHAT, name) for name in ids]
    assert (saved.bos_token, saved.pad_token) == ("<|bos|>",) * 2
    assert saved.eos_token == "<|assistant_end|>"  # where generation stops


def test_shards_take_the_tokenizer_that_came_back(saved: Any, tmp_path: Path) -> None:
    bytepair.shards.write(bytepair.sample.paths(), CHAT, tmp_path)
    back = bytepair.load(saved)
    assert bytepair.shards.Dataset(tmp_path, tokenizer=back).tokenizer == back
