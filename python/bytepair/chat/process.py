"""Renders the chat templates of strangers in a child process, with limits on its memory and time.

The sandbox of Jinja keeps a template away from files and from the interpreter, but not from long
loops and large values. A process has limits that no template can pass, and may be ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from threading import Lock, Timer
from typing import Any, BinaryIO, Final

from bytepair.chat.environment import render
from bytepair.errors import ArgumentError, ConversationError

#: The longest rendered conversation, in bytes as JSON.
MAX_ANSWER_BYTES: Final = 1 << 26

_CHILD: Final = "from bytepair.chat.process import serve; serve(int(__import__('sys').argv[1]))"


class RenderProcess:
    """A child process that renders templates; it is started when needed, and kept.

    Use it where templates come from strangers, as in a server: a template that takes too much
    memory or time ends the child, which is a `ConversationError`, and the next rendering starts
    another. Threads take turns.

    Args:
        memory_bytes: the memory of the child, with about 200 MB for Python itself; Linux alone
            enforces it.
        seconds: the time of one rendering.

    Raises:
        ArgumentError: if a limit is not positive.

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
        for option, limit in (("memory_bytes", memory_bytes), ("seconds", seconds)):
            if not limit > 0:
                message = f"{option} is {limit}; a limit is positive"
                raise ArgumentError(message, option=option, value=limit)
        self._memory_bytes = memory_bytes
        self._seconds = seconds
        self._lock = Lock()

    def render(
        self, source: str, name: str, variables: Mapping[str, Any], with_indices: bool = False
    ) -> str:
        """Render a template as `environment.render`, with variables that are values of JSON.

        Raises:
            ConversationError: if the template fails or exceeds a limit.
        """
        question = json.dumps([source, name, variables, with_indices]).encode() + b"\n"
        with self._lock:
            answer = self._ask(question)
        if not answer.endswith(b"\n"):
            raise ConversationError(
                f"the template {name!r} takes more than {self._seconds:g} seconds, or more than "
                f"{self._memory_bytes:,} bytes of memory, or writes more than {MAX_ANSWER_BYTES:,}"
            )
        string, error = json.loads(answer)
        if error is not None:
            raise ConversationError(error)
        return str(string)

    def _ask(self, question: bytes) -> bytes:
        """A line of the child, or an incomplete one if it was ended."""
        if self._child is None:
            command = [sys.executable, "-P", "-c", _CHILD, str(self._memory_bytes)]
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        timer = Timer(self._seconds, child.kill)
        timer.start()
        answer = b""
        try:
            child.stdin.write(question)
            child.stdin.flush()
            answer = child.stdout.readline(MAX_ANSWER_BYTES)
        except BrokenPipeError:
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


def serve(memory_bytes: int) -> None:
    """Answer in the child: for each line with a template, its name and variables, a line."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    questions: BinaryIO = sys.stdin.buffer
    for question in questions:
        answer: tuple[str | None, str | None]
        try:
            answer = render(*json.loads(question)), None
        except ConversationError as error:
            answer = None, str(error)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
