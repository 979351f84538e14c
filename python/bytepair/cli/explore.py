"""`bytepair explore`: the page on which people look at tokens."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair explore my-tokenizer --open",
    "bytepair explore my-tokenizer gpt2 cl100k_base",
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
def explore(
    tokenizers: tuple[str, ...],
    host: str,
    port: int,
    open_page: bool,
) -> None:
    """Look at tokens in the browser: splits, merges, chats, the vocabulary.

    The page asks this machine and no other. Ctrl-C ends it.

    TOKENIZERS: those to look at side by side: folders, files or published names, such as gpt2 and
    cl100k_base; the folder tokenizer if there is none.
    """
    found = _opened(tokenizers or ("tokenizer",))

    def ready(url: str) -> None:
        click.echo(f"{url}\nCtrl-C ends it.")
        if open_page:
            webbrowser.open(url)

    bytepair.explore.serve(found, host=host, port=port, ready=ready)


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
