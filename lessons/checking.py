"""Explains a failed `assert` of a lesson: what was expected, and what the code gave.

    from checking import explain

    explain()

From then on, each assertion in the cells of this notebook is rewritten before it runs, as pytest
does: if it fails, its message has both sides of the comparison. In a lesson the left side is what
your code gives, and the right side is what the test expects.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

#: Longer values are cut in the middle.
MOST_CHARACTERS = 600
#: The name under which a notebook finds `check`.
_NAME = "_check"

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "is": operator.is_, "is not": operator.is_not,
    "in": lambda one, many: one in many, "not in": lambda one, many: one not in many,
}  # fmt: skip
_SYMBOLS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def check(
    values: Sequence[Any], symbols: Sequence[str], source: str, note: Callable[[], Any]
) -> None:
    """Do what an assertion does.

    Args:
        values: what is compared; a single value must be true.
        symbols: the comparisons between them, such as "==".
        source: the condition as it is written.
        note: makes the message of the assertion, or None.

    Raises:
        AssertionError: if a comparison does not hold. It says what was expected and found.

    Example:
        >>> check([1 + 1, 3], ["=="], "1 + 1 == 3", lambda: None)
        Traceback (most recent call last):
        AssertionError: this does not hold: 1 + 1 == 3
        expected: 3
           found: 2
    """
    pairs = zip(values, symbols, values[1:], strict=False)
    failed = [found for found in pairs if not _OPERATORS[found[1]](found[0], found[2])]
    if not failed and (symbols or values[0]):
        return
    lines = [f"this does not hold: {source}"]
    if failed:
        found, symbol, expected = failed[0]
        sign = "" if symbol == "==" else f"{symbol} "
        lines += [f"expected: {sign}{_shown(expected)}", f"   found: {_shown(found)}"]
    else:
        lines += ["expected: something true", f"   found: {_shown(values[0])}"]
    if (words := note()) is not None:
        lines.append(f"    with: {_shown(words)}")
    raise AssertionError("\n".join(lines))


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and " " in value else repr(value)
    if len(text) <= MOST_CHARACTERS:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]}"


class Rewriter(ast.NodeTransformer):
    """Replaces assertions by calls of `check`."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Rewrite one; each part of its condition is evaluated once."""
        compared = isinstance(node.test, ast.Compare)
        values = [node.test.left, *node.test.comparators] if compared else [node.test]  # type: ignore[attr-defined]
        symbols = [_SYMBOLS[type(op)] for op in node.test.ops] if compared else []  # type: ignore[attr-defined]
        arguments: list[ast.expr] = [
            ast.List(values, ast.Load()),
            ast.List([ast.Constant(symbol) for symbol in symbols], ast.Load()),
            ast.Constant(ast.unparse(node.test)),
            ast.Lambda(
                ast.arguments([], [], None, [], [], None, []), node.msg or ast.Constant(None)
            ),
        ]
        call = ast.Expr(ast.Call(ast.Name(_NAME, ast.Load()), arguments, []))
        return ast.fix_missing_locations(ast.copy_location(call, node))


def explain() -> None:
    """Make the assertions of this notebook say what they expected and found."""
    from IPython import get_ipython

    shell: Any = get_ipython()
    if not any(isinstance(one, Rewriter) for one in shell.ast_transformers):
        shell.push({_NAME: check})
        shell.ast_transformers.append(Rewriter())
