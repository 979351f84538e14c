"""Preference pairs: prompts and answers with an exact boundary, as TRL makes them for DPO."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.chat import render_preferences
from bytepair.chat.preferences import COLUMNS
from bytepair.errors import ConversationError, SpecialTokenError
from messages import told
from trl_source import FOLDER, REASON

NAMES = [
    *bytepair.training.NANOCHAT_SPECIAL_TOKENS, "<|im_start|>", "<|im_end|>", "<|endoftext|>",
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>",
    "<|python_tag|>", "<|end_of_text|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
]  # fmt: skip
TOK = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=NAMES)
JINJA = chat.JinjaTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    name="jinja",
    stop=("<|im_end|>",),
)
BLOCKS = chat.JinjaTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}"
    "<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    name="blocks",
    stop=("<|im_end|>",),
)
#: As TRL's of Qwen 2.5: what is trained on begins before the prompt ends.
EARLY = chat.JinjaTemplate(
    BLOCKS.source.replace("{{ m.role }}\n", "{{ m.role }}").replace(
        "m.content", r"'\n' + m.content"
    ),
    name="early",
    stop=("<|im_end|>",),
)
EVERY = [chat.NANOCHAT, chat.CHATML, chat.QWEN3, chat.LLAMA3, JINJA, BLOCKS]

#: Texts that tokens would cross the boundary to: ChatML's prompts end with a line break.
PIECES = ["hello", " world", "\n", "\n\n", "é", " ", "\n  x"]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@st.composite
def rows(draw: Any, *more: str) -> dict[str, Any]:
    """A prompt of one to six messages, and two answers, of which each may have several turns."""
    texts = st.lists(st.sampled_from([*PIECES, *more]), max_size=4).map("".join)
    words = texts.filter(str.strip)
    prompt = [user(draw(words))]
    for _ in range(draw(st.integers(0, 2))):
        prompt += [assistant(draw(words)), user(draw(words))]
    if draw(st.booleans()):
        prompt = [{"role": "system", "content": draw(words)}, *prompt]
    answers = []
    for first in ("a", "b"):  # they differ
        answer = [assistant(draw(texts) + first)]
        if draw(st.booleans()):
            answer += [user(draw(words)), assistant(draw(words))]
        answers.append(answer)
    return {"prompt": prompt, "chosen": answers[0], "rejected": answers[1]}


def decoded(ids: Any) -> str:
    return TOK.decode([int(id) for id in ids])


def learned(ids: Any, mask: Any) -> str:
    return decoded([id for id, on in zip(ids, mask, strict=True) if on])


@pytest.mark.parametrize("template", EVERY, ids=lambda t: t.name)
@settings(max_examples=60)
@given(rows("<|im_end|>"))
def test_the_boundary_is_exact(template: Any, row: dict[str, Any]) -> None:
    (pair,) = render_preferences(TOK, [row], template=template)
    prompt = TOK.render_for_completion([*row["prompt"]], template=template)
    assert pair.prompt_ids.tolist() == prompt
    for name in ("chosen", "rejected"):
        ids, mask = getattr(pair, f"{name}_ids"), getattr(pair, f"{name}_mask")
        quiet = [{**message, "train": False} for message in row["prompt"]]
        whole, trained = TOK.render_conversation([*quiet, *row[name]], template=template)
        assert decoded(pair.prompt_ids) + decoded(ids) == decoded(whole)
        assert learned(ids, mask).strip("\n") == learned(whole, trained).strip("\n")
        assert len(ids) == len(mask)


@settings(max_examples=60)
@given(rows("<|im_end|>"))
def test_what_is_trained_on_may_begin_before_the_prompt_ends(row: dict[str, Any]) -> None:
    (pair,) = render_preferences(TOK, [row], template=EARLY)
    (other,) = render_preferences(TOK, [row], template=BLOCKS)
    assert pair.prompt_ids.tolist() == TOK.render_for_completion(row["prompt"], template=EARLY)
    assert decoded(pair.prompt_ids) == decoded(other.prompt_ids)
    for name in ("chosen", "rejected"):
        ids, mask = getattr(pair, f"{name}_ids"), getattr(pair, f"{name}_mask")
        assert decoded(ids) == decoded(getattr(other, f"{name}_ids"))
        assert all(mask[: ids.tolist().index(TOK.special_tokens["<|im_end|>"]) + 1])


@given(st.lists(rows("<|im_end|>"), max_size=4))
def test_rows_of_a_batch(talks: list[Any]) -> None:
    pairs = render_preferences(TOK, talks)
    assert len(pairs) == len(talks)
    lengths = [len(p.prompt_ids) + len(a) for p in pairs for a in (p.chosen_ids, p.rejected_ids)]
    width = max(lengths, default=0)
    arrays = pairs.padded()
    assert arrays.keys() == {"input_ids", "attention_mask", "completion_mask"}
    assert all(a.shape == (2 * len(talks), width) for a in arrays.values())
    assert all(a.dtype == np.int64 for a in arrays.values())
    for number, pair in enumerate(pairs):
        for row, ids, mask in (
            (number, pair.chosen_ids, pair.chosen_mask),
            (number + len(talks), pair.rejected_ids, pair.rejected_mask),
        ):
            on = arrays["attention_mask"][row].astype(bool)
            sequence = [*pair.prompt_ids, *ids]
            assert arrays["input_ids"][row][on].tolist() == sequence
            assert set(arrays["input_ids"][row][~on]) <= {TOK.special_tokens["<|bos|>"]}
            padded = [*[0] * len(pair.prompt_ids), *mask, *[0] * (width - len(sequence))]
            assert arrays["completion_mask"][row].tolist() == padded


PAIR = {"prompt": "x", "chosen": "good", "rejected": "bad one"}
LISTS = {
    "prompt": [user("x")], "chosen": [assistant("good")], "rejected": [assistant("bad one")],
}  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        PAIR,
        {**PAIR, "prompt": [user("x")]},
        {**LISTS, "prompt": "x"},
        {name: [user("x"), *LISTS[name]] for name in ("chosen", "rejected")},
        {"prompt": "x", **{name: [user("x"), *LISTS[name]] for name in ("chosen", "rejected")}},
        {**LISTS, "tools": None},
        {**LISTS, "chosen": "good"},
    ],
)
def test_forms_of_a_pair(row: Any) -> None:
    expected: Any = render_preferences(TOK, [LISTS])[0]
    result: Any = render_preferences(TOK, [row])[0]
    assert all(np.array_equal(getattr(expected, n), getattr(result, n)) for n in COLUMNS)


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "x", "chosen": "a"},
        {"chosen": "a", "rejected": "b"},
        {**LISTS, "prompt": None},
        {"prompt": "y", **{n: [user("x"), *LISTS[n]] for n in ("chosen", "rejected")}},
        {**LISTS, "chosen": [user("a")]},
        {**PAIR, "rejected": "good"},
        [user("x")],
        {**LISTS, "chosen": [{**assistant("a"), "weight": 0}]},
    ],
)  # fmt: skip
def test_rows_that_are_no_pairs_are_errors(row: Any) -> None:
    with told(ConversationError):
        render_preferences(TOK, [row])


def test_a_pair_is_no_conversation() -> None:
    with told(ConversationError):
        TOK.render_conversation(PAIR)


def test_pairs_that_teach_nothing_are_dropped_or_kept() -> None:
    equal = {**PAIR, "rejected": "good"}
    assert len(render_preferences(TOK, [equal, PAIR], on_untrained="drop")) == 1
    assert len(render_preferences(TOK, [equal, PAIR], on_untrained="keep")) == 2
    with told(ConversationError):
        render_preferences(TOK, [PAIR, {**PAIR, "prompt": "long " * 50}], max_tokens=40)


def test_truncation_keeps_the_first_ids() -> None:
    (whole,) = render_preferences(TOK, [PAIR])
    count = len(whole.prompt_ids)
    for limit in range(count + 9):
        (pair,) = render_preferences(TOK, [PAIR], max_tokens=limit, on_untrained="keep")
        assert pair.prompt_ids.tolist() == whole.prompt_ids[:limit].tolist()
        assert pair.rejected_ids.tolist() == whole.rejected_ids[: max(limit - count, 0)].tolist()


def test_sources(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in (PAIR, LISTS)), encoding="utf-8")
    pa = pytest.importorskip("pyarrow")
    table = render_preferences(TOK, pa.Table.from_pylist([LISTS, LISTS])).to_arrow()
    assert table == render_preferences(TOK, file).to_arrow()
    assert table.column_names == list(COLUMNS)
    assert render_preferences(TOK, []).to_arrow().schema == table.schema
    with told(ConversationError):
        render_preferences(TOK, pa.table({"prompt": ["x"]}))


def test_calls_of_tools_are_answers_too() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    called = {"role": "assistant", "content": "", "tool_calls": [call]}
    row = {**LISTS, "chosen": [called, {"role": "tool", "content": "2"}, assistant("2")],
           "tools": [{"name": "f"}]}  # fmt: skip
    (pair,) = render_preferences(TOK, [row], template=chat.CHATML)
    assert learned(pair.chosen_ids, pair.chosen_mask) == (
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>2<|im_end|>'
    )


def test_what_cannot_be_padded_is_an_error() -> None:
    pairs = render_preferences(TOK, [PAIR])
    with told(SpecialTokenError):
        render_preferences(TOK.replace(roles={"pad": None}), [PAIR], template=JINJA).padded()
    named = render_preferences(TOK, [PAIR, PAIR], template=JINJA, pad="<|endoftext|>").padded()
    assert named["input_ids"].shape[0] == 4
    with told(IndexError):
        pairs[1]


def test_an_answer_that_does_not_continue_its_prompt_is_an_error() -> None:
    forgets = JINJA.source.replace("{{ m.content }}", "{{ m.content if loop.last else '-' }}")
    template = chat.JinjaTemplate(forgets, stop=(), checks="off")
    with told(ConversationError):
        render_preferences(TOK, [LISTS], template=template)


def test_without_a_mask_the_whole_answer_is_trained_on() -> None:
    template = chat.JinjaTemplate(JINJA.source, mask="none")
    (pair,) = render_preferences(TOK, [PAIR], template=template)
    assert pair.chosen_mask.all()


# ---------------------------------------------------------------------------- TRL

PUBLISHED = ["qwen2_5", "qwen3_instruct_2507", "llama3", "qwen2_5_training", "qwen3_training"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tokenizer in transformers."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("published")
    TOK.replace(roles={"bos": "<|begin_of_text|>", "eos": "<|im_end|>"}).export(
        folder, format="huggingface"
    )
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=REASON)
@pytest.mark.parametrize("name", PUBLISHED)
def test_pairs_are_those_of_trl(name: str, published: Any) -> None:
    """The ids are equal, unless a token crosses the start of an answer."""
    collator: Any = importlib.import_module("trl.trainer.dpo_trainer").DataCollatorForPreference
    source = (FOLDER / f"{name}.jinja").read_text("utf-8")
    published.chat_template = source
    template = chat.JinjaTemplate(source, {"bos_token": "<|begin_of_text|>"}, stop=())
    crossed = []

    @settings(max_examples=30, deadline=None)
    @given(st.lists(rows(), min_size=1, max_size=3))
    def compare(talks: list[Any]) -> None:
        theirs = prepared(published, talks)
        ours: Any = render_preferences(TOK, talks, template=template, pad="<|endoftext|>")
        same = [
            all(getattr(pair, name).tolist() == other for name, other in example.items())
            for pair, example in zip(ours, theirs, strict=True)
        ]
        for talk, pair, example, equal in zip(talks, ours, theirs, same, strict=True):
            if not equal:
                # A token crosses the start of an answer: of the last one, so they leave out text,
                # or of another one, which we divide there, as it was when that one was written.
                assert any(text[:1].isspace() for text in answers(talk))
                prompt = example["prompt_ids"]
                crossed.append(len(prompt) < len(pair.prompt_ids))
                assert TOK.decode(pair.prompt_ids).startswith(TOK.decode(prompt))
        if all(same):
            pad = TOK.special_tokens["<|endoftext|>"]
            batch = collator(pad_token_id=pad)(theirs)
            arrays = ours.padded()
            for key in ("input_ids", "attention_mask"):
                assert np.array_equal(batch[key].numpy(), arrays[key])
            assert np.all(batch["completion_mask"].numpy() >= arrays["completion_mask"])

    compare()
    # Llama 3 trims the content, and Qwen3's answers begin with a special token.
    assert any(crossed) == (name not in ("llama3", "qwen3_training"))


def answers(talk: dict[str, Any]) -> list[str]:
    """All texts of the assistant in a row."""
    messages = (message for name in ("prompt", "chosen", "rejected") for message in talk[name])
    return [message["content"] for message in messages if message["role"] == "assistant"]


def prepared(tokenizer: Any, talks: list[Any]) -> list[dict[str, list[int]]]:
    """What `DPOTrainer` makes of rows before it trains."""
    data: Any = importlib.import_module("datasets").Dataset.from_list(talks)
    prepare: Any = importlib.import_module("trl").DPOTrainer._prepare_dataset
    args = SimpleNamespace(dataset_num_proc=None, max_length=None, truncation_mode="keep_start")
    trainer = SimpleNamespace(_tokenizer=tokenizer)
    result = prepare(trainer, data, tokenizer, args, "x")
    return [{name: row[name] for name in COLUMNS if name.endswith("ids")} for row in result]
