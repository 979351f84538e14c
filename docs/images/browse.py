"""Picture the page of `explore`, beside this file: three views as PNG, and `explore.webp`.

    python docs/images/browse.py DATA    # needs playwright, pillow, Chromium and Noto fonts

DATA has the rank files of GPT-2 and GPT-4o, as `benchmarks/texts.py` fetches them. Chromium shows
the page as a reader would use it: a text is typed, a token is pointed at, the costs are compared.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import bytepair

FOLDER = Path(__file__).parent
TEXT = """Tokenizers cut text into pieces: unbelievable, isn't it?
안녕하세요 — 你好 — مرحبا بالعالم 🦊
1,000,000 naïve owls"""
#: Where a token is found by what is on the page, and by its place in its pane.
WORD = "unbelievable"
#: Dollars for a million tokens, which the reader enters.
PRICES = ("0.50", "2.00", "2.50")
#: Milliseconds that a frame of the animation is shown.
TYPED, SEEN, READ = 160, 900, 2800


def tokenizers(data: Path) -> dict[str, bytepair.Tokenizer]:
    """One that is trained on the sample texts, and two that are published."""
    return {
        "mine": bytepair.train(bytepair.sample.paths(), vocab_size=8192),
        "GPT-2": bytepair.load(data / "gpt2.tiktoken", pattern="gpt2", special_tokens={}),
        "GPT-4o": bytepair.load(data / "o200k_base.tiktoken", pattern="gpt4o", special_tokens={}),
    }


@contextmanager
def page(
    compared: dict[str, bytepair.Tokenizer], width: int, height: int, scale: float
) -> Iterator[Any]:
    """The page in a browser without a window."""
    with bytepair.explore.Server(compared) as server, sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        size: Any = {"width": width, "height": height}
        found = browser.new_page(viewport=size, device_scale_factor=scale)
        found.goto(server.url)
        found.wait_for_selector("[data-ready]", state="attached")
        yield found
        browser.close()


def settled(page: Any) -> None:
    """Wait until the page has answered."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(150)


def point(page: Any) -> None:
    """Point at a word in the second pane."""
    page.locator(".pane").nth(1).locator(".t", has_text=WORD).hover()
    page.wait_for_selector("#tip:not([hidden]) .node")  # how the token was built
    settled(page)


def costs(page: Any) -> None:
    """Turn to the costs, and enter prices."""
    page.mouse.move(5, 5)
    page.click("#tab-cost")
    page.wait_for_selector("#costs tbody tr:nth-child(60)")
    for field, price in zip(page.locator("#prices input").all(), PRICES, strict=False):
        field.fill(price)
    page.locator("#prices input").last.blur()
    settled(page)


def shot(page: Any, last: str = "", margin: int = 0) -> Image.Image:
    """What the page looks like, down to an element if one is named."""
    size = page.viewport_size
    if last:
        box = page.locator(last).bounding_box()
        size = {**size, "height": min(size["height"], round(box["y"] + box["height"]) + margin)}
    picture = page.screenshot(clip={"x": 0, "y": 0, **size})
    return Image.open(io.BytesIO(picture)).convert("RGB")


def pictures(compared: dict[str, bytepair.Tokenizer]) -> None:
    """A token that is pointed at, the merges of a word, and the costs."""
    with page(compared, 1180, 880, 1.5) as found:
        found.fill("#text", TEXT)
        settled(found)
        point(found)
        save(shot(found), "explore.png")
        merges(found)
        save(shot(found, "#steps", margin=16), "merges.png")
        costs(found)
        save(shot(found, "#costs tbody tr:nth-child(8)"), "cost.png")


def merges(page: Any) -> None:
    """Turn to the merges of a word of the first tokenizer, at their last step."""
    page.mouse.move(5, 5)
    page.click("#tab-merges")
    page.fill("#word", f" {WORD}")
    settled(page)
    page.click("#last")
    settled(page)


def save(picture: Image.Image, name: str) -> None:
    """Write a picture in 256 colours."""
    few = picture.quantize(256, Image.Quantize.MEDIANCUT, kmeans=8, dither=Image.Dither.NONE)
    few.save(FOLDER / name, optimize=True)


def animation(compared: dict[str, bytepair.Tokenizer]) -> None:
    """How the page is used, as an animated WebP without loss."""
    with page(compared, 860, 700, 1.25) as found:
        frames, times = zip(*scenes(found), strict=True)
    first, *others = frames
    first.save(
        FOLDER / "explore.webp", save_all=True, append_images=others, loop=0, lossless=True,
        duration=list(times), method=4, quality=80, minimize_size=True,
    )  # fmt: skip


def scenes(page: Any) -> Iterator[tuple[Image.Image, int]]:
    """What the animation shows, and for how many milliseconds."""
    yield shot(page), SEEN
    first, _, rest = TEXT.partition("\n")
    words = first.split(" ")
    for end in range(1, len(words) + 1):
        page.fill("#text", " ".join(words[:end]))
        settled(page)
        yield shot(page), TYPED if end < len(words) else SEEN
    page.fill("#text", f"{first}\n{rest}")
    settled(page)
    yield shot(page), READ
    point(page)
    yield shot(page), READ
    costs(page)
    yield shot(page), READ


if __name__ == "__main__":
    found = tokenizers(Path(sys.argv[1]))
    pictures(found)
    animation({name: found[name] for name in ("mine", "GPT-4o")})
