"""Some tokenizers in, one page of HTML out that needs no server.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> page = to_html({"mine": tok}, "to be or not to be")
    >>> page.startswith("<!doctype html>"), "https:" in page
    (True, False)

There are two pages. The light one shows one text: the files of `offline/` replace the parts of
`page/` that need a server. The whole one has all views, for any text: the files of `alone/` replace
them, and the page contains the compiled module and the tokenizers.

Both contain their script, style and data. Their policy lets the browser run only that script, by
its hash, and load nothing. Text and names are JSON without `<`, so they cannot end an element.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from bytepair._internal.arguments import checked
from bytepair.errors import ArgumentError
from bytepair.explore.answers import Answers, material
from bytepair.explore.bundle import bundle
from bytepair.files.safe import write_whole
from bytepair.tokenizer import Tokenizer

#: The maximum number of tokenizers side by side.
MOST_TOKENIZERS: Final = 6

#: The maximum length of the text; a page with a longer one would be slow to open.
MOST_TEXT_BYTES: Final = 1 << 20

_HERE: Final = Path(__file__).parent
_COST: Final = re.compile(r'  <section id="view-cost".*?</section>', re.S)
_HEAD: Final = re.compile(r'<link rel="icon".*</script>\n', re.S)


@checked
def save(
    tokenizers: Mapping[str, Tokenizer],
    text: str,
    path: str | os.PathLike[str],
    *,
    special: bool = False,
    all_views: bool = False,
) -> Path:
    """Write the page to a file, atomically.

    Args:
        tokenizers: see `to_html`.
        text: see `to_html`.
        path: the file to write.
        special: see `to_html`.
        all_views: see `to_html`.

    Returns:
        The path.

    Raises:
        ArgumentError: as `to_html`.
        OSError: if the file cannot be written.
    """
    page = to_html(tokenizers, text, special=special, all_views=all_views)
    write_whole(Path(path), page.encode())
    return Path(path)


@checked
def to_html(
    tokenizers: Mapping[str, Tokenizer],
    text: str,
    *,
    special: bool = False,
    all_views: bool = False,
) -> str:
    """A page about some tokenizers that works offline.

    Args:
        tokenizers: one to `MOST_TOKENIZERS` tokenizers, by name.
        text: the text, at most `MOST_TEXT_BYTES` bytes of UTF-8.
        special: whether special tokens in the text are encoded to their ids.
        all_views: whether the page has all views, for any text; it then contains the vocabularies
            and the compiled module, about a megabyte.

    Raises:
        ArgumentError: if there are no or too many tokenizers, the text is too long or has half of a
            surrogate pair, or this installation does not have the module for `all_views`.
    """
    _check(tokenizers, text)
    answers = Answers(tokenizers)
    style = _read("page/style.css") + _read("page/views.css")
    if all_views:
        return _whole(tokenizers, answers, text, special, style)
    script = _script("offline")
    return Template(_read("offline/page.html")).substitute(
        policy=_policy(f"'{_hash(script)}'", style),
        title=_title(tokenizers),
        icon=_icon(),
        style=style,
        cost=_cost(),
        data=_json(_data(answers, text, special)),
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


def _data(answers: Answers, text: str, special: bool) -> dict[str, object]:
    """The data of the light page: about the tokenizers, and what `offline/api.js` answers from."""
    about = answers.ask("about")
    shown = ",".join(map(str, range(len(answers.names))))
    page = answers.ask("page", text.encode(), shown=shown, special=int(special))
    return {"about": {key: about[key] for key in ("tokenizers", "marked")}, **page}


def _whole(
    tokenizers: Mapping[str, Tokenizer], answers: Answers, text: str, special: bool, style: str
) -> str:
    """The page with all views: `page/index.html`, and what the module needs."""
    script, found = _script("alone"), module()
    files = {"wasm": found["bytepair_bg.wasm"], "material": material().encode()}
    files["worker"] = worker(found)
    for number in range(len(tokenizers)):
        files[f"tokenizer-{number}"] = answers.ask("file", t=number, format="native")
    state = {"text": text, "special": special}
    values = {"tokenizer-names": _json(list(tokenizers)), "state": _json(state)}
    values |= {id: b64encode(zlib.compress(data, 9)).decode() for id, data in files.items()}
    policy = _policy(f"'{_hash(script)}' 'wasm-unsafe-eval'", style, "worker-src blob:; ")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="icon" href="data:image/svg+xml;base64,{_icon()}">\n<style>{style}</style>\n'
    )
    body = "".join(
        f'<script type="text/plain" id="{id}">{v}</script>\n' for id, v in values.items()
    )
    page = _HEAD.sub(lambda _: head, _read("page/index.html"))
    page = page.replace("<title>bytepair explore", f"<title>{_title(tokenizers)}")
    return page.replace("</body>", f'{body}<script type="module">{script}</script>\n</body>')


def module() -> dict[str, bytes]:
    """The files of the compiled module for browsers, by name.

    Raises:
        ArgumentError: if this installation does not have them.
    """
    names = ("bytepair.js", "bytepair_bg.wasm")
    try:
        return {name: (_HERE / "wasm" / name).read_bytes() for name in names}
    except FileNotFoundError:
        raise ArgumentError(
            "this installation has no module for browsers, which a page with all views contains; "
            "in a checkout, `make wasm` builds it"
        ) from None


def worker(found: Mapping[str, bytes]) -> bytes:
    """The script of the thread in which the module runs."""
    return found["bytepair.js"] + b"\n" + (_HERE / "alone" / "worker.js").read_bytes()


def _script(folder: str) -> str:
    """The scripts of the page, of which those in a folder replace some, as one."""
    paths = [*(_HERE / "page").glob("*.js"), *(_HERE / folder).glob("*.js")]
    files = {path.name: path.read_text(encoding="utf-8") for path in paths}
    return bundle(files, "main.js")


def _policy(scripts: str, style: str, more: str = "") -> str:
    return (
        f"default-src 'none'; script-src {scripts}; style-src '{_hash(style)}'; "
        f"img-src data:; {more}base-uri 'none'; form-action 'none'"
    )


def _cost() -> str:
    """The table of costs, which is a tab of the page of the server."""
    found = _COST.search(_read("page/index.html"))
    assert found is not None
    return re.sub(
        r' role="tabpanel" aria-labelledby="[\w-]+" hidden', ' aria-label="Cost"', found[0]
    )


def _title(tokenizers: Mapping[str, Tokenizer]) -> str:
    return escape(f"{', '.join(tokenizers)} · bytepair explore")


def _icon() -> str:
    return b64encode(_read("page/icon.svg").encode()).decode()


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(value: object) -> str:
    """JSON that is safe in an element of HTML: without `<`, `>` and `&`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
