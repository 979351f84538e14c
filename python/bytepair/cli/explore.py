"""`bytepair explore`: serve or export a web page that shows tokens."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import Failure, Misuse, in_words, tell
from bytepair.cli.paths import OUTPUT_FILE

#: The text of a page with all views for which none is given.
PROMPT = "Hello, world! How is this split? 안녕하세요, 你好，مرحبا 👋🏽"


@option.command(
    "bytepair explore my-tokenizer --open",
    "bytepair explore my-tokenizer gpt2 cl100k_base",
    "bytepair explore my-tokenizer ranks.tiktoken --pattern gpt4",
    "bytepair explore my-tokenizer gpt2 --export page.html --text 'A text to send'",
    "bytepair explore my-tokenizer --export page.html < book.txt",
    "bytepair explore my-tokenizer gpt2 --export page.html --all-views",
)
@click.argument("tokenizers", nargs=-1)
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    help="The split pattern of a tokenizer whose file does not contain one; may be repeated, in "
    "the order of these tokenizers.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    help="The address to listen on; unless it is loopback, other machines can connect.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, help="The port; 0 for any free port."
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--export",
    type=OUTPUT_FILE,
    help="Write a page for one text that works offline; do not start a server.",
)
@click.option(
    "--all-views",
    is_flag=True,
    help="With --export: write a page with all views, for any text; it contains the tokenizers.",
)
@click.option("--text", help="With --export: the text, instead of standard input.")
@click.option(
    "--special",
    type=click.Choice(["text", "all"]),
    default="text",
    help="With --export: encode special tokens that occur in the text as text, or as their ids.",
)
def explore(
    tokenizers: tuple[str, ...],
    patterns: tuple[str, ...],
    host: str,
    port: int,
    open_page: bool,
    export: Path | None,
    all_views: bool,
    text: str | None,
    special: str,
) -> None:
    """Explore tokens in the browser: splits, merges, chats, the vocabulary, costs.

    The page connects to this machine only; stop the server with Ctrl-C. With --export, one
    self-contained HTML file for one text is written instead.

    TOKENIZERS: the tokenizers to compare: folders, files or published names such as gpt2. Without
    TOKENIZERS, the page shows the folder "tokenizer" and, if they are on this machine, GPT-2, GPT-4
    and GPT-4o.
    """
    if export is None:
        option.refuse("these options need --export", "text", "special", "all_views")
    else:
        option.refuse("--export starts no server", "host", "port")
    loaded, missing = _opened(tokenizers or _usual(), patterns)
    if export is not None:
        if text is None:
            text = PROMPT if all_views and sys.stdin.isatty() else _input()
        bytepair.explore.save(
            loaded, text, export, special=special == "all", all_views=all_views, overwrite=True
        )
        click.echo(f"{export.stat().st_size / 1e3:,.0f} kB: {export}")
        if open_page:
            webbrowser.open(export.resolve().as_uri())
        return

    server = bytepair.explore.Server(loaded, host, port, missing)
    click.echo(f"{server.url}\nPress Ctrl-C to stop.")
    if open_page:
        webbrowser.open(server.url)
    server.serve_forever()


def _usual() -> list[str]:
    """The tokenizers that are shown if none is named."""
    local = bytepair.list_vocabularies().files
    known = [name for name in bytepair.explore.PUBLISHED if name in local]
    return ["tokenizer", *known] if Path("tokenizer").exists() or not known else known


def _input() -> str:
    """The text of standard input."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        problem = f"standard input is not UTF-8 at byte {error.start}"
        raise Failure(problem, "convert it, for example with iconv") from None


def _opened(
    names: Sequence[str], patterns: Sequence[str]
) -> tuple[dict[str, bytepair.Tokenizer], list[str]]:
    """Load the tokenizers by name; skip those that cannot be downloaded, unless all fail."""
    tokenizers: dict[str, bytepair.Tokenizer] = {}
    missing, left = [], list(patterns)
    for name in names:
        published = bytepair.explore.PUBLISHED.get(name, name)
        short = Path(name).resolve().name if Path(name).exists() else published
        try:
            tokenizers[name if short in tokenizers else short] = _loaded(name, left)
        except bytepair.errors.NotFetchedError as error:
            missing.append(error)
    if left:
        ignored = f"--pattern {left[0]!r} would be ignored"
        raise Misuse(f"{ignored}: each other tokenizer contains its split pattern")
    if missing and not tokenizers:
        raise missing[0]
    reasons = [in_words(error) for error in missing]
    for reason in reasons:
        tell("warning", *reason)
    return tokenizers, ["; ".join(reason) for reason in reasons]


def _loaded(name: str, patterns: list[str]) -> bytepair.Tokenizer:
    """Load a tokenizer; if it does not contain a split pattern, take the first of these."""
    try:
        return bytepair.load(name)
    except bytepair.errors.FormatError as error:
        if not patterns or not error.place.endswith("split pattern"):
            raise
    return bytepair.load(name, pattern=patterns.pop(0))
