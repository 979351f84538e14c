"""Pages made when the site is built: the start from README.md, the reference from docstrings."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import bytepair

_SECTIONS = ("Args", "Returns", "Raises", "Attributes", "Yields")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those that are there (a hook of mkdocs)."""
    from mkdocs.structure.files import File

    readme = Path(config.config_file_path).with_name("README.md").read_text(encoding="utf-8")
    pages = {"index.md": readme.replace("](docs/", "]("), "reference.md": reference()}
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def reference() -> str:
    """Every public name with its signature and what its docstring says."""
    parts = ["# Reference\n\nMade from the docstrings of `bytepair`.\n"]
    modules = []
    for name in bytepair.__all__:
        value = getattr(bytepair, name)
        if inspect.ismodule(value):
            modules.append(value)
        else:
            parts.append(_entry(f"bytepair.{name}", value, 2))
    for module in modules:
        parts.append(f"## {module.__name__}\n\n{_markdown(module)}\n")
        names = getattr(module, "__all__", [])
        parts += [_entry(f"{module.__name__}.{n}", getattr(module, n), 3) for n in names]
    return "\n".join(parts)


def _entry(name: str, value: Any, level: int) -> str:
    if not callable(value):
        return f"{'#' * level} {name}\n\nA value.\n"
    parts = [f"{'#' * level} {name}\n\n{_signature(name, value)}{_markdown(value)}\n"]
    if inspect.isclass(value):
        for key, member in inspect.getmembers(value):
            public = not key.startswith("_") and not key.startswith("with_traceback")
            if public and inspect.getdoc(member) and not issubclass(value, BaseException):
                shown = _signature(key, member) if callable(member) else ""
                parts.append(f"{'#' * (level + 1)} {key}\n\n{shown}{_markdown(member)}\n")
    return "\n".join(parts)


def _signature(name: str, value: Any) -> str:
    try:
        return f"```text\n{name.rpartition('.')[2]}{inspect.signature(value)}\n```\n\n"
    except (TypeError, ValueError):
        return ""


def _markdown(value: Any) -> str:
    """A docstring of Google's form as Markdown."""
    lines = []
    fenced = False
    for line in (inspect.getdoc(value) or "").splitlines():
        code = line.lstrip().startswith((">>> ", "... ")) or (fenced and line.strip())
        if bool(code) != fenced:
            lines.append("```" if fenced else "\n```python")
            fenced = not fenced
        if fenced:
            lines.append(line.strip())
        elif line.rstrip(":") in (*_SECTIONS, "Example"):
            lines.append(f"\n**{line.rstrip(':')}**\n")
        else:
            lines.append(re.sub(r"^    (\S+):", r"- `\1`:", line))
    return "\n".join([*lines, "```"] if fenced else lines)
