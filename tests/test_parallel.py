"""A parallel text of one's own: the tokens of each language, beside a plain count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import evaluate
from bytepair.errors import CorpusError
from commands import run

LINES = {
    "en": ["The cat sat.", "It was warm.", ""],
    "de": ["Die Katze sass.", "Es war warm.", ""],
    "hi": ["बिल्ली बैठ गई।", "गर्मी थी।", ""],
}


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(LINES["en"] * 3, 275)


def test_tokens_are_those_of_each_line(tok: bytepair.Tokenizer) -> None:
    rival = bytepair.train(["hello"], 265)
    texts = {name: ["\n".join(lines) + "\n"] for name, lines in LINES.items()}
    result = evaluate.measure_parallel(tok, texts, against={"bytes": rival}, base="en")
    assert result.lines == 3
    for name, lines in LINES.items():
        expected = sum(len(tok.encode(line)) for line in lines)
        assert result.tokens["ours"][name] == expected
        assert result.tokens["bytes"][name] == result.bytes[name] == len("".join(lines).encode())
        assert result.ratio("ours", name, "en") == expected / result.tokens["ours"]["en"]
    assert result.ratio("ours", min(result.tokens["ours"], key=result.tokens["ours"].get)) == 1  # type: ignore[arg-type]
    crlf = {name: [text.replace("\n", "\r\n")] for name, (text,) in texts.items()}
    assert evaluate.measure_parallel(tok, crlf, against=[]).tokens["ours"] == result.tokens["ours"]
    rows = evaluate.measure_parallel(tok, LINES, against=[])
    assert rows.tokens["ours"] == result.tokens["ours"]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_gini_is_half_the_relative_mean_difference(numbers: list[int]) -> None:
    mean = sum(numbers) / len(numbers)
    difference = sum(abs(a - b) for a in numbers for b in numbers) / len(numbers) ** 2
    assert evaluate.gini(numbers) == pytest.approx(difference / 2 / mean, abs=1e-12)


def test_texts_that_are_not_parallel_are_refused(tok: bytepair.Tokenizer) -> None:
    with pytest.raises(CorpusError, match="'en' has 3, and 'de' has 2"):
        evaluate.measure_parallel(tok, {**LINES, "de": LINES["de"][:2]}, against=[])
    with pytest.raises(CorpusError, match="no language 'fr'"):
        evaluate.measure_parallel(tok, LINES, against=[], base="fr")
    with pytest.raises(CorpusError):
        evaluate.measure_parallel(tok, {}, against=[])


def test_the_command_reads_a_file_a_language(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "tok")
    for name, lines in LINES.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("evaluate", "tok", "--against", "none", "--parallel", "*.txt", "--base", "en")
    result = evaluate.measure_parallel(tok, LINES, against=[], base="en")
    shown = run(*words, cwd=tmp_path).stdout
    assert "Parity" in shown
    assert f"{result.gini('ours'):.3f}" in shown
    assert json.loads(run(*words, "--json", cwd=tmp_path).stdout)["tokens"] == {
        "tok": result.tokens["ours"]
    }
    assert "| en |" in run(*words, "--markdown", cwd=tmp_path).stdout
    for wrong in (("--sizes", "a.csv"), ("--val", "en.txt")):
        run(*words, *wrong, cwd=tmp_path, code=2)
    run("evaluate", "tok", "--base", "en", cwd=tmp_path, code=2)
