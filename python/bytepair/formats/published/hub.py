"""Find the tokenizer files of a repository on the Hugging Face Hub, by `owner/name`.

The package `huggingface_hub` downloads them to its cache, where files are named by their hash,
which is checked here. A revision is a commit, a tag or a branch. Without a network, or without that
package, the cache and packages of data (`places`) are used.
"""

from __future__ import annotations

import hashlib
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bytepair.errors import FormatError, NotFoundError
from bytepair.formats.published.places import hub_place, package_places

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
