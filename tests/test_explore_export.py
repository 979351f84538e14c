"""The page of one text that needs no server: its content, and how a browser shows it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bytepair
from bytepair import explore
from bytepair.cli.look import explore as command
from contrast import CONTRASTS
from explore_page import watched
from messages import told

MOST_TEXT_BYTES = 1 << 20
HOSTILE = (
    "</script><script>alert(1)</script><!-- </textarea><img src=x onerror=alert(2)> & \"b\" 'c'"
)
TEXT = f"so honourable a man\r\n{HOSTILE}\x00\u2028 나누다 <|bos|> 👩\u200d👩"
BYTES = {bytes([b]): b for b in range(256)}


class Elements(HTMLParser):
    """The elements of a page: their names, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            tag, attrs, text = self.found[-1]
            self.found[-1] = (tag, attrs, text + data)

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attrs, text) for name, attrs, text in self.found if name == tag]


@pytest.fixture(scope="module")
def tokenizers(trained: bytepair.Tokenizer) -> dict[str, bytepair.Tokenizer]:
    return {"trained": trained, HOSTILE: trained.replace(vocab_size=600)}


def data(page: str) -> Any:
    return json.loads(next(t for a, t in Elements(page).of("script") if a.get("id") == "data"))


# ---------------------------------------------------------------------------- the file


def test_hostile_text_and_names_end_no_element(tokenizers: dict[str, bytepair.Tokenizer]) -> None:
    page = explore.to_html(tokenizers, TEXT)
    elements = Elements(page)
    plain = Elements(explore.to_html({"a": tokenizers["trained"]}, "b"))
    assert [tag for tag, _, _ in elements.found] == [tag for tag, _, _ in plain.found]
    assert elements.of("title")[0][1] == f"trained, {HOSTILE} · bytepair explore"
    content = data(page)
    assert content["text"] == TEXT
    assert [one["name"] for one in content["about"]["tokenizers"]] == list(tokenizers)


def test_hostile_special_tokens_end_no_element() -> None:
    special = {"</script><img src=x>": 256, "<!--<script>": 257}
    tok = bytepair.Tokenizer.from_ranks(BYTES, pattern="gpt4", special_tokens=special)
    page = explore.to_html({"a": tok}, "a</script><img src=x><!--<script>", special=True)
    assert data(page)["about"]["tokenizers"][0]["special"] == special
    assert [one["id"] for one in data(page)["tokens"][0] if one.get("special")] == [256, 257]
    assert len(Elements(page).of("script")) == 2
    assert not Elements(page).of("img")


def test_the_policy_lets_its_own_script_and_style_run_alone(
    tokenizers: dict[str, bytepair.Tokenizer],
) -> None:
    page = explore.to_html(tokenizers, TEXT)
    elements = Elements(page)
    policy = next(
        attrs["content"]
        for attrs, _ in elements.of("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    script = next(t for a, t in elements.of("script") if a.get("type") == "module")
    [(_, style)] = elements.of("style")
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_page_loads_nothing(tokenizers: dict[str, bytepair.Tokenizer]) -> None:
    page = explore.to_html(tokenizers, "plain")
    assert not re.search(r"https?://|//[a-z]+\.\w|\bfetch\(|@import|url\(|new Worker", page)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(|document\.write", page)
    for _, attrs, _ in Elements(page).found:
        assert not any(name.startswith("on") or name == "style" for name in attrs)
        assert "src" not in attrs
        assert re.match("#|data:image/svg", attrs.get("href") or "#")


def test_the_page_has_the_tokens_and_their_parts(
    tokenizers: dict[str, bytepair.Tokenizer],
) -> None:
    content = data(explore.to_html(tokenizers, "so honourable <|bos|>", special=True))
    for index, tok in enumerate(tokenizers.values()):
        answers = explore.Answers(tokenizers)
        tokens = {one["hex"]: one for one in content["tokens"][index] if not one.get("special")}
        ids = {one["id"] for one in content["tokens"][index]}
        assert set(tok.encode("so honourable <|bos|>", special="all")) <= ids
        for one in tokens.values():
            answer = answers.ask("token", t=index, id=one["id"])
            assert (one["hex"], one["rank"]) == (answer["hex"], answer["rank"])
            parts = answer["tree"].get("parts")
            assert one["parts"] == (parts and [part["hex"] for part in parts])
            assert all(part in tokens for part in one["parts"] or [])
        assert content["languages"][index] == answers.ask("languages", t=index)


def test_ranks_under_the_rule_of_merges() -> None:
    ranks = BYTES | {b"lo": 256, b"low": 257}
    tok = bytepair.Tokenizer.from_merges(ranks, [(b"lo", b"w"), (b"l", b"o")], pattern="gpt4")
    tokens = {one["hex"]: one for one in data(explore.to_html({"a": tok}, "low"))["tokens"][0]}
    assert tokens[b"low".hex()]["rank"] == 0
    assert tokens[b"lo".hex()]["rank"] == 1
    assert tokens[b"l".hex()] == {"id": 108, "hex": "6c", "rank": None, "parts": None}


def test_limits_are_named(trained: bytepair.Tokenizer) -> None:
    with told(bytepair.errors.ArgumentError):
        explore.to_html({"a": trained}, "a" * (MOST_TEXT_BYTES + 1))
    with told(bytepair.errors.ArgumentError):
        explore.to_html({str(n): trained for n in range(7)}, "a")
    with told(ValueError):
        explore.to_html({}, "a")
    with told(bytepair.errors.ArgumentError):
        explore.to_html({"a": trained}, "a\ud800")


# ---------------------------------------------------------------------------- the command


@pytest.fixture
def saved(trained: bytepair.Tokenizer, tmp_path: Path) -> str:
    trained.save(tmp_path / "mine")
    return str(tmp_path / "mine")


def test_the_command_writes_a_page(saved: str, trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = [saved, "--export", str(page), "--text", TEXT.replace("\x00", ""), "--special", "all"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert str(page) in done.output
    expected = explore.to_html({"mine": trained}, TEXT.replace("\x00", ""), special=True)
    assert page.read_text(encoding="utf-8") == expected
    words = [saved, "--export", str(page), "--force"]
    done = CliRunner().invoke(command, words, input="from\r\na pipe")
    assert done.exit_code == 0, done.output
    assert data(page.read_bytes().decode())["text"] == "from\r\na pipe"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--text", "a"], "--text would be ignored"),
        (["--special", "all"], "--special would be ignored"),
        (["--export", "page.html", "--port", "1"], "--port would be ignored"),
        (["--export", "none/page.html", "--text", "a"], "does not exist; create it"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    saved: str, words: list[str], reason: str
) -> None:
    done = CliRunner().invoke(command, [saved, *words])
    assert done.exit_code == 2
    assert reason in done.output


def test_input_that_is_no_text_is_refused(saved: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(command, [saved, "--export", str(page)], input=b"ab\xff")
    assert done.exit_code == 1
    assert "is not UTF-8 at byte 2" in done.output
    assert not page.exists()


# ---------------------------------------------------------------------------- in a browser


@pytest.fixture
def sheet(browser: Any, tokenizers: dict[str, bytepair.Tokenizer], tmp_path: Path) -> Iterator[Any]:
    """The page as a file, without a network; it must request, log and raise nothing."""
    path = tmp_path / "page.html"
    path.write_text(explore.to_html(tokenizers, TEXT), encoding="utf-8")
    with watched(browser, path.as_uri(), offline=True) as (page, messages, addresses):
        yield page
        assert messages == []
        assert [url for url in addresses if not url.startswith("data:")] == [path.as_uri()]


def test_tokens_are_shown_offline(sheet: Any, trained: bytepair.Tokenizer) -> None:
    assert sheet.locator(".pane h2").all_inner_texts() == ["trained", HOSTILE]
    for pane, tok in enumerate((trained, trained.replace(vocab_size=600))):
        ids = tok.encode(TEXT)
        assert sheet.locator(".count").nth(pane).inner_text().split()[0] == str(len(ids))
        sheet.select_option("#display", "ids")
        shown = sheet.locator(f".pane:nth-child({pane + 1}) .t").all_inner_texts()
        assert shown == [str(id) for id in ids]
    assert sheet.evaluate("document.querySelectorAll('#panes img, #panes script').length") == 0


def test_a_token_tells_about_itself_offline(sheet: Any, trained: bytepair.Tokenizer) -> None:
    id = trained.encode(TEXT)[1]
    sheet.locator(".pane:first-child .t").nth(1).hover()
    sheet.wait_for_selector("#tip .node .node")
    for fact in (f"{id}", "rank", trained.token_bytes(id).hex(" ")):
        assert fact in sheet.inner_text("#tip")
    sheet.focus(".tokens")
    for _ in range(2):
        sheet.keyboard.press("ArrowRight")
    sheet.keyboard.press("Enter")
    sheet.wait_for_selector("#inspected .node")
    assert "How it was built" in sheet.inner_text("#inspected")
    sheet.click("#inspected button.leaf >> nth=-1")  # a part of it
    sheet.wait_for_function(
        f"() => !document.querySelector('#inspected dd').textContent.includes('{id}')"
    )
    sheet.keyboard.press("Escape")
    assert sheet.is_hidden("#inspector")


def test_costs_are_shown_offline(sheet: Any, trained: bytepair.Tokenizer) -> None:
    assert sheet.locator("#costs tbody tr").count() == 61
    assert "$" not in sheet.inner_text("#costs")
    sheet.fill("#prices input >> nth=0", "1000000")
    count = len(trained.encode(TEXT))
    assert f"costs ${count:,}.00" in sheet.inner_text(".pane:first-child .facts")
    assert f"${1000 * count:,}.00" in sheet.inner_text("#costs tbody tr:first-child")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_exported_page_is_readable_on_any_screen(sheet: Any, scheme: str, width: int) -> None:
    sheet.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    sheet.set_viewport_size({"width": width, "height": 700})
    sheet.fill("#prices input >> nth=0", "3")
    sheet.locator(".pane:first-child .t").first.click()
    sheet.wait_for_selector("#inspected dl")
    assert sheet.evaluate(CONTRASTS) == []
    assert sheet.evaluate("document.documentElement.scrollWidth") <= width
    nameless = sheet.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, [role]')].filter(
        (e) => !e.textContent.trim() && !e.ariaLabel && !e.labels?.length
        && !['tooltip', 'status'].includes(e.role)).map((e) => e.outerHTML)"""
    )
    assert nameless == []
