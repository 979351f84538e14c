"""Links, dropped files and costs on the page of `explore`, in a browser.

Needs what `test_explore_page.py` needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import bytepair
from bytepair import explore
from explore_page import drop, enter, opened, share


@pytest.fixture(scope="module")
def server(trained: bytepair.Tokenizer) -> Iterator[explore.Server]:
    with explore.Server({"trained": trained, "small": trained.replace(vocab_size=600)}) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: explore.Server) -> Iterator[Any]:
    with opened(browser, server) as tab:
        yield tab


# ---------------------------------------------------------------------------- sharing and dropping


def test_a_link_that_is_too_long_is_reported(page: Any) -> None:
    text = "".join(chr(0x4E00 + 7919 * n % 20000) for n in range(12000))  # barely compresses
    enter(page, text)
    page.click("#share")
    page.wait_for_selector("#notice:not([hidden])")
    assert "too long for a link, which holds 16,000 characters" in page.inner_text("#notice")
    assert page.evaluate("location.hash") == ""
    page.click("#anew") if page.is_visible("#anew") else enter(page, "short")
    share(page)
    assert page.is_hidden("#notice")


@pytest.mark.parametrize("hash", ["#x", "#%%%", "#bnVsbA", "#" + "A" * 20_000])
def test_a_damaged_link_is_named(page: Any, server: explore.Server, hash: str) -> None:
    page.goto("about:blank")
    page.goto(server.url + hash)
    page.wait_for_selector("#notice:not([hidden])")
    assert "damaged or too long" in page.inner_text("#notice")


def test_a_link_names_tokenizers_that_are_not_here(
    page: Any, browser: Any, trained: bytepair.Tokenizer
) -> None:
    enter(page, "so honourable")
    share(page)
    with explore.Server({"small": trained}) as server:
        other = browser.new_page()
        other.goto(server.url + "#" + page.url.partition("#")[2])
        other.wait_for_selector("#notice:not([hidden])")
        assert "The link also shows trained," in other.inner_text("#notice")
        assert other.input_value("#text") == "so honourable"
        other.close()


def test_six_tokenizers_stand_side_by_side(browser: Any, trained: bytepair.Tokenizer) -> None:
    with explore.Server({f"<b>{n}": trained for n in range(8)}) as server:
        sheet = browser.new_page()
        sheet.goto(server.url)
        sheet.wait_for_selector("[data-ready]", state="attached")
        assert sheet.locator(".pane").count() == 6
        sheet.click("#names .switch >> nth=7")
        assert "At most 6 tokenizers" in sheet.inner_text("#notice")
        assert sheet.locator(".pane").count() == 6
        sheet.click("#names .switch >> nth=0")
        sheet.click("#names .switch >> nth=7")
        assert sheet.is_hidden("#notice")
        names = sheet.locator(".pane h2").all_inner_texts()
        assert names == [f"<b>{n}" for n in (1, 2, 3, 4, 5, 7)]
        sheet.set_viewport_size({"width": 360, "height": 700})
        for view in ("text", "cost"):
            sheet.click(f"#tab-{view}")
            assert sheet.evaluate("document.documentElement.scrollWidth") <= 360
        sheet.close()


def test_a_file_may_be_dropped_anywhere(page: Any, trained: bytepair.Tokenizer) -> None:
    page.click("#tab-merges")
    drop(page, b"anywhere", where="body")
    page.wait_for_function(
        "() => document.querySelector('#sizes').textContent.includes(', 8 bytes')"
    )
    assert page.is_visible("#view-text")
    assert page.inner_text(".count").split()[0] == str(len(trained.encode("anywhere")))
    drop(page, b"one", where="body", times=2)
    assert "2 files are not shown: drop one at a time" in page.inner_text("#refused")
    assert page.input_value("#text") == "anywhere"


def test_a_file_is_opened_without_a_mouse(page: Any) -> None:
    chosen = {"name": "chosen.txt", "mimeType": "text/plain", "buffer": b"by its name"}
    page.set_input_files("#file", chosen)
    page.wait_for_function("() => document.querySelector('#text').value === 'by its name'")


# ---------------------------------------------------------------------------- cost


def test_what_each_language_costs(page: Any, trained: bytepair.Tokenizer) -> None:
    enter(page, "so honourable a man")
    page.click("#tab-cost")
    page.wait_for_selector("#costs tbody tr:nth-child(61)")
    assert "$" not in page.inner_text("#costs")  # no price is built in
    page.fill("#prices input >> nth=0", "2")
    page.fill("#times", "1000")
    costs = {one.name: one for one in bytepair.evaluate.by_language(trained)}
    lines = page.locator("#costs tbody tr")
    read = [line.split() for line in lines.locator("td:nth-child(2)").all_inner_texts()]
    names = lines.locator("th").all_inner_texts()
    assert names == ["Your text", *sorted(costs)]
    own = len(trained.encode("so honourable a man"))
    assert read[0] == [str(own), f"${own * 2 / 1000:.3g}"]
    for name, cells in zip(names[1:], read[1:], strict=True):
        one = costs[name]
        money = one.tokens * 2 / 1000
        assert cells == [f"{one.tokens:,}", f"{one.parity:.2f}", "×", "English", f"${money:,.2f}"]
    page.select_option("#order", "few")
    names = lines.locator("th").all_inner_texts()
    assert [costs[n].tokens for n in names[1:]] == sorted(one.tokens for one in costs.values())


def test_a_price_is_shown_with_the_text_and_in_the_link(page: Any) -> None:
    page.click("#tab-cost")
    page.fill("#prices input >> nth=1", "1000000")
    share(page)
    page.goto("about:blank")
    page.go_back()
    page.wait_for_selector("[data-ready]", state="attached")
    assert page.input_value("#prices input >> nth=1") == "1000000"
    page.click("#tab-text")
    enter(page, "a")
    assert page.inner_text(".pane:nth-child(2) .facts").endswith("costs $1.00")
    assert "costs" not in page.inner_text(".pane:nth-child(1) .facts")
    page.click("#tab-cost")
    for wrong in ("-1", "", "1e12"):
        page.fill("#prices input >> nth=1", wrong)
        assert "$" not in page.inner_text("#costs")
