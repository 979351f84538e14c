"""Runs the tests that a change needs, for `make dev`.

After `make coverage`, which records the functions that each test reaches, these are the tests that
reach what changed in Python. The record cannot see into Rust: after a change there, or without a
record, they are the tests named after the files that changed since the last commit. A changed test
stands for itself. Another file stands for the tests with its name, or else with that of its folder,
or of the folder around: `train/order.rs` for `test_train_order.py`, `test_order.py` or
`test_train.py`. If no name fits, the tests of the tokenizer stand for all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
FALLBACK = "tests/test_tokenizer.py"
RECORD = ROOT / ".testmondata"
#: pytest-testmon selects nothing beside -m unless it is told to.
REACHED = ["--testmon", "--testmon-forceselect", "-m", "not slow", "--hypothesis-profile", "quick"]


def changed_files() -> list[str]:
    """The changed and the new files, as git names them."""
    words = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"]
    out = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line[3:] for line in out.split("\0") if line]


def tests_of(file: str, tests: set[str]) -> set[str]:
    """The tests of a changed file, of the files of tests that there are."""
    path = PurePosixPath(file)
    if path.name.startswith("test_"):
        return {file} & tests
    if path.suffix not in {".py", ".pyi", ".rs"}:
        return set()
    stems = [*path.parts[:-1], path.stem]
    for end in range(len(stems), 0, -1):
        names = ["_".join(stems[end - 2 : end]), stems[end - 1]]
        fitting = {f"tests/test_{name}.py" for name in names} & tests
        if fitting:
            return fitting
    return {FALLBACK}


def needed() -> list[str]:
    """The tests that the changes need, as arguments of pytest."""
    files = changed_files()
    if RECORD.exists() and not any(file.endswith(".rs") for file in files):
        return REACHED
    tests = {f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py")}
    return sorted({test for file in files for test in tests_of(file, tests)} or {FALLBACK})


if __name__ == "__main__":
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-x", "-q", *needed()], cwd=ROOT))
