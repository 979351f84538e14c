"""Ctrl-C, SIGTERM or SIGHUP amid a long command: it ends and says so, and can be resumed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair

if sys.platform == "win32":
    pytest.skip("Ctrl-C is no signal there", allow_module_level=True)

SAID = "bytepair: interrupted; run the same command again to resume\n"
#: The message of a pipeline that is interrupted while it counts.
COUNTED = re.compile(
    r"bytepair: interrupted \(the counts of [\d,]+ bytes of text are saved in .*checkpoint; "
    r"run the same count again to resume\)\n"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some files that the core reads, and one that comes through Arrow."""
    folder = tmp_path_factory.mktemp("source")
    texts = [path.read_text(encoding="utf-8") for path in bytepair.sample.paths()]
    rows = [f"{number} {text[:10_000]}" for number in range(8) for text in texts]
    for name, compression in [("a", "zstd"), ("b", "gzip"), ("c", "snappy")]:
        table = pa.table({"text": rows})
        pq.write_table(table, folder / f"{name}.parquet", 50, compression=compression)
    return folder


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def lasting(folder: Path) -> set[str]:
    """The finished files: no locks, and no temporary names."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {name for name in names if "/." not in f"/{name.removeprefix('.progress/')}"}


def interrupted(words: list[str], out: Path, number: signal.Signals) -> int:
    """Run a command, and send a signal when it has finished something; return its exit code."""
    before = lasting(out)
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not lasting(out) - before:
        time.sleep(0.001)
    if run.poll() is None:
        run.send_signal(number)
    error = run.communicate(timeout=60)[1]
    # If a signal comes during an `exec` (the import of a dataclass), Python kills itself by the
    # signal after the message; shells show that as 130 too.
    code = 130 if run.returncode == -signal.SIGINT else run.returncode
    counted = code == 130 and COUNTED.fullmatch(error)
    assert counted or (code, error) in [(130, SAID), (0, "")]
    return code


@pytest.mark.parametrize("command", ["shard"])
def test_a_command_that_is_interrupted_again_and_again(
    command: str, source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    trained.save(tmp_path)
    options = ["-t", str(tmp_path)]
    words = [
        sys.executable, "-m", "bytepair", command, str(source), "--quiet", *options,
        "--tokens-per-shard", "300K", "--out",
    ]  # fmt: skip
    subprocess.run([*words, str(tmp_path / "whole")], check=True, capture_output=True)
    out = tmp_path / "out"
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM, signal.SIGINT]
    codes = [interrupted([*words, str(out)], out, number) for number in signals]
    assert codes.count(130) >= 2
    subprocess.run([*words, str(out)], check=True, capture_output=True)
    assert listing(out) == listing(tmp_path / "whole")


PRESSED = """
import runpy, sys

class Pressed:
    def find_spec(self, name, *rest):
        if name == "bytepair.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
runpy.run_module("bytepair", run_name="__main__")
"""


def test_ctrl_c_while_the_command_is_imported() -> None:
    run = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (130, "bytepair: interrupted\n")


PRESSED_EARLY = """
import sys
from bytepair import cli

def pressed(*_, **__):
    raise KeyboardInterrupt

cli.command.make_context = pressed
cli.main()
"""


def test_ctrl_c_while_the_command_line_is_read() -> None:
    run = subprocess.run([sys.executable, "-c", PRESSED_EARLY], capture_output=True, text=True)
    assert (run.returncode, run.stderr.strip()) == (130, "")


LOST = """
import runpy, sys, time, weakref

class Pressed:
    def find_spec(self, name, *rest):
        if name == MODULE:
            thing = type("Thing", (), {})()
            reference = weakref.ref(thing, self.pressed)
            del thing
            time.sleep(60)

    def pressed(self, reference):
        raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
sys.argv[1:] = ["inspect"]
runpy.run_module("bytepair", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["bytepair.cli", "bytepair.cli.look"])
def test_ctrl_c_where_python_discards_exceptions(module: str) -> None:
    """A callback of a weak reference raises nothing, so the interrupt is repeated."""
    script = LOST.replace("MODULE", repr(module))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50)
    assert (run.returncode, run.stderr) == (130, "bytepair: interrupted\n")


DISCARDED = """
import atexit, sys, bytepair.__main__ as command

def pressed():
    raise KeyboardInterrupt

class Faulty:
    def __del__(self):
        raise ValueError("of a finalizer")

sys.unraisablehook = command.repeat_lost_interrupt
Faulty()
atexit.register(pressed)
"""


def test_other_discarded_exceptions_are_reported_and_an_interrupt_at_the_end_is_not() -> None:
    run = subprocess.run([sys.executable, "-c", DISCARDED], capture_output=True, text=True)
    assert run.returncode == 0
    assert "ValueError: of a finalizer" in run.stderr
    assert "KeyboardInterrupt" not in run.stderr


PRESSED_IN_NUMPY = """
import numpy as np
from bytepair import _core
import bytepair

def pressed(*_):
    raise KeyboardInterrupt

tok = bytepair.train(["hello hello"], 269)
calls = [
    lambda: tok.encode_batch_to_numpy(["hello"]), lambda: tok.decode(np.array([104])),
    lambda: tok.decode((104,)), lambda: _core.crc32(np.zeros(3, np.uint8)),
    lambda: _core.not_utf8(np.zeros(3, np.uint8), np.array([0, 3])),
]
version, np.lib.NumpyVersion = np.lib.NumpyVersion, pressed
for call in calls:
    try:
        call()
    except KeyboardInterrupt:
        print("interrupted")
np.lib.NumpyVersion = version
for call in calls:
    call()
"""


def test_ctrl_c_while_the_core_asks_for_the_version_of_numpy() -> None:
    """The numpy crate would panic; afterwards, all calls work."""
    run = subprocess.run([sys.executable, "-c", PRESSED_IN_NUMPY], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("interrupted\n" * 5, "")
    assert run.returncode == 0
