"""The page of `explore` in a browser, for the tests of it: opened, filled in, shared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bytepair import explore

#: The content of the first pane as text, with every block filled.
READ = """(pane) => [...document.querySelectorAll('.pane')[pane].querySelectorAll('.t')].map(
    (t) => [...t.childNodes].map((n) => n.textContent).join(''))"""


@contextmanager
def watched(
    browser: Any, address: str, *, offline: bool = False
) -> Iterator[tuple[Any, list[str], list[str]]]:
    """A page that is ready, what it logs and raises, and the addresses that it asks for."""
    context = browser.new_context(offline=offline, viewport={"width": 1200, "height": 900})
    page = context.new_page()
    messages: list[str] = []
    addresses: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: messages.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: addresses.append(request.url))
    page.goto(address)
    page.wait_for_selector("[data-ready]", state="attached")
    yield page, messages, addresses
    context.close()


@contextmanager
def opened(browser: Any, server: explore.Server) -> Iterator[Any]:
    """The page; it must load nothing from other hosts, and raise and log no error."""
    with watched(browser, server.url) as (page, messages, addresses):
        yield page
        refused = "Failed to load resource"  # the answer to conversations that break a rule
        assert [line for line in messages if not line.startswith(refused)] == []
        assert all(url.startswith(server.url) for url in addresses)


def enter(page: Any, text: str) -> None:
    page.fill("#text", text)
    size = f", {len(text.encode()):,} bytes in UTF-8"
    page.wait_for_function(
        "(size) => document.querySelector('#sizes').textContent.includes(size)", arg=size
    )


def check(page: Any, box: str) -> None:
    """Check a box that splits the text again, and wait until the panes are drawn anew."""
    page.eval_on_selector_all(".block", "(all) => all.forEach((b) => { b.dataset.old = 1; })")
    page.check(box)
    page.wait_for_selector(".block:not([data-old])", state="attached")


def share(page: Any) -> None:
    """Put all of the page's state into its address."""
    page.evaluate("history.replaceState(null, '', location.pathname)")
    page.click("#share")
    page.wait_for_function("() => location.hash.length > 10")


def drop(
    page: Any, data: bytes, name: str = "dropped.txt", where: str = "#text", times: int = 1
) -> None:
    page.evaluate(
        """([bytes, name, where, times]) => { const data = new DataTransfer();
        while (times--) data.items.add(new File([new Uint8Array(bytes)], name));
        const how = { dataTransfer: data, bubbles: true, cancelable: true };
        document.querySelector(where).dispatchEvent(new DragEvent('drop', how)); }""",
        [list(data), name, where, times],
    )


def texts(page: Any, pane: int = 0) -> list[str]:
    contents: list[str] = page.evaluate(READ, pane)
    return contents
