"""Where files of published vocabularies may lie on this machine, without a network.

Rank files of tiktoken's encodings lie in its cache, or in the data of packages that bring them.
Tokenizers of the Hugging Face Hub lie in its cache. A package of data names a module of its own as
an entry point of the group `bytepair.vocabularies`; the files beside that module are looked up like
a cache. Nothing of a package is run or imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

#: The entry points of packages of data.
GROUP: Final = "bytepair.vocabularies"

#: Packages that bring rank files under the names of tiktoken's cache, and their folders.
_PACKAGES: Final = {
    "litellm": "litellm_core_utils/tokenizers",
    "llama_index": "core/_static/tiktoken_cache",
}


class SearchedFolder(NamedTuple):
    """A folder that is searched.

    Attributes:
        what: what it is.
        path: the folder, which need not exist.
    """

    what: str
    path: Path


def rank_places() -> Iterator[SearchedFolder]:
    """The folders of rank files, in the order in which they are searched."""
    yield from _tiktoken_cache()
    yield from package_places()
    yield from _other_packages()


def _tiktoken_cache() -> list[SearchedFolder]:
    variables = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
    variable = next((name for name in variables if name in os.environ), None)
    if variable is None:
        import tempfile

        folder = Path(tempfile.gettempdir(), "data-gym-cache")
        return [SearchedFolder("the cache of tiktoken; TIKTOKEN_CACHE_DIR names another", folder)]
    # An empty value tells tiktoken not to cache.
    name = os.environ[variable]
    return [SearchedFolder(f"the cache of tiktoken ({variable})", Path(name))] if name else []


def package_places() -> list[SearchedFolder]:
    """The folders of packages of data."""
    from importlib.metadata import entry_points

    folders = ((point.name, _folder(point.module)) for point in entry_points(group=GROUP))
    return [
        SearchedFolder(f"the package {name}", folder)
        for name, folder in folders
        if folder is not None
    ]


def _other_packages() -> list[SearchedFolder]:
    folders = ((name, _folder(name), below) for name, below in _PACKAGES.items())
    return [
        SearchedFolder(f"the package {name}", folder / below)
        for name, folder, below in folders
        if folder
    ]


def _folder(module: str) -> Path | None:
    """The folder of a package, which is not imported; None if it is not installed."""
    name, *below = module.split(".")
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)), *below)


def hub_place() -> SearchedFolder:
    """The cache of the Hugging Face Hub."""
    for variable, below in (
        ("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
    ):  # fmt: skip
        if name := os.environ.get(variable):
            return SearchedFolder(
                f"the cache of the Hub ({variable})", Path(name).expanduser() / below
            )
    folder = Path.home() / ".cache/huggingface/hub"
    return SearchedFolder("the cache of the Hub; HF_HOME names another", folder)
