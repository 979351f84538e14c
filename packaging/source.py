"""The files of the checkout in, a copy to build a release from out.

`python packaging/source.py FOLDER` makes that folder anew.

The copy has what git knows, and the module for browsers if `make wasm` built it. The links of its
README are absolute, since a package index shows the page alone; the links of the checkout lead to
its own files.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: The module for browsers, which pages with all views contain.
MODULE = Path("python/bytepair/explore/wasm")


def absolute(page: str, repository: str, tag: str) -> str:
    """Make the links and images of a page in Markdown absolute.

    Args:
        page: the page, which lies at the top of the repository.
        repository: its address, on GitHub.
        tag: the version that is linked to.

    Example:
        >>> absolute("[a](docs/a.md), [b](https://b)", "https://github.com/o/r", "v1")
        '[a](https://github.com/o/r/blob/v1/docs/a.md), [b](https://b)'
    """

    def link(found: re.Match[str]) -> str:
        image, text, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        return f"{image}[{text}]({repository}/{'raw' if image else 'blob'}/{tag}/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", link, page)


def workspace() -> dict[str, str]:
    """What Cargo.toml says of all packages: the version, the repository."""
    found: dict[str, str] = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))[
        "workspace"
    ]["package"]
    return found


def copy(folder: Path) -> None:
    """Fill a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    built = ROOT / MODULE
    if built.exists():
        shutil.copytree(built, folder / MODULE, dirs_exist_ok=True)
    facts = workspace()
    readme = folder / "README.md"
    page = readme.read_text(encoding="utf-8")
    shown = absolute(page, facts["repository"], f"v{facts['version']}")
    readme.write_text(shown, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    copy(Path(sys.argv[1]))
