"""The report in a real browser: it fits, it opens with a sample, and its text has contrast.

Needs what `test_explore_page.py` needs.
"""

from __future__ import annotations

from typing import Any

import pytest

import bytepair
from contrast import CONTRASTS, backgrounds


@pytest.fixture(scope="module")
def report(trained: bytepair.Tokenizer, tmp_path_factory: Any) -> str:
    """The address of a report with long names and labels."""
    texts = {"a validation set with a name that is much too long": ["To be, or not to be. " * 40]}
    rivals = {"small-but-with-a-long-name": trained.replace(vocab_size=600), "cl100k_base": trained}
    result = bytepair.evaluate.measure(trained, name="ours", against=rivals, texts=texts)
    path = bytepair.report.save(result, tmp_path_factory.mktemp("report") / "report.html")
    return path.as_uri()


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_the_report_fits(browser: Any, report: str, width: int) -> None:
    sheet = browser.new_page(viewport={"width": width, "height": 700})
    addresses: list[str] = []
    sheet.on("request", lambda request: addresses.append(request.url))
    sheet.goto(report)
    assert sheet.evaluate("document.documentElement.scrollWidth") <= width
    assert len(addresses) == 1
    assert sheet.title() == "ours · bytepair report"
    charts = sheet.evaluate(
        """() => [...document.querySelectorAll('figure')].map((f) => {
        const svg = f.firstElementChild, box = svg.getBoundingClientRect();
        const words = [...svg.querySelectorAll('text')].map((t) => t.getBoundingClientRect());
        const left = Math.min(...words.map((w) => w.left)) - box.left;
        return [box.width, f.getBoundingClientRect().width, left,
            box.right - Math.max(...words.map((w) => w.right))]; })"""
    )
    assert len(charts) == 6
    for drawn, width_given, left, right in charts:
        assert drawn == width_given  # a chart fills what it has
        assert width_given >= 0.25 * width
        assert min(left, right) >= 0, "a label is clipped"
    heads = "[...document.querySelectorAll('thead span')].map((e) => e.getClientRects().length)"
    assert set(sheet.evaluate(heads)) == {1}  # no word is broken
    sheet.close()


def test_the_report_opens_with_a_sample_and_folds_languages(browser: Any, report: str) -> None:
    sheet = browser.new_page(viewport={"width": 1280, "height": 900})
    sheet.goto(report)
    colours = backgrounds(sheet, ".sample .t:not(.special)")
    assert len(colours) == 5
    assert sheet.locator(".sample dt").all_inner_texts()[:2] == ["news", "korean"]
    folded = sheet.locator("details table tbody tr")
    assert folded.count() == 60
    assert not folded.first.is_visible()
    sheet.click("summary")
    assert folded.last.is_visible()
    sheet.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_the_report(browser: Any, report: str, scheme: str) -> None:
    sheet = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    sheet.goto(report)
    sheet.click("summary")
    assert sheet.evaluate(CONTRASTS) == []
    sheet.close()
