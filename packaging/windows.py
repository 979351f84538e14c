"""A wheel for Windows, made where Windows is not.

In: a wheel for Linux and the same Python, and the library that cargo-zigbuild linked for
x86_64-pc-windows-gnu. Out: the same wheel with that library and the tag of Windows.

    python packaging/windows.py dist/WHEEL_FOR_LINUX _core.dll dist

maturin alone links this target too, but with a name of the module's entry point that Python does
not look for.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile


def record(name: str, data: bytes) -> str:
    """The line of a file in RECORD.

    Example:
        >>> record("a.py", b"")
        'a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0'
    """
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"{name},sha256={digest.decode()},{len(data)}"


def repack(source: Path, library: Path, folder: Path) -> Path:
    """Write the wheel to a folder; its path.

    Args:
        source: the wheel for Linux.
        library: the library for Windows.
        folder: where the wheel is written.
    """
    package, version, python, abi = source.name.split("-")[:4]
    made = folder / f"{package}-{version}-{python}-{abi}-win_amd64.whl"
    with ZipFile(source) as old, ZipFile(made, "w", ZIP_DEFLATED, compresslevel=9) as new:
        lines = []
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("/RECORD"):
                new.writestr(name, "\n".join([*lines, f"{name},,", ""]))
                continue
            if name.endswith(".so"):
                name, data = f"{package}/_core.{abi}-win_amd64.pyd", library.read_bytes()
            elif name.endswith("/WHEEL"):
                data = re.sub(rb"(Tag: .*\n)+", f"Tag: {python}-{abi}-win_amd64\n".encode(), data)
            new.writestr(name, data)
            lines.append(record(name, data))
    return made


if __name__ == "__main__":
    repack(*map(Path, sys.argv[1:]))
