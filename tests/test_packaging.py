"""The parts of a release: one version, absolute links, workflows that call the Makefile."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest

import bytepair

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))

#: What a step may run beside targets of the Makefile: tools that it needs, and the draft.
OTHERS = re.compile(r"sudo apt-get|apk add|cargo install|gh release create")


def _load(name: str) -> ModuleType:
    """A script of packaging/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


source = _load("source")
release = _load("release")
windows = _load("windows")


@pytest.fixture
def facts() -> dict[str, Any]:
    values: dict[str, Any] = source.workspace()
    return values


def links_of(page: str) -> list[str]:
    """The targets of links and pictures of a page in Markdown, also of those in HTML."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)
    links: list[str] = re.findall(r"\]\(([^)\s]+)\)", text)
    return links + re.findall(r"""\b(?:href|src|srcset)=["']([^"']+)""", text)


def anchors_of(page: str) -> set[str]:
    """The anchors of a page in Markdown, as GitHub makes them from headings."""
    heads = re.findall(r"^#+ (.*)$", page, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_of_the_package_page_are_absolute_and_lead_to_what_is_there(
    facts: dict[str, Any],
) -> None:
    page = source.package_page()
    targets = links_of(page)
    assert len(targets) > 25
    inside = rf"{re.escape(facts['repository'])}/(blob|raw|tree)/v{re.escape(facts['version'])}/"
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in anchors_of(page), target
            continue
        assert target.startswith("https://"), target
        if file := re.fullmatch(rf"{inside}([^#]+)(?:#(.*))?", target):
            assert (ROOT / file[2]).is_dir() == (file[1] == "tree"), target
            assert (ROOT / file[2]).exists(), target
            if file[3]:
                assert file[3] in anchors_of((ROOT / file[2]).read_text(encoding="utf-8")), target


def test_links_of_the_readme_are_relative_in_the_checkout(facts: dict[str, Any]) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [link for link in links_of(page) if facts["repository"].split("//")[1] in link]
    assert not [link for link in links_of(page) if "raw.githubusercontent" in link]


def test_the_release_names_the_package_in_install_lines() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        page = path.read_text(encoding="utf-8")
        shown = source.from_the_index(page)
        block = re.findall(r"<!-- install: begin -->(.*?)<!-- install: end -->", shown, re.S)
        assert not any(re.search(r"pip install '?\.", one) for one in block), path
        outside = re.sub(r"<!-- install: begin -->.*?<!-- install: end -->", "", page, flags=re.S)
        assert not re.search(r"pip install bytepair\b(?!\[)", outside), f"{path}: mark the block"
    assert "pip install bytepair\n" in source.package_page()


def test_the_crate_has_absolute_links() -> None:
    crate = (ROOT / "rust/core/README.md").read_text(encoding="utf-8")
    assert not [link for link in re.findall(r"\]\(([^)\s]+)\)", crate) if "://" not in link]


@pytest.mark.parametrize("abi", ["cp314", "cp314t"])
def test_a_windows_wheel_is_the_linux_wheel_with_another_library_and_tag(
    tmp_path: Path, abi: str
) -> None:
    linux = tmp_path / f"bytepair-0.1.0-cp314-{abi}-manylinux2014_x86_64.whl"
    tags = "Wheel-Version: 1.0\nTag: cp314-x-manylinux2014_x86_64\nTag: cp314-x-linux_x86_64\n"
    with ZipFile(linux, "w") as archive:
        archive.writestr("bytepair/__init__.py", "x = 1\n")
        archive.writestr("bytepair/_core.cpython-314-x86_64-linux-gnu.so", b"elf")
        archive.writestr("bytepair-0.1.0.dist-info/WHEEL", tags)
        archive.writestr("bytepair-0.1.0.dist-info/RECORD", "old\n")
    (tmp_path / "_core.dll").write_bytes(b"dll")
    wheel = ZipFile(windows.repack(linux, tmp_path / "_core.dll", tmp_path))
    assert wheel.filename == str(tmp_path / f"bytepair-0.1.0-cp314-{abi}-win_amd64.whl")
    assert wheel.read(f"bytepair/_core.{abi}-win_amd64.pyd") == b"dll"
    assert wheel.read("bytepair/__init__.py") == b"x = 1\n"
    shown = wheel.read("bytepair-0.1.0.dist-info/WHEEL").decode()
    assert shown == f"Wheel-Version: 1.0\nTag: cp314-{abi}-win_amd64\n"
    lines = wheel.read("bytepair-0.1.0.dist-info/RECORD").decode().splitlines()
    names = [line.split(",")[0] for line in lines]
    assert sorted(names) == sorted(wheel.namelist())
    assert windows.record("bytepair/__init__.py", b"x = 1\n") in lines


def test_links_are_made_absolute_and_nothing_else() -> None:
    page = "[a](docs/a.md#b) ![i](i.png) [u](https://u) [h](#h) [m](mailto:m@n) `x[0](y)`"
    assert source.absolute(page, "https://h/o/r", "v1") == (
        "[a](https://h/o/r/blob/v1/docs/a.md#b) ![i](https://h/o/r/raw/v1/i.png) [u](https://u) "
        "[h](#h) [m](mailto:m@n) `x[0](https://h/o/r/blob/v1/y)`"
    )


@pytest.mark.skipif(
    not (shutil.which("cargo") and (ROOT / ".git").exists()), reason="needs cargo and a checkout"
)
def test_the_lock_file_of_a_release_is_that_of_its_crates(tmp_path: Path) -> None:
    """maturin takes other crates out of the workspace, and builds with `--locked`."""
    source.copy(tmp_path / "source")
    words = ["cargo", "metadata", "--locked", "--offline", "--format-version=1"]
    done = subprocess.run(words, cwd=tmp_path / "source", capture_output=True, check=True)
    metadata = json.loads(done.stdout)
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    members = {names[id] for id in metadata["workspace_members"]}
    assert members == {"bytepair", "bytepair-binding", "bytepair-lab", "bytepair-view"}


def test_every_file_has_the_version_and_the_address_of_cargo(facts: dict[str, Any]) -> None:
    assert bytepair.__version__ == facts["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
    assert f"\nversion: {facts['version']}\n" in citation
    assert f"\n  version: {facts['version']}\n" in recipe
    for name in ("CITATION.cff", "SECURITY.md", "pyproject.toml", "packaging/conda/recipe.yaml"):
        assert facts["repository"] in (ROOT / name).read_text(encoding="utf-8"), name
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert urls["Homepage"] == facts["repository"]


def test_the_recipe_of_conda_asks_for_what_the_wheel_does() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"- (\S+) (>=\S+)", run)) == sorted(
        re.fullmatch(r"(\w+)(>=.*)", one).groups()  # type: ignore[union-attr]
        for one in project["dependencies"]
    )


def test_a_release_is_refused_with_the_reason(facts: dict[str, Any]) -> None:
    version, repository = facts["version"], facts["repository"]
    changelog = f"# Changes\n\n## {version} - a day\n\n- all\n\n## 0.0.1\n\n- less\n"
    server, owner, name = repository.rsplit("/", 2)
    here = {"GITHUB_SERVER_URL": server, "GITHUB_REPOSITORY": f"{owner}/{name}"}
    assert release.wrong(f"v{version}", here, changelog) is None
    assert release.wrong(f"v{version}", {}, changelog) is None
    assert release.notes(changelog, version) == "- all"
    assert "version" in release.wrong("v9.9.9", here, changelog)
    assert "CHANGELOG" in release.wrong(f"v{version}", here, "# Changes\n\n## Unreleased\n")
    other = {**here, "GITHUB_REPOSITORY": "someone/fork"}
    assert "someone/fork" in release.wrong(f"v{version}", other, changelog)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_others_are_pinned_by_their_commit(path: Path) -> None:
    for used in re.findall(r"uses: +(\S+.*)", path.read_text(encoding="utf-8")):
        pinned = re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[0-9.]+", used)
        assert used.startswith("./") or pinned, used


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_of_the_makefile(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^ *(?:- )?run: (.+)$", path.read_text(encoding="utf-8"), re.M)
    for command in commands:
        for part in command.split(" && "):
            if part.startswith("{"):  # the shell of a job
                continue
            words = part.split()
            if words[0] != "make":
                assert OTHERS.match(part), part
                continue
            targets = [word for word in words[1:] if re.fullmatch(r"[a-z-]+", word)]
            targets = [target for target in targets if not target.startswith("-")]
            assert targets, part
            for target in targets:
                assert re.search(rf"^{target}:", makefile, re.M), f"{path.name}: {target}"
