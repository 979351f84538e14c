"""`bytepair explore`: the page on which people look at tokens."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair explore my-tokenizer --open",
    "bytepair explore my-tokenizer gpt2 cl100k_base",
    "bytepair explore my-tokenizer gpt2 --export page.html --text 'A text to send'",
    "bytepair explore my-tokenizer --export page.html < book.txt",
)
@click.argument("tokenizers", nargs=-1)
@click.option(
    "--host",
    default="127.0.0.1",
    help="The address to listen on; other machines can connect unless it is loopback.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, help="The port; 0 is any free one."
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--export",
    type=option.OUTPUT_FILE,
    help="Write one text as a page that works offline, and serve nothing.",
)
@click.option("--text", help="The text of --export, instead of standard input.")
@click.option(
    "--special", is_flag=True, help="Special tokens in the text of --export are their ids."
)
def explore(
    tokenizers: tuple[str, ...],
    host: str,
    port: int,
    open_page: bool,
    export: Path | None,
    text: str | None,
    special: bool,
) -> None:
    """Look at tokens in the browser: splits, merges, chats, the vocabulary, costs.

    The page asks this machine and no other. Ctrl-C ends it. With --export, a page of one text is
    written instead: one file that needs no server, to keep or to send.

    TOKENIZERS: those to look at side by side: folders, files or published names, such as gpt2 and
    cl100k_base; the folder tokenizer if there is none.
    """
    if export is None:
        option.refuse("they are for --export", "text", "special")
    else:
        option.refuse("--export serves nothing", "host", "port")
    found = _opened(tokenizers or ("tokenizer",))
    if export is not None:
        _write(found, export, text, special, open_page)
        return

    def ready(url: str) -> None:
        click.echo(f"{url}\nCtrl-C ends it.")
        if open_page:
            webbrowser.open(url)

    bytepair.explore.serve(found, host=host, port=port, ready=ready)


def _write(
    found: dict[str, bytepair.Tokenizer],
    path: Path,
    text: str | None,
    special: bool,
    open_page: bool,
) -> None:
    """Write the page of one text, from standard input if there is no other."""
    if text is None:
        text = _input()
    bytepair.explore.save(found, text, path, special=special)
    click.echo(f"{path.stat().st_size / 1e3:,.0f} kB: {path}")
    if open_page:
        webbrowser.open(path.resolve().as_uri())


def _input() -> str:
    """The text of standard input."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        place = f"standard input is no text in UTF-8 from byte {error.start} on"
        raise click.ClickException(f"{place}; convert it, with iconv for instance") from None


def _opened(names: Sequence[str]) -> dict[str, bytepair.Tokenizer]:
    """The tokenizers by name, without published ones that cannot be had, unless none is left."""
    found: dict[str, bytepair.Tokenizer] = {}
    missing = []
    for name in names:
        short = Path(name).resolve().name if Path(name).exists() else name
        try:
            found[name if short in found else short] = bytepair.load(name)
        except bytepair.errors.NotFetchedError as error:
            missing.append(error)
    if missing and not found:
        raise missing[0]
    for reason in missing:
        click.echo(f"bytepair: {reason}", err=True)
    return found
