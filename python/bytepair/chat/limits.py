"""Limits on what a template may compute: an environment of Jinja in, one with limits out.

A chat template is a program from a stranger. The sandbox of Jinja keeps it away from files and the
interpreter, but not from long loops and large values. Here every loop, call, operator and filter
of a rendering is charged to one budget, and values are measured before they are made:

- *steps*: rounds of loops and calls, at most `MOST_STEPS` in a rendering, within `MOST_SECONDS` of
  processor time;
- *sizes*: no text or list is longer than `MOST_LENGTH` characters or items, and no number has more
  than `MOST_BITS` bits; operands of operators, arguments of methods and filters, and joined texts
  are checked first;
- *shared parts*: a list that contains another one twice, and so on, is small in memory and huge as
  text, so lists are counted with all their parts before they become text;
- nothing is computed while a template is compiled.

Templates of published models stay far below all of these.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

#: The rounds of loops and calls in one rendering.
MOST_STEPS: Final = 1_000_000
#: The steps of a call of a macro, which takes as long as that many rounds of a short loop.
STEPS_PER_MACRO: Final = 5
#: The processor time of one rendering, in seconds; it is looked at every so many steps.
MOST_SECONDS: Final = 20.0
STEPS_PER_CHECK: Final = 256
#: A step is charged for this many characters or items of a value that is made or filtered.
ITEMS_PER_STEP: Final = 1 << 10
#: The length of a text or list, and of the result.
MOST_LENGTH: Final = 1 << 25
#: The parts of a value that becomes text, each counted as often as it occurs.
MOST_PARTS: Final = 1 << 21
#: The size of a number that is an argument of a method or a filter, such as a width.
MOST_NUMBER: Final = 1 << 20
#: The bits of a number.
MOST_BITS: Final = 1 << 12
#: The length of the source of a template, in characters.
MOST_SOURCE_CHARS: Final = 1 << 20

#: Filters that make text of whatever they get.
_AS_TEXT: Final = ("string", "join", "tojson", "pprint", "format", "escape", "e", "forceescape",
                   "urlencode", "xmlattr", "safe", "list")  # fmt: skip
#: Digits in a format such as `%5000000d`.
_WIDTH: Final = re.compile(r"[0-9]{7}")

_budget: ContextVar[Budget] = ContextVar("budget")


class LimitError(SecurityError):
    """A template exceeds a limit."""


class Budget:
    """What one rendering has used of its steps and its time."""

    def __init__(self) -> None:
        """Begin with nothing used."""
        self.steps = 0
        self.look = STEPS_PER_CHECK
        self.end = time.thread_time() + MOST_SECONDS

    def charge(self, steps: int) -> None:
        """Use some steps."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise LimitError(f"it takes more than {MOST_STEPS:,} rounds of loops and calls")
        if self.steps >= self.look:
            self.look = self.steps + STEPS_PER_CHECK
            if time.thread_time() > self.end:
                raise LimitError(f"it takes more than {MOST_SECONDS:g} seconds of processor time")


@contextmanager
def counted() -> Iterator[None]:
    """Count the steps of one rendering."""
    token = _budget.set(Budget())
    try:
        yield
    finally:
        _budget.reset(token)


def _charge(steps: int) -> None:
    budget = _budget.get(None)
    if budget is not None:
        budget.charge(steps)


def _too_long(what: str) -> NoReturn:
    raise LimitError(f"{what} would be longer than {MOST_LENGTH:,} characters or items")


def checked(value: Any) -> Any:
    """The value, unless it is too large; its length is charged."""
    if type(value) is str and len(value) <= ITEMS_PER_STEP:
        return value
    if isinstance(value, str | bytes | list | tuple | dict):
        if len(value) > MOST_LENGTH:
            _too_long("a value")
        if len(value) > ITEMS_PER_STEP:
            _charge(len(value) // ITEMS_PER_STEP)
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise LimitError(f"a number would have more than {MOST_BITS:,} bits")
    return value


def weighed(value: Any) -> Any:
    """The value, unless it has too many parts to become text."""
    if not isinstance(value, str):
        _parts(value)
    return checked(value)


def _parts(value: Any) -> int:
    """The number of parts of a value, each counted as often as it occurs."""
    waiting, parts = [value], 0
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part
        parts += 1
        if parts + len(waiting) > MOST_PARTS:
            raise LimitError(f"a value has more than {MOST_PARTS:,} parts")
    return parts


def _check_arguments(values: Iterable[Any]) -> None:
    """Refuse large numbers, which are widths, counts or precisions."""
    for value in values:
        if isinstance(value, int) and abs(value) > MOST_NUMBER:
            raise LimitError(f"the number {value} is an argument; the largest is {MOST_NUMBER:,}")
        checked(value)


def _check_format(text: str, values: Iterable[Any]) -> None:
    """Refuse formats with large widths, in the text or (as with `%*d`) in the values."""
    if _WIDTH.search(text):
        raise LimitError("a format has a width or precision of seven digits")
    if "*" in text or re.search(r"\{[^{}]*\{", text):
        _check_arguments(value for value in values if isinstance(value, int))


def _sum_of_lengths(values: Iterable[Any]) -> int:
    return sum(len(value) if isinstance(value, Sized) else 1 for value in values)


# ---------------------------------------------------------------------------- operators


def _multiply(left: Any, right: Any) -> None:
    for value, times in ((left, right), (right, left)):
        if isinstance(value, Sized) and isinstance(times, int) and len(value) * times > MOST_LENGTH:
            _too_long("a repetition")
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())


def _power(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() * abs(right))


def _modulo(left: Any, right: Any) -> None:
    if isinstance(left, str):
        values = right if isinstance(right, tuple) else (right,)
        _check_format(left, values)
        for value in values:
            weighed(value)


def _check_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise LimitError(f"a number would have more than {MOST_BITS:,} bits")


_OPERATORS: Final[dict[str, Callable[[Any, Any], None]]] = {
    "*": _multiply, "**": _power, "%": _modulo,
}  # fmt: skip

# ---------------------------------------------------------------------------- methods and filters


def _replace(text: Any, old: Any = "", new: Any = "", *_: Any, **__: Any) -> None:
    times = len(str(text)) // max(len(str(old)), 1) + 1
    if len(str(text)) + times * len(str(new)) > MOST_LENGTH:
        _too_long("a text after replacement")


def _join(separator: Any, values: Any = (), *_: Any, **__: Any) -> None:
    if isinstance(values, list | tuple | dict):
        weighed(list(values))
        if len(str(separator)) * len(values) + _sum_of_lengths(values) > MOST_LENGTH:
            _too_long("a joined text")


def _join_filter(values: Any, separator: Any = "", *_: Any, **__: Any) -> None:
    _join(separator, values)


def _indent(text: Any, width: Any = 4, *_: Any, **__: Any) -> None:
    by = width if isinstance(width, int) else len(str(width))
    if str(text).count("\n") * max(by, 1) > MOST_LENGTH:
        _too_long("an indented text")


def _expandtabs(text: str, tabsize: Any = 8, *_: Any, **__: Any) -> None:
    if isinstance(tabsize, int) and text.count("\t") * tabsize > MOST_LENGTH:
        _too_long("a text with spaces for tabs")


def _translate(text: str, table: Any = None, *_: Any, **__: Any) -> None:
    if isinstance(table, Mapping):
        longest = max((len(str(value)) for value in table.values()), default=0)
        if len(text) * longest > MOST_LENGTH:
            _too_long("a translated text")


def _format(text: Any, *values: Any, **keywords: Any) -> None:
    _check_format(str(text), [*values, *keywords.values()])
    for value in (*values, *keywords.values()):
        weighed(value)


def _tojson(value: Any, *args: Any, indent: Any = None, **_: Any) -> None:
    indent = args[1] if len(args) > 1 else indent
    by = indent if isinstance(indent, int) else len(str(indent or ""))
    if _parts(value) * _depth(value) * by > MOST_LENGTH:
        _too_long("an indented text")


def _depth(value: Any) -> int:
    """How deep lists and objects are nested, at most a thousand levels, as deep as JSON may be."""
    level, depth = [value], 0
    while level and depth < 1000:
        inner = (part.values() if isinstance(part, Mapping) else part for part in level
                 if isinstance(part, Mapping | list | tuple))  # fmt: skip
        level = [item for items in inner for item in items]
        depth += 1
    return depth


def _wordwrap(
    text: Any, width: Any = 79, _long: Any = True, wrapstring: Any = None, **_: Any
) -> None:
    lines = len(str(text)) // max(width if isinstance(width, int) else 1, 1) + 1
    if lines > MOST_NUMBER // 8 or lines * len(str(wrapstring or "")) > MOST_LENGTH:
        _too_long("a wrapped text")


_METHODS: Final[dict[str, Callable[..., None]]] = {
    "replace": _replace, "join": _join, "expandtabs": _expandtabs, "translate": _translate,
    "format": _format, "format_map": _format,
}  # fmt: skip
_FILTERS: Final[dict[str, Callable[..., None]]] = {
    "replace": _replace, "join": _join_filter, "indent": _indent, "format": _format,
    "tojson": _tojson, "wordwrap": _wordwrap,
}  # fmt: skip


def _limited(name: str, function: Callable[..., Any], skipped: int) -> Callable[..., Any]:
    """A filter that checks its arguments and its result; the first `skipped` are Jinja's own."""

    @wraps(function)
    def checking(*args: Any, **keywords: Any) -> Any:
        _charge(1)
        value, positional = args[skipped : skipped + 1], args[skipped + 1 :]
        _check_arguments((*positional, *keywords.values()))
        for one in value:
            (weighed if name in _AS_TEXT else checked)(one)
        if name in _FILTERS:
            _FILTERS[name](*value, *positional, **keywords)
        return checked(function(*args, **keywords))

    return checking


# ---------------------------------------------------------------------------- the environment


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox of Jinja with the limits of this file; see there."""

    intercepted_binops = frozenset({"+", *_OPERATORS})

    def __init__(self, **options: Any) -> None:
        """Make an environment; nothing is computed at compile time."""
        super().__init__(optimized=False, finalize=weighed, **options)
        self.globals.pop("lipsum", None)
        self.limit_filters()
        self.filters |= {"_charged": _charged, "_joined": _joined, "_checked": checked}

    def limit_filters(self, *names: str) -> None:
        """LimitError the filters of these names, or all."""
        for name in names or tuple(self.filters):
            function = self.filters[name]
            skipped = int(getattr(function, "jinja_pass_arg", None) is not None)
            self.filters[name] = _limited(name, function, skipped)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Check the operands, then compute."""
        if operator != "+":  # a sum is at most twice as long as its parts, and is checked itself
            _OPERATORS[operator](left, right)
        return checked(self.binop_table[operator](left, right))

    def call(__self, __context: Any, __obj: Any, *args: Any, **keywords: Any) -> Any:  # noqa: N805
        """Check the arguments, then call."""
        _charge(STEPS_PER_MACRO if isinstance(__obj, Macro) else 1)
        _check_arguments((*args, *keywords.values()))
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps `format`
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, str) and name in _METHODS:
            _METHODS[name](owner, *args, **keywords)
        return checked(super().call(__context, __obj, *args, **keywords))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Parse a template, and have its loops, joined texts and blocks checked."""
        template = super()._parse(source, name, filename)
        for loop in template.find_all(nodes.For):
            loop.iter = _filtered(loop.iter, "_charged")
        for parent in [template, *template.find_all(nodes.Node)]:
            for field, value in parent.iter_fields():
                setattr(parent, field, _rewritten(value))
        return template


def _rewritten(value: Any) -> Any:
    """A field of a node, with joined texts (`a ~ b`) and assigned blocks checked."""
    if isinstance(value, list):
        return [_rewritten(item) for item in value]
    if isinstance(value, nodes.Concat):
        return _filtered(nodes.List(value.nodes, lineno=value.lineno), "_joined")
    if isinstance(value, nodes.AssignBlock):
        inner = value.filter or nodes.Filter(
            None, "string", [], [], None, None, lineno=value.lineno
        )
        value.filter = nodes.Filter(inner, "_checked", [], [], None, None, lineno=value.lineno)
    return value


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _charged(values: Any) -> Any:
    """What a loop goes through; each round is a step."""
    if isinstance(values, Sized):
        _charge(len(values))
        return values
    return _each_charged(values)


def _each_charged(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        _charge(1)
        yield value


def _joined(values: list[Any]) -> str:
    """The operator `~`."""
    texts = [str(weighed(value)) for value in values]
    if sum(map(len, texts)) > MOST_LENGTH:
        _too_long("a joined text")
    return "".join(texts)


def rendered(template: jinja2.Template, variables: Mapping[str, Any]) -> str:
    """Render a template within the limits.

    Raises:
        jinja2.TemplateError: if it fails, or exceeds a limit.
    """
    parts, size = [], 0
    with counted():
        for part in template.generate(**variables):
            size += len(part)
            if size > MOST_LENGTH:
                _too_long("the result")
            parts.append(part)
    return "".join(parts)
