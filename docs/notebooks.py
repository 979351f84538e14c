"""Turns lessons into pages of the site (hooks of mkdocs).

A page shows the lesson as the reader opens it, with the outputs of the copy that has been run.
Hints and solutions are folded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hooks import REPOSITORY, from_folder  # beside this file

LESSONS = Path(__file__).resolve().parents[1] / "lessons"
#: The lesson that is no notebook.
LOOK = LESSONS / "00-look-at-tokens.md"
#: The language of a block that is an output, which the style sheet tells from code.
_PLAIN = "{ .text .output }"
_FOLDED = re.compile(r"<details>\s*<summary>(.*?)</summary>(.*?)</details>", re.S)


def on_config(config: Any) -> Any:
    """List the lessons in the navigation, under its empty entry `Lessons` (a hook of mkdocs)."""
    learn = next(each["Learn"] for each in config.nav if "Learn" in each)
    section = next(each for each in learn if "Lessons" in each)
    names = [f"lessons/{path.stem}.md" for path in _lessons()]
    section["Lessons"] = ["lessons/index.md", f"lessons/{LOOK.name}", *names]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the lessons (a hook of mkdocs)."""
    from mkdocs.structure.files import File

    index = (LESSONS / "README.md").read_text(encoding="utf-8")
    pages = {"index": from_folder(index, "lessons")}
    pages[LOOK.stem] = _prose(LOOK.read_text(encoding="utf-8"))
    pages |= {path.stem: page(path) for path in _lessons()}
    for name, content in pages.items():
        files.append(File.generated(config, f"lessons/{name}.md", content=content))
    return files


def page(path: Path) -> str:
    """Write a lesson as Markdown.

    Args:
        path: the notebook; its copy in `executed/` has the outputs.
    """
    copy = LESSONS / "executed" / path.name
    title, *cells = "\n\n".join(
        _prose("".join(cell["source"])) if cell["cell_type"] == "markdown" else _code(cell, done)
        for cell, done in zip(_cells(path), _cells(copy), strict=True)
    ).split("\n")
    address = f"{REPOSITORY}/blob/main/lessons/{path.name}"
    return "\n".join([title, "", f"To work on it, [open the notebook]({address}).", *cells])


def _lessons() -> list[Path]:
    return sorted(LESSONS.glob("[0-9][0-9]-*.ipynb"))


def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def _prose(text: str) -> str:
    """Write text with its links for the site, and with what is folded in it."""
    text = from_folder(text, "lessons")
    return _FOLDED.sub(lambda found: _fold("tip", found[1].strip(), found[2]), text)


def _code(cell: dict[str, Any], done: dict[str, Any]) -> str:
    """Write a cell of the lesson, and the solution and the outputs of the one that was run."""
    parts = [_fenced("".join(cell["source"]), "python")]
    if "exercise" in cell["metadata"]:
        solution = _fenced("".join(done["source"]), "python")
        parts.append(_fold("success", "A solution", solution))
    return "\n\n".join([*parts, *map(_output, done["outputs"])])


def _fold(kind: str, title: str, text: str) -> str:
    inner = "\n".join(f"    {line}" if line else "" for line in text.strip("\n").split("\n"))
    return f'??? {kind} "{title}"\n\n{inner}\n'


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, re.findall(r"^`{3,}", text, re.M)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _output(output: dict[str, Any]) -> str:
    """Write an output: a picture or HTML as it is, without blank lines, which would end it."""
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]), _PLAIN)
    data = {kind: "".join(value) for kind, value in output["data"].items()}
    if text := data.get("text/markdown"):
        return from_folder(text, "lessons")
    if text := data.get("image/svg+xml") or data.get("text/html"):
        lines = [line for line in text.split("\n") if line.strip()]
        return "\n".join(['<div class="output">', *lines, "</div>"])
    return _fenced(data["text/plain"], _PLAIN)
