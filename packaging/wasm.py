"""The module for browsers and node, with its npm package: `python packaging/wasm.py`.

Rust in; `target/wasm/bytepair`, an npm package, out, and the module for the pages of `explore` in
`python/bytepair/explore/wasm`. It needs the standard library of Rust for `wasm32-unknown-unknown`:

1. from rustup, which is asked to add it;
2. or from its sources, which are compiled (a few minutes): of the rustc on the path, or of Debian's
   (`apt-get install rustc-web cargo-web rust-web-src lld-19`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CRATE: Final = ROOT / "rust" / "wasm"
BUILT: Final = ROOT / "target" / "wasm"
PACKAGE: Final = BUILT / "bytepair"
EXPLORE: Final = ROOT / "python" / "bytepair" / "explore" / "wasm"
TARGET: Final = "wasm32-unknown-unknown"

#: The linkers, newest first; rustup's toolchains contain one of their own.
LINKERS: Final = ("rust-lld", "wasm-ld", *(f"wasm-ld-{version}" for version in range(24, 15, -1)))

#: A method that TypeScript knows from 5.2 on, with a library that is not the default one; elsewhere
#: it is an error in the types. `free()` does the same.
DISPOSE: Final = re.compile(r"^ *\[Symbol\.dispose\]\(\): void;\n", re.M)

NEEDS: Final = f"""\
The module for browsers needs Rust's standard library for {TARGET}. Either of these provides it:
  rustup target add {TARGET}
  apt-get install rustc-web cargo-web rust-web-src lld-19     (Debian: compiled from its sources)
"""


def main() -> int:
    """Build, pack, copy; return the exit code."""
    if not (from_rustup() or from_sources()):
        sys.stderr.write(NEEDS)
        return 1
    PACKAGE.mkdir(parents=True, exist_ok=True)
    packed = BUILT / "packed"
    cargo("cargo", "run", "--package", "bytepair-wasm-pack", "--", str(module()), str(packed))
    for name in ("bytepair.js", "bytepair_bg.wasm"):
        shutil.copy(packed / name, PACKAGE)
    types = (packed / "bytepair.d.ts").read_text("utf-8")
    (PACKAGE / "bytepair.d.ts").write_text(DISPOSE.sub("", types), "utf-8")
    for file in [*(CRATE / "npm").iterdir(), ROOT / "LICENSE"]:
        shutil.copy(file, PACKAGE)
    EXPLORE.mkdir(exist_ok=True)
    for name in ("bytepair.js", "bytepair_bg.wasm"):
        shutil.copy(packed / "classic" / name, EXPLORE)
    size = (PACKAGE / "bytepair_bg.wasm").stat().st_size
    sys.stdout.write(f"{size / 1e6:.2f} MB, in {PACKAGE.relative_to(ROOT)}\n")
    return 0


def module() -> Path:
    """The compiled module."""
    return BUILT / TARGET / "release" / "bytepair_wasm.wasm"


def from_rustup() -> bool:
    """Build with the library that rustup has or adds; whether there is one."""
    if shutil.which("rustup") is None:
        return False
    adding = ["rustup", "target", "add", TARGET]
    if subprocess.run(adding, cwd=CRATE, capture_output=True, check=False).returncode:
        return False
    cargo("cargo", "build", "--release", "--package", "bytepair-wasm", "--target", TARGET)
    return True


def from_sources() -> bool:
    """Build the library from its sources, with a rustc that has them; whether there is one."""
    for rustc in dict.fromkeys(
        filter(None, [shutil.which("rustc"), shutil.which("/usr/bin/rustc")])
    ):
        sysroot = subprocess.run(
            [rustc, "--print", "sysroot"], capture_output=True, text=True, check=False
        ).stdout.strip()
        if sysroot and Path(sysroot, "lib/rustlib/src/rust/library/std").exists():
            linker = next(filter(None, map(shutil.which, LINKERS)), None)
            settings = {"RUSTC": rustc, "RUSTC_BOOTSTRAP": "1"}  # build-std is not yet stable
            if linker:
                settings["CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"] = linker
            with_cargo = Path(rustc).with_name("cargo")
            words = ["build", "--release", "--package", "bytepair-wasm", "--target", TARGET]
            cargo(str(with_cargo), *words, "-Zbuild-std=std,panic_abort", **settings)
            return True
    return False


def cargo(program: str, *words: str, **settings: str) -> None:
    """Run cargo for the crate, with its own lock file; exit if it fails."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(BUILT), **settings}
    words = (words[0], "--locked", "--quiet", *words[1:])
    done = subprocess.run([program, *words], cwd=CRATE, env=environment, check=False)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    sys.exit(main())
