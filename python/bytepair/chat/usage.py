"""The source of a Jinja template in, the names that it uses out.

A field that a template does not name has no effect on what it writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from bytepair.chat.environment import parsed

if TYPE_CHECKING:
    import jinja2

#: The filters and methods that use all fields of a mapping.
_GENERIC: Final = frozenset({"tojson", "items", "dictsort", "values"})


@dataclass(frozen=True, slots=True)
class Usage:
    """What a template uses.

    Attributes:
        variables: the variables that it reads and does not set.
        names: the attributes and keys that it reads, and all its strings.
        is_generic: whether it may write all fields of a message, whatever their names are.
        tests_content: whether it tests if the content of a message is none.
    """

    variables: frozenset[str]
    names: frozenset[str]
    is_generic: bool
    tests_content: bool


@lru_cache(maxsize=16)
def of(source: str) -> Usage:
    """What a template uses.

    Example:
        >>> usage = of("{{ title }}{% for m in messages %}{{ m.name }}{{ m['day'] }}{% endfor %}")
        >>> sorted(usage.variables), sorted(usage.names)
        (['messages', 'title'], ['day', 'name'])
    """
    tree, environment = parsed(source)
    from jinja2 import meta, nodes

    names = {node.attr for node in tree.find_all(nodes.Getattr)}
    names |= {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}
    messages = _names_of_messages(tree)
    uses: list[tuple[str, Any]] = [(node.name, node.node) for node in tree.find_all(nodes.Filter)]
    uses += [(node.attr, node.node) for node in tree.find_all(nodes.Getattr)]
    generic = any(
        isinstance(value, nodes.Name) and value.name in messages
        for name, value in uses
        if name in _GENERIC
    )
    variables = meta.find_undeclared_variables(tree) - environment.globals.keys()
    tests = any(_is_content(test.node) for test in tree.find_all(nodes.Test) if test.name == "none")
    return Usage(frozenset(variables), frozenset(names), generic, tests)


def _is_content(node: Any) -> bool:
    """Whether an expression is the content of a message, or a variable named like it."""
    key = getattr(node, "arg", None)
    names = (getattr(node, "attr", None), getattr(key, "value", None), getattr(node, "name", None))
    return "content" in names


def _names_of_messages(tree: jinja2.nodes.Template) -> set[str]:
    """The variables that may be messages, or a list of them."""
    from jinja2 import nodes

    bound: list[tuple[Any, Any]] = [(node.target, node.iter) for node in tree.find_all(nodes.For)]
    bound += [(node.target, node.node) for node in tree.find_all(nodes.Assign)]
    names = {"messages"}
    while True:
        before = len(names)
        for target, value in bound:
            while isinstance(value, nodes.Getitem | nodes.Filter):  # messages[1:], messages | list
                value = value.node
            if isinstance(value, nodes.Name) and value.name in names:
                names |= {target.name} if isinstance(target, nodes.Name) else set()
        if len(names) == before:
            return names
