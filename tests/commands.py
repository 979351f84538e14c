"""Helpers of tests: run the command, and find packages that ship vocabularies."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

#: An option as Python spells it, `errors="replace"` or `column=`, which no command takes.
PYTHON_OPTION: Final = re.compile(
    r"""(?<![-\w&?])[a-z][a-z_]*=(?:["'\[({]|True\b|False\b|None\b|\.\.\.|[,;.]?(?:\s|$))"""
)


#: How the lines begin that a command writes to standard error for the user.
LINES: Final = ("error: ", "warning: ", "hint: ")


def run(*words: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `bytepair` with these words in a folder; it must end with this code."""
    command = [sys.executable, "-m", "bytepair", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith(LINES)]
    assert not any(map(PYTHON_OPTION.search, told)), done.stderr
    return done


def package(name: str) -> Path:
    """The folder of a package, found without importing it; without the package, skip the test."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"needs the package {name}")
    return Path(next(iter(spec.submodule_search_locations)))


def message_of(error: str) -> str:
    """What a command writes to standard error as one line: the message, then what to do about it.

    The first line is `error: ...` or `warning: ...`, each other one `hint: ...`.
    """
    first, *hints = error.splitlines()
    kind, _, message = first.partition(": ")
    assert kind in ("error", "warning"), error
    assert all(hint.startswith("hint: ") for hint in hints), error
    assert not PYTHON_OPTION.search(error), f"an option in the words of Python: {error}"
    return "; ".join([message, *(hint.removeprefix("hint: ") for hint in hints)])
