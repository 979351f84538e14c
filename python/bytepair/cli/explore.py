"""`bytepair explore`: the page on which people look at tokens."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

import bytepair


def explore(
    tokenizers: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tokenizers to look at side by side: folders, files or published names "
            f"({', '.join(bytepair.evaluate.PUBLISHED)}). [default: the folder tokenizer]"
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others can reach all but loopback.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 is any free one.")
    ] = 8765,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Look at tokens in the browser: splits, merges, chats, the vocabulary.

    The page asks this machine and no other. Ctrl-C ends it.

    Examples:
    * `bytepair explore my-tokenizer --open`

    * `bytepair explore my-tokenizer gpt2 cl100k_base`
    """
    found: dict[str, bytepair.Tokenizer] = {}
    for name in tokenizers or ["tokenizer"]:
        short = Path(name).resolve().name if Path(name).exists() else name
        found[name if short in found else short] = bytepair.evaluate.open_tokenizer(name)

    def ready(url: str) -> None:
        typer.echo(url)
        if open_page:
            webbrowser.open(url)

    bytepair.explore.serve(found, host=host, port=port, ready=ready)
