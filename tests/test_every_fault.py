"""A command that fails or is killed at a call that writes leaves what was there, or its output.

`faults.c` is preloaded into `fault_worker.py`. It counts the calls that open for writing, write,
sync, rename, link, remove and make folders below the working folder, of Python and of the core.
Each command of `test_every_write` fails at its first call, its second and so on: once (a bad
block), from there on (a full disk), and by being killed, in the middle of a write if it is one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from test_every_write import COMMANDS, folder, is_random

__all__ = ["folder"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and LD_PRELOAD"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

#: How a call fails, as `faults.c` numbers it.
FAULTS: Final = {"error": 0, "full": 1, "kill": 2}
TESTS: Final = Path(__file__).parent
#: What only the next run of the same command reads: checkpoints, locks, and shards on their way.
RESUMED: Final = ("c", ".c.lock", ".progress", ".progress/job.json", ".lock")


class Outcome(NamedTuple):
    """How a command ended, what it wrote to standard error, and its calls."""

    code: int
    log: str
    calls: list[str]


class Worker:
    """The process that runs commands in a folder, with a fault in each."""

    def __init__(self, work: Path, library: Path) -> None:
        self.work = work
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "fault_worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "LD_PRELOAD": str(library), "FAULT_FOLDER": str(work)},
        )  # fmt: skip

    def run(self, words: list[str], at: int = 0, fault: str = "error") -> Outcome:
        """Run a command that fails at a call; 0 stands for none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([str(self.work), words, at, FAULTS[fault]]), file=self.process.stdin)
        self.process.stdin.flush()
        return Outcome(*json.loads(self.process.stdout.readline()))


@contextmanager
def worker(work: Path, library: Path) -> Iterator[Worker]:
    started = Worker(work, library)
    with started.process:
        try:
            yield started
        finally:
            started.process.kill()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of `faults.c`."""
    out = tmp_path_factory.mktemp("faults") / "faults.so"
    command = ["cc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(out), str(TESTS / "faults.c"), "-ldl"], check=True)
    return out


def contents(work: Path) -> dict[str, bytes | None]:
    """The files of a folder by their paths in it; None for folders."""
    files = work.rglob("*")
    return {
        str(path.relative_to(work)): path.read_bytes() if path.is_file() else None for path in files
    }


def is_resumed(path: str) -> bool:
    """Whether a path is of a run that goes on, or is found by it."""
    is_part = path.split("/")[0].endswith(".parts")  # of ranks
    return is_part or path.removeprefix("out/") in RESUMED or path.endswith((".partial", ".lock"))


def check(before: dict[str, bytes | None], whole: dict[str, bytes | None], work: Path) -> None:
    """Check that each file is as it was or as it is to be, and nothing else is there.

    What was to be removed at the end may still be there.
    """
    for path, data in contents(work).items():
        expected = {before.get(path), whole.get(path)}
        assert is_resumed(path) or is_random(path) or data in expected, path
        assert path in before or path in whole or is_resumed(path) or is_random(path), path
    missing = {path for path in before if not (work / path).exists()}
    assert all(path not in whole or is_resumed(path) for path in missing), missing


def check_told(done: Outcome, fault: str, now: dict[str, bytes | None]) -> None:
    """Check that a command which was not killed says what failed, and cleans up."""
    assert done.code in (0, 1), done
    for words in ("this is a bug", "Traceback", "[Errno"):  # an error names the file
        assert words not in done.log, done
    if done.code == 1:
        reason = "No space left on device" if fault == "full" else "Input/output error"
        assert reason in done.log, done
    assert not [path for path in now if is_random(path)], done


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_is_whole_or_goes_on(
    name: str, fault: str, folder: Path, library: Path, tmp_path: Path
) -> None:
    words, clean = COMMANDS[name], tmp_path / "clean"
    shutil.copytree(folder, clean)
    before = contents(clean)
    with worker(folder, library) as commands:
        done = commands.run(words)
        whole = contents(folder)
        assert done.code == 0, done
        assert done.calls or name == "encode"
        for at, call in enumerate(done.calls, 1):
            shutil.rmtree(folder)
            shutil.copytree(clean, folder)
            failed = commands.run(words, at, fault)
            check(before, whole, folder)
            if fault == "kill":
                assert failed.code == -9, (call, failed)
            else:
                check_told(failed, fault, contents(folder))
            if failed.code == 0:
                assert all(path in contents(folder) for path in whole), call
            check_again(commands, words, before, whole)


def check_again(
    commands: Worker,
    words: list[str],
    before: dict[str, bytes | None],
    whole: dict[str, bytes | None],
) -> None:
    """Check that the same command makes everything, unless an output is there already."""
    again = commands.run(words)
    if again.code:
        assert "--force" in again.log, again
        again = commands.run([*words, "--force"])
    assert again.code == 0, again
    now = contents(commands.work)
    left = {path for path in now if path not in whole and not is_random(path)}
    assert not left - {"out/.progress", "out.parquet.parts"}, left  # empty folders
    assert {path: now.get(path) for path in whole} == whole
