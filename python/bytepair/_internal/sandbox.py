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
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from math import ceil
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

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

    template = compiled(source, name, with_indices)
    indices = {id(m): i for i, m in enumerate(variables["messages"])} if with_indices else {}

    def index(value: object) -> str:
        at = indices.get(id(value))
        return "" if at is None else f"{INDEX}{at}{END_INDEX}"

    try:
        return template.render(**variables, _index=index)
    except Exception as error:  # what a template calls may raise any
        kind = "" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: "
        # From none: a traceback would show control characters of the template as they are.
        raise ConversationError(f"the template {name!r}: {kind}{error}") from None


@lru_cache(maxsize=32)
def compiled(source: str, name: str, with_indices: bool = False) -> jinja2.Template:
    """Compile a template; if `with_indices`, every loop calls `_index` with its value first."""
    from bytepair._internal.extras import jinja2

    nodes = jinja2.nodes
    tree, environment = _parsed(source, name)
    try:
        for loop in tree.find_all(nodes.For):
            if with_indices and isinstance(loop.target, nodes.Name):
                index, target = (nodes.Name(n, "load") for n in ("_index", loop.target.name))
                output = nodes.Output([nodes.Call(index, [target], [], None, None)])
                loop.body.insert(0, output.set_lineno(loop.lineno))
        return environment.from_string(tree)
    except Exception as error:  # Python, which compiles the result, refuses deep nesting
        raise _not_valid(name, error) from None


def _parsed(source: str, name: str) -> tuple[jinja2.nodes.Template, jinja2.Environment]:
    """The syntax tree of a template, and the environment that it is for; nothing is computed."""
    if len(source) > MAX_SOURCE_CHARS:
        raise ConversationError(
            f"the template {name!r} has {len(source):,} characters; the limit is "
            f"{MAX_SOURCE_CHARS:,}"
        )
    environment = _environment()
    try:
        return environment.parse(source), environment
    except Exception as error:
        raise _not_valid(name, error) from None


def _not_valid(name: str, error: Exception) -> ConversationError:
    line, why = getattr(error, "lineno", None), getattr(error, "message", error)
    place = f" at line {line}" if line else ""
    return ConversationError(f"the template {name!r} is not valid{place}: {why}")


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


class Usage(NamedTuple):
    """What a template uses.

    Attributes:
        variables: the variables that it reads and does not set.
        names: the attributes and keys that it reads, and all its strings.
    """

    variables: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=16)
def usage(source: str, name: str) -> Usage:
    """What a template uses; a field that it does not name has no effect on what it writes."""
    tree, environment = _parsed(source, name)
    from jinja2 import meta, nodes

    try:
        names = {node.attr for node in tree.find_all(nodes.Getattr)}
        strings = {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}
        variables = meta.find_undeclared_variables(tree).difference(environment.globals)
    except Exception as error:  # it may be nested too deeply
        raise _not_valid(name, error) from None
    return Usage(frozenset(variables), frozenset(names | strings))


#: The longest rendered conversation, in bytes as JSON.
MAX_ANSWER_BYTES: Final = 1 << 26

_CHILD: Final = (
    "from bytepair._internal.sandbox import serve; serve(*map(int, __import__('sys').argv[1:]))"
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
        >>> process = RenderProcess(seconds=10)
        >>> source = "{% for m in messages %}{{ m.content }}{% endfor %}"
        >>> template = JinjaTemplate(source, mask="none", process=process)
        >>> import bytepair
        >>> tok = bytepair.train(["hi yo"], vocab_size=265)
        >>> tok.render_conversation([{"role": "user", "content": "hi"}], template=template)[0]
        [104, 105]
        >>> process.close()
    """

    def __init__(self, *, memory_bytes: int = 1 << 30, seconds: float = 20) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        limits = ("memory_bytes", memory_bytes, 1 << 60), ("seconds", seconds, 1 << 30)
        for option, limit, most in limits:
            if not (isinstance(limit, int | float) and 0 < limit < most):
                raise refuse(option, limit, f"a number above 0 and below {most:,}")
        self._memory_bytes, self._seconds = memory_bytes, seconds
        self._owner, self._lock = os.getpid(), Lock()

    def ask(self, function: str, source: str, name: str, *arguments: Any) -> Any:
        """Render a template in the child, or find what it uses.

        Args:
            function: a function of this module, "render" or "usage".
            source: the template.
            name: the name of the template in error messages.
            arguments: the further arguments of the function, values of JSON.

        Raises:
            ConversationError: if the template fails or exceeds a limit.
        """
        try:
            question = json.dumps([function, source, name, *arguments]).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:  # such as a date
            message = f"the template {name!r} is given what JSON cannot hold: {error}"
            raise ConversationError(message) from error
        if self._owner != os.getpid():  # after a fork, the child and the lock are the parent's
            self._owner, self._child, self._lock = os.getpid(), None, Lock()
        with self._lock:
            answer = self._line(question)
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
            limits = [str(int(self._memory_bytes)), str(ceil(self._seconds))]
            # The heap of free-threaded Python reserves more addresses than the limit otherwise.
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-c", _CHILD, *limits],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, "MIMALLOC_ARENA_RESERVE": "0"},
            )  # fmt: skip
        child, answer = self._child, b""
        assert child.stdin is not None
        assert child.stdout is not None
        timer = Timer(self._seconds, child.kill)
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

    def __del__(self) -> None:
        """End the child."""
        self.close()


def serve(memory_bytes: int, seconds: int) -> None:
    """Answer in the child: for each line with a function and its arguments, a line."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    functions: dict[str, Callable[..., Any]] = {"render": render, "usage": usage}
    alarm = getattr(signal, "alarm", lambda seconds: None)
    for question in sys.stdin.buffer:
        alarm(seconds + 1)  # the parent, which ends the child, may have ended
        function, *arguments = json.loads(question)
        answer: tuple[Any, str | None]
        try:
            answer = functions[function](*arguments), None
        except ConversationError as error:
            answer = None, str(error)
        line = json.dumps(answer, default=sorted)
        alarm(0)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
