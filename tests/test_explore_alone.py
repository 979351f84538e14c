"""The page with all views without a server: as one file, and as the playground of the site.

`make wasm` builds the module for browsers that both contain. Without it, or without a Chromium,
these tests are skipped.
"""

from __future__ import annotations

import http.server
import importlib.util
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bytepair
from bytepair import explore
from bytepair.cli.look import explore as command
from contrast import CONTRASTS
from explore_page import drop, enter, watched
from messages import told

ROOT = Path(__file__).resolve().parents[1]
MODULE = Path(explore.__file__).parent / "wasm" / "bytepair_bg.wasm"
needs_module = pytest.mark.skipif(not MODULE.exists(), reason="needs the module: make wasm")
HOSTILE = "</script><img src=x onerror=alert(1)>"


@contextmanager
def alone(browser: Any, address: str, *, offline: bool = False) -> Iterator[Any]:
    """A page that must log and raise nothing, and load nothing from elsewhere."""
    with watched(browser, address, offline=offline) as (page, messages, addresses):
        yield page
        assert messages == []
        own = (address.rsplit("/", 1)[0], "blob:", "data:")
        assert [url for url in addresses if not url.startswith(own)] == []


# ---------------------------------------------------------------------------- one file


@pytest.fixture
def sheet(browser: Any, trained: bytepair.Tokenizer, tmp_path: Path) -> Iterator[Any]:
    tokenizers = {"trained": trained, HOSTILE: trained.replace(vocab_size=600)}
    path = tmp_path / "page.html"
    page = explore.to_html(tokenizers, "so honourable", all_views=True)
    path.write_text(page, encoding="utf-8")
    with alone(browser, path.as_uri(), offline=True) as page:
        yield page


@needs_module
def test_all_views_work_in_one_file(sheet: Any, trained: bytepair.Tokenizer) -> None:
    assert sheet.locator(".pane h2").all_inner_texts() == ["trained", HOSTILE]
    assert sheet.input_value("#text") == "so honourable"
    enter(sheet, "another question 나")
    ids = trained.encode("another question 나")
    sheet.select_option("#display", "ids")
    sheet.wait_for_function(
        "(n) => document.querySelectorAll('.pane:first-child .t').length === n", arg=len(ids)
    )
    assert sheet.locator(".pane:first-child .t").all_inner_texts() == [str(id) for id in ids]
    sheet.locator(".pane:first-child .t").first.click()
    sheet.wait_for_selector("#inspected .chip")
    sheet.click("text=Step through the merges of this word")
    sheet.wait_for_function("() => document.querySelectorAll('#steps li').length > 2")
    sheet.wait_for_function("() => document.querySelectorAll('#learned li').length > 100")
    sheet.click("#tab-chat")
    talk = [
        {"role": "user", "content": "What is a token?"},
        {"role": "assistant", "content": "A piece of text that a model reads as one number."},
    ]
    ids, mask = trained.render_conversation(talk)
    summary = f"{len(ids)} tokens, {sum(mask)} of them trained on"
    sheet.wait_for_function(
        "(said) => document.querySelector('#chat-said').textContent === said", arg=summary
    )
    sheet.click("#tab-vocabulary")
    sheet.fill("#query", "honour")
    sheet.wait_for_selector("#results .chip")
    sheet.click("#tab-cost")
    sheet.wait_for_function("() => document.querySelectorAll('#costs tbody tr').length === 61")


@needs_module
def test_tokenizers_are_trained_in_one_file(sheet: Any) -> None:
    text = "low lower lowest slow slower 나누다 " * 20
    enter(sheet, text)
    sheet.click("#add-tokenizer")
    sheet.fill("#train-size", "300")
    sheet.click("#train")
    sheet.wait_for_function("() => document.querySelectorAll('#learned li').length > 20")
    assert "trained 300 has 277 ids" in sheet.inner_text("#notice")
    sheet.click("#tab-text")
    own = bytepair.train([text], 277, special_tokens=[])
    counts = [int(line.split()[0]) for line in sheet.locator(".count").all_inner_texts()]
    assert counts[-1] == len(own.encode(text))


@needs_module
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_one_file_is_readable(sheet: Any, scheme: str) -> None:
    sheet.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    sheet.set_viewport_size({"width": 320, "height": 700})
    sheet.click("#add-tokenizer")
    for view in ("text", "merges", "chat", "vocabulary", "cost"):
        sheet.click(f"#tab-{view}")
        sheet.wait_for_timeout(100)
        assert sheet.evaluate(CONTRASTS) == []
        assert sheet.evaluate("document.documentElement.scrollWidth") <= 320


@needs_module
def test_six_tokenizers_in_one_file(
    browser: Any, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    tokenizers = {
        f"size {size}": trained.replace(vocab_size=size) for size in range(500, 3001, 500)
    }
    path = tmp_path / "page.html"
    text = explore.to_html(tokenizers, "مرحبا <|bos|>", all_views=True)
    path.write_text(text, encoding="utf-8")
    with alone(browser, path.as_uri(), offline=True) as page:
        assert page.locator(".pane h2").all_inner_texts() == list(tokenizers)
        page.focus(".tokens")
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        page.wait_for_selector("#inspected .chip")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.className") == "tokens"
        tree = page.locator("body").aria_snapshot()
        for name in tokenizers:
            assert f'button "{name}" [pressed]' in tree
            assert f'button "Remove {name}"' in tree
            assert f'listbox "Tokens of {name}"' in tree
        for name in ("Add a tokenizer", "Copy link", "Decode"):
            assert re.search(rf'button ".*{name}', tree)
        assert 'textbox "Text from ids"' in tree


@needs_module
def test_the_command_states_the_size(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "mine")
    page = tmp_path / "page.html"
    words = [str(tmp_path / "mine"), "--export", str(page), "--all-views", "--text", "a"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert f"{page.stat().st_size / 1e3:,.0f} kB" in done.output
    assert page.stat().st_size < 3_000_000


def test_without_the_module_the_reason_is_said(
    trained: bytepair.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("page", "alone"):
        (tmp_path / folder).symlink_to(Path(explore.__file__).parent / folder)
    monkeypatch.setattr("bytepair.explore.answers._HERE", tmp_path)
    with told(bytepair.errors.ArgumentError):
        explore.to_html({"a": trained}, "a", all_views=True)


# ---------------------------------------------------------------------------- the playground


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the playground, as the documentation has it, served from a folder."""
    spec = importlib.util.spec_from_file_location("playground", ROOT / "docs" / "playground.py")
    assert spec
    assert spec.loader
    playground = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(playground)
    folder = tmp_path_factory.mktemp("site") / "playground"
    folder.mkdir()
    for name, content in playground.pages().items():
        (folder / name).write_bytes(content)
    handler = partial(_Quiet, directory=str(folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/playground/"
        server.shutdown()


@needs_module
def test_the_playground_needs_nothing_from_elsewhere(
    browser: Any, site: str, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    with alone(browser, site) as page:
        sample = bytepair.train(bytepair.sample.paths(), 1000)
        assert page.locator(".pane h2").all_inner_texts() == [
            "sample, 1,000 ids",
            "sample, 8,192 ids",
        ]
        enter(page, "so honourable a man, 나누다")
        count = page.inner_text(".count").split()[0]
        assert count == str(len(sample.encode("so honourable a man, 나누다")))
        trained.export(tmp_path / "tokenizer.json")
        trained.export(tmp_path / "ranks.tiktoken", lossy=True)
        trained.save(tmp_path / "native")
        native = next((tmp_path / "native").glob("*.bytepair"))
        ranks = tmp_path / "ranks.tiktoken"
        drop(page, ranks.read_bytes(), ranks.name)
        page.wait_for_function(
            "() => document.querySelector('#notice').textContent.includes('no split pattern')"
        )
        page.select_option("#pattern", "nanochat")
        for n, file in enumerate((tmp_path / "tokenizer.json", ranks, native)):
            drop(page, file.read_bytes(), file.name)
            page.wait_for_function(
                "(n) => document.querySelectorAll('#names .switch').length === n", arg=3 + n
            )
        counts = [text.split()[0] for text in page.locator(".count").all_inner_texts()]
        expected = str(len(trained.encode("so honourable a man, 나누다")))
        assert counts[2:] == [expected] * 3
        assert page.is_visible("#repository")  # the panel stays open
        assert page.locator("#shelf button:visible").count() == 0  # all samples are shown
        page.click("[aria-label='Remove sample, 1,000 ids']")
        page.wait_for_function("() => document.querySelectorAll('#names .switch').length === 4")
        page.click("#shelf button:visible")
        page.wait_for_function("() => document.querySelectorAll('#names .switch').length === 5")


@needs_module
def test_a_repository_is_fetched_only_when_it_is_named(
    browser: Any, site: str, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    trained.export(tmp_path / "tokenizer.json")
    context = browser.new_context()
    page = context.new_page()
    addresses: list[str] = []

    def answer(route: Any) -> None:
        addresses.append(route.request.url)
        body = (tmp_path / "tokenizer.json").read_bytes()
        headers = {"Access-Control-Allow-Origin": "*"}
        status = 200 if "someone/model" in route.request.url else 404
        route.fulfill(status=status, body=body, headers=headers)

    page.route(re.compile("^https:"), answer)
    page.goto(site)
    page.wait_for_selector("[data-ready]", state="attached")
    page.click("#add-tokenizer")
    assert addresses == []
    page.fill("#repository", "someone/model")
    page.press("#repository", "Enter")
    page.wait_for_function("() => document.querySelectorAll('#names .switch').length === 3")
    assert addresses == ["https://huggingface.co/someone/model/resolve/main/tokenizer.json"]
    for name, reason in (("someone/none", "404"), ("../../etc", "OWNER/NAME")):
        page.fill("#repository", name)
        page.press("#repository", "Enter")
        page.wait_for_function(
            "(reason) => document.querySelector('#notice').textContent.includes(reason)", arg=reason
        )
    context.close()


@needs_module
def test_a_megabyte_in_the_playground(browser: Any, site: str) -> None:
    with alone(browser, site) as page:
        data = ("To be, or not to be: قال 나누다\n" * 30000).encode()[: 1 << 20]
        drop(page, data.decode("utf-8", "ignore").encode())
        page.wait_for_function(
            "() => document.querySelector('#sizes').textContent.includes('1,048,57')"
        )
        tok = bytepair.train(bytepair.sample.paths(), 1000)
        expected = len(tok.encode(data.decode("utf-8", "ignore")))
        page.wait_for_function(
            "(n) => document.querySelector('.count').textContent.startsWith(n)", arg=f"{expected:,}"
        )


def test_the_list_of_tokenizers_is_complete() -> None:
    source = (ROOT / "docs/playground/source.js").read_text()
    policy = (ROOT / "docs/playground.py").read_text()
    assert json.dumps("https://huggingface.co") in source
    assert "connect-src 'self' {HUB}" in policy
