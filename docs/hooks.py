"""Prepares the pages of the repository for the site.

The start is README.md. Links that leave the site, also to docs/maintainers, lead to the repository,
so that whatever is left is a page of the site, and mkdocs checks it with its anchor.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
REPOSITORY = URLS["Homepage"]
#: The playground, which exists on the site alone.
PLAYGROUND = f"]({URLS['Documentation']}playground/"
#: What Markdown links to: `](target)` with an optional anchor; addresses and anchors alone are not.
_LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^)#\s]+)")
#: The beginning of an example with prompts, which has another highlighter than a program.
_EXAMPLE = re.compile(r"^```python\n>>>", re.MULTILINE)
#: How much more a guide counts in the search than an explanation, a lesson or the command line.
GUIDE_BOOST = 5
#: A page of the site, as the repository has it: a lesson, or all of them.
_LESSON = re.compile(r"lessons(/\d\d-[\w-]+\.(?:ipynb|md))?")


def on_files(files: Any, config: Any) -> Any:
    """Add the page that is not in docs/ (a hook of mkdocs)."""
    from mkdocs.structure.files import File

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=from_folder(readme, "")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page, and mark its interactive examples (a hook of mkdocs)."""
    markdown = _EXAMPLE.sub("```pycon\n>>>", markdown)
    uri = page.file.src_uri
    if "/" not in uri and uri not in {"architecture.md", "index.md"}:
        page.meta.setdefault("search", {"boost": GUIDE_BOOST})
    if uri == "index.md" or uri.startswith("lessons/"):
        return markdown  # written for the site
    return from_folder(markdown, posixpath.dirname(f"docs/{uri}"))


def from_folder(markdown: str, folder: str) -> str:
    """Rewrite links of a file in `folder` for the site.

    Args:
        markdown: the text of a page.
        folder: where its file is, relative to the repository: `""` for README.md.

    Returns:
        The same text. Links to files in docs/, to lessons and to the playground are relative to the
        page; those to other files are addresses in the repository.
    """
    here = posixpath.relpath(folder or ".", "docs") if folder.startswith("docs") else folder or "."

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if path.startswith("docs/") and not path.startswith("docs/maintainers/"):
            return f"]({posixpath.relpath(path.removeprefix('docs/'), here)}"
        if _LESSON.fullmatch(path):
            name = f"{posixpath.splitext(path)[0]}.md" if "." in path else "lessons/index.md"
            return f"]({posixpath.relpath(name, here)}"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{path}"

    found = _LINK.sub(target, markdown)
    return found.replace(PLAYGROUND, f"]({posixpath.relpath('playground', here)}/")
