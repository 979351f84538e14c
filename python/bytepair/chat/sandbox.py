"""Compiles and renders Jinja templates in a sandbox: they read no file and run no code.

The environment equals that of `transformers`: its filters and functions, and `{% generation %}`
blocks, which mark what the model is trained on. It does not keep a template from long loops and
large values: a child process (`RenderProcess`) has limits that no template can exceed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from functools import lru_cache
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final, NoReturn

from bytepair._internal.checks import refuse
from bytepair.errors import ConversationError

if TYPE_CHECKING:
    import jinja2

#: The length of the source of a template, in characters. Published ones have at most 30,000.
MAX_SOURCE_CHARS: Final = 1 << 17
#: The marks around trained parts in the rendered string. In texts they are disguised.
START: Final = "\U0010fffe"
STOP: Final = "\U0010ffff"
#: The marks around the index of a message where the template begins to write it.
INDEX: Final = "\U000ffffe"
END_INDEX: Final = "\U000fffff"


def has_blocks(source: str) -> bool:
    """Whether a template has `{% generation %}` blocks."""
    return re.search(r"\{%[-+]?\s*generation\s*[-+]?%\}", source) is not None


def render(source: str, name: str, variables: Mapping[str, Any], with_indices: bool = False) -> str:
    """Render a template; raise failures as `ConversationError` with the name of the template.

    With `with_indices`, the index of each message stands, between marks, where a loop over
    messages comes to it.
    """
    from bytepair._internal.extras import jinja2

    template = compiled(source, with_indices)
    indices = {id(m): i for i, m in enumerate(variables["messages"])} if with_indices else {}

    def index(value: object) -> str:
        at = indices.get(id(value))
        return "" if at is None else f"{INDEX}{at}{END_INDEX}"

    try:
        return template.render(**variables, _index=index)
    except Exception as error:  # what a template calls may raise any
        kind = "" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: "
        raise ConversationError(f"the template {name!r}: {kind}{error}") from error


@contextmanager
def _reported() -> Iterator[None]:
    """Raise what is wrong with the source of a template as a `ConversationError`."""
    try:
        yield
    except (ConversationError, ImportError):
        raise
    except Exception as error:
        line, message = getattr(error, "lineno", None), getattr(error, "message", None)
        # Python compiles what Jinja makes of the template, and refuses deep nesting in many ways.
        is_deep = isinstance(error, RecursionError | SyntaxError | MemoryError)
        why = f"{'nested too deeply' if is_deep else 'not valid'}: {error}"
        if line is not None and message is not None:
            why = f"not valid at line {line}: {message}"
        raise ConversationError(f"the chat template is {why}") from error


@lru_cache(maxsize=32)
@_reported()
def compiled(source: str, with_indices: bool = False) -> jinja2.Template:
    """Compile a template; if `with_indices`, every loop calls `_index` with its value first."""
    from bytepair._internal.extras import jinja2

    nodes = jinja2.nodes
    tree, environment = _parsed(source)
    for loop in tree.find_all(nodes.For):
        if with_indices and isinstance(loop.target, nodes.Name):
            names = (nodes.Name(name, "load") for name in ("_index", loop.target.name))
            output = nodes.Output([nodes.Call(next(names), [*names], [], None, None)])
            loop.body.insert(0, output.set_lineno(loop.lineno))
    return environment.from_string(tree)


def _parsed(source: str) -> tuple[jinja2.nodes.Template, jinja2.Environment]:
    """The syntax tree of a template, and the environment that it is for; nothing is computed."""
    if len(source) > MAX_SOURCE_CHARS:
        raise ConversationError(
            f"the chat template has {len(source):,} characters; the limit is {MAX_SOURCE_CHARS:,}"
        )
    environment = _environment()
    return environment.parse(source), environment


def _environment() -> jinja2.Environment:
    """An environment equal to that of `transformers`."""
    from bytepair._internal.extras import jinja2

    nodes, pass_context = jinja2.nodes, jinja2.pass_context
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

        def _mark(self, caller: Callable[[], str]) -> str:
            return START + caller() + STOP

    class PlainNamespace(Namespace):
        """A namespace that rejects names with which a template could escape the sandbox."""

        def __setitem__(self, name: str, value: Any) -> None:
            if name.startswith("_"):
                raise SecurityError(f"a namespace may not contain the private name {name!r}")
            super().__setitem__(name, value)

    @pass_context
    def at_run_time(_context: Any, value: Any) -> Any:
        """The value. What needs the context is not computed when a template is compiled."""
        return value

    def raise_exception(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    def to_json(
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        """The filter of `transformers`, which escapes nothing for HTML."""
        how = {"indent": indent, "separators": separators, "sort_keys": sort_keys}
        return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, **how)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, "jinja2.ext.loopcontrols"],
        optimized=False,
        finalize=at_run_time,
    )
    environment.filters["tojson"] = to_json
    environment.globals["namespace"] = PlainNamespace
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


# ---------------------------------------------------------------------------- what is used

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
@_reported()
def usage(source: str) -> Usage:
    """What a template uses; a field that it does not name has no effect on what it writes."""
    tree, environment = _parsed(source)
    from jinja2 import meta, nodes

    attributes = list(tree.find_all(nodes.Getattr))
    names = {node.attr for node in attributes}
    names |= {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}
    uses = [(node.name, node.node) for node in tree.find_all(nodes.Filter)]
    uses += [(node.attr, node.node) for node in attributes]
    messages = _names_of_messages(tree)
    generic = any(
        isinstance(value, nodes.Name) and value.name in messages
        for name, value in uses
        if name in _GENERIC
    )
    tests = any(_is_content(test.node) for test in tree.find_all(nodes.Test) if test.name == "none")
    variables = meta.find_undeclared_variables(tree).difference(environment.globals)
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
    names, before = {"messages"}, 0
    while before < len(names):
        before = len(names)
        for target, value in bound:
            while isinstance(value, nodes.Getitem | nodes.Filter):  # messages[1:], messages | list
                value = value.node
            if isinstance(value, nodes.Name) and value.name in names:
                names |= {target.name} if isinstance(target, nodes.Name) else set()
    return names


# ---------------------------------------------------------------------------- the child process


#: The longest rendered conversation, in bytes as JSON.
MAX_ANSWER_BYTES: Final = 1 << 26

_CHILD: Final = (
    "from bytepair.chat.sandbox import serve; serve(*map(float, __import__('sys').argv[1:]))"
)


class RenderProcess:
    """A child process that renders templates; it is started when needed, and kept.

    Use it where templates come from strangers, as in a server: a template that takes too much
    memory or time ends the child, which is a `ConversationError`, and the next rendering starts
    another. Threads take turns; after a fork, each process has a child of its own.

    Args:
        memory_bytes: the memory of the child, with about 200 MB for Python itself; Linux alone
            enforces it.
        seconds: the time of one rendering.

    Raises:
        ArgumentError: if a limit is not a positive number, or too large for the system.

    Example:
        >>> from bytepair.chat import JinjaTemplate, RenderProcess
        >>> source = "{% for m in messages %}{{ m.content }}{% endfor %}"
        >>> import bytepair
        >>> tok = bytepair.train(["hi yo"], vocab_size=265)
        >>> with RenderProcess(seconds=10) as process:
        ...     template = JinjaTemplate(source, mask="none", process=process)
        ...     tok.render_conversation([{"role": "user", "content": "hi"}], template=template)[0]
        [104, 105]
    """

    def __init__(self, *, memory_bytes: int = 1 << 30, seconds: float = 20) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        limits = ("memory_bytes", memory_bytes, 1 << 60), ("seconds", seconds, 1 << 30)
        for option, limit, most in limits:
            if not (isinstance(limit, int | float) and 0 < limit < most):
                raise refuse(option, limit, f"a number above 0 and below {most:,}")
        self._memory_bytes = memory_bytes
        self._seconds = seconds
        self._owner, self._lock = os.getpid(), Lock()

    def render(
        self, source: str, name: str, variables: Mapping[str, Any], with_indices: bool = False
    ) -> str:
        """Render a template as `environment.render`, with variables that are values of JSON.

        Raises:
            ConversationError: if the template fails or exceeds a limit.
        """
        return str(self._answer(name, "render", source, name, variables, with_indices))

    def usage(self, source: str, name: str) -> Usage:
        """What a template uses, as `sandbox.usage`: also to read a template may take long.

        Raises:
            ConversationError: if the template is not valid or exceeds a limit.
        """
        variables, names, *others = self._answer(name, "usage", source)
        return Usage(frozenset(variables), frozenset(names), *others)

    def _answer(self, name: str, *question: Any) -> Any:
        """What the child returns from a function; errors have the name of the template."""
        try:
            line = json.dumps(question).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:  # such as a date
            message = f"the template {name!r} is given what JSON cannot hold: {error}"
            raise ConversationError(message) from error
        if self._owner != os.getpid():  # after a fork, the child and the lock are the parent's
            self._owner, self._child, self._lock = os.getpid(), None, Lock()
        with self._lock:
            answer = self._line(line)
        if not answer.endswith(b"\n"):
            raise ConversationError(
                f"the template {name!r} takes more than {self._seconds:g} seconds, or more than "
                f"{self._memory_bytes:,} bytes of memory, or writes more than {MAX_ANSWER_BYTES:,}"
            )
        value, reason = json.loads(answer)
        if reason is not None:
            raise ConversationError(reason)
        return value

    def _line(self, question: bytes) -> bytes:
        """A line of the child, or an incomplete one if it was ended."""
        if self._child is None:
            limits = [str(self._memory_bytes), str(self._seconds)]
            command = [sys.executable, "-P", "-c", _CHILD, *limits]
            # The heap of free-threaded Python reserves more addresses than the limit otherwise.
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, "MIMALLOC_ARENA_RESERVE": "0"},
            )  # fmt: skip
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        timer, answer = Timer(self._seconds, child.kill), b""
        timer.start()
        try:
            child.stdin.write(question)
            child.stdin.flush()
            answer = child.stdout.readline(MAX_ANSWER_BYTES)
        except (BrokenPipeError, ValueError):  # the latter if another thread has closed it
            pass
        finally:
            timer.cancel()
            if not answer.endswith(b"\n"):
                self.close()
        return answer

    def close(self) -> None:
        """End the child; the next rendering starts another."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def __enter__(self) -> RenderProcess:
        """Use the process in a `with` block, which ends the child."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self.close()

    def __del__(self) -> None:
        """End the child."""
        self.close()


def serve(memory_bytes: float, seconds: float) -> None:
    """Answer in the child: for each line with a function and its arguments, a line.

    The child ends itself after so many seconds, too: its parent may have ended.
    """
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes), int(memory_bytes)))
    functions: dict[str, Callable[..., Any]] = {
        "render": render,
        "usage": lambda source: astuple(usage(source)),
    }
    has_timer = sys.platform != "win32"
    for question in sys.stdin.buffer:
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        function, *arguments = json.loads(question)
        answer: tuple[Any, str | None]
        try:
            answer = functions[function](*arguments), None
        except ConversationError as error:
            answer = None, str(error)
        line = json.dumps(answer, default=sorted).encode() + b"\n"
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
