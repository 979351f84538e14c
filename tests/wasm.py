"""Runs tests of Rust that are built for WASI: `python tests/wasm.py PROGRAM`, a runner of cargo.

It needs the package wasmtime. A panic ends a program there, so each test has a run of its own.
Those that need what WebAssembly lacks are named below; any other that fails is an error.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

import wasmtime

#: Tests that need processes, a panic that is caught, or threads, by the beginning of their names.
EXPECTED: Final = (
    "count::files::tests::",
    "encode::scratch_pool::tests::scratch_that_a_panic_left",
    "machine::array::tests::owned_arrays_are_their_vectors_in_any_thread",
    "parallel::ordered::tests::a_sink_",
)


class Program:
    """A compiled program."""

    def __init__(self, path: str) -> None:
        self.name = Path(path).name
        self._engine = wasmtime.Engine()
        self._module = wasmtime.Module.from_file(self._engine, path)
        self._linker = wasmtime.Linker(self._engine)
        self._linker.define_wasi()

    def run(self, *arguments: str) -> tuple[bool, str]:
        """Whether the run succeeded, and its output."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            wasi = wasmtime.WasiConfig()
            wasi.argv = [self.name, *arguments]
            wasi.stdout_file = wasi.stderr_file = str(out)
            wasi.preopen_dir(str(Path.cwd()), ".")
            Path(folder, "tmp").mkdir()
            wasi.preopen_dir(str(Path(folder, "tmp")), "/tmp")
            wasi.env = [("TMPDIR", "/tmp"), ("RUST_MIN_STACK", str(1 << 22))]
            store = wasmtime.Store(self._engine)
            store.set_wasi(wasi)
            instance = self._linker.instantiate(store, self._module)
            start = instance.exports(store)["_start"]
            assert isinstance(start, wasmtime.Func)
            try:
                start(store)
                well = True
            except wasmtime.ExitTrap as trap:
                well = trap.code == 0
            except (wasmtime.Trap, wasmtime.WasmtimeError):
                well = False
            del store, instance
            return well, out.read_text(encoding="utf-8", errors="replace")


def main() -> int:
    """Run all tests of a program; return its exit code."""
    program = Program(sys.argv[1])
    names = re.findall(r"^(\S+): test$", program.run("--list")[1], re.M)
    passed, failed = 0, []
    for name in names:
        well, output = program.run("--exact", name)
        passed += well
        if not well:
            failed.append(name)
            if not name.startswith(EXPECTED) or os.environ.get("VERBOSE"):
                print(f"{name}: {' '.join(output.split())[:300]}")
    wrong = [name for name in failed if not name.startswith(EXPECTED)]
    print(f"{passed} passed, {len(failed)} cannot: {len(wrong)} of them unexpectedly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
