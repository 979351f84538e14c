"""The site as a visitor meets it: every link, a first visit that asks nobody else, the search.

It is built into a temporary folder, served from this machine and looked at in Chromium. Needs what
`make docs` installs, the package `playwright` and a Chromium on the path; otherwise it is skipped.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: What people type, and the page that must be among the first results.
QUERIES = {
    "encode_batch": "reference/tokenizer-encode",
    "how many tokens": "count-tokens",
    "count tokens": "count-tokens",
    "token count": "count-tokens",
    "gpt-4": "count-tokens",
    "TIKTOKEN_CACHE_DIR": "published",
    "<|endoftext|>": "questions",
    "install": "install",
    "train": "train",
    "vocab_size": "reference/tokenizer-look",
    "vocabulary size": "vocabulary-size",
    "special tokens": "train",
    "encode_to_numpy": "reference/tokenizer-encode",
    "decode_stream": "reference/tokenizer-encode",
    "tokenizer.json": "formats/tokenizer-json",
    "gguf": "formats/gguf",
    "llama.cpp": "formats/gguf",
    "sentencepiece": "formats/sentencepiece",
    "minbpe": "migrate-tiktoken",
    "nanochat": "migrate-nanochat",
    "cl100k_base": "published",
    "offline": "published",
    "byte fallback": "formats/sentencepiece",
    "chat template": "chat-templates",
    "loss mask": "chat",
    "render_conversation": "reference/tokenizer-conversations",
    "AutoTokenizer": "migrate-huggingface",
    "vLLM": "engines",
    "json schema": "engines",
    "shards": "corpora",
    "SuperBPE": "superwords",
    "ties": "train",
    "fingerprint": "formats/native",
    "validation": "corpora",
    "pretoken": "glossary",
    "knee": "vocabulary-size",
    "checkpoint": "train",
}
#: How many results a visitor looks at.
FIRST = 5


class Links(HTMLParser):
    """The targets of a page's links and what it loads, and its anchors."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := values.get(key))}
        self.targets += [value for key in ("href", "src") if (value := values.get(key))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("material") is None:
        pytest.skip("needs mkdocs-material")
    folder: Path = tmp_path_factory.mktemp("site")
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": paths},
    )  # fmt: skip
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """A server that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_every_link_of_the_site_resolves(site: Path) -> None:
    pages = {page: Links(page.read_text("utf-8")) for page in site.rglob("*.html")}
    assert len(pages) > 60
    for page, links in pages.items():
        if page.name == "404.html":
            continue  # its links are those of a site at the top of a host
        here = page.relative_to(site).as_posix()
        for link in links.targets:
            if urlsplit(link).scheme in {"http", "https", "mailto", "data"}:
                continue
            target, anchor = urldefrag(urljoin(f"http://site/{here}", link))
            path = site / unquote(urlsplit(target).path).lstrip("/")
            path = path / "index.html" if path.is_dir() else path
            assert path.is_file(), f"{here}: {link}"
            if anchor and path in pages:
                assert unquote(anchor) in pages[path].anchors, f"{here}: {link}"


def test_the_first_visit_loads_nothing_from_elsewhere(browser: Any, address: str) -> None:
    sheet = browser.new_context().new_page()
    addresses: list[str] = []
    sheet.on("request", lambda request: addresses.append(request.url))
    for path in ("", "tutorial/", "lessons/01-a-toy-bpe/", "reference/tokenizer-encode/"):
        sheet.goto(address + path)
        sheet.wait_for_load_state("networkidle")
    assert len(addresses) > 10
    assert {url for url in addresses if not url.startswith((address, "data:", "blob:"))} == set()
    sheet.close()


def test_the_search_finds_what_people_look_for(browser: Any, address: str) -> None:
    assert len(QUERIES) >= 30
    sheet = browser.new_page(viewport={"width": 1280, "height": 900})
    sheet.goto(address)
    sheet.wait_for_load_state("networkidle")  # the index is there
    lost = {}
    for query, page in QUERIES.items():
        pages = searched(sheet, query, address)
        most = 1 if page == "count-tokens" else FIRST
        if page not in pages[:most]:
            lost[query] = pages[:FIRST]
    sheet.close()
    assert not lost, lost


def searched(sheet: Any, query: str, address: str) -> list[str]:
    """The pages that a search finds, the best first."""
    sheet.click(".md-search__input")
    sheet.fill(".md-search__input", "")
    sheet.keyboard.type(query)
    shown: list[str] = []
    for _ in range(50):  # it searches while one types: the last results stay
        sheet.wait_for_timeout(200)
        before, shown = shown, sheet.eval_on_selector_all(
            ".md-search-result__item > .md-search-result__link", "(all) => all.map((a) => a.href)"
        )  # fmt: skip
        if shown and shown == before:
            break
    paths = [re.sub(r"[?#].*", "", url).removeprefix(address).strip("/") for url in shown]
    return list(dict.fromkeys(paths))
