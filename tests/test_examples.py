"""The lessons run from beginning to end, and are stored without what they printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_are_seven_lessons() -> None:
    assert [path.name[0] for path in LESSONS] == list("1234567")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_stored_without_its_output(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert cells[0]["source"][0].startswith(f"# {path.name[0]}. ")
    for cell in code:
        assert all(len(line) <= 101 for line in cell["source"]), cell["source"]


@pytest.mark.filterwarnings("ignore")  # those of the libraries that run notebooks
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs(path: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook: Any = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=resources
    )
    client.execute()
