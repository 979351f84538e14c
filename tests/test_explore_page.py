"""The page in a real browser, as people use it: Chromium without a window, through Playwright.

Needs the package `playwright` and a Chromium on the path (Debian: `apt-get install chromium`);
without them these tests are skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import bytepair
from bytepair import explore
from bytepair.explore.answers import ten_scripts

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium on the path")

#: What stands in the first pane, as text, with every block filled.
READ = """(pane) => [...document.querySelectorAll('.pane')[pane].querySelectorAll('.t')].map(
    (t) => [...t.childNodes].map((n) => n.textContent).join(''))"""

HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script> </textarea> &amp; ${x} 'a' \"b\""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as manager:
        found = manager.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def server(trained: bytepair.Tokenizer) -> Iterator[explore.Server]:
    small = trained.truncate(600)
    with explore.Server({"trained": trained, "small": small}) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: explore.Server) -> Iterator[Any]:
    """The page, which must load nothing from elsewhere, and raise and log no error."""
    found = browser.new_page(viewport={"width": 1200, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
    found.on("request", lambda request: asked.append(request.url))
    found.goto(server.url)
    found.wait_for_selector("[data-ready]", state="attached")
    yield found
    refused = "Failed to load resource"  # is said of conversations that break a rule
    assert [line for line in said if not line.startswith(refused)] == []
    assert all(url.startswith(server.url) for url in asked)
    found.close()


def enter(page: Any, text: str) -> None:
    page.fill("#text", text)
    size = f", {len(text.encode()):,} bytes in UTF-8"
    page.wait_for_function(
        "(size) => document.querySelector('#sizes').textContent.includes(size)", arg=size
    )


def texts(page: Any, pane: int = 0) -> list[str]:
    found: list[str] = page.evaluate(READ, pane)
    return found


def test_text_is_split_as_it_is_typed(page: Any, trained: bytepair.Tokenizer) -> None:
    enter(page, "")
    assert texts(page) == []
    page.focus("#text")
    page.keyboard.type("To be, or not")
    page.wait_for_function(
        "() => document.querySelector('#sizes').textContent.includes(', 13 bytes')"
    )
    expected = [trained.token_bytes(i).decode() for i in trained.encode("To be, or not")]
    assert texts(page) == expected
    assert page.inner_text(".count").split()[0] == str(len(expected))


def test_ten_scripts_keep_their_text(page: Any, trained: bytepair.Tokenizer) -> None:
    text = ten_scripts()
    enter(page, text)
    ids = trained.encode(text)
    page.eval_on_selector(".tokens", "e => e.style.maxHeight = 'none'")  # so that all is near
    page.wait_for_function(
        f"() => document.querySelectorAll('.pane:first-child .t').length === {len(ids)}"
    )
    for shown, id in zip(texts(page), ids, strict=True):
        token = trained.token_bytes(id)
        try:
            assert shown == token.decode()
        except UnicodeDecodeError:
            marks = "".join(f"{byte:02X}" for byte in token)
            assert shown.strip() in marks or any(f"{byte:02X}" in shown for byte in token)


def test_text_is_never_html(page: Any) -> None:
    enter(page, HOSTILE)
    assert "".join(texts(page)) == HOSTILE
    assert page.evaluate("document.querySelectorAll('#panes img, #panes script').length") == 0
    page.hover(".t")
    page.wait_for_selector("#tip:not([hidden])")
    page.click(".t")
    page.wait_for_selector("#inspector:not([hidden])")
    assert page.evaluate("document.querySelectorAll('#inspector img, #tip img').length") == 0


def test_lines_in_arabic_begin_at_the_right(page: Any) -> None:
    enter(page, "Left to right\nلمّا كان الاعتراف بالكرامة")
    places = page.evaluate(
        """() => { const [box] = document.getElementsByClassName('block');
        const all = [...box.querySelectorAll('.t')].map((t) => t.getBoundingClientRect());
        const side = box.getBoundingClientRect();
        const right = Math.max(...all.slice(6).map((r) => r.right));
        return [all[0].left - side.left, side.right - right]; }"""
    )
    assert max(places) < 4


def test_differences_are_marked(page: Any, trained: bytepair.Tokenizer) -> None:
    text = "What is honourable?"
    enter(page, text)
    spans = []
    for tok in (trained, trained.truncate(600)):
        start, found = 0, []
        for id in tok.encode(text):
            end = start + len(tok.token_bytes(id))
            found.append((start, end))
            start = end
        spans.append(found)
    for pane in (0, 1):
        marked = page.evaluate(
            """(n) => [...document.querySelectorAll('.pane')[n].querySelectorAll('.t')].map(
            (t) => t.classList.contains('different'))""",
            pane,
        )
        assert marked == [span not in spans[1 - pane] for span in spans[pane]]
    assert True in marked
    assert "more than" in page.inner_text(".pane:nth-child(2) .facts")


def test_a_token_tells_about_itself(page: Any, trained: bytepair.Tokenizer) -> None:
    enter(page, "another question")
    id = trained.encode("another question")[-1]
    token = page.locator(".pane:first-child .t").last
    token.hover()
    page.wait_for_selector("#tip .node")
    tip = page.inner_text("#tip")
    assert f"{id:,}" in tip
    assert trained.token_bytes(id).hex(" ") in tip
    token.click()
    page.wait_for_selector("#inspected .node")
    assert "How it was built" in page.inner_text("#inspected")
    page.click("#inspected .chip >> nth=0")
    page.wait_for_function(
        f"() => !document.querySelector('#inspected dd').textContent.includes('{id:,}')"
    )
    page.keyboard.press("Escape")
    assert page.is_hidden("#inspector")


def test_the_merges_of_a_word(page: Any, trained: bytepair.Tokenizer) -> None:
    enter(page, "so honourable")
    page.locator(".pane:first-child .t").last.click()
    page.click("text=Step through the merges of this word")
    page.wait_for_function("() => document.querySelectorAll('#steps .part').length === 11")
    assert page.input_value("#word") == " honourable"
    steps = explore.merge_steps(trained, b" honourable")
    for step in steps:
        shown = page.locator("#steps li:last-child .part").evaluate_all(
            """(all) => all.map(
            (p) => [...p.childNodes].map((n) => n.dataset?.picture ?? n.textContent).join(''))"""
        )
        assert shown == [part.decode().replace(" ", "·") for part in step.parts]
        page.click("#next")
    assert page.locator("#steps li").count() == len(steps)


def test_a_chat_shows_its_mask(page: Any, trained: bytepair.Tokenizer) -> None:
    page.click("#tab-chat")
    page.fill(".message:nth-child(1) textarea", "Who is there?")
    page.fill(".message:nth-child(2) textarea", "Nobody.")
    talk = [
        {"role": "user", "content": "Who is there?"},
        {"role": "assistant", "content": "Nobody."},
    ]
    ids, mask = trained.render_conversation(talk)
    said = f"{len(ids)} tokens, {sum(mask)} of them trained on"
    page.wait_for_function(
        "(said) => document.querySelector('#chat-said').textContent === said", arg=said
    )
    shown = page.evaluate(
        "[...document.querySelectorAll('#chat-tokens .t')].map(t => t.classList.contains('on'))"
    )
    assert shown == [bool(on) for on in mask]
    page.click(".message:nth-child(1) >> text=✕")
    page.wait_for_function(
        "() => document.querySelector('#chat-said').textContent.includes('message')"
    )


@pytest.mark.parametrize(
    ("kind", "query", "fits"),
    [
        ("text", "hon", lambda t, i: "hon" in t.decode("utf-8", "replace").lower()),
        (
            "regex",
            "^ [a-c]+$",
            lambda t, i: t[:1] == b" " and len(t) > 1 and set(t[1:]) <= set(b"abc"),
        ),
        ("bytes", "e0 a4", lambda t, i: b"\xe0\xa4" in t),
        ("id", "29", lambda t, i: str(i).startswith("29")),
    ],
)
def test_the_vocabulary_is_searched(
    page: Any, trained: bytepair.Tokenizer, kind: str, query: str, fits: Any
) -> None:
    wanted = [i for i in range(trained.vocab_size) if fits(trained.token_bytes(i), i)]
    assert wanted
    page.click("#tab-vocabulary")
    page.select_option("#kind", kind)
    page.fill("#query", query)
    said = f"{len(wanted):,} of {trained.vocab_size:,} tokens"
    page.wait_for_function(
        "(said) => document.querySelector('#found').textContent === said", arg=said
    )
    ids = page.evaluate(
        "[...document.querySelectorAll('#results small')].map(s => Number(s.textContent))"
    )
    assert ids == wanted[:300]


def test_an_expression_that_never_ends_is_ended(page: Any) -> None:
    page.click("#tab-vocabulary")
    page.select_option("#kind", "regex")
    page.fill("#query", "(")
    page.wait_for_function("() => document.querySelector('#found').textContent.includes('nvalid')")
    page.fill("#query", r"^(([^x]+)+)+\1$(?:)")
    page.wait_for_function(
        "() => /too long|of 3,000 tokens/.test(document.querySelector('#found').textContent)"
    )
    page.fill("#query", "^the$")
    page.wait_for_function("() => document.querySelector('#found').textContent.startsWith('1 of')")


def test_a_link_brings_the_view_back(page: Any, browser: Any) -> None:
    enter(page, "Share this — 나누다")
    page.select_option("#display", "ids")
    page.check("#special")
    page.click("#names button:nth-child(2)")  # one tokenizer less
    page.click("#share")
    page.wait_for_function("() => location.hash.length > 10")
    page.wait_for_timeout(400)
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("[data-ready]", state="attached")
    assert other.input_value("#text") == "Share this — 나누다"
    assert other.input_value("#display") == "ids"
    assert other.is_checked("#special")
    assert other.locator(".pane").count() == 1
    other.close()


@pytest.mark.parametrize("hash", ["#", "#x", "#%%%", "#W10", "#bnVsbA"])
def test_a_damaged_link_is_no_harm(page: Any, server: explore.Server, hash: str) -> None:
    page.goto("about:blank")
    page.goto(server.url + hash)
    page.wait_for_selector("[data-ready]", state="attached")
    page.wait_for_function("() => document.querySelectorAll('.pane .t').length > 5")


def test_special_tokens_are_text_until_they_are_asked_for(page: Any) -> None:
    enter(page, "<|bos|>Hi")
    before = len(texts(page))
    page.check("#special")
    page.wait_for_function("() => document.querySelector('.t').textContent === '<|bos|>'")
    assert len(texts(page)) < before


def test_tokens_by_keyboard(page: Any) -> None:
    enter(page, "one two three four")
    page.focus(".tokens")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    active = page.get_attribute(".tokens", "aria-activedescendant")
    assert active == "p0-1"
    assert page.get_attribute(f"#{active}", "aria-selected") == "true"
    assert "id" in page.get_attribute(f"#{active}", "aria-label")
    assert page.is_visible("#tip")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_selector("#inspector:not([hidden])")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "tokens"
    page.focus("#tab-text")
    page.keyboard.press("ArrowRight")
    assert page.is_visible("#view-merges")
    assert page.get_attribute("#tab-merges", "aria-selected") == "true"


def test_everything_that_takes_input_has_a_name(page: Any) -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, [role]')].filter(
        (e) => !e.textContent.trim() && !e.ariaLabel && !e.labels?.length
        && !e.getAttribute('aria-labelledby') && !['tooltip', 'status'].includes(e.role)
        ).map((e) => e.outerHTML)"""
    )
    assert nameless == []


def test_a_megabyte_is_pasted_without_freezing(page: Any, trained: bytepair.Tokenizer) -> None:
    text = ("To be, or not to be, that is the question:\n" * 25000)[: 1 << 20]
    page.evaluate(
        """(text) => { const data = new DataTransfer(); data.setData('text/plain', text);
        const field = document.getElementById('text'); field.value = ''; field.focus();
        const how = { clipboardData: data, bubbles: true, cancelable: true };
        field.dispatchEvent(new ClipboardEvent('paste', how)); }""",
        text,
    )
    page.wait_for_function(
        "() => document.querySelector('#sizes').textContent.includes('1,048,576 bytes')"
    )
    count = len(trained.encode(text))
    assert page.inner_text(".count").split()[0] == f"{count:,}"
    assert page.evaluate("document.querySelectorAll('.t').length") < 5000
    page.eval_on_selector(".tokens", "e => e.scrollTop = e.scrollHeight")
    page.wait_for_function(f"() => document.getElementById('p0-{count - 1}') !== null")
    assert page.evaluate("document.querySelectorAll('.t').length") < 5000
    page.click("#anew")
    page.wait_for_function("() => document.querySelectorAll('.pane .t').length === 0")


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("view", ["text", "merges", "chat", "vocabulary"])
def test_nothing_stands_out_at_the_side(page: Any, width: int, view: str) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.click(f"#tab-{view}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_report_is_as_wide_as_a_phone(
    browser: Any, trained: bytepair.Tokenizer, tmp_path: Any
) -> None:
    found = bytepair.evaluate.measure(trained, against={"small": trained.truncate(600)})
    path = bytepair.report.save(found, tmp_path / "report.html")
    sheet = browser.new_page(viewport={"width": 360, "height": 700})
    asked: list[str] = []
    sheet.on("request", lambda request: asked.append(request.url))
    sheet.goto(path.as_uri())
    assert sheet.evaluate("document.documentElement.scrollWidth") <= 360
    assert len(asked) == 1
    assert sheet.title() == "ours · bytepair report"
    sheet.close()
