"""Find the tokenizer files of a repository on the Hugging Face Hub, and the folders to search.

The package `huggingface_hub` downloads the files of `owner/name` to its cache, where files are
named by their hash, which is checked here. A revision is a commit, a tag or a branch. Without a
network, or without that package, the cache and packages of data are used.

A package of data names a module of its own as an entry point of the group `bytepair.vocabularies`;
the files beside that module are looked up like a cache. Nothing of a package is run or imported.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from bytepair.errors import FormatError, NotFoundError

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


# ---------------------------------------------------------------------------- repositories

#: The files to download, as patterns: no weights.
FILES: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "additional_chat_templates/*.jinja",
    "generation_config.json",
    "vocab.json",
    "merges.txt",
    "tekken.json",
)


def is_name(name: str) -> bool:
    """Whether this may be the name of a repository.

    Example:
        >>> is_name("Qwen/Qwen3-8B"), is_name("a/b/c"), is_name("../x")
        (True, False, False)
    """
    return bool(re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name))


def folder(name: str, revision: str | None) -> Path:
    """The folder of a repository's tokenizer, downloaded if possible; its files are checked.

    Raises:
        NotFoundError: if it is not on this machine and cannot be downloaded.
        ImportError: if it is not on this machine, and `huggingface_hub` is not installed.
        FormatError: if a file does not match its hash.
    """
    has_library = find_spec("huggingface_hub") is not None
    path = (_downloaded(name, revision) if has_library else None) or cached(name, revision)
    if path is None:
        missing = (
            f"there is no file {name!r}, and the repository {name} is not in {hub_place().path}"
        )
        if not has_library:
            raise ImportError(f"{missing}; to download it, install bytepair[hub]")
        raise NotFoundError(f"{missing}, and cannot be downloaded")
    for pattern in FILES:
        for file in path.glob(pattern):
            if file.is_file():
                check(file)
    return path


def _downloaded(name: str, revision: str | None) -> Path | None:
    """The files in the cache, after downloading what is missing; None if that is impossible."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(FILES)))
    except LocalEntryNotFoundError:
        return None


def cached(name: str, revision: str | None = None) -> Path | None:
    """The folder of a repository on this machine: of its cache, or of a package; or None.

    Args:
        name: the repository, `owner/name`.
        revision: the commit, tag or branch; None means `main`, and any for packages.
    """
    repo = hub_place().path / f"models--{name.replace('/', '--')}"
    version = revision or "main"
    if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)*", version):
        ref = repo / "refs" / version
        commit = ref.read_text(encoding="utf-8").strip() if ref.is_file() else version
        if re.fullmatch(r"[0-9a-f]{40}", commit) and (repo / "snapshots" / commit).is_dir():
            return repo / "snapshots" / commit
    if revision is None:
        folders = (place.path / name for place in package_places())
        return next((folder for folder in folders if folder.is_dir()), None)
    return None


def repositories() -> dict[str, Path]:
    """The repositories on this machine, by name, with the folder of the revision `main`."""
    cache = hub_place().path
    names = {path.name.removeprefix("models--").replace("--", "/", 1)
             for path in cache.glob("models--*--*")}  # fmt: skip
    names |= {
        path.parent.relative_to(place.path).as_posix()
        for place in package_places()
        for path in place.path.glob("*/*/tokenizer.json")
    }
    paths = {name: cached(name) for name in sorted(names) if is_name(name)}
    return {name: path for name, path in paths.items() if path is not None}


def check(file: Path) -> None:
    """Check a cached file against its hash, which is the name of the link target.

    Large files are named by their SHA-256, others by their git SHA-1.
    """
    blob = file.resolve().name
    data = file.read_bytes()
    if re.fullmatch("[0-9a-f]{64}", blob):
        digest = hashlib.sha256(data).hexdigest()
    elif re.fullmatch("[0-9a-f]{40}", blob):
        digest = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    else:
        return
    if digest != blob:
        raise FormatError(
            str(file),
            f"its hash is {digest}, not {blob}",
            hint="remove it and download it again",
        )
