"""Every lesson has the form that learners rely on, runs with its solutions, and fails without."""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import re
import runpy
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bytepair
import checking

ROOT = Path(__file__).resolve().parents[1]


def _load() -> ModuleType:
    """The script that runs lessons."""
    spec = importlib.util.spec_from_file_location("make_lessons", ROOT / "lessons/make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


make = _load()
PATHS: list[Path] = make.paths()

#: All lessons, in order.
NAMES = [
    "01-a-toy-bpe", "02-split-with-a-regular-expression", "03-training-step-by-step",
    "04-the-incremental-trainer", "05-a-heap-of-your-own", "06-the-toy-in-rust",
    "07-map-and-reduce", "08-rust-from-python", "09-the-whole-small-library",
    "10-hard-coded-tokens", "11-your-own-tokenizer", "12-chats-and-masks",
    "13-from-tokens-to-embeddings", "14-languages-and-superwords",
]  # fmt: skip
#: Lessons that compile Rust.
RUST = {"06", "07", "08", "09"}
#: Lessons whose outputs depend on the Python version: 14 reads the standard library as code.
OUTPUTS_VARY = {"14"}

#: Paths and addresses, with which an output differs between machines.
OF_ONE_MACHINE = re.compile(r"/(home|root|tmp|Users|work|var)/|\b0x[0-9a-f]{6,}")

Cell = dict[str, Any]

every = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def cells_of(path: Path) -> list[Cell]:
    cells: list[Cell] = make.read(path)["cells"]
    return cells


def code_of(path: Path) -> list[Cell]:
    return [cell for cell in cells_of(path) if cell["cell_type"] == "code"]


def exercises(cells: list[Cell]) -> dict[str, int]:
    """The place of each exercise among the cells."""
    return {
        cell["metadata"]["exercise"]: n
        for n, cell in enumerate(cells)
        if "exercise" in cell["metadata"]
    }


def test_the_lessons_are_all_there() -> None:
    assert [path.stem for path in PATHS] == NAMES


@every
def test_a_lesson_is_stored_without_its_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    cells = cells_of(path)
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in code_of(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert set(cell["metadata"]) <= {"exercise", "test"}
        assert all(len(line) <= 100 for line in cell["source"].splitlines()), cell["source"]


@every
def test_a_lesson_says_what_it_is_and_where_it_leads(path: Path) -> None:
    number, cells = int(path.name[:2]), cells_of(path)
    first, last = cells[0]["source"], cells[-1]["source"]
    assert first.startswith(f"# {number}. ")
    assert cells[-1]["cell_type"] == "markdown"
    assert re.search(r"^\*\*You will build:?\*\*", first, re.M)
    assert minutes(path)
    assert re.search(r"^\*\*You need:?\*\*", first, re.M)
    following = re.search(r"^\*\*Next:?\*\*.*\]\(([^)]+)\)", last, re.M)
    assert following
    if number < len(NAMES):
        assert following[1] == f"{NAMES[number]}.ipynb"


@every
def test_an_exercise_has_hints_a_stub_a_test_and_a_solution(path: Path) -> None:
    cells = cells_of(path)
    places = exercises(cells)
    assert len(places) >= (2 if int(path.name[:2]) < 10 else 1)
    assert list(make.solutions(path)) == list(places)
    assert [cell["metadata"]["test"] for cell in cells if "test" in cell["metadata"]] == list(
        places
    )
    for name, n in places.items():
        prompt, stub, test = cells[n - 1], cells[n], cells[n + 1]
        assert f"### Exercise {name}" in prompt["source"]
        assert "<details><summary>Hint 1</summary>\n\n" in prompt["source"]
        assert prompt["source"].count("<details>") == prompt["source"].count("</details>")
        assert re.search(r"raise NotImplementedError|todo!\(\)", stub["source"])
        assert test["metadata"] == {"test": name}
        assert re.search(r"\bassert\b|pytest\.raises", test["source"])
        assert "print(" in test["source"]
        assert "NotImplementedError" not in make.solutions(path)[name]
        assert "todo!()" not in make.solutions(path)[name]


@every
def test_a_lesson_explains_its_assertions_from_its_first_code_on(path: Path) -> None:
    first, *others = code_of(path)
    assert re.match(r"from checking import explain\b.*\n\nexplain\(\)", first["source"])
    assert all("explain()" not in cell["source"] for cell in others)


def test_lesson_0_has_the_counts_of_the_three_vocabularies(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared / "vocabularies"))
    three = [bytepair.load(name) for name in ("gpt2", "cl100k_base", "o200k_base")]
    page = (ROOT / "lessons/00-look-at-tokens.md").read_text("utf-8")
    english, korean, hindi = re.findall(r"`([^`]{30,})`", page.partition("## Languages")[2])[:3]
    named = {"the two lines": "    if x:\n        return x\n", "English": english}
    named |= {"Korean": korean, "Hindi": hindi}
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.M)
    assert len(rows) == 12
    for shown, *counts in rows:
        text = named.get(shown) or shown.strip("`").replace("␣", " ")
        assert [tok.count(text) for tok in three] == [int(count) for count in counts], shown


def outcome(source: str, **names: Any) -> str:
    """What a cell that asserts says, after the rewriting; empty if it holds."""
    tree = checking.Rewriter().visit(ast.parse(source))
    try:
        exec(compile(tree, "cell", "exec"), {"_check": checking.check, **names})
    except AssertionError as error:
        return str(error)
    return ""


def test_a_wrong_answer_says_what_was_expected_and_found() -> None:
    def double(n: int) -> int:
        return n + 1

    assert outcome("assert double(1) == 2", double=double) == ""
    assert outcome("assert double(2) == 4", double=double) == (
        "this does not hold: double(2) == 4\nexpected: 4\n   found: 3"
    )
    loop = "for n in (1, 2):\n    assert double(n) == 2 * n, (n, 'a note')"
    assert outcome(loop, double=double).endswith(
        "expected: 4\n   found: 3\n    with: (2, 'a note')"
    )
    assert "expected: < 3\n   found: 3" in outcome("assert double(2) < 3", double=double)
    assert "expected: something true\n   found: []" in outcome("assert []")
    assert "expected: 5\n   found: 2" in outcome("assert 1 + 1 == 2 == 5")
    assert outcome("assert 1 < 2 < 3 and 'a' in 'abc' and None is None") == ""
    assert len(outcome("assert 'x' * 10_000 == ''")) < 1500


def test_the_rewriting_changes_no_result() -> None:
    """Each part of a condition is evaluated once, and a message only if the condition fails."""
    calls: list[int] = []

    def called(n: int) -> int:
        calls.append(n)
        return n

    assert outcome("assert called(1) < called(2) < called(3), called(4)", called=called) == ""
    assert calls == [1, 2, 3]


@every
def test_links_of_a_lesson_lead_somewhere(path: Path) -> None:
    for folder, file in ((path.parent, path), (path.parent / "executed", make.executed(path))):
        for cell in cells_of(file):
            if cell["cell_type"] == "markdown":
                for target in re.findall(r"\]\(([^)#\s]+)", cell["source"]):
                    assert "://" in target or (folder / target).exists(), target


def test_the_list_of_lessons_has_them_all() -> None:
    page = (ROOT / "lessons/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| \[[^\]]+\]\(([^)]+)\) \| [^|]+ \| (\d+) \|$", page, re.M)
    assert rows == [(str(int(path.name[:2])), path.name, minutes(path)) for path in PATHS]


def minutes(path: Path) -> str:
    match = re.search(r"^\*\*Time:?\*\*:? .*?(\d+) minutes", cells_of(path)[0]["source"], re.M)
    assert match
    return match[1]


@every
def test_a_lesson_links_its_solutions_and_has_a_picture(path: Path) -> None:
    text = "".join(cell["source"] for cell in cells_of(path) if cell["cell_type"] == "markdown")
    assert f"](solutions/{path.name[:2]}.py)" in text
    outputs = [output for cell in code_of(make.executed(path)) for output in cell["outputs"]]
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)


@every
def test_the_copy_that_was_run_is_in_step(path: Path) -> None:
    assert make.in_step(path), "run make lessons"
    stored = make.executed(path).read_text(encoding="utf-8")
    assert not OF_ONE_MACHINE.search(stored)
    cells = code_of(make.executed(path))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for output in (output for cell in cells for output in cell["outputs"]):
        assert output["output_type"] in {"stream", "display_data", "execute_result"}
        assert output.get("name") != "stderr"


@every
def test_the_page_of_the_site_folds_hints_and_solutions(path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    page: str = runpy.run_path(str(ROOT / "docs/notebooks.py"))["page"](path)
    cells = cells_of(path)
    assert page.startswith(cells[0]["source"].split("\n")[0] + "\n\nTo work on it, [open the")
    assert page.count('??? success "A solution"\n\n    ```python\n') == len(exercises(cells))
    hints = "".join(cell["source"] for cell in cells).count("<details><summary>")
    assert page.count('??? tip "Hint ') == hints
    assert "<details>" not in page
    assert page.count('<div class="output">\n') == page.count("\n</div>")


def test_no_copy_is_left_of_a_lesson_that_is_gone() -> None:
    copies = {file.name for file in (ROOT / "lessons/executed").iterdir()}
    assert copies == {path.name for path in PATHS}
    solutions = {file.stem for file in (ROOT / "lessons/solutions").glob("*.py")}
    assert solutions <= {path.name[:2] for path in PATHS}


def test_a_copy_that_is_out_of_step_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    shutil.copytree(ROOT / "lessons", tmp_path / "lessons")
    monkeypatch.setattr(make, "LESSONS", tmp_path / "lessons")
    path = make.paths()[0]
    assert make.in_step(path)
    path.write_text(path.read_text(encoding="utf-8").replace("# 1. ", "# 1. Now "), "utf-8")
    assert not make.in_step(path)


def with_stubs(path: Path) -> Any:
    """A lesson in which each exercise is tested as a stub first, and then solved."""
    notebook, stubs = make.solved(path), cells_of(path)
    cells: list[Cell] = []
    for n, cell in enumerate(notebook["cells"]):
        if "exercise" in cell["metadata"]:
            tried = copy.deepcopy([stubs[n], stubs[n + 1]])
            for added in tried:
                added["id"] += "-stub"
            tried[1]["metadata"] = {"tags": ["raises-exception"], "stub": True}
            cells += tried
        cells.append(cell)
    return {**notebook, "cells": cells}


def shown(cell: Cell) -> list[Any]:
    """The outputs of a cell, without their numbers."""
    outputs: list[Any] = copy.deepcopy(cell["outputs"])
    for output in outputs:
        output.pop("execution_count", None)
        if "matplotlib" in "".join(output.get("data", {}).get("image/svg+xml", "")):
            output["data"]["image/svg+xml"] = "a plot"  # each version of matplotlib draws its own
    return outputs


@pytest.mark.slow
@pytest.mark.timeout(1800)  # those in Rust compile
@pytest.mark.filterwarnings("ignore")  # those of the libraries that run notebooks
@every
def test_a_lesson_runs_with_its_solutions_and_fails_with_its_stubs(
    path: Path, tmp_path: Path
) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if path.name[:2] in RUST and not shutil.which("cargo"):
        pytest.skip("needs cargo")
    nbformat.validate(nbformat.read(path, as_version=4))
    done = make.run(with_stubs(path), tmp_path)["cells"]
    for cell in done:
        if cell["metadata"].get("stub"):
            (error,) = (one for one in cell["outputs"] if one["output_type"] == "error")
            assert path.name[:2] in RUST or error["ename"] == "NotImplementedError"
    stored = [shown(cell) for cell in code_of(make.executed(path))]
    again = [
        shown(cell)
        for cell in done
        if cell["cell_type"] == "code" and not cell["id"].endswith("-stub")
    ]
    if path.name[:2] not in OUTPUTS_VARY:
        assert again == stored
