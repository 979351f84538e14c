"""SIGTERM, SIGHUP and Ctrl-C end a command, whatever it does, with exit code 130."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bytepair

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")

#: Runs the command; the module in the first argument is interrupted while it is imported.
DURING_IMPORT = """
import os, signal, sys
module, name, *sys.argv[1:] = sys.argv[1:]
class Finder:
    def find_spec(self, found, *rest):
        if found == module:
            os.kill(os.getpid(), getattr(signal, name))
sys.meta_path.insert(0, Finder())
from bytepair.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "module", ["bytepair.cli", "click", "bytepair.tokenizer", "bytepair._core"]
)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_during_the_import_ends_the_command(name: str, module: str) -> None:
    words = [sys.executable, "-c", DURING_IMPORT, module, name, "inspect", "no-such-folder"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (130, ""), run.stderr
    assert "Traceback" not in run.stderr
    assert run.stderr == "bytepair: interrupted\n"


def _ignore() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "words", [["train", "-"], ["count", "-", "-o", "c.parquet"], ["explore", "tok", "--port", "0"]]
)
@pytest.mark.slow
def test_a_signal_ends_a_job_of_a_script(
    words: list[str], number: signal.Signals, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    """A shell ignores SIGINT in what a script starts with `&`."""
    trained.save(tmp_path / "tok")
    command = subprocess.Popen(
        [sys.executable, "-m", "bytepair", *words], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        cwd=tmp_path, preexec_fn=_ignore,
    )  # fmt: skip
    time.sleep(3)
    assert command.poll() is None
    command.send_signal(number)
    _, error = command.communicate(timeout=20)
    assert command.returncode == 130, error
    assert words[0] == "explore" or b"interrupted" in error
    assert b"Traceback" not in error
