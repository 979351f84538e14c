"""One text and some tokenizers in, one page of HTML out that needs no server.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> page = to_html({"mine": tok}, "to be or not to be")
    >>> page.startswith("<!doctype html>"), "https:" in page
    (True, False)

The page consists of the files of `page/`; those of `offline/` replace the parts that need a server.
It contains its script, style and data. Its policy lets the browser run only that script, by its
hash, and load nothing. Text and names are JSON without `<`, so they cannot end an element.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

import numpy as np

from bytepair._internal.arguments import checked
from bytepair.errors import ArgumentError
from bytepair.explore.answers import Answers
from bytepair.explore.bundle import bundle
from bytepair.formats.files import write_whole
from bytepair.tokenizer import Tokenizer

#: The maximum number of tokenizers side by side.
MOST_TOKENIZERS: Final = 6

#: The maximum length of the text; a page with a longer one would be slow to open.
MOST_TEXT_BYTES: Final = 1 << 20

_HERE: Final = Path(__file__).parent
_COST: Final = re.compile(r'  <section id="view-cost".*?</section>', re.S)


@checked
def save(
    tokenizers: Mapping[str, Tokenizer],
    text: str,
    path: str | os.PathLike[str],
    *,
    special: bool = False,
) -> Path:
    """Write the page to a file, atomically.

    Args:
        tokenizers: see `to_html`.
        text: see `to_html`.
        path: the file to write.
        special: see `to_html`.

    Returns:
        The path.

    Raises:
        ArgumentError: as `to_html`.
        OSError: if the file cannot be written.
    """
    write_whole(Path(path), to_html(tokenizers, text, special=special).encode())
    return Path(path)


@checked
def to_html(tokenizers: Mapping[str, Tokenizer], text: str, *, special: bool = False) -> str:
    """A page about one text and some tokenizers that works offline.

    Args:
        tokenizers: one to `MOST_TOKENIZERS` tokenizers, by name.
        text: the text, at most `MOST_TEXT_BYTES` bytes of UTF-8.
        special: whether special tokens in the text are encoded to their ids.

    Raises:
        ArgumentError: if there are no or too many tokenizers, or the text is too long or has half
            of a surrogate pair.
    """
    _check(tokenizers, text)
    script, style = _script(), _read("page/style.css") + _read("page/views.css")
    return Template(_read("offline/page.html")).substitute(
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        title=escape(f"{', '.join(tokenizers)} · bytepair explore"),
        icon=b64encode(_read("page/icon.svg").encode()).decode(),
        style=style,
        cost=_cost(),
        data=_json(_data(Answers(tokenizers), text, special)),
        script=script,
    )


def _check(tokenizers: Mapping[str, Tokenizer], text: str) -> None:
    if not 1 <= len(tokenizers) <= MOST_TOKENIZERS:
        raise ArgumentError(
            f"a page holds 1 to {MOST_TOKENIZERS} tokenizers, not {len(tokenizers)}"
        )
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        place = f"the text has half of a surrogate pair at character {error.start}"
        raise ArgumentError(f"{place}, which no page in UTF-8 can hold; replace it") from None
    if size > MOST_TEXT_BYTES:
        limit = f"a page holds at most {MOST_TEXT_BYTES:,}; take a part of it"
        raise ArgumentError(f"the text has {size:,} bytes; {limit}")


def _data(answers: Answers, text: str, special: bool) -> dict[str, Any]:
    """The data of the answers of `offline/api.js`."""
    about = answers.about()
    indices = range(len(answers.names))
    splits = [answers.split(index, text, special=special) for index in indices]
    return {
        "about": {key: about[key] for key in ("tokenizers", "marked")},
        "text": text,
        "splits": [split.hex() for split in splits],
        "tokens": [answers.built(index, _ids(splits[index])) for index in indices],
        "languages": [answers.languages(index) for index in indices],
    }


def _ids(split: bytes) -> set[int]:
    """The ids of a split in the form of `Answers`: their number, the ids, their lengths."""
    numbers = np.frombuffer(split, "<u4")
    return set(numbers[1 : 1 + int(numbers[0])].tolist())


def _script() -> str:
    files = {path.name: path for path in (_HERE / "page").glob("*.js")}
    files |= {path.name: path for path in (_HERE / "offline").glob("*.js")}
    return bundle(
        {name: path.read_text(encoding="utf-8") for name, path in files.items()}, "main.js"
    )


def _cost() -> str:
    """The table of costs, which is a tab of the page of the server."""
    found = _COST.search(_read("page/index.html"))
    assert found is not None
    return re.sub(
        r' role="tabpanel" aria-labelledby="[\w-]+" hidden', ' aria-label="Cost"', found[0]
    )


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(value: object) -> str:
    """JSON that is safe in an element of HTML: without `<`, `>` and `&`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
