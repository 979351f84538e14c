"""Run commands with a fault in each; `test_every_fault` starts this under `faults.c`.

Each line of the input is a JSON list: the folder, the words of the command, the number of the call
at which it fails, and how. The answer is a line too: the code or the negative signal with which
the command ended, what it wrote to standard error, and its calls. A command runs in a fork of this
process, which has imported everything before.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import sys
import tempfile
from contextlib import suppress
from typing import NoReturn

import bytepair
from bytepair.cli import main as command

for module in pkgutil.walk_packages(bytepair.__path__, "bytepair."):
    if not module.name.endswith("__main__"):
        with suppress(ImportError):
            importlib.import_module(module.name)
for name in ("gguf", "numpy", "pyarrow.parquet"):
    with suppress(ImportError):
        importlib.import_module(name)

FAULTS = ctypes.CDLL(None)
FAULTS.fault_name.restype = ctypes.c_char_p


def run(folder: str, words: list[str], log: int) -> NoReturn:
    """Run a command in this process, which is a fork, and end it."""
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = ["bytepair", *words]
    code = 70
    try:
        command()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def answer(folder: str, words: list[str], at: int, kind: int) -> tuple[int, str, list[str]]:
    """What came of a command."""
    with tempfile.TemporaryFile() as log:
        FAULTS.fault_set(at, kind)
        child = os.fork()
        if child == 0:
            run(folder, words, log.fileno())
        _, status = os.waitpid(child, 0)
        log.seek(0)
        calls = [FAULTS.fault_name(number + 1).decode() for number in range(FAULTS.fault_calls())]
        return os.waitstatus_to_exitcode(status), log.read().decode(), calls


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(*json.loads(line))) + "\n")
        sys.stdout.flush()
