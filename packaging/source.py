"""The files of the checkout in, a copy to build a release from out.

    python packaging/source.py FOLDER      # make that folder anew
    python packaging/source.py --released  # after the first release: pages install from the index

The copy has what git knows, a workspace of the crates of a wheel, and the module for browsers if
`make wasm` built it. maturin puts no other crates into a source archive, whose lock file must be
exact. Its README is the page that a package index shows, alone: links and pictures are absolute,
and the install line names the package. In the checkout the links are relative, and the install line
installs the checkout.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: A block of a page with install lines, which differ before and after the first release.
_INSTALL = re.compile(r"<!-- install: begin -->.*?<!-- install: end -->", re.S)
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
        kind = "raw" if image else "tree" if (ROOT / target).is_dir() else "blob"
        return f"{image}[{text}]({repository}/{kind}/{tag}/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", link, page)


def from_the_index(page: str) -> str:
    """Make the install lines of a page name the package instead of the checkout.

    Args:
        page: a page in Markdown. Only blocks between `<!-- install: begin -->` and
            `<!-- install: end -->` are changed.

    Example:
        >>> page = "<!-- install: begin -->pip install '.[data]'<!-- install: end -->"
        >>> from_the_index(page)[23:-21]
        "pip install 'bytepair[data]'"
    """

    def block(found: re.Match[str]) -> str:
        return re.sub(r"(pip install '?)\.(?=[\s'\[<])", r"\1bytepair", found[0])

    return _INSTALL.sub(block, page)


def package_page() -> str:
    """The page that a package index shows, from README.md."""
    facts = workspace()
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    return absolute(from_the_index(page), facts["repository"], f"v{facts['version']}")


def workspace() -> dict[str, str]:
    """What Cargo.toml says of all packages: the version, the repository."""
    found: dict[str, str] = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))[
        "workspace"
    ]["package"]
    return found


def narrow(folder: Path) -> None:
    """Leave the crates of a wheel in the workspace of a folder, and their packages in its lock."""
    manifest = folder / "Cargo.toml"
    text = manifest.read_text(encoding="utf-8")
    members = 'members = ["rust/core", "rust/lab", "rust/view", "rust/binding"]'
    narrowed = re.sub(r"^members = .*$", members, text, flags=re.M)
    manifest.write_text(narrowed, encoding="utf-8", newline="\n")
    # cargo takes out of the lock file what no member needs, and changes no version.
    words = ["cargo", "metadata", "--format-version=1"]
    subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, check=True)


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
    narrow(folder)
    (folder / "README.md").write_text(package_page(), encoding="utf-8", newline="\n")


def released() -> None:
    """Make all pages of the checkout install from the index."""
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        page = path.read_text(encoding="utf-8")
        if (changed := from_the_index(page)) != page:
            path.write_text(changed, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if sys.argv[1] == "--released":
        released()
    else:
        copy(Path(sys.argv[1]))
