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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("messages.txt")
WRITES = os.environ.get("BYTEPAIR_MESSAGES") == "write"
#: A temporary folder of a test.
FOLDER = re.compile(r"[^\s'\"`(,:]*pytest-of-\w+/pytest-\d+/(popen-gw\d+/)?[^/\s'\"`),;:]+")

Stored = dict[str, list[str]]


def read() -> Stored:
    """The messages of each test in the file."""
    messages, test = Stored(), ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            messages[test].append(line.strip())
        else:
            messages[test := line] = []
    return messages


STORED = read()
#: The messages of the test that is running.
SEEN: list[str] = []


@contextmanager
def told(kind: type[BaseException] | tuple[type[BaseException], ...]) -> Iterator[Any]:
    """The block raises an error, or issues warnings, of this kind and with the stored message."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if issubclass(kinds[0], Warning):
        with pytest.warns(kinds) as record:
            yield record
        told_of = [one.message for one in record if isinstance(one.message, kinds)]
    else:
        with pytest.raises(kind) as caught:
            yield caught
        told_of = [caught.value]
    for one in told_of:
        check(one)


def check(message: BaseException | str) -> None:
    """Compare a message with the next one that is stored for the running test, or store it."""
    test = re.sub(r"^.*?([^/\\]+) \(\w+\)$", r"\1", os.environ["PYTEST_CURRENT_TEST"])
    option = getattr(message, "option", None)
    name = type(message).__name__ + (f"[{option}]" if option else "")
    words = FOLDER.sub("TMP", str(message)).replace("\n", r"\n")
    line, known = f"{name}: {words}".strip(), STORED.get(test, [])
    place = len(SEEN)
    stored = known[place] if place < len(known) else ""
    if not re.fullmatch(".*".join(map(re.escape, stored.split("…"))), line):
        assert WRITES, f"{line!r} is told, {stored!r} is in messages.txt"
        stored = line
    SEEN.append(stored)
    if WRITES:
        STORED[test] = [*SEEN]
        write()


def write() -> None:
    tests = (f"{test}\n" + "".join(f"    {line}\n" for line in STORED[test]) for test in STORED)
    FILE.write_text("".join(sorted(tests)), encoding="utf-8")
