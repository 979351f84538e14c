"""`bytepair render`: conversations and preference pairs to ids and masks, as in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import chat
from bytepair.chat.preferences import COLUMNS
from test_cli import run, run_any

CALL = {"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
TALKS: list[Any] = [
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
    [
        {"role": "user", "content": "what?"},
        {"role": "assistant", "content": "hm", "tool_calls": [CALL]},
        {"role": "tool", "content": "2"},
        {"role": "assistant", "content": "two"},
    ],
]
NAMES = ["<|im_start|>", "<|im_end|>"]


@pytest.fixture
def tok(tmp_path: Path) -> bytepair.Tokenizer:
    """A tokenizer in the folder `tokenizer`, beside conversations and pairs."""
    tokenizer = bytepair.train(bytepair.sample.paths(), 1000, special_tokens=NAMES)
    tokenizer.save(tmp_path / "tokenizer")
    rows = [{"messages": talk, "source": "web"} for talk in TALKS]
    (tmp_path / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pair = {"prompt": "hi", "chosen": "hello", "rejected": "no"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    return tokenizer


def lines(*words: str, cwd: Path) -> list[Any]:
    """What a command prints, line by line."""
    out = run("render", *words, cwd=cwd).stdout
    return [json.loads(line) for line in out.decode().splitlines()]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--train-on", "last"], {"train_on": "last"}),
        (["--max-tokens", "9", "--on-untrained", "keep"],
         {"max_tokens": 9, "on_untrained": "keep"}),
        (["--truncate", "turns", "--max-tokens", "110", "--on-untrained", "drop"],
         {"truncate": "turns", "max_tokens": 110, "on_untrained": "drop"}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::bytepair.errors.SkippedWarning")
def test_conversations_are_rendered_as_in_python(
    words: list[str], options: dict[str, Any], tok: bytepair.Tokenizer, tmp_path: Path
) -> None:
    arguments = ["talks.jsonl", "--template", "chatml", "--ignore-field", "source", *words]
    how = {name: options.pop(name) for name in ("truncate", "train_on", "rows") if name in options}
    expected = tok.render_batch(
        TALKS, template=chat.CHATML, options=chat.ChatOptions(**how), **options
    )
    output = lines(*arguments, cwd=tmp_path)
    assert output == [
        {"input_ids": ids.tolist(), "loss_mask": mask.tolist()} for ids, mask in expected
    ]
    pq = pytest.importorskip("pyarrow.parquet")
    run("render", *arguments, "-o", "out.parquet", "--pack-to", "200", cwd=tmp_path)
    packed = tok.render_batch(
        TALKS, template=chat.CHATML, pack_to=200, options=chat.ChatOptions(**how), **options
    )
    assert pq.read_table(tmp_path / "out.parquet") == packed.to_arrow()


def test_a_prompt_is_an_error(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    words = ["--template", "chatml", "--ignore-field", "source"]
    (tmp_path / "tool.json").write_text(json.dumps([TALKS[0][:1]]))
    done = run("render", "tool.json", *words, cwd=tmp_path, code=1)
    assert b"render a prompt with render_for_completion" in done.stderr


def test_pairs_are_rendered_as_in_python(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    words = ["pairs.jsonl", "--rows", "preference", "--template", "chatml"]
    (pair,) = bytepair.chat.render_preferences(tok, tmp_path / "pairs.jsonl", template=chat.CHATML)
    expected = {name: getattr(pair, name).tolist() for name in COLUMNS}
    assert lines(*words, cwd=tmp_path) == [expected]
    shown = run("render", *words, "--show", cwd=tmp_path).stdout.decode()
    assert shown.count("<|im_end|>") == 3
    assert run_any("render", *words, "--train-on", "last", cwd=tmp_path) == 2
    assert run_any("render", *words, "-o", "x.parquet", "--show", cwd=tmp_path) == 2


def test_a_file_is_a_template(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}{{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant{% endif %}"
    )
    (tmp_path / "own.jinja").write_text(source)
    (tmp_path / "talk.jsonl").write_text(json.dumps(TALKS[0]))
    output = lines("talk.jsonl", "--template", "own.jinja", cwd=tmp_path)
    expected = tok.render_conversation(TALKS[0], template=chat.JinjaTemplate(source))
    assert output == [{"input_ids": expected.ids, "loss_mask": expected.mask}]


def test_the_template_of_the_tokenizer_comes_first(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    source = "{% for m in messages %}<|im_start|>{{ m.role }}{{ m.content }}<|im_end|>{% endfor %}"
    prompt = "{% if add_generation_prompt %}<|im_start|>assistant{% endif %}"
    own = tok.replace(chat_template=source + prompt).replace(
        chat_template={"rag": f"rag {source}{prompt}"}
    )
    own.save(tmp_path / "own")
    row = tmp_path / "talk.jsonl"
    row.write_text(json.dumps(TALKS[0]))
    for words, template in (([], "default"), (["--template", "rag"], "rag")):
        output = lines(str(row), "-t", "own", *words, cwd=tmp_path)
        (expected,) = own.render_batch([TALKS[0]], template=template)
        assert output[0]["input_ids"] == expected[0].tolist()
        shown = run("render", str(row), "-t", "own", *words, "--show", cwd=tmp_path).stdout
        assert shown.decode().strip() == own.show(expected[0], expected[1].tolist(), color=False)
