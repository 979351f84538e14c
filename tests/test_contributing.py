"""The first changes that CONTRIBUTING walks through can be made as it says, and do what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import changed
from bytepair import _core

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WALKS = dict(re.findall(r"^### (.+)\n((?:(?!^##).*\n)*)", PAGE, re.M))


def changes(walk: str) -> list[tuple[str, str, str]]:
    """Each changed piece of a walk: its file, the lines before, and the lines after."""
    pieces = []
    for block in re.findall(r"^```diff\n(.*?)^```", walk, re.M | re.S):
        for part in re.split(r"^--- ", block, flags=re.M)[1:]:
            file, _, rest = part.partition("\n")
            for piece in re.split(r"^@@\n", rest, flags=re.M):
                lines = piece.splitlines(keepends=True)
                before = "".join(line[1:] for line in lines if line[0] != "+")
                after = "".join(line[1:] for line in lines if line[0] != "-")
                pieces.append((file, before, after))
    return pieces


def apply(walk: str, folder: Path) -> list[Path]:
    """Make the changes of a walk in a folder with copies of the files; return the changed files."""
    changed = []
    for file, before, after in changes(walk):
        path = folder / file
        if before:
            text = path.read_text(encoding="utf-8")
            assert text.count(before) == 1, f"{file} has not exactly one place with\n{before}"
            after = text.replace(before, after)
        path.write_text(after, encoding="utf-8", newline="\n")
        changed.append(path)
    return list(dict.fromkeys(changed))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the sources that the walks change."""
    ignored = shutil.ignore_patterns("__pycache__", "target", "*.so", "*.pyd")
    shutil.copytree(ROOT / "rust/core/src", tmp_path / "rust/core/src")
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=ignored)
    compiled = Path(_core.__file__)
    (tmp_path / "python/bytepair" / compiled.name).symlink_to(compiled)
    return tmp_path


def run(code: str, folder: Path) -> str:
    """What a program prints with the package of a folder."""
    words = [sys.executable, "-c", code]
    path = os.pathsep.join([str(folder / "python"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_there_are_three_walks() -> None:
    assert list(WALKS) == ["A name for a pattern", "A format for export", "A rule for ties"]


@pytest.mark.parametrize("name", WALKS)
def test_the_lines_of_a_walk_fit_the_files_and_are_well_formed(name: str, copy: Path) -> None:
    changed = apply(WALKS[name], copy)
    for path in changed:
        if path.suffix == ".py":
            compile(path.read_text(encoding="utf-8"), path, "exec")
    rust = [path for path in changed if path.suffix == ".rs"]
    if rust and shutil.which("rustfmt"):
        shutil.copy(ROOT / "rustfmt.toml", copy)
        words = ["rustfmt", "--check", "--edition", "2024", *map(str, rust)]
        done = subprocess.run(words, cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_walks_name_is_there() -> None:
    files = {file for walk in WALKS.values() for file, before, _ in changes(walk) if not before}
    for walk in WALKS.values():
        prose = re.sub(r"^```.*?^```", "", walk, flags=re.M | re.S)
        named = re.findall(r"\b((?:rust|python|tests|docs)/[\w./-]+\.\w+)", prose)
        assert named
        for file in named:
            new = any(Path(file).stem == Path(other).stem for other in files)
            assert new or (ROOT / file).exists(), file
        for target in re.findall(r"`make ([a-z-]+)", prose):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M), target


def test_a_format_of_the_walk_is_written_and_read(copy: Path) -> None:
    apply(WALKS["A format for export"], copy)
    code = """
import bytepair
from bytepair.formats import hexadecimal
tok = bytepair.train(["hello hello"] * 3, 262, special_tokens=["<|end|>"])
path = tok.export("x", "hexadecimal", lossy=True)
options = {"pattern": tok.pattern, "special_tokens": tok.special_tokens}
print(hexadecimal.__file__, bytepair.load(path, "hexadecimal", **options) == tok)
"""
    file, equal = run(code, copy).split()
    assert (Path(file).parents[2], equal) == (copy / "python", "True")


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("rust/core/src/train/order.rs", {"tests/test_train.py"}),
        ("rust/core/src/formats/tokenizer_json/bytes.rs", {"tests/test_tokenizer_json.py"}),
        ("python/bytepair/shards/layout.py", {"tests/test_shards_layout.py"}),
        ("python/bytepair/training/options.py", {"tests/test_options.py"}),
        ("tests/test_decode.py", {"tests/test_decode.py"}),
        ("tests/test_removed.py", set()),
        ("rust/core/src/lib.rs", {changed.FALLBACK}),
        ("CHANGELOG.md", set()),
    ],
)
def test_a_changed_file_stands_for_the_tests_of_its_name(file: str, tests: set[str]) -> None:
    there = {f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py")}
    assert changed.tests_of(file, there) == tests


def test_a_rule_of_the_walk_breaks_ties(copy: Path) -> None:
    apply(WALKS["A rule for ties"], copy)
    code = "from bytepair import reference; print(reference.train({b' ba': 1}, 1, 'ids-max'))"
    assert run(code, copy) == str([(0x62, 0x61)])
