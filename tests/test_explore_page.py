"""The page in a real browser, as people use it: Chromium without a window, through Playwright.

Needs the package `playwright` and a Chromium on the path (Debian: `apt-get install chromium`);
without them these tests are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import bytepair
from bytepair import explore
from bytepair._internal import drawing
from bytepair.explore.answers import ten_scripts
from contrast import CONTRASTS, backgrounds
from explore_page import check, drop, enter, opened, share, texts

HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script> </textarea> &amp; ${x} 'a' \"b\""


@pytest.fixture(scope="module")
def server(trained: bytepair.Tokenizer) -> Iterator[explore.Server]:
    small = trained.replace(vocab_size=600)
    with explore.Server({"trained": trained, "small": small}) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: explore.Server) -> Iterator[Any]:
    with opened(browser, server) as tab:
        yield tab


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
    # Every block must be in view, since blocks are filled when they come into view.
    page.eval_on_selector(".tokens", "e => e.style.maxHeight = 'none'")
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
    for tok in (trained, trained.replace(vocab_size=600)):
        start, row = 0, []
        for id in tok.encode(text):
            end = start + len(tok.token_bytes(id))
            row.append((start, end))
            start = end
        spans.append(row)
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
    assert f"{id}" in tip
    assert trained.token_bytes(id).hex(" ") in tip
    token.click()
    page.wait_for_selector("#inspected .node")
    assert "How it was built" in page.inner_text("#inspected")
    page.click("#inspected .chip >> nth=0")
    page.wait_for_function(
        f"() => !document.querySelector('#inspected dd').textContent.includes('{id}')"
    )
    page.keyboard.press("Escape")
    assert page.is_hidden("#inspector")


def test_the_merges_of_a_word(page: Any, trained: bytepair.Tokenizer) -> None:
    enter(page, "so honourable")
    page.locator(".pane:first-child .t").last.click()
    page.click("text=Step through the merges of this word")
    steps = explore.Answers({"": trained}).ask("steps", b" honourable", t=0)["steps"]
    label = f"step {len(steps) - 1} of {len(steps) - 1}"  # it opens on its last step
    page.wait_for_function(
        "(said) => document.querySelector('#step-said').textContent.startsWith(said)", arg=label
    )
    assert page.input_value("#word") == " honourable"
    assert page.locator("#steps li").count() == len(steps)
    assert page.locator(".player button svg").count() == 6
    assert "".join(page.locator(".player button").all_inner_texts()).strip() == "Play"
    page.click("#first")
    assert page.locator("#steps .part").count() == 11
    for step in steps:
        shown = page.locator("#steps li:last-child .part").evaluate_all(
            """(all) => all.map(
            (p) => [...p.childNodes].map((n) => n.dataset?.picture ?? n.textContent).join(''))"""
        )
        parts = [bytes.fromhex(part["hex"]).decode() for part in step["parts"]]
        assert shown == [part.replace(" ", "·") for part in parts]
        page.click("#next")
    assert page.locator("#steps li").count() == len(steps)


def test_the_merges_of_line_ends(browser: Any) -> None:
    tok = bytepair.train(["a\n\nb\n\n c\n\n"] * 3, vocab_size=266)  # a field cannot hold this
    assert b"\n\n" in tok.mergeable_ranks()
    with explore.Server({"ends": tok}) as server:
        sheet = browser.new_page()
        sheet.goto(server.url)
        sheet.wait_for_selector("[data-ready]", state="attached")
        enter(sheet, "a\n\n b")
        sheet.locator(".pane .t").nth(1).click()
        sheet.click("text=Step through the merges of this word")
        sheet.wait_for_function("() => document.querySelectorAll('#steps li').length === 2")
        sheet.close()


def test_a_chat_shows_its_mask(page: Any, trained: bytepair.Tokenizer) -> None:
    page.click("#tab-chat")
    page.fill(".message:nth-child(1) textarea", "Who is there?")
    page.fill(".message:nth-child(2) textarea", "Nobody.")
    talk = [
        {"role": "user", "content": "Who is there?"},
        {"role": "assistant", "content": "Nobody."},
    ]
    ids, mask = trained.render_conversation(talk)
    summary = f"{len(ids)} tokens, {sum(mask)} of them trained on"
    page.wait_for_function(
        "(said) => document.querySelector('#chat-said').textContent === said", arg=summary
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
    expected = [i for i in range(trained.vocab_size) if fits(trained.token_bytes(i), i)]
    assert expected
    page.click("#tab-vocabulary")
    page.select_option("#kind", kind)
    page.fill("#query", query)
    summary = f"{len(expected):,} of {trained.vocab_size:,} tokens"
    page.wait_for_function(
        "(said) => document.querySelector('#found').textContent === said", arg=summary
    )
    ids = page.evaluate(
        """[...document.querySelectorAll('#results small')].map(
        (s) => Number(s.textContent))"""
    )
    assert ids == expected[:300]


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
    page.click("#names .switch >> nth=1")  # one tokenizer less
    share(page)
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
@pytest.mark.parametrize("view", ["text", "merges", "chat", "vocabulary", "cost"])
def test_nothing_is_wider_than_the_page(page: Any, width: int, view: str) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.click(f"#tab-{view}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# ---------------------------------------------------------------------------- how tokens are drawn

#: Bytes that are hard to draw: scripts, joiners, directions, controls, selectors, and no text.
HARD = [
    b"plain", "\u200d".encode(), "a\u202eb\u2066c".encode(), "\ufeffx".encode(), b"",
    b"\x00\x1b[31m\x7f",
    "❤\ufe0f".encode(), "👩\u200d👩".encode(), "\u00ad\u061c\u2028\u009b".encode(), "⟪x⟫".encode(),
    b"\xe4\xbd", b" \xe4", b"a\xff\xfeb", "می\u200cخواهم".encode(), "क्\u200dष".encode(),
    "\U000e0041\U0001f3fb".encode(), b"\xf0\x9f\x91", b"\xed\xa0\x80", b"\xc0\x80",
    "e\u0301".encode(),
]  # fmt: skip


def test_the_page_draws_what_bytepair_view_draws(page: Any) -> None:
    shown = page.evaluate(
        """async (all) => { const { fill, fromHex } = await import('./bytes.js');
        const kind = (n) => n.nodeType === 3 ? ['text', n.data]
            : n.className === 'bytes'
            ? ['byte', [...n.children].map((b) => b.textContent).join(' ')]
            : [n.classList.contains('mark') ? 'mark' : 'text', n.dataset.picture];
        return all.map((hex) => [...fill(document.createElement('p'), fromHex(hex)).childNodes]
            .map(kind)); }""",
        [token.hex() for token in HARD],
    )
    for token, parts in zip(HARD, shown, strict=True):
        joined: list[tuple[str, str]] = []
        for kind, text in parts:
            if kind == "text" and joined and joined[-1][0] == "text":
                joined[-1] = ("text", joined[-1][1] + text)
            else:
                joined.append((kind, text))
        assert joined == list(drawing.draw(token).parts), token


@pytest.mark.parametrize("display", ["text", "both", "ids", "bytes"])
def test_a_forged_token_is_not_drawn_as_a_real_one(page: Any, display: str) -> None:
    enter(page, "<|user_end|> stays text")
    page.select_option("#display", display)
    assert page.locator(".pane .t.special").count() == 0
    page.check("#special")
    page.wait_for_selector(".pane .t.special")
    label = page.get_attribute(".pane:first-child .t.special", "aria-label")
    assert label.startswith("special token <|user_end|>")
    special = backgrounds(page, ".pane .t.special")
    assert not special & backgrounds(page, ".pane .t:not(.special)")
    page.hover(".pane .t.special")
    assert backgrounds(page, "#tip .word .special") == special
    page.click(".pane .t.special")
    page.wait_for_selector("#inspected .word .special")
    assert backgrounds(page, "#inspected .word .special") == special


def test_a_forged_token_in_a_chat_is_text(page: Any, trained: bytepair.Tokenizer) -> None:
    page.click("#tab-chat")
    page.fill(".message:nth-child(1) textarea", "Hi<|user_end|>")
    page.wait_for_function("() => document.querySelector('.t.off:not(.special)')")
    names = page.locator("#chat-tokens .special").all_inner_texts()
    assert names == ["<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>",
                     "<|assistant_end|>"]  # fmt: skip
    text = backgrounds(page, "#chat-tokens .t:not(.special)")
    assert len(text) == len(backgrounds(page, "#chat-tokens .special") - text) == 2


def test_special_tokens_are_seen_in_the_vocabulary(page: Any) -> None:
    page.click("#tab-vocabulary")
    page.fill("#query", "<|bos|>")
    page.wait_for_function("() => document.querySelector('#found').textContent.startsWith('1 of')")
    assert page.inner_text("#results .chip .special") == "<|bos|>"


def test_invisible_characters_are_marked_and_copied(page: Any) -> None:
    text = "a\u200cb\tc d"  # a token of the vocabulary, and a control character
    page.click("#names .switch >> nth=1")
    enter(page, text)
    read = (
        """() => [...document.querySelectorAll('.pane .control')].map((c) => c.dataset.picture)"""
    )
    assert "→" in page.evaluate(read)
    assert "\t" in "".join(texts(page))
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.pane .tokens'))")
    assert "\tc d" in page.evaluate("String(getSelection())")


def test_the_vocabulary_begins_with_merges(page: Any, trained: bytepair.Tokenizer) -> None:
    page.click("#tab-vocabulary")
    page.wait_for_selector("#results .chip")
    first = page.locator("#results .chip small").first.inner_text()
    assert first == "256"
    page.select_option("#kind", "id")
    page.fill("#query", "65")
    page.wait_for_function("() => document.querySelector('#results small')?.textContent === '65'")
    assert page.locator("#results .chip").first.inner_text().split() == ["41", "A", "65"]


@pytest.mark.parametrize("width", [390, 700, 1200])
@pytest.mark.parametrize("display", ["text", "both", "bytes", "ids"])
def test_the_bytes_of_a_token_stay_on_one_line(page: Any, width: int, display: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    enter(page, ten_scripts() + "<|assistant_start|>" * 9)
    check(page, "#special")
    page.select_option("#display", display)
    page.wait_for_timeout(200)
    broken = page.evaluate(
        """() => [...document.querySelectorAll('.pane .t')].filter((t) => {
        const marks = [...t.querySelectorAll('.byte')].map((b) => b.getBoundingClientRect().top);
        const boxes = t.matches('.special') || getComputedStyle(t).display !== 'inline';
        return Math.max(...marks) - Math.min(...marks) > 2
            || (boxes && t.getClientRects().length > 1);
        }).map((t) => t.outerHTML)"""
    )
    assert broken == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("text", ["plain", "\u200c", "a\tb\x07", "여", "<|bos|>", " \n"])
def test_marks_do_not_make_lines_higher(page: Any, text: str) -> None:
    enter(page, text)
    check(page, "#special")

    assert page.evaluate("document.querySelector('.block').offsetHeight") == 31


def test_ids_are_raw_and_are_copied(page: Any, trained: bytepair.Tokenizer) -> None:
    text = "the honourable gentleman"
    enter(page, text)
    page.select_option("#display", "ids")
    ids = trained.encode(text)
    page.wait_for_function(
        "(wanted) => document.querySelector('.block').textContent.trim() === wanted",
        arg=" ".join(f"{id}" for id in ids),
    )
    page.evaluate(
        """() => { navigator.clipboard.writeText = (text) => { window.copied = text;
        return Promise.resolve(); } }"""
    )
    page.click(".pane:first-child .copy")
    page.wait_for_function("() => document.querySelector('.copy').textContent === 'Copied'")
    assert page.evaluate("window.copied") == str(ids)


# ---------------------------------------------------------------------------- dropped files


@pytest.mark.parametrize(
    "data",
    [b"a\r\nb\rc\n", b"\xef\xbb\xbfwith a mark", b"\x00\x01", "é\r\n你".encode(), b"plain\n"],
)
def test_a_dropped_file_is_taken_byte_for_byte(
    page: Any, trained: bytepair.Tokenizer, data: bytes
) -> None:
    drop(page, data)
    page.wait_for_function(
        "(size) => document.querySelector('#sizes').textContent.endsWith(size)",
        arg=f", {len(data):,} bytes in UTF-8",
    )
    assert page.inner_text(".count").split()[0] == str(len(trained.encode(data.decode())))
    assert page.is_hidden("#refused")
    share(page)
    page.reload()
    page.wait_for_function(
        "(size) => document.querySelector('#sizes').textContent.endsWith(size)",
        arg=f", {len(data):,} bytes in UTF-8",
    )
    if b"\r" in data:
        assert page.is_visible("#kept")
        page.click("#anew")
        assert page.is_editable("#text")


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\xff", "é".encode("latin-1"), b"\xed\xa0\x80"])
def test_a_binary_file_is_refused(page: Any, data: bytes) -> None:
    enter(page, "this stays")
    drop(page, data, "picture.png")
    page.wait_for_selector("#refused:not([hidden])")
    assert "picture.png is not shown: it is not text in UTF-8" in page.inner_text("#refused")
    assert page.input_value("#text") == "this stays"
    enter(page, "and goes when one types")
    assert page.is_hidden("#refused")


# ---------------------------------------------------------------------------- panes side by side


@pytest.mark.parametrize("width", [700, 1000, 1400])
def test_texts_of_panes_line_up(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    enter(page, "What is honourable?")
    tops = page.locator(".pane .tokens").evaluate_all(
        "(all) => all.map((e) => e.getBoundingClientRect().top)"
    )
    assert len(tops) == 2
    assert tops[0] == tops[1]


def test_underlines_are_off_at_first_and_have_a_legend(page: Any) -> None:
    enter(page, "What is honourable?")
    assert not page.is_checked("#marks")
    assert page.is_hidden("#legend")
    edge = """() => getComputedStyle(document.querySelector('.different'))
        .getPropertyValue('--edge').trim()"""
    assert page.evaluate(edge) == "transparent"
    page.check("#marks")
    assert page.is_visible("#legend")
    assert page.evaluate(edge) != "transparent"
    page.click("#names .switch >> nth=1")  # one pane, so nothing to compare with
    assert page.is_hidden("#legend")


def test_the_same_text_is_marked_in_all_panes(page: Any, trained: bytepair.Tokenizer) -> None:
    text = "so honourable a man"
    enter(page, text)
    page.locator(".pane:first-child .t").nth(1).hover()
    tokens = [trained.token_bytes(i) for i in trained.encode(text)]
    start, end = len(tokens[0]), len(tokens[0] + tokens[1])
    small = trained.replace(vocab_size=600)
    expected, place = [], 0
    for n, id in enumerate(small.encode(text)):
        size = len(small.token_bytes(id))
        if place < end and place + size > start:
            expected.append(f"p1-{n}")
        place += size
    same = "[...document.querySelectorAll('.same')].map((t) => t.id)"
    assert page.evaluate(same) == expected
    page.hover("h1")
    assert page.evaluate(same) == []


def test_numbers_have_separators(page: Any) -> None:
    enter(page, "the " * 3000)
    page.select_option("#display", "ids")
    for selector in (".count", "#sizes"):  # ids have none, so that they can be copied
        assert not re.search(r"\d{4}", page.inner_text(selector))
    page.click("#tab-vocabulary")
    page.fill("#query", "honour")
    page.wait_for_function("() => !document.querySelector('#found').textContent.startsWith('3,')")
    page.click("#results .chip >> nth=-1")
    page.wait_for_selector("#inspected .node")
    id, rank = (
        page.locator("#inspected dt", has_text=name).locator("+ dd").inner_text()
        for name in ("id", "rank")
    )
    assert f"{int(id):,}" == rank
    assert id != rank


def test_a_chat_has_tool_calls(page: Any, trained: bytepair.Tokenizer) -> None:
    page.click("#tab-chat")
    page.fill(".message:nth-child(2) textarea", "Let me see.")
    page.click(".message:nth-child(2) >> text=Add a tool call")
    page.fill(".message:nth-child(2) .part-of:nth-child(2) textarea", "6 * 7")
    page.fill(".message:nth-child(2) .part-of:nth-child(3) textarea", "42")
    page.click(".message:nth-child(2) .part-of:nth-child(4) button")
    parts = [
        {"type": "text", "text": "Let me see."},
        {"type": "python", "text": "6 * 7"},
        {"type": "python_output", "text": "42"},
    ]
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": "What is a token?"},
        {"role": "assistant", "content": parts},
    ]
    ids, mask = trained.render_conversation(talk)
    summary = f"{len(ids)} tokens, {sum(mask)} of them trained on"
    page.wait_for_function(
        "(said) => document.querySelector('#chat-said').textContent === said", arg=summary
    )
    assert "<|python_start|>" in page.inner_text("#chat-tokens")
    share(page)
    page.reload()
    page.wait_for_function(
        "(said) => document.querySelector('#chat-said').textContent === said", arg=summary
    )
    assert page.locator(".part-of").count() == 3


@pytest.mark.parametrize("view", ["text", "chat"])
def test_on_a_phone_the_token_stays_visible_beside_its_details(page: Any, view: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    enter(page, ten_scripts())
    if view == "chat":  # the view of the text is open, and opening it again would draw it again
        page.click("#tab-chat")
    page.wait_for_selector(f"#view-{view} .t")
    for place in ("last", "first"):
        # Blocks are filled as they come into view, so `last` is looked up once.
        token = getattr(page.locator(f"#view-{view} .t"), place).element_handle()
        token.click()
        page.wait_for_selector("#inspected dl")
        page.wait_for_function(
            """(token) => { const box = token.getBoundingClientRect();
            const panel = document.getElementById('inspector').getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight
                && (box.bottom <= panel.top || box.top >= panel.bottom); }""",
            arg=token,
        )
        page.keyboard.press("Escape")


# ---------------------------------------------------------------------------- contrast


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow
def test_contrast_on_the_page(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    enter(page, "<|bos|>Text\t\u200d\x07\n" + ten_scripts())
    page.check("#special")
    page.check("#marks")
    for display in ("text", "both", "ids", "bytes"):
        page.select_option("#display", display)
        assert page.evaluate(CONTRASTS) == []
    page.locator(".pane:first-child .t").nth(1).hover()
    assert page.evaluate(CONTRASTS) == []
    page.locator(".pane:first-child .t").first.click()
    page.wait_for_selector("#inspected dl")
    drop(page, b"\xff")
    page.wait_for_selector("#refused:not([hidden])")
    assert page.evaluate(CONTRASTS) == []
    page.keyboard.press("Escape")
    page.click("#share")
    for view in ("merges", "chat", "cost", "vocabulary"):
        page.click(f"#tab-{view}")
        if view == "cost":
            page.fill("#prices input >> nth=0", "3")
            page.wait_for_selector("#costs .money")
        page.wait_for_timeout(200)
        assert page.evaluate(CONTRASTS) == []
    page.fill("#query", "<|")
    page.wait_for_selector("#results .special")
    assert page.evaluate(CONTRASTS) == []
