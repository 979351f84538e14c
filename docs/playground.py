"""The page of `bytepair explore` without a server, for the site: its files, by name.

It is the page of the package, with the compiled module in the place of the server, some tokenizers,
and `playground/source.js`, which says where these are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bytepair
from bytepair import explore
from bytepair.errors import ArgumentError, BytepairError
from bytepair.explore.answers import material, module

HERE = Path(__file__).parent
PAGE = Path(explore.__file__).parent / "page"
ALONE = PAGE.parent / "alone"

#: Vocabularies that are trained for the site, by their sizes. The page opens with the published
#: ones, if they can be fetched.
TRAINED = (1000, 8192)

HUB = "https://huggingface.co https://*.huggingface.co https://*.hf.co"
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
    f"connect-src 'self' {HUB}; worker-src 'self'; base-uri 'none'; form-action 'none'"
)
SITE = "https://bytepair.github.io/bytepair/"
NOT_BUILT = (
    "<!doctype html><title>Playground</title><p>This site was built without the playground, which "
    "needs the module for browsers: <code>make wasm</code>."
)


def on_files(files: Any, config: Any) -> Any:
    """Add the page to the site (a hook of mkdocs)."""
    from mkdocs.structure.files import File

    try:
        found = pages(explore.PUBLISHED)
    except ArgumentError:
        found = {"index.html": NOT_BUILT.encode()}
    for file in [file for file in files if file.src_uri.startswith("playground/")]:
        files.remove(file)
    for name, content in found.items():
        files.append(File.generated(config, f"playground/{name}", content=content))
    return files


def pages(published: Mapping[str, str] = {}) -> dict[str, bytes]:
    """The files of the page.

    Args:
        published: published vocabularies to offer, and how they are called; those that cannot be
            fetched are left out.

    Raises:
        ArgumentError: if this installation does not have the module for browsers.
    """
    wasm, worker = module()
    found = {file.name: file.read_bytes() for file in PAGE.iterdir()}
    found |= {
        file.name: file.read_bytes() for file in (ALONE / "ask.js", HERE / "playground/source.js")
    }
    html = found["index.html"].decode()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    html = html.replace("<meta name", policy + "<meta name", 1)
    html = html.replace(
        "bytepair <small>explore</small>", '<a href="../">bytepair</a> <small>playground</small>'
    )
    html = html.replace("<title>bytepair explore</title>", "<title>bytepair playground</title>")
    html = html.replace("leaves this machine", "leaves your browser").replace(SITE, "../")
    found["index.html"] = html.encode()
    found |= {"worker.js": worker, "bytepair_bg.wasm": wasm}
    found["material.json"] = material().encode()
    return found | shelf(published)


def shelf(published: Mapping[str, str]) -> dict[str, bytes]:
    """The tokenizers of the page, and their list, `shelf.json`."""
    tokenizers = {}
    for name, shown in published.items():
        try:
            tokenizers[shown] = bytepair.load(name)
        except (BytepairError, OSError):
            continue
    few = len(tokenizers) or len(TRAINED)
    for size in TRAINED:
        tokenizers[f"sample, {size:,} ids"] = bytepair.train(bytepair.sample.paths(), size)
    files = {
        f"tokenizer-{n}.bytepair": tok.to_bytes(tables=False)
        for n, tok in enumerate(tokenizers.values())
    }
    listed = [
        {"name": name, "file": file, "first": n < few}
        for n, (name, file) in enumerate(zip(tokenizers, files, strict=True))
    ]
    return {**files, "shelf.json": json.dumps(listed).encode()}
