"""Runs a program after `use`, so that the tokenizers of transformers run on bytepair.

python -m bytepair.compat.huggingface script.py ...
python -m bytepair.compat.huggingface -m module ...
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from bytepair.compat import huggingface


def main() -> None:
    """Run what the command line names, with the arguments behind it."""
    _, *arguments = sys.argv
    if not arguments or arguments == ["-m"]:
        sys.exit((__doc__ or "").strip())
    huggingface.use()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
