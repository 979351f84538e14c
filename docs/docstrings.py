"""Prepares docstrings for the reference of the site.

An extension of griffe, which reads the sources, the stub and the docstrings of the compiled module
for mkdocstrings. Doctests become blocks of Python, and most special methods are left out.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Prepare what griffe has found."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Prepare a whole package (an event of griffe)."""
        if pkg.name == "bytepair":
            _prepare(pkg)


#: Special methods that people look up; Python says enough of the others.
_SHOWN = ("__init__", "__call__", "__getitem__", "__next__")


def _prepare(parent: griffe.Object) -> None:
    for name, member in list(parent.members.items()):
        if parent.is_class and name.startswith("__") and name not in _SHOWN:
            parent.del_member(name)
        elif not member.is_alias:
            _prepare(member)  # type: ignore[arg-type]
    if parent.docstring:
        parent.docstring.value = prepared(parent.docstring.value, of_module=parent.is_module)


def prepared(docstring: str, *, of_module: bool) -> str:
    """Mark the examples of a docstring as such.

    Args:
        docstring: of Google's form, without common indentation.
        of_module: its examples stand in its text and may be indented.
    """
    docstring = re.sub(r"^Example:$", "Examples:", docstring, flags=re.M)
    indent = " *" if of_module else ""
    return re.sub(rf"^{indent}>>> .*(?:\n.*\S.*)*", _fenced, docstring, flags=re.M)


def _fenced(doctest: re.Match[str]) -> str:
    return f"```python\n{textwrap.dedent(doctest[0])}\n```"
