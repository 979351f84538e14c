"""SIGTERM and SIGHUP end a command as Ctrl-C does."""

import subprocess
import sys

import pytest

CODE = """
import signal, sys
from bytepair.cli import signals
signals.treat_as_interrupts()
try:
    signal.raise_signal(getattr(signal, sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_is_an_interrupt(name: str) -> None:
    run = subprocess.run([sys.executable, "-c", CODE, name], capture_output=True, text=True)
    assert run.stdout == "interrupted\n", run.stderr
