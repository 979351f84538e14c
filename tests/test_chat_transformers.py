"""Jinja templates beside transformers, where it is installed: the same ids and the same mask."""

from __future__ import annotations

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
        tokenizer_object=TOK.to_huggingface(), bos_token="<|bos|>"
    )
    theirs.chat_template = SOURCE
    tools = [{"name": "f", "é": 1}] if with_tools else None
    template = chat.JinjaTemplate(SOURCE, variables={"bos_token": "<|bos|>", "tools": tools})
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
