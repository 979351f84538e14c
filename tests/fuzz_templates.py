"""Random chat templates and conversations, for as long as one likes; not run by pytest.

    python tests/fuzz_templates.py --seconds 600 --seed 1

Each case asks for what conversations promise: a text adds no special token, whatever its place; the
ids of a conversation begin with those of its prompt, or an error says so; without special tokens in
its texts, the ids are those of the rendered string. A difference is printed with its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections import Counter
from typing import Any

import bytepair
from bytepair import chat
from bytepair._internal.sandbox import START, STOP, render
from bytepair.errors import ConversationError

NAMES = ["<|bos|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|end|>"]
NAMES += ["<tool_call>", "</tool_call>", "[INST]", "[/INST]"]
TOK = bytepair.train(
    ["hello world, it is nine: so what? 'a' <b> {c}"] * 4, 290, special_tokens=NAMES
).replace(roles={"bos": "<|bos|>"})
WORDS = [
    "hello",
    " world",
    "\n",
    "\n\n",
    " ",
    "é",
    "你",
    "123",
    "<",
    "|>",
    "<|",
    "im_end",
    "{{ x }}",
]
WORDS += ["{% if %}", "\\n", "'", '"', "</", "think", "assistant", "INST", "\u0301"]
OPENINGS = [
    "<|im_start|>{{ m.role }}\n",
    "{{ m.role | upper }}: ",
    "[INST] ",
    "<|end|>",
    "",
    "{{ '<|im_start|>' + m['role'] + '\\n' }}",
]
CONTENTS = [
    "{{ m.content }}",
    "{{ m.content | trim }}",
    "{{ m['content'] or '' }}",
    "{{- m.content -}}",
    "{{ m.content.strip() }} ",
    "{{ m.content.split('</think>')[-1] }}",
    "{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}",
]
CALLS = [
    "",
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}",
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v }}</{{ k }}>{% endfor %}"
    "</tool_call>{% endfor %}",
]
REASONING = [
    "",
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}",
    "{% if loop.last and m.reasoning_content %}<think>\n{{ m.reasoning_content }}</think>\n"
    "{% endif %}",
]
ENDINGS = ["<|im_end|>\n", "<|im_end|>", "<|end|>", "\n", " [/INST]"]
BEFORE = [
    "",
    "<|bos|>",
    "{{ bos_token }}",
    "{{ tools | tojson }}",
    "{% if tools %}{% for t in tools %}{{ t.function.name }}: {{ t.function.description }}\n"
    "{% endfor %}{% endif %}",
]


def template(rng: random.Random) -> str:
    """The source of a template, whose parts fit together more or less."""
    opening, ending = rng.choice(OPENINGS), rng.choice(ENDINGS)
    body = rng.choice(REASONING) + rng.choice(CONTENTS) + rng.choice(CALLS) + ending
    marked = "{% generation %}" + body + "{% endgeneration %}"
    turn = opening + (marked if rng.random() < 0.4 else body)
    other = opening + rng.choice(CONTENTS) + ending
    loop = "{% if m.role == 'assistant' %}" + turn + "{% else %}" + other + "{% endif %}"
    prompt = opening.replace("m.role", "'assistant'").replace("m['role']", "'assistant'")
    return (
        rng.choice(BEFORE) + "{% for m in messages %}" + loop + "{% endfor %}"
        "{% if add_generation_prompt %}"
        + prompt
        + rng.choice(["", "", "<think>\n"])
        + "{% endif %}"
    )


def conversation(rng: random.Random, extra: str) -> dict[str, Any]:
    """A conversation with a text at every string that a row may have."""
    fixed = rng.getstate()

    def text() -> str:
        words = rng.choices(WORDS, k=rng.randint(1, 5))
        words.insert(rng.randrange(len(words) + 1), extra)
        return "".join(words)

    value: Any = text()
    for _ in range(rng.randint(0, 5)):
        value = {text(): value} if rng.random() < 0.5 else [value]
    messages: list[dict[str, Any]] = []
    for _ in range(rng.randint(1, 3)):
        messages.append({"role": "user", "content": text()})
        answer: dict[str, Any] = {"role": "assistant", "content": text()}
        if rng.random() < 0.3:
            answer["reasoning_content"] = text()
        if rng.random() < 0.3:
            function = {"name": "f" + text(), "arguments": {text(): value}}
            answer["tool_calls"] = [{"type": "function", "function": function}]
        messages.append(answer)
    function = {"name": "f" + text(), "description": text(), "parameters": {text(): value}}
    rng.setstate(fixed)
    return {"messages": messages, "tools": [{"type": "function", "function": function}]}


def difference(seed: int, done: Counter[str]) -> str:
    """What a promise is broken by; empty if it is kept."""
    rng = random.Random(seed)
    source, name = template(rng), rng.choice(NAMES)
    plain, planted = conversation(rng, ""), conversation(rng, name)
    special = set(TOK.special_tokens.values())
    form = chat.JinjaTemplate(source, checks=rng.choice(["off", "error"]))
    results = []
    for row in (plain, planted):
        try:
            results.append(TOK.render_conversation(row, template=form, on_untrained="keep").ids)
        except ConversationError:
            done["refused"] += 1
            return ""
    done["compared"] += 1
    structures = [[id for id in ids if id in special] for ids in results]
    if structures[0] != structures[1]:
        return f"{source!r}: {name!r} in a text changes {structures[0]} to {structures[1]}"
    variables = {**plain, "bos_token": "<|bos|>", "add_generation_prompt": False}
    string = render(source, "fuzz", variables).translate({ord(START): None, ord(STOP): None})
    whole = TOK.decode(results[0])
    if whole != string:
        return f"{source!r}: {whole!r} is not {string!r}"
    if form.checks == "error":
        *before, _ = plain["messages"]
        prompt = TOK.render_for_completion({**plain, "messages": before}, template=form)
        if results[0][: len(prompt)] != prompt:
            return f"{source!r}: the prompt {prompt} does not begin {results[0]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=sys.maxsize)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    until, done, wrong = time.monotonic() + args.seconds, Counter[str](), 0
    for seed in range(args.seed, args.seed + args.cases):
        if time.monotonic() > until or wrong >= 10:
            break
        if line := difference(seed, done):
            wrong += 1
            print(f"seed {seed}: {line}", flush=True)
    print(f"{done.total():,} cases, {wrong} differ: {dict(done)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
