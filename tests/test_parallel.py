"""A parallel text of one's own: the tokens of each language, beside a plain count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bytepair
from bytepair import evaluate
from bytepair.errors import CorpusError
from commands import run
from messages import told

LINES = {
    "en": ["The cat sat.", "It was warm.", ""],
    "de": ["Die Katze sass.", "Es war warm.", ""],
    "hi": ["बिल्ली बैठ गई।", "गर्मी थी।", ""],
}


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(LINES["en"] * 3, 275)


def test_tokens_are_those_of_each_line(tok: bytepair.Tokenizer) -> None:
    rivals = {"ours": tok, "bytes": bytepair.train(["hello"], 265)}
    texts = {name: ["\n".join(lines) + "\n"] for name, lines in LINES.items()}
    lines = evaluate.parallel(texts)
    assert lines == LINES == evaluate.parallel(LINES)
    assert (
        evaluate.parallel({name: [t.replace("\n", "\r\n")] for name, [t] in texts.items()}) == LINES
    )
    costs = evaluate.compress(rivals, lines)
    tokens = {name: sum(len(tok.encode(line)) for line in LINES[name]) for name in LINES}
    for one in costs:
        assert one.tokens["ours"] == tokens[one.text]
        assert one.tokens["bytes"] == one.bytes == len("".join(LINES[one.text]).encode())
    table = evaluate.parity(costs, "en")
    assert [row[0] for row in table.rows] == sorted(tokens, key=lambda name: tokens[name])
    for name, _, ours, best, base, *_ in table.rows:
        assert ours == str(tokens[name])
        assert best == f"{tokens[name] / min(tokens.values()):.2f}"
        assert base == f"{tokens[name] / tokens['en']:.2f}"
    assert f"{evaluate.gini(tokens.values()):.3f}" in table.note


def test_texts_that_are_not_parallel_are_refused(tok: bytepair.Tokenizer) -> None:
    with told(CorpusError):
        evaluate.parallel({**LINES, "de": LINES["de"][:2]})
    with told(CorpusError):
        evaluate.parity(evaluate.compress({"ours": tok}, LINES), "fr")
    with pytest.raises(CorpusError):
        evaluate.parallel({})


def test_the_command_reads_a_file_a_language(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "tok")
    for name, lines in LINES.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("evaluate", "tok", "--against", "none", "--parallel", "*.txt", "--base", "en")
    costs = evaluate.compress({"tok": tok}, LINES)
    shown = run(*words, cwd=tmp_path).stdout
    assert "Parity" in shown
    assert f"{evaluate.gini(one.tokens['tok'] for one in costs):.3f}" in shown
    written = json.loads(run(*words, "--json", cwd=tmp_path).stdout)
    assert {one["text"]: one["tokens"] for one in written} == {
        one.text: one.tokens for one in costs
    }
    assert "| en |" in run(*words, "--markdown", cwd=tmp_path).stdout
    for wrong in (("--sizes", "a.csv"), ("--val", "en.txt")):
        run(*words, *wrong, cwd=tmp_path, code=2)
    run("evaluate", "tok", "--base", "en", cwd=tmp_path, code=2)
