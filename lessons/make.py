"""Runs the lessons with their solutions, and writes the copies with outputs.

    python lessons/make.py            # all lessons
    python lessons/make.py 01 06      # some of them
    python lessons/make.py --check    # are the copies in step? Runs nothing

In a lesson the reader writes the cells that have `exercise` in their metadata. The solutions are
in `solutions/NN.py`, each below a line `# %% NAME`. A copy in `executed/` is the lesson with the
solutions in place of these cells, and with all outputs.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

LESSONS = Path(__file__).resolve().parent

#: A notebook as its file has it, with the source of each cell as one string.
Notebook = dict[str, Any]

#: What lessons import from their folder.
IMPORTED = ("checking.py", "drawing.py", "rustbpe_interface.py")

_NOTE = "> This copy has been run with the solutions. To learn, open [the lesson](../{})."
#: A link of Markdown to a file; other lessons have their copies beside this one.
_LINK = re.compile(r"\]\((?![a-z]+:|#|/|\d\d-[\w-]+\.ipynb)([^)\s]+)\)")


def paths(numbers: list[str] | None = None) -> list[Path]:
    """List the files of lessons in order.

    Args:
        numbers: of which lessons, as "01"; all of them without it.

    Raises:
        SystemExit: if there is no such lesson.
    """
    found = sorted(LESSONS.glob("[0-9][0-9]-*.ipynb"))
    if unknown := set(numbers or []) - {path.name[:2] for path in found}:
        raise SystemExit(f"there is no lesson {', '.join(sorted(unknown))}; lessons are 01, 02, …")
    return [path for path in found if not numbers or path.name[:2] in numbers]


def read(path: Path) -> Notebook:
    """Read a notebook."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def solutions(path: Path) -> dict[str, str]:
    """Read the solutions of a lesson, by the names of its exercises; none without a file."""
    file = LESSONS / "solutions" / f"{path.name[:2]}.py"
    if not file.exists():
        return {}
    _, *parts = re.split(r"^# %% (\S+)\n", file.read_text(encoding="utf-8"), flags=re.M)
    return {name: code.strip() for name, code in zip(parts[::2], parts[1::2], strict=True)}


def executed(path: Path) -> Path:
    """Say where the copy of a lesson is that has been run."""
    return LESSONS / "executed" / path.name


def solved(path: Path) -> Notebook:
    """Make the copy of a lesson that is run: with solutions, and with a note in its first cell."""
    notebook, found = read(path), solutions(path)
    for cell in notebook["cells"]:
        if name := cell["metadata"].get("exercise"):
            cell["source"] = found[name]
        if cell["cell_type"] == "markdown":  # the copy is one folder deeper
            cell["source"] = _LINK.sub(r"](../\1)", cell["source"])
    first = notebook["cells"][0]
    title, _, rest = first["source"].partition("\n")
    first["source"] = f"{title}\n\n{_NOTE.format(path.name)}\n{rest}"
    return notebook


def environment() -> dict[str, str]:
    """Make the environment in which lessons run.

    They share one folder of compiled crates, and compile quickly: what they build is small, and
    no output says how fast it is.
    """
    return {
        "CARGO_TARGET_DIR": str(LESSONS.parent / "target" / "lessons"),
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
        "CARGO_INCREMENTAL": "1",
        "MATPLOTLIBRC": str(LESSONS / "matplotlibrc"),
        **os.environ,
    }


def run(notebook: Notebook, folder: Path) -> Notebook:
    """Run a notebook.

    Args:
        notebook: what is run; it stays as it is.
        folder: where it runs, beside copies of the files that it imports, as in a copied folder.

    Returns:
        The notebook with its outputs. Those of one stream of a cell are one output.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails that is not marked to fail.
    """
    import nbformat
    from nbclient import NotebookClient

    for module in IMPORTED:
        shutil.copy(LESSONS / module, folder)
    ready = nbformat.from_dict(copy.deepcopy(notebook))
    client = NotebookClient(
        ready,
        timeout=900,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        coalesce_streams=True,
        record_timing=False,
        extra_arguments=[
            "--InlineBackend.figure_formats=svg",
            "--InlineBackend.print_figure_kwargs={'metadata': {'Date': None}}",
        ],
    )
    client.execute(env=environment())
    done: Notebook = json.loads(nbformat.writes(ready))
    for cell in done["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", []):
            output.update({"data": as_picture(output["data"])} if "data" in output else {})
    done["metadata"] = notebook["metadata"]  # without the version of this Python
    return done


def as_picture(data: dict[str, Any]) -> dict[str, Any]:
    """Keep the element alone of a picture, without the lines of XML before it."""
    _, start, rest = "".join(data.get("image/svg+xml", "")).partition("<svg")
    return {**data, "image/svg+xml": (start + rest).splitlines(keepends=True)} if start else data


def make(path: Path) -> None:
    """Run a lesson with its solutions, and write the copy."""
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        done = run(solved(path), Path(folder))
    target = executed(path)
    target.parent.mkdir(exist_ok=True)
    with target.open("w", encoding="utf-8", newline="\n") as file:
        nbformat.write(nbformat.from_dict(done), file)


def sources(notebook: Notebook) -> list[tuple[str, str]]:
    """Say what the cells of a notebook are, without outputs."""
    return [(cell["cell_type"], cell["source"].rstrip("\n")) for cell in notebook["cells"]]


def in_step(path: Path) -> bool:
    """Say whether the copy of a lesson is made of the lesson and the solutions as they are now."""
    target = executed(path)
    return target.exists() and sources(read(target)) == sources(solved(path))


def main() -> None:
    """Make the copies, or check them."""
    parser = argparse.ArgumentParser(description="Run lessons with their solutions.")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="lessons; all without it")
    parser.add_argument("--check", action="store_true", help="say which copies are out of step")
    given = parser.parse_args()
    chosen = paths(given.numbers)
    if given.check:
        stale = [path.stem for path in chosen if not in_step(path)]
        sys.exit(f"out of step: {', '.join(stale)}; run make lessons" if stale else 0)
    for path in chosen:
        print(path.stem, flush=True)
        make(path)


if __name__ == "__main__":
    main()
