"""The page in a real browser: ids that are typed back, tokenizers that come and go, shapes, sizes.

As `test_explore_page.py`, these tests need playwright and a Chromium, and are skipped without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import explore
from explore_page import drop, enter, opened, texts


@pytest.fixture(scope="module")
def server(trained: bytepair.Tokenizer) -> Iterator[explore.Server]:
    small = trained.replace(vocab_size=600)
    with explore.Server({"trained": trained, "small": small}) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: explore.Server) -> Iterator[Any]:
    with opened(browser, server) as tab:
        yield tab


def test_ids_that_are_typed_back_become_their_text(page: Any, trained: bytepair.Tokenizer) -> None:
    ids = trained.encode("the honourable 나")
    page.fill("#typed-ids", str(ids))
    page.press("#typed-ids", "Enter")
    page.wait_for_function("() => document.querySelector('#text').value === 'the honourable 나'")
    assert page.is_hidden("#ids-said")
    page.fill("#typed-ids", "116 104 101")
    page.press("#typed-ids", "Enter")
    page.wait_for_function("() => document.querySelector('#text').value === 'the'")
    page.wait_for_function(
        "() => document.querySelector('#ids-said').textContent.includes('other ids')"
    )
    page.fill("#typed-ids", "9999999")
    page.press("#typed-ids", "Enter")
    page.wait_for_function(
        "() => document.querySelector('#ids-said.wrong')?.textContent.includes('9999999')"
    )
    page.select_option("#ids-of", "1")
    page.fill("#typed-ids", str(ids))
    page.press("#typed-ids", "Enter")
    page.wait_for_selector("#ids-said.wrong")  # the small vocabulary does not have all of them


def test_the_bytes_of_one_character_stand_in_one_box(
    page: Any, trained: bytepair.Tokenizer
) -> None:
    text = "a𓀀𓀁 b"
    enter(page, text)
    for display in ("text", "both", "ids", "bytes"):
        page.select_option("#display", display)
        boxes = page.evaluate(
            """() => [...document.querySelectorAll('.pane:first-child .character')].map(
            (box) => [box.ariaLabel, box.querySelectorAll('.t').length])"""
        )
        assert [name for name, _ in boxes] == ["one character: 𓀀", "one character: 𓀁"]
        assert sum(count for _, count in boxes) <= len(trained.encode(text)) - 2
        assert page.locator(".pane:first-child .t").count() == len(trained.encode(text))


def test_spaces_are_marked_if_asked_for(browser: Any) -> None:
    ranks = {bytes([b]): b for b in range(256)} | {"\u00a0".encode(): 256}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")
    with explore.Server({"bytes": tok}) as server, opened(browser, server) as page:
        enter(page, "a b\u00a0c")

        def pictures() -> list[str]:
            names: list[str] = page.evaluate(
                "[...document.querySelectorAll('#panes .control')].map((e) => e.dataset.picture)"
            )
            return names

        assert pictures() == ["U+00A0"]  # it looks like a space, but is none
        page.check("#spaces")
        assert pictures() == ["·", "U+00A0"]
        assert "".join(texts(page)) == "a b\u00a0c"
        page.uncheck("#spaces")
        assert pictures() == ["U+00A0"]


def test_tokenizers_are_added_and_removed(
    browser: Any, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    trained.replace(vocab_size=500).export(tmp_path / "tokenizer.json")
    with (
        explore.Server({"trained": trained}, missing=["gpt9: not found"]) as server,
        opened(browser, server) as page,
    ):
        assert "gpt9: not found" in page.inner_text("#notice")
        page.click("#add-tokenizer")
        page.set_input_files("#tokenizer-file", tmp_path / "tokenizer.json")
        page.wait_for_function("() => document.querySelectorAll('.pane').length === 2")
        enter(page, "so honourable")
        counts = [text.split()[0] for text in page.locator(".count").all_inner_texts()]
        sizes = [trained, trained.replace(vocab_size=500)]
        assert counts == [str(len(tok.encode("so honourable"))) for tok in sizes]
        drop(page, (tmp_path / "tokenizer.json").read_bytes(), "tokenizer.json")
        page.wait_for_function("() => document.querySelectorAll('.pane').length === 3")
        assert page.input_value("#text") == "so honourable"
        drop(page, b"nothing", "tokenizer.json")
        page.wait_for_function(
            "() => /no tokenizer/.test(document.querySelector('#notice').textContent)"
        )
        assert page.is_visible("#adding")  # where another file can be chosen
        page.fill("#train-size", "270")
        page.click("#train")
        page.wait_for_function("() => document.querySelectorAll('#learned li').length > 5")
        assert page.is_visible("#view-merges")
        page.click("#tab-text")
        names = page.locator("#names .switch").all_inner_texts()
        assert names == ["trained", "tokenizer.json", "tokenizer.json (2)", "trained 270"]
        page.click("[aria-label='Remove trained']")
        page.wait_for_function("() => document.querySelectorAll('#names .switch').length === 3")
        assert page.locator(".pane h2").all_inner_texts() == names[1:]


def test_the_mask_and_tokens_differ_by_more_than_colour(page: Any) -> None:
    page.click("#tab-chat")
    page.wait_for_selector("#chat-tokens .t.on")
    for colors in ("none", "active"):
        page.emulate_media(forced_colors=colors)
        styles = page.evaluate(
            """() => ['.on', '.off'].map((kind) => {
            const s = getComputedStyle(document.querySelector('#chat-tokens bdi .t' + kind));
            return [s.boxShadow.split('inset').length, s.textDecorationLine, s.borderLeftWidth];
            })"""
        )
        assert styles[0] != styles[1]
        if colors == "active":
            assert [style[1] for style in styles] == ["underline", "none"]
            assert {style[2] for style in styles} == {"1px"}


def test_nothing_scrolls_sideways_on_a_small_screen(page: Any) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    page.click("#add-tokenizer")
    enter(page, "supercalifragilistic" * 20 + " naïve <|bos|> 안녕하세요 مرحبا")
    for view in ("text", "merges", "chat", "vocabulary", "cost"):
        page.click(f"#tab-{view}")
        page.wait_for_timeout(50)
        wide = page.evaluate(
            """() => [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility()
            && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.wide, .node'))
            .map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert (view, wide) == (view, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_details_of_a_token_lie_over_the_text_and_do_not_move_it(page: Any) -> None:
    boxes = """() => [...document.querySelectorAll('#text, .pane, .t, #from-ids')].map(
        (e) => JSON.stringify(e.getBoundingClientRect()))"""
    for width in (1440, 820, 390):
        page.set_viewport_size({"width": width, "height": 900})
        enter(page, "so honourable a man, " * (width // 100))
        for place in ("first", "last"):
            token = getattr(page.locator("#panes .t"), place)
            token.scroll_into_view_if_needed()
            before = page.evaluate(boxes)
            token.click()
            page.wait_for_selector("#inspected dl")
            assert page.evaluate(boxes) == before
            one, panel = token.bounding_box(), page.locator("#inspector").bounding_box()
            beside = (
                one["x"] + one["width"] <= panel["x"] or panel["x"] + panel["width"] <= one["x"]
            )
            above = one["y"] + one["height"] <= panel["y"]
            assert beside or above or panel["y"] + panel["height"] <= one["y"]
            page.keyboard.press("Escape")


def test_merges_and_costs_are_at_most_900_pixels_wide(page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    for view in ("merges", "cost"):
        page.click(f"#tab-{view}")
        assert page.locator(f"#view-{view}").bounding_box()["width"] <= 900
    page.wait_for_selector("#costs .length", state="attached")
    widths = page.eval_on_selector_all(
        "#costs tbody tr:nth-child(n+2) .length",
        "(all) => all.map((e) => parseFloat(e.style.width))",
    )
    assert max(widths) == 100 > min(widths) > 0


def test_an_empty_text_says_what_to_do(page: Any) -> None:
    page.fill("#text", "")
    page.wait_for_function(
        "() => document.querySelector('.tokens').textContent.includes('Type or paste')"
    )
    page.click("#tab-vocabulary")
    page.fill("#query", "no token is like this")
    page.wait_for_function(
        "() => document.querySelector('#found').textContent.includes('Search for a shorter')"
    )
    page.click("#tab-merges")
    page.fill("#word", "")
    page.wait_for_function(
        "() => document.querySelector('#step-said').textContent.includes('Type a word')"
    )


def test_the_template_of_a_tokenizer_is_chosen_first(
    browser: Any, trained: bytepair.Tokenizer
) -> None:
    pytest.importorskip("jinja2")
    own = trained.replace(
        chat_template="{% for m in messages %}{{ m.content }}<|user_end|>{% endfor %}"
    )
    with (
        explore.Server({"plain": trained, "own": own}) as server,
        opened(browser, server) as page,
    ):
        page.click("#tab-chat")
        assert page.input_value("#template") == "nanochat"
        page.select_option("#chat-of", label="own")
        assert page.input_value("#template") == "default"
        page.wait_for_function(
            "() => document.querySelector('#chat-tokens .t').textContent !== '<|bos|>'"
        )
        options = page.locator("#template option").all_inner_texts()
        assert options == ["default (its own)", "nanochat"]
