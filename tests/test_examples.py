"""The lessons run from beginning to end; only the eighth is stored with what it printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "examples").glob("*.ipynb"))
#: It is a report as well, to be read without running it.
WITH_OUTPUT = ROOT / "examples" / "8-languages-and-superwords.ipynb"


def test_there_are_eight_lessons() -> None:
    assert [path.name[0] for path in LESSONS] == list("12345678")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_stored_without_its_output(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    if path != WITH_OUTPUT:
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert cells[0]["source"][0].startswith(f"# {path.name[0]}. ")
    for cell in code:
        assert all(len(line) <= 101 for line in cell["source"]), cell["source"]


def test_the_eighth_lesson_is_stored_with_its_pictures() -> None:
    stored = WITH_OUTPUT.read_text(encoding="utf-8")
    code = [cell for cell in json.loads(stored)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "execute_result"}
    assert all(output.get("name") != "stderr" for output in outputs)
    pictures = [output["data"]["image/svg+xml"] for output in outputs if "data" in output]
    assert len(pictures) >= 5
    assert not re.search(r"/(home|root|tmp|Users|work)/", stored)  # no paths of a machine


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
