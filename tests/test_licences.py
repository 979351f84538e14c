"""The licences of what is linked into a wheel: all allowed, and all in THIRD-PARTY-LICENSES.txt.

Run as a script it writes that file, from the sources of the crates that cargo has.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from messages import told

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "rust/core/THIRD-PARTY-LICENSES.txt"

#: The targets that wheels are built for.
TARGETS: Final = (
    "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu",
)  # fmt: skip

#: The allowed licences, as in deny.toml; the first is preferred.
ALLOWED: Final = (
    "MIT", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "Apache-2.0", "Unicode-3.0", "CC0-1.0",
)  # fmt: skip

#: Names of files with the text of a licence, as `LICENSE-MIT`, `license-mit` or `COPYING`.
_TEXT: Final = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-.].*)?", re.I)
#: The licence, by a word in the name of its file.
_NAMED: Final = {"APACHE": "Apache-2.0", "MIT": "MIT", "ZLIB": "Zlib", "BSD": "BSD-2-Clause"}

#: Packages without a text, and the one of the same authors, repository and licence that has it.
WITH: Final = {"alloc-stdlib": "alloc-no-stdlib"}

HEAD: Final = """\
What is linked into the wheels of bytepair, and the licence of each. The crate has none of this in
its package: cargo brings it. Made by `make licences`.

The Rust standard library is linked too: MIT OR Apache-2.0, https://github.com/rust-lang/rust
The table of classes of characters (src/pretokenize/unicode-16.0.0.bin) is made from data of
Unicode, Inc. under the Unicode License v3, which stands below.
"""

needs_cargo = pytest.mark.skipif(
    shutil.which("cargo") is None or not (ROOT / "Cargo.lock").exists(), reason="needs cargo"
)


def linked() -> list[dict[str, Any]]:
    """The packages that are linked into a wheel of any target, as cargo describes them."""
    crates: dict[str, dict[str, Any]] = {}
    for target in TARGETS:
        words = ["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", target]
        run = subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
        data = json.loads(run.stdout)
        packages = {package["id"]: package for package in data["packages"]}
        nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
        left = [id for id in packages if packages[id]["name"] == "bytepair-binding"]
        seen: set[str] = set()
        while left:
            package = packages[left.pop()]
            if package["id"] in seen or _runs_at_build(package):
                continue
            seen.add(package["id"])
            crates[package["id"]] = package
            for edge in nodes[package["id"]]["deps"]:
                if any(kind["kind"] is None for kind in edge["dep_kinds"]):
                    left.append(edge["pkg"])
    others = [p for p in crates.values() if not p["name"].startswith("bytepair")]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def _runs_at_build(package: dict[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def chosen(expression: str) -> set[str]:
    """The licences that apply to a package: of alternatives, the first that is allowed.

    Raises:
        ValueError: if none is allowed.
    """
    licences = set()
    for part in re.split(r"\s+AND\s+", expression):
        options = re.split(r"\s+OR\s+|/", part.strip("()"))
        allowed = [one for one in ALLOWED if one in options]
        if not allowed:
            raise ValueError(f"none of {part!r} is allowed")
        licences.add(allowed[0])
    return licences


def texts(package: dict[str, Any]) -> list[str]:
    """The licence texts in a package, for the licences that apply."""
    folder = Path(package["manifest_path"]).parent
    files = [file for file in folder.iterdir() if _TEXT.fullmatch(file.name)]
    files += folder.glob("zstd/LICENSE")
    licences = chosen(package["license"])
    notices = []
    for file in sorted(files):
        mark = re.split(r"[-.]", file.name.upper(), maxsplit=1)[-1].removesuffix(".TXT")
        named = next((name for key, name in _NAMED.items() if mark.startswith(key)), None)
        if file.name.upper() == "UNLICENSE" or (named and len(files) > 1 and named not in licences):
            continue
        text = file.read_text(encoding="utf-8").replace("\r\n", "\n")
        notices.append("\n".join(line.rstrip() for line in text.strip("\n").splitlines()))
    return notices


def page() -> str:
    """What THIRD-PARTY-LICENSES.txt must be. It names no versions, which change too often."""
    by_text: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for package in linked():
        names[package["name"]] = package["license"]
        for text in texts(package):
            users = by_text.setdefault(text, [])
            if package["name"] not in users:
                users.append(package["name"])
    for name, other in WITH.items():
        for users in by_text.values():
            if other in users and names.get(name) == names[other]:
                users.append(name)
    missing = set(names) - {name for users in by_text.values() for name in users}
    assert not missing, f"no text of a licence comes with {', '.join(sorted(missing))}"
    parts = [HEAD, "\n".join(f"{name}: {licence}" for name, licence in names.items()) + "\n"]
    for text, users in by_text.items():
        parts.append(f"{'=' * 80}\n{', '.join(users)}\n{'=' * 80}\n\n{text}\n")
    return "\n".join(parts)


@needs_cargo
def test_the_file_of_licences_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == page(), (
        "run `python tests/test_licences.py > rust/core/THIRD-PARTY-LICENSES.txt` and look at it"
    )


@needs_cargo
def test_every_licence_is_allowed() -> None:
    for package in linked():
        chosen(package["license"])


def test_deny_allows_the_same() -> None:
    file = ROOT / "deny.toml"
    if not file.exists():
        pytest.skip("this is no checkout")
    import tomllib

    allowed = tomllib.loads(file.read_text(encoding="utf-8"))["licenses"]["allow"]
    assert sorted(allowed) == sorted(ALLOWED)


def test_of_two_licences_one_is_chosen() -> None:
    assert chosen("(MIT OR Apache-2.0) AND Unicode-3.0") == {"MIT", "Unicode-3.0"}
    assert chosen("MIT/Apache-2.0") == {"MIT"}
    with told(ValueError, "GPL"):
        chosen("GPL-3.0-only")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.stdout.write(page())
