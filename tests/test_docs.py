"""The documentation is true: every example runs, and docs/cli/ is what --help prints.

Run as a script it writes docs/cli/.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import bytepair
from bytepair import _core
from bytepair.cli import command

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    m.name
    for m in pkgutil.walk_packages(bytepair.__path__, "bytepair.")
    if not m.name.endswith("__main__")
    # `compat.tiktoken` has tiktoken's folder in its path.
    and Path(m.module_finder.path).is_relative_to(bytepair.__path__[0])  # type: ignore[union-attr]
]
#: The pages that people wrote: those of docs/cli are generated, docs/reference takes docstrings.
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.relative_to(ROOT / "docs").parts[0] not in {"cli", "reference"}
    ),
]
#: The pages of docs/cli, and which commands are on each.
CLI_PAGES = {
    "train": ("Train and count", "train", "count", "prune", "extend"),
    "encode": (
        "Encode, decode, render, convert",
        "encode",
        "decode",
        "render",
        "convert",
    ),
    "look": ("Look and compare", "inspect", "evaluate", "compare", "explore", "verify"),
    "corpora": ("Corpora and shards", "download", "shard", "plan"),
}
COMMANDS = ["", *(name for _, *names in CLI_PAGES.values() for name in names)]


@pytest.mark.parametrize("name", ["bytepair", *MODULES])
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    try:
        doctest.testmod(module, optionflags=doctest.ELLIPSIS, raise_on_error=True)
    except doctest.UnexpectedException as error:
        raise error.exc_info[1] from error


def test_examples_in_the_docstrings_of_rust() -> None:
    """The finder of doctest passes over methods that are not written in Python."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    members = [*vars(_core.Tokenizer).items(), *vars(_core.DecodeStream).items()]
    for name, member in members:
        if not name.startswith("_") and callable(member):
            assert ">>> " in (member.__doc__ or ""), f"{name} has no example"
            runner.run(doctest.DocTestParser().get_doctest(member.__doc__, {}, name, None, 0))
    assert runner.failures == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_blocks_in_pages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python blocks of a page run one after another, as a reader would run them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # for what prints as wide as the terminal
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    for block in blocks:
        run_block(block, names, page)


def run_block(block: str, names: dict[str, object], page: Path) -> None:
    """Run a block of code, a doctest or plain, with the names of those before it."""
    if ">>>" in block:
        parser = doctest.DocTestParser().get_doctest(block, names, page.name, None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(parser, clear_globs=False)
        assert runner.failures == 0
        names.update(parser.globs)
    else:
        exec(compile(block, str(page), "exec"), names)


def test_the_readme_loads_a_published_vocabulary(
    monkeypatch: pytest.MonkeyPatch, shared: Path
) -> None:
    page = ROOT / "README.md"
    block = re.search(r"^```pycon\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    assert block
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared / "vocabularies"))
    run_block(block[1], {}, page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_with_transformers(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks marked `py` need transformers; they run in their places among the others."""
    blocks = re.findall(r"^```(py|python)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    if not any(kind == "py" for kind, _ in blocks):
        pytest.skip("has none")
    pytest.importorskip("transformers")
    from bytepair.compat import huggingface

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # for what prints as wide as the terminal
    names: dict[str, object] = {}
    try:
        for _, block in blocks:
            run_block(block, names, page)
    finally:
        huggingface.undo()


#: A block of Python that needs packages, which its title names.
WITH = re.compile(r'^```py title="with [\w, ]+"$', re.M)


# TRL calls transformers by old names.
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_with_packages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks whose title names packages run in their places, if the packages are installed."""
    text = page.read_text("utf-8")
    if not WITH.search(text):
        pytest.skip("has none")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # for what prints as wide as the terminal
    names: dict[str, object] = {}
    missing = set()
    for kind, block in re.findall(r"^```(py[^\n]*)\n(.*?)^```", text, re.M | re.S):
        needed = re.fullmatch(r'py title="with ([\w, ]+)"', kind)
        packages = needed[1].split(", ") if needed else []
        lacking = [package for package in packages if find_spec(package) is None]
        missing |= set(lacking)
        if not lacking and (needed or kind == "python"):
            run_block(block, names, page)
    if missing:
        pytest.skip(f"some blocks need {', '.join(sorted(missing))}")


#: Old names of functions, options and commands, as they would stand on a page.


def commands_on_pages() -> Iterator[tuple[str, str]]:
    """Each command that a page shows, and the page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for block in re.findall(r"^```[^\n]*\n(.*?)^```|`([^`\n]+)`", text, re.M | re.S):
            for line in re.findall(r"\bbytepair ([a-z]+\b[^|;#\n]*)", "\n".join(block)):
                yield page.name, line


def test_commands_on_pages_have_their_options() -> None:
    checked = set()
    for page, line in commands_on_pages():
        name, _, rest = line.partition(" ")
        if name not in COMMANDS:
            continue
        entry = command.get_command(None, name)  # type: ignore[arg-type]
        assert entry is not None
        options = {"-h", "--help"}
        options |= {opt for param in entry.params for opt in (*param.opts, *param.secondary_opts)}
        flags = set(re.findall(r"(?<!\S)--?[a-z][\w-]*", rest))
        assert flags <= options, f"{page}: bytepair {line}"
        checked.add(name)
    assert checked == set(COMMANDS) - {""}


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them from headings; the site makes the same."""
    heads = [
        re.sub(r"\]\([^)]*\)", "", head) for head in re.findall(r"^#+ (.*)$", prose(page), re.M)
    ]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = page.parent / target if target else page
        assert path.exists(), link
        if anchor:
            assert anchor in anchors(path), link


#: The longest page, in words outside of blocks of code.
LONGEST_PAGE_WORDS = 2500


def test_no_page_is_long() -> None:
    """Apart from what is generated, and the maintainers' notebooks."""
    for page in PAGES:
        if page.parent.name == "maintainers":
            continue
        words = len(prose(page).split())
        assert words <= LONGEST_PAGE_WORDS, f"{page.name} has {words} words; split it"


def test_every_page_says_what_it_is_about() -> None:
    """The first paragraph is a sentence or two, before any table, list or code."""
    for page in PAGES:
        text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.S)
        first = text.split("\n\n")[1].strip() if "\n\n" in text else ""
        assert first, page.name
        assert not first.startswith(("|", "-", "!", "```")), f"{page.name}: {first[:60]}"


def test_the_readme_opens_with_a_number_a_picture_and_the_commands_of_a_checkout() -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    first = page.split("\n\n")[1]
    rates = re.findall(r"[\d.]+ (?:MB/s|s)\b", first)
    assert len(rates) == 2
    table = page.partition("table: begin")[2].partition("table: end")[0]
    assert all(f"| {rate} |" in table for rate in rates), "run benchmarks/table.py"
    screen = "\n".join(page.splitlines()[:40])
    assert "](docs/images/benchmarks.svg)" in screen
    assert "make run" in screen
    assert "make test" in screen


#: What differs between two runs of a command.
VARIES = re.compile(r"\b\d+\.\d+ s\b|\(\d+\.\d+ MB\)")


@pytest.mark.skipif(os.name == "nt", reason="the transcripts are of a POSIX shell")
@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        *(
            f"docs/{page}.md"
            for page in (
                "tutorial",
                "fine-tune",
                "corpora",
                "engines",
                "evaluate",
                "migrate-nanochat",
            )
        ),
    ],
)
def test_transcripts_are_real(name: str, tmp_path: Path) -> None:
    """Those of pages show warnings and errors, too."""
    page, stderr = (ROOT / name).read_text("utf-8"), subprocess.STDOUT
    if name == "README.md":
        stderr = subprocess.DEVNULL
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.M | re.S)
    assert blocks
    (tmp_path / "bin").mkdir()
    for name, words in (("bytepair", "-m bytepair"), ("python", "")):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        program.chmod(0o755)
    paths = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONIOENCODING": "utf-8"}
    for block in blocks:
        for words, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            done = subprocess.run(
                words, shell=True, cwd=tmp_path, env=os.environ | paths, stdout=subprocess.PIPE,
                stderr=stderr, check=stderr == subprocess.DEVNULL,
            )  # fmt: skip
            out = done.stdout.decode()
            assert VARIES.sub("…", out) == VARIES.sub("…", shown), words


def test_the_tests_that_prove_a_promise_are_there() -> None:
    page = (ROOT / "docs/proof.md").read_text("utf-8")
    files = set(re.findall(r"`(?:tests/)?((?:test|fuzz)_\w+\.py)`", page))
    assert len(files) > 30
    assert not {name for name in files if not (ROOT / "tests" / name).is_file()}
    assert all((ROOT / name).is_file() for name in re.findall(r"`(rust/\S+\.rs)`", page))
    tests = "".join(file.read_text("utf-8") for file in (ROOT / "tests").glob("test_*.py"))
    tests += "".join(file.read_text("utf-8") for file in (ROOT / "rust/core/src").rglob("*.rs"))
    faults = (ROOT / "docs/faults.md").read_text("utf-8")
    of_faults = re.findall(r"^\|.*\| (`\w+`(?:, `\w+`)*) \| .*\|$", faults, re.MULTILINE)
    assert len(of_faults) == faults.count("\n| ") - 2, "a fault without a test"
    names = re.findall(r"`(\w+)`", "".join(of_faults)) + re.findall(r"`(test_\w+)`", page)
    assert not {name for name in names if not re.search(rf"(?:def|fn) {name}\(", tests)}


def test_the_table_of_the_readme_has_the_figures_of_the_page() -> None:
    def figures(page: str) -> set[tuple[str, ...]]:
        text = (ROOT / page).read_text("utf-8").partition("table: begin")[2]
        rows = [line.split(" | ") for line in text.partition("table: end")[0].splitlines()]
        return {tuple(row[1:4]) for row in rows if len(row) >= 5}

    assert len(figures("README.md")) > 5
    assert figures("README.md") <= figures("docs/performance.md"), "run benchmarks/table.py"


def test_the_site_has_every_page_that_it_names() -> None:
    named = set(re.findall(r"[\w/-]+\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert named == {page for page in pages if not page.startswith("maintainers/")} | {"index.md"}


def test_the_reference_has_every_public_name() -> None:
    shown: set[str] = set()
    for page in (ROOT / "docs/reference").glob("*.md"):
        shown |= set(re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.M))
    for name in shown:
        assert pkgutil.resolve_name(name) is not None
    names = {f"bytepair.{name}" for name in bytepair.__all__ if not name.startswith("__")}
    names |= {f"bytepair.compat.{name}" for name in bytepair.compat.__all__}
    # The members of a module are shown with it.
    modules = [name for name in shown if inspect.ismodule(pkgutil.resolve_name(name))]
    inside = {value for module in modules for value in members(module)}
    assert {name for name in names - shown if id(pkgutil.resolve_name(name)) not in inside} == set()


def test_each_method_of_tokenizer_is_in_one_group() -> None:
    shown = [
        name
        for page in (ROOT / "docs/reference").glob("tokenizer-*.md")
        for name in re.findall(r"^::: bytepair\.Tokenizer\.(\w+)$", page.read_text("utf-8"), re.M)
    ]
    assert sorted(shown) == [
        name
        for name in dir(bytepair.Tokenizer)
        if not name.startswith("_") and hasattr(bytepair.Tokenizer, name)
    ]
    table = (ROOT / "docs/reference/tokenizer.md").read_text("utf-8")
    assert set(re.findall(r"\]\[bytepair\.Tokenizer\.(\w+)\]", table)) == set(shown)


def members(module: str) -> set[int]:
    value = importlib.import_module(module)
    return {id(getattr(value, name)) for name in getattr(value, "__all__", vars(value))}


def links_for_the_site(markdown: str, folder: str) -> str:
    text = runpy.run_path(str(ROOT / "docs/hooks.py"))["from_folder"](markdown, folder)
    assert isinstance(text, str)
    return text


def test_links_that_leave_the_site_lead_to_the_repository() -> None:
    home = "https://github.com/bytepair/bytepair"
    assert links_for_the_site("[a](docs/train.md#b)", "") == "[a](train.md#b)"
    assert links_for_the_site("[a](Makefile)", "") == f"[a]({home}/blob/main/Makefile)"
    assert links_for_the_site("[a](../tests)", "docs") == f"[a]({home}/tree/main/tests)"
    for link in ("[a](train.md#b)", "[a](#b)", "[a](https://example.com/c)"):
        assert links_for_the_site(link, "docs") == link


def help_of(name: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "bytepair", *name.split(), "--help"],
        env={
            "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "LANG": "C.UTF-8",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
        capture_output=True, check=True,
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in run.stdout.decode().strip().splitlines())


def cli_pages() -> dict[str, str]:
    """The pages of docs/cli/ by file name, from `--help`, and the list of commands."""
    pages, rows = {}, []
    for page, (title, *names) in CLI_PAGES.items():
        text = f"# {title}\n\nCommands: {', '.join(f'`{name}`' for name in names)}.\n"
        for name in names:
            shown = help_of(name)
            first = " ".join(shown.split("\n\n")[1].split())
            words = first.replace("<", "&lt;").replace("|", "\\|")
            text += f"\n## `bytepair {name}`\n\n```text\n{shown}\n```\n"
            rows.append(f"| [`{name}`]({page}.md#bytepair-{name}) | {words} |")
        pages[f"{page}.md"] = text
    table = "\n".join(["| command | what it does |", "| --- | --- |", *rows])
    opening = (
        "Each command with its options and examples; `--help` prints the same. These pages are "
        "generated\nby `make docs-cli`."
    )
    top = help_of("").partition("\n\nCommands:")[0]
    pages["index.md"] = f"# Command line\n\n{opening}\n\n{table}\n\n```text\n{top}\n```\n"
    return pages


def test_the_pages_of_the_command_line_are_what_help_prints() -> None:
    files = (ROOT / "docs/cli").glob("*.md")
    pages = {file.name: file.read_text(encoding="utf-8") for file in files}
    assert pages == cli_pages(), "run make docs-cli"


if __name__ == "__main__":
    for page_name, page_text in cli_pages().items():
        (ROOT / "docs/cli" / page_name).write_text(page_text, encoding="utf-8", newline="\n")
