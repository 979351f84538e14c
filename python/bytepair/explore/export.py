"""Writes a page about some tokenizers as one HTML file that needs no server.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> page = to_html({"mine": tok}, "to be or not to be")
    >>> page.startswith("<!doctype html>"), "https:" in page
    (True, False)

There are two pages, of which `rust/view` makes one file. The light one shows one text: the files of
`offline/` replace those of `page/` that need a server. The whole one has all views, for any text:
the files of `alone/` replace them, and the page contains the compiled module and the tokenizers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bytepair.errors import ArgumentError
from bytepair.explore.answers import Answers
from bytepair.files.outputs import write_whole
from bytepair.tokenizer import Tokenizer

_HERE: Final = Path(__file__).parent


def save(
    tokenizers: Mapping[str, Tokenizer],
    text: str,
    path: str | os.PathLike[str],
    *,
    special: bool = False,
    all_views: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write the page to a file, atomically.

    Args:
        tokenizers: see `to_html`.
        text: see `to_html`.
        path: the file to write.
        special: see `to_html`.
        all_views: see `to_html`.
        overwrite: whether a file that exists is replaced.

    Returns:
        The path.

    Raises:
        OverwriteError: if the file exists, and `overwrite` is false.
        ArgumentError: as `to_html`.
        OSError: if the file cannot be written.
    """
    page = to_html(tokenizers, text, special=special, all_views=all_views)
    write_whole(Path(path), page.encode(), overwrite=overwrite)
    return Path(path)


def to_html(
    tokenizers: Mapping[str, Tokenizer],
    text: str,
    *,
    special: bool = False,
    all_views: bool = False,
) -> str:
    """A page about some tokenizers that works offline.

    Args:
        tokenizers: one to six tokenizers, by name.
        text: the text, at most 1 MiB of UTF-8.
        special: whether special tokens in the text are encoded to their ids.
        all_views: whether the page has all views, for any text; it then contains the vocabularies
            and the compiled module, about a megabyte.

    Raises:
        ArgumentError: if there are no or too many tokenizers, the text is too long or has half of a
            surrogate pair, or this installation does not have the module for `all_views`.
    """
    folder, needs = ("alone", module()) if all_views else ("offline", None)
    paths = [*(_HERE / "page").iterdir(), *(_HERE / folder).iterdir()]
    files = {path.name: path.read_text(encoding="utf-8") for path in paths}
    files["index.html"] = re.sub('<p class="promise.*\n', "", files["index.html"])  # its links
    return Answers(tokenizers).view.to_html(files, text, special=special, module=needs)


def module() -> tuple[bytes, bytes]:
    """The compiled module for browsers, and the script of the thread in which it runs.

    Raises:
        ArgumentError: if this installation does not have them.
    """
    try:
        wasm, script = (_HERE / "wasm" / name for name in ("bytepair_bg.wasm", "bytepair.js"))
        worker = script.read_bytes() + b"\n" + (_HERE / "alone" / "worker.js").read_bytes()
        return wasm.read_bytes(), worker
    except FileNotFoundError:
        raise ArgumentError(
            "this installation has no module for browsers, which a page with all views contains; "
            "in a checkout, `make wasm` builds it"
        ) from None
