"""The page has the figures, runs no script and loads nothing."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import bytepair
from bytepair.report.page import useless
from test_cli import run

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Checker(HTMLParser):
    """Checks that every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(trained: bytepair.Tokenizer) -> str:
    rival = bytepair.train(["hello hello"], vocab_size=269)
    texts = {"validation": ["That is the question: <script>alert(1)</script>"]}
    result = bytepair.evaluate.measure(
        trained, name="<b>mine</b>", against={"<i>small": rival}, texts=texts
    )
    return bytepair.report.to_html(result)


def test_the_page_is_well_formed(page: str) -> None:
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert heads == ["Compression", "Languages", "Use", "Vocabulary", "Numbers", "Sizes"]
    assert sum(tag == "svg" for tag, _ in checker.seen) == 6


def test_nothing_runs_and_nothing_is_loaded(page: str) -> None:
    checker = Checker()
    checker.feed(page)
    tags = {tag for tag, _ in checker.seen}
    assert not tags & {"script", "img", "link", "iframe", "object", "i", "b"}
    for _, attributes in checker.seen:
        assert not {"src", "href", "onclick", "onload"} & attributes.keys()
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert html.escape("<b>mine</b>") in page


def test_the_page_holds_the_figures(trained: bytepair.Tokenizer) -> None:
    result = bytepair.evaluate.measure(trained, against=[])
    page = bytepair.report.to_html(result)
    assert f"{result.use.tokens:,}" in page
    assert result.tokenizer.fingerprint in page
    for one in result.languages:
        assert f"<th scope=row>{one.name}</th><td class=''>{one.tokens:,}</td>" in page


def test_the_page_opens_with_a_sentence_and_a_chart_of_sizes(
    trained: bytepair.Tokenizer,
) -> None:
    rivals = {"small": trained.replace(vocab_size=600), "same": trained}
    result = bytepair.evaluate.measure(trained, name="mine", against=rivals)
    page = bytepair.report.to_html(result)
    words = bytepair.evaluate.summary(result)
    assert re.fullmatch(
        r"mine \(3,000 ids\) needs [\d.]+% fewer tokens for the sample texts than small \(600 ids\)"
        r" and as many as same \(3,000 ids\)\.",
        words,
    )
    assert page.index(words) < page.index("Size and compression of each tokenizer")
    assert page.index("Size and compression") < page.index("Texts in tokens")
    chart = page[page.index("Size and compression") :].partition("</svg>")[0]
    places = dict(re.findall(r'cx="([\d.]+)" cy="[\d.]+" r="5" fill="(#\w+)"', chart))
    assert len(places) > 2  # two equal sizes share a place
    ratio = f"<dd>{result.overall.ratio('mine'):.2f}</dd><dt>bytes per token, the sample texts</dt>"
    assert ratio in page  # the number that the chart shows
    assert "saved" not in page
    assert "+" not in "".join(re.findall(r"<td class='(?:good|bad)'>(.*?)</td>", page))


def test_every_comparison_names_sizes(trained: bytepair.Tokenizer) -> None:
    small = trained.replace(vocab_size=600)
    result = bytepair.evaluate.measure(trained, name="mine", against={"small": small})
    for table in bytepair.evaluate.tables(result):
        named = [head for head in table.head if "small" in head]
        assert all("small (600 ids)" in head for head in named), table.title


def test_the_knee_is_drawn_on_the_axes_that_define_it(trained: bytepair.Tokenizer) -> None:
    sweep = bytepair.evaluate.sweep(trained)
    picture = bytepair.report.sizes_plot(sweep)
    curve, line = re.findall(r'<polyline points="([^"]+)"', picture)

    def points(text: str) -> list[tuple[float, float]]:
        return [tuple(map(float, point.split(","))) for point in text.split()]  # type: ignore[misc]

    (left, low), (right, high) = points(line)
    assert points(curve)[0] == (left, low)
    assert points(curve)[-1] == (right, high)
    above = {x: low + (x - left) * (high - low) / (right - left) - y for x, y in points(curve)}
    knee = float(re.findall(r'<circle cx="([\d.]+)"', picture)[-1])
    assert abs(max(above, key=lambda x: above[x]) - knee) < 0.02 * (right - left)


def test_never_occurred_names_what_is_of_no_use() -> None:
    tok = bytepair.train(["hello hello hello you", "zz zz", "你你你"], vocab_size=279)
    result = bytepair.evaluate.measure(tok, against=[], texts={"mine": ["hello"]})
    names = [tok.token_bytes(id) for id in useless(result)]
    assert b" hello" in names
    assert b"zz" in names
    assert "你".encode() in names
    for token in (b"el", b"hel", b"hello", b"z", b"\xbd\xa0"):  # steps, used, bytes, no text
        assert token not in names
    assert {tok.token_id(name) for name in names} <= set(result.use.unused)
    assert "Unused words" in bytepair.report.to_html(result)


def test_special_tokens_are_told_from_text() -> None:
    ranks = {bytes([b]): b for b in range(256)} | {b"<|bos|>": 256}
    tok = bytepair.Tokenizer.from_ranks(
        ranks, pattern="gpt4", special_tokens={"<|bos|>": 300, "\u202e": 301}
    )
    result = bytepair.evaluate.measure(tok, against=[], texts={"a": ["<|bos|>\u202e"]})
    page = bytepair.report.to_html(result)
    assert "\u202e" not in page
    assert 'class="chip">&lt;|bos|&gt;' in page


def test_the_page_shows_a_conversation_under_its_own_template(page: str) -> None:
    assert page.count("<dt>conversation</dt>") == 1
    shown = page.partition("<dt>conversation</dt>")[2].partition("</dd>")[0]
    assert "&lt;|user_start|&gt;" in shown
    names = ["<|im_start|>", "<|im_end|>"]
    bare = bytepair.train(["hello hello"], 262, special_tokens=names)
    source = "<|im_start|>{{ messages[0].content }}{{ raise_exception('<no>') if %s }}"
    for condition, text in (("false", "&lt;|im_start|&gt;"), ("true", "left out: ")):
        result = bytepair.evaluate.measure(bare.replace(chat_template=source % condition), name="x")
        shown = bytepair.report.to_html(result).partition("<dt>conversation</dt>")[2]
        assert text in shown.partition("</dd>")[0]
    result = bytepair.evaluate.measure(bare, name="x")
    assert "<dt>conversation</dt>" not in bytepair.report.to_html(result)


def test_a_tokenizer_that_was_not_trained_here_has_a_page() -> None:
    tok = bytepair.Tokenizer.from_ranks({bytes([b]): b for b in range(256)}, pattern="gpt4")
    page = bytepair.report.to_html(bytepair.evaluate.measure(tok, against=[], texts={"a": [" "]}))
    assert "<h2>Sizes" not in page


def test_the_report_command(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "mine")
    out = run("report", "mine", "-o", "out.html", "--against", "none", cwd=tmp_path).stdout
    assert b"kB: out.html" in out
    assert (tmp_path / "out.html").read_text("utf-8").startswith("<!doctype html>")
