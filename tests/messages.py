"""Checks the words of errors and warnings, which stand in `messages.txt` and nowhere else.

    with told(CorpusError):
        bytepair.count(Path("typo.txt"))

The file has the messages of each test in their order, with the option that an error names in
brackets. `BYTEPAIR_MESSAGES=write pytest tests/test_x.py` writes those of the tests that it runs;
the diff then shows what users read now. In the file, an ellipsis stands for what differs between
machines, and is kept when it is written.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("messages.txt")
WRITES = os.environ.get("BYTEPAIR_MESSAGES") == "write"
#: A temporary folder of a test.
FOLDER = re.compile(
    r"(\b[A-Z]:)?[^\s'\"`(,:]*pytest-of-\w+/pytest-\d+/(popen-gw\d+/)?[^/\s'\"`),;:]+"
)

Stored = dict[str, list[str]]


def read() -> Stored:
    """The messages of each test in the file."""
    messages, test = Stored(), ""
    for line in FILE.read_text(encoding="utf-8").rstrip("\n").split("\n"):
        if line.startswith("    "):
            messages[test].append(line.strip())
        else:
            messages[test := line] = []
    return messages


KNOWN = read()
#: What is written with `BYTEPAIR_MESSAGES=write`.
STORED = {**KNOWN}
#: The messages of the test that is running.
SEEN: list[str] = []


class told:  # noqa: N801 - reads as `pytest.raises` does
    """A block that raises an error, or issues warnings, of a kind, with the stored message.

    If names are passed, the message is not stored: it only contains these. This is no generator,
    whose frame would keep an error, and what it holds open, until the garbage is collected.
    """

    def __init__(self, kind: Any, *names: str) -> None:
        self.kind, self.names = kind, names
        self.warns = issubclass(kind[0] if isinstance(kind, tuple) else kind, Warning)
        self.inner: Any = (pytest.warns if self.warns else pytest.raises)(kind)

    def __enter__(self) -> Any:
        self.caught = self.inner.__enter__()
        return self.caught

    def __exit__(self, *error: object) -> bool:
        expected = bool(self.inner.__exit__(*error))
        if error[0] is not None and not expected:
            return False
        found = [one.message for one in self.caught] if self.warns else [self.caught.value]
        messages = [message for message in found if isinstance(message, self.kind)]
        if self.names:
            assert any(all(name in str(one) for name in self.names) for one in messages), messages
        else:
            for message in messages:
                check(message)
        return expected


def check(message: BaseException | str) -> None:
    """Compare a message with the next one that is stored for the running test, or store it."""
    path, _, rest = os.environ["PYTEST_CURRENT_TEST"].partition("::")
    test = f"{Path(path).name}::{rest.rpartition(' ')[0]}"
    option = getattr(message, "option", None)
    name = type(message).__name__ + (f"[{option}]" if option else "")
    words = FOLDER.sub("TMP", slashed(str(message))).replace("\n", slashed(r"\n"))
    line, known = f"{name}: {words}".strip(), KNOWN.get(test, [])
    place = len(SEEN)
    stored = slashed(known[place]) if place < len(known) else ""
    if not re.fullmatch(".*".join(map(re.escape, stored.split("…"))), line):
        assert WRITES, f"{line!r} is told, {stored!r} is in messages.txt"
        stored = line
    SEEN.append(stored)
    if WRITES:
        STORED[test] = [*SEEN]
        write()


def slashed(text: str) -> str:
    """A text whose paths are written as everywhere but on Windows."""
    return re.sub(r"\\+", "/", text) if os.name == "nt" else text


def write() -> None:
    tests = (f"{test}\n" + "".join(f"    {line}\n" for line in STORED[test]) for test in STORED)
    FILE.write_text("".join(sorted(tests)), encoding="utf-8")
