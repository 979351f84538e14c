"""The one check of the arguments of public functions: a value in, perhaps an `ArgumentError` out.

`checked` reads the annotations of a function, such as `int | None` or `Literal["ids", "text"]`, and
compares each argument with them when the function is called. `check_fields` does the same for the
fields of a dataclass. Numbers have limits by their name, since a parameter means the same
everywhere. What no annotation says (that a path exists, that two options fit) is checked by the
function.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import operator
import os
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import (
    Any,
    Final,
    ForwardRef,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from bytepair import _core
from bytepair._internal.later import Later
from bytepair.errors import ArgumentError, Option, WayOut

P = ParamSpec("P")
R = TypeVar("R")

#: A test of a value, and what passes it.
_Test: TypeAlias = "tuple[Callable[[Any], bool], str]"

#: The smallest value of numbers by their name. The largest one fits 64 bits.
LEAST: Final = {
    "threads": 1, "max_chars": 0, "max_tokens": 0, "max_document_bytes": 1, "batch_size": 1,
    "length": 1, "rank": 0, "world_size": 1, "longest": 0, "samples": 0, "limit": 0,
    "points": 1, "order": 0, "vocab_size": 0, "partitions": 1, "pad_to": 0,
    "task_bytes": 1,
}  # fmt: skip
_MOST_INTEGER: Final = 2**63 - 1
#: Parameters of text that may have lone surrogates, as `encode` has it.
_ANY_TEXT: Final = frozenset({"text", "text_or_ids"})
#: Parameters whose sequences of names `bytepair.tokenizer.special.in_order` checks.
_NAMES: Final = frozenset({"special_tokens", "initial_tokens", "never"})

#: Parameters that `bytepair.chat.rows` checks, with an error that names the broken message.
_CONVERSATIONS: Final = frozenset({"conversation", "history"})
#: The type that `bytepair.training.sources` checks, with an error that says how to name sources.
_GROUPS: Final = "Groups"


def shown(value: Any) -> str:
    """A value in a message: its repr, shortened.

    Example:
        >>> shown(list(range(50)))
        '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,...'
    """
    return _core.shown(value)


def refuse(name: str, value: Any, allowed: str, *ways_out: WayOut) -> ArgumentError:
    """The error for a value that an argument cannot have.

    Example:
        >>> print(refuse("threads", -1, "an integer of at least 1"))
        threads is -1; it must be an integer of at least 1
    """
    subject = Option(name) if name.isidentifier() else name
    text = f"is {shown(value)}; it must be {allowed}"
    return ArgumentError(subject, text, *ways_out, option=name, value=value)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a function against its annotations.

    Example:
        >>> @checked
        ... def halve(number: int, *, rounding: Literal["up", "down"] = "down") -> int:
        ...     return (number + (rounding == "up")) // 2
        >>> halve(3, rounding="up")
        2
        >>> halve("3")
        Traceback (most recent call last):
        bytepair.errors.ArgumentError: number is '3'; it must be an integer
    """
    tests: dict[str, list[_Test]] = {}
    names: list[str] = []
    is_read = False

    def read() -> None:
        nonlocal is_read
        parameters = inspect.signature(function).parameters.values()
        scope = sys.modules[function.__module__].__dict__
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                tests.update(_tests_of_keywords(parameter.annotation, scope))
            else:
                names.append(parameter.name)
                tests.update(_tests_of({parameter.name: parameter.annotation}, scope))
        is_read = True

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not is_read:
            read()
        of_numpy = False
        for pairs in (zip(names, args), kwargs.items()):  # noqa: B905 - fewer arguments than names
            for name, value in pairs:
                if name in tests:
                    check(name, value, tests[name])
                of_numpy = of_numpy or type(value).__module__ == "numpy"
        if of_numpy:
            return function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
        return function(*args, **kwargs)

    return call


def _plain(value: Any) -> Any:
    """An integer of numpy as an int, which JSON and the core take; other values as they are."""
    return operator.index(value) if isinstance(value, Integral) else value


def check_fields(value: Any) -> None:
    """Check the fields of a dataclass against their annotations."""
    kind: Any = type(value)
    for name, tests in _tests_of_fields(kind).items():
        check(name, getattr(value, name), tests)


def integers(name: str, values: Any) -> list[int]:
    """The integers of a list, an array or any iterable.

    Raises:
        ArgumentError: if it is no such thing.

    Example:
        >>> integers("ids", (3, 4))
        [3, 4]
    """
    error = refuse(name, values, "a list, an array or an iterable of integers")
    if isinstance(values, str | bytes | Mapping):
        raise error
    try:
        return [operator.index(value) for value in values]
    except TypeError:
        raise error from None


def whole(name: str, value: Any) -> int:
    """An integer, such as an index.

    Raises:
        ArgumentError: if it is none.

    Example:
        >>> whole("the index", slice(0, 2))
        Traceback (most recent call last):
        bytepair.errors.ArgumentError: the index is slice(0, 2, None); it must be an integer
    """
    if not _is_integer(value):
        raise refuse(name, value, _INTEGER)
    return operator.index(value)


def place_of(item: str, index: Any, count: int) -> int:
    """The place of one of `count` items, from 0; a negative index counts from the end.

    Raises:
        ArgumentError: if the index is no integer.
        IndexError: if there is no such item.

    Example:
        >>> place_of("document", -1, 3)
        2
    """
    number = whole(f"the index of a {item}", index)
    if not -count <= number < count:
        raise IndexError(f"there is no {item} {number}; there are {count}")
    return number % count


def instance(name: str, value: Any, kind: type[R]) -> R:
    """A value of a class.

    Raises:
        ArgumentError: if it is of another class.

    Example:
        >>> instance("counts", 3, dict)
        Traceback (most recent call last):
        bytepair.errors.ArgumentError: counts is 3; it must be a dict
    """
    if not isinstance(value, kind):
        raise refuse(name, value, f"a {kind.__name__}")
    return value


def check(name: str, value: Any, tests: list[_Test]) -> None:
    """Check that a value passes one of some tests, and that a number is within its limits.

    Raises:
        ArgumentError: if not.
    """
    if not _fits(value, tests):
        allowed = _described(name, [text for _, text in tests])
        if isinstance(value, str) and not is_text(value):
            allowed += " without lone surrogates"
        raise refuse(name, value, allowed, *_ways_out(value, tests))
    if value is not None and not isinstance(value, str) and _is_integer(value):
        least = LEAST.get(name, -_MOST_INTEGER)
        if name not in ("seed", "weight") and not least <= value <= _MOST_INTEGER:
            limit = "" if value < least else f", and at most {_MOST_INTEGER}"
            raise refuse(name, value, _described(name, [text for _, text in tests]) + limit)


def _described(name: str, allowed: list[str]) -> str:
    """What is allowed, with the limits of numbers."""
    if name in LEAST:
        allowed = [
            f"{text} of at least {LEAST[name]}" if text in (_INTEGER, _NUMBER) else text
            for text in allowed
        ]
    allowed = list(dict.fromkeys(allowed))
    return " or ".join([", ".join(allowed[:-1]), allowed[-1]] if len(allowed) > 1 else allowed)


def _ways_out(value: Any, tests: list[_Test]) -> list[WayOut]:
    if isinstance(value, str | os.PathLike) and any(text == "a Tokenizer" for _, text in tests):
        return [WayOut("load it with bytepair.load")]
    if isinstance(value, str) and any(text.endswith("of str") for _, text in tests):
        return [WayOut("pass [text]")]
    return []


# ---------------------------------------------------------------------------- annotations

_INTEGER: Final = "an integer"
_STR: Final = "a str"
_NUMBER: Final = "a number"


def _tests_of(annotations: Mapping[str, Any], scope: Mapping[str, Any]) -> dict[str, list[_Test]]:
    by_name = {name: _tests(annotation, scope) for name, annotation in annotations.items()}
    for name in by_name.keys() & _ANY_TEXT:
        by_name[name] = [_ANY if test is _SIMPLE[str] else test for test in by_name[name]]
    groups = {name for name, annotation in annotations.items() if annotation == _GROUPS}
    for name in by_name.keys() & (_CONVERSATIONS | groups):
        del by_name[name]
    for name in by_name.keys() & _NAMES:
        if "Sequence" in str(annotations[name]):
            del by_name[name]
    return {name: tests for name, tests in by_name.items() if tests}


def _tests_of_keywords(annotation: Any, scope: Mapping[str, Any]) -> dict[str, list[_Test]]:
    """The tests of `**options: Unpack[Keywords]`."""
    if isinstance(annotation, str) and annotation.startswith("Unpack["):
        keywords = scope.get(annotation[len("Unpack[") : -1])
        if isinstance(keywords, type):
            return dict(_tests_of_fields(keywords))
    return {}


@functools.cache
def _tests_of_fields(kind: Any) -> dict[str, list[_Test]]:
    tests: dict[str, list[_Test]] = {}
    for base in reversed(kind.__mro__):
        own = inspect.get_annotations(base)
        scope = sys.modules[base.__module__].__dict__
        names = (
            {f.name for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else own
        )
        tests |= _tests_of({name: own[name] for name in own if name in names}, scope)
    return tests


def _tests(annotation: Any, scope: Mapping[str, Any]) -> list[_Test]:
    """The tests of which a value must pass one; empty if anything is allowed."""
    if annotation is inspect.Parameter.empty:
        return []
    tests: list[_Test] = []
    for part in _parts(annotation, scope):
        test = _test(part, scope)
        if test is None:
            return []
        tests += test
    return tests


#: What an annotation means that cannot be read at run time.
_UNKNOWN: Final = object()


def _parts(annotation: Any, scope: Mapping[str, Any]) -> list[Any]:
    """The alternatives of an annotation."""
    if isinstance(annotation, ForwardRef):  # those of a TypedDict
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        if get_origin(annotation) in (Union, types.UnionType):
            return [part for one in get_args(annotation) for part in _parts(one, scope)]
        return [annotation]
    try:
        tree = ast.parse(annotation.strip(), mode="eval").body
    except SyntaxError:
        return [_UNKNOWN]
    return [part for node in _alternatives(tree) for part in _evaluated(node, scope)]


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def _evaluated(node: ast.expr, scope: Mapping[str, Any]) -> list[Any]:
    """The value of one alternative; a name may stand for an alias, which has alternatives too."""
    loaded = {name: value for name, value in scope.items() if not isinstance(value, Later)}
    try:
        value = eval(compile(ast.Expression(node), "annotation", "eval"), loaded)
    except Exception:  # a name that is imported for type checkers alone
        return [_UNKNOWN]
    if value is None or value is _UNKNOWN:
        return [value]
    if isinstance(value, str) and isinstance(node, ast.Name):
        return _parts(value, scope)
    return _parts(value, scope) if get_origin(value) in (Union, types.UnionType) else [value]


def _test(part: Any, scope: Mapping[str, Any]) -> list[_Test] | None:
    """The test of one alternative; None if anything is allowed."""
    if part is Any:
        return None
    if part is None or part is type(None):
        return [(lambda value: value is None, "None")]
    if part in _SIMPLE:
        return [_SIMPLE[part]]
    origin, arguments = get_origin(part), get_args(part)
    if origin is Literal:
        texts = [f'"{one}"' if isinstance(one, str) else repr(one) for one in arguments]
        return [(_among(one), text) for one, text in zip(arguments, texts, strict=True)]
    kind = origin or part
    if kind in _CONTAINERS:
        return [_container(kind, arguments, scope)]
    if kind is os.PathLike:
        return [(lambda value: hasattr(value, "__fspath__"), "a path")]
    if (
        isinstance(kind, type)
        and kind not in (object,)
        and not getattr(kind, "_is_protocol", False)
    ):
        return [(lambda value: isinstance(value, kind), f"a {kind.__name__}")]
    return None


def _among(one: Any) -> Callable[[Any], bool]:
    return lambda value: type(value) is type(one) and value == one


def _is_integer(value: Any) -> bool:
    return type(value) is int or (isinstance(value, Integral) and not _is_flag(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not _is_flag(value)


def is_text(value: Any) -> bool:
    """Whether a value is a str that UTF-8 can represent."""
    if not isinstance(value, str):
        return False
    try:
        return value.isascii() or bool(value.encode()) or not value
    except UnicodeEncodeError:
        return False


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool"  # numpy's, too


_ANY: Final[_Test] = (lambda value: isinstance(value, str), _STR)
_SIMPLE: Final[dict[Any, _Test]] = {
    int: (_is_integer, _INTEGER),
    float: (_is_number, _NUMBER),
    str: (is_text, _STR),
    bytes: (lambda value: isinstance(value, bytes), "bytes"),
    bool: (_is_flag, "True or False"),
}

_CONTAINERS: Final = {
    Collection: "a collection", Iterable: "an iterable", Sequence: "a sequence", list: "a list",
    tuple: "a tuple", set: "a set", frozenset: "a set", Mapping: "a mapping", dict: "a dict",
    Callable: "callable",
}  # fmt: skip


def _container(kind: Any, arguments: tuple[Any, ...], scope: Mapping[str, Any]) -> _Test:
    """A test of a collection, and of its items where there are few: of names, dicts and lists."""
    text = _CONTAINERS[kind]
    if kind is Callable:
        return callable, text
    if kind in (Collection, Iterable, Sequence) and str in arguments:
        text += " of str"
    items = _items(kind, arguments, scope)

    def test(value: Any) -> bool:
        if isinstance(value, str | bytes | bytearray):
            return False
        if kind is Sequence:
            fits = hasattr(value, "__len__") and hasattr(value, "__getitem__")
            fits = fits and not isinstance(value, Mapping)
        elif kind in (Collection, Iterable):
            fits = hasattr(value, "__iter__")
        else:
            fits = isinstance(value, kind)
        return fits and items(value)

    return test, text


def _items(
    kind: Any, arguments: tuple[Any, ...], scope: Mapping[str, Any]
) -> Callable[[Any], bool]:
    """A test of the items of a collection."""
    tests = [_tests(argument, scope) for argument in arguments]
    if kind in (dict, Mapping):
        keys, values = tests or ([], [])
        return lambda value: all(_fits(k, keys) and _fits(v, values) for k, v in value.items())
    if kind is tuple and Ellipsis not in arguments:
        return lambda value: len(value) == len(tests) and all(map(_fits, value, tests))
    if kind in (list, tuple) or (kind in (Collection, Sequence) and arguments[:1] == (str,)):
        return lambda value: (
            not isinstance(value, Collection) or all(_fits(item, tests[0]) for item in value)
        )
    return lambda value: True


def _fits(value: Any, tests: list[_Test]) -> bool:
    """Whether a value passes one of some tests; if there are none, anything does."""
    for test, _ in tests:
        if test(value):
            return True
    return not tests
