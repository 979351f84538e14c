"""The rules of the project that no other tool checks."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import bytepair
import messages
import rust_imports
from bytepair.cli import COMMANDS
from messages import told

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "bytepair"

#: The modules and packages of bytepair, lowest layer first. Each may import from those before it,
#: and from `_core`.
LAYERS = [
    "errors", "_internal", "reference", "sample", "files", "corpus",
    "properties", "formats", "chat", "tokenizer", "training", "plan", "shards", "distributed",
    "compat", "engines", "evaluate", "plot", "explore", "cli",
]  # fmt: skip

#: Classes of `compat` that are named as the classes they replace.
WRAPPED = {"Encoding", "Tokenizer"}


def sources() -> list[Path]:
    result = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode:
        pytest.skip("needs a git checkout to tell sources from what was built")
    files = [ROOT / name for name in result.stdout.splitlines()]
    return [f for f in files if f.suffix in {".rs", ".py", ".pyi"} and f.exists()]


def test_the_core_knows_nothing_of_python() -> None:
    assert "pyo3" not in (ROOT / "rust/core/Cargo.toml").read_text()
    for file in (ROOT / "rust/core/src").rglob("*.rs"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"std::env::|\bprintln!|\beprintln!", text), file


def test_functions_use_only_instructions_that_are_detected() -> None:
    """A level of `simd.rs` detects what it lists; no function is compiled for anything else."""
    core = ROOT / "rust/core/src"
    entries = re.findall(r"level!\(([^;]+)\);", (core / "machine/simd.rs").read_text())
    levels = [set(re.findall(r'"(\w+)"', features)) for features in entries]
    assert len(levels) == 3
    for file in core.rglob("*.rs"):
        text = file.read_text(encoding="utf-8")
        for enabled in re.findall(r'target_feature\(enable = "([\w,]+)"\)', text):
            assert any(set(enabled.split(",")) <= level for level in levels), (file, enabled)


@pytest.mark.parametrize(
    ("crate", "files"), [("core", 100), ("binding", 15), ("capi", 8), ("view", 8)]
)
def test_no_rust_files_import_each_other_in_a_circle(crate: str, files: int) -> None:
    source = ROOT / "rust" / crate / "src"
    graph = rust_imports.arrows(source)
    assert len(graph) > files
    assert sum(len(targets) for targets in graph.values()) > 2 * len(graph)
    assert not rust_imports.circles(graph)


def test_circles_of_rust_files_are_found(tmp_path: Path) -> None:
    for name, text in {
        "lib.rs": "mod a;\nmod b;\nmod c;\npub use a::{One, inner::Two};",
        "a/mod.rs": "pub mod inner;\nuse crate::b;\npub struct One;",
        "a/inner.rs": "pub struct Two;\n#[cfg(test)]\nmod tests {\n    use super::super::One;\n}",
        "b.rs": "use crate::{\n    c::{self, Three},\n    error,\n};",
        "c.rs": "// crate::a::inner\npub fn three() { crate::Two::new(); crate::One }",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = rust_imports.arrows(tmp_path)
    named = {file.relative_to(tmp_path).as_posix(): targets for file, targets in graph.items()}
    assert named["c.rs"] == {tmp_path / "a/inner.rs", tmp_path / "a/mod.rs"}
    circle = [tmp_path / name for name in ("a/mod.rs", "b.rs", "c.rs")]
    assert rust_imports.circles(graph) == [circle]


def test_a_rust_type_name_means_one_thing() -> None:
    crates = ("core", "binding", "capi", "view")
    tables = [rust_imports.types(ROOT / "rust" / crate / "src") for crate in crates]
    assert all(len(names) > 5 for names in tables)
    names = set().union(*tables)
    files = {name: [file for names in tables for file in names.get(name, [])] for name in names}
    assert not {name: files for name, files in files.items() if len(files) > 1}


def test_rust_types_are_found(tmp_path: Path) -> None:
    text = "pub(crate) struct One<T>(T);\nmod tests {\n    enum Two {}\n}\ntype Three = u8;\n"
    (tmp_path / "a.rs").write_text(text + "impl Deref for One {\n    type Target = u8;\n}\n")
    (tmp_path / "b.rs").write_text("// struct Four;\npub trait One {}")
    places = rust_imports.types(tmp_path)
    assert sorted(places) == ["One", "Three", "Two"]
    assert places["One"] == [tmp_path / "a.rs", tmp_path / "b.rs"]


def imported_layers(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "bytepair":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bytepair."):
            yield (node.module or "").split(".")[1]


def test_layers_import_only_from_layers_before_them() -> None:
    for file in PACKAGE.rglob("*.py"):
        layer = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if layer.startswith("__"):
            continue
        assert layer in LAYERS, f"add {layer} to LAYERS"
        allowed = LAYERS[: LAYERS.index(layer) + 1]
        for other in imported_layers(file):
            assert other not in LAYERS or other in allowed, f"{file} imports {other}"


def test_nothing_inside_imports_names_of_the_face() -> None:
    modules = {file.stem for file in PACKAGE.iterdir()}
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] in {"cli", "__init__.py"}:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert "bytepair" not in {alias.name for alias in node.names}, file
            elif isinstance(node, ast.ImportFrom) and node.module == "bytepair":
                assert {alias.name for alias in node.names} <= modules | {"_core"}, file


def python_imports() -> dict[Path, set[Path]]:
    """For each file of the package the files that it imports from, also late or for types."""
    graph = {}
    for file in PACKAGE.rglob("*.py"):
        targets: set[Path] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bytepair"):
                base = PACKAGE.joinpath(*(node.module or "").split(".")[1:])
                names = [base / alias.name for alias in node.names if alias.name != "_core"]
                targets.update(file_of(name) or file_of(base) or file for name in names)
        graph[file] = targets - {file}
    return graph


def file_of(module: Path) -> Path | None:
    """The file of a module, if there is one."""
    files = (module.with_suffix(".py"), module / "__init__.py")
    return next((file for file in files if file.exists()), None)


def test_no_python_files_import_each_other_in_a_circle() -> None:
    graph = python_imports()
    assert sum(len(targets) for targets in graph.values()) > 2 * len(graph)
    assert not rust_imports.circles(graph)


#: Calls that open a file to read it.
OPENS = re.compile(
    r"open_input_(?:stream|file)\(|CompressedInputStream|_core\.(?:DocumentReader|unpack)\("
    r"|^\s*import (?:gzip|lzma|bz2)\b|ParquetFile\(|read_table\(",
    re.M,
)


def test_one_file_reads_text() -> None:
    readers = {file for file in PACKAGE.rglob("*.py") if OPENS.search(file.read_text("utf-8"))}
    assert {file.relative_to(PACKAGE).as_posix() for file in readers} == {
        "corpus/read.py",
        "corpus/rows.py",  # conversations of parquet files, which are lists and no texts
    }


def test_no_function_has_the_name_of_a_module() -> None:
    for init in PACKAGE.rglob("__init__.py"):
        package = ".".join(["bytepair", *init.parent.relative_to(PACKAGE).parts])
        names = set(getattr(importlib.import_module(package), "__all__", ()))
        modules = {name for name in names if file_of(init.parent / name)}
        for name in modules:
            value = getattr(importlib.import_module(package), name)
            assert inspect.ismodule(value), f"{package}.{name} hides a module"


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            name = ""
            if isinstance(node, ast.ClassDef):
                name = node.name
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                name = ast.unparse(node.target)
            if name and not (name in WRAPPED and "compat" in file.parts):
                homes.setdefault(name, []).append(file.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_every_dependency_has_its_line() -> None:
    names = set()
    for crate in ("core", "binding", "capi", "view", "wasm", "wasm/pack"):
        table = tomllib.loads((ROOT / "rust" / crate / "Cargo.toml").read_text())
        tables = [table, *table.get("target", {}).values()]
        kinds = ("dependencies", "dev-dependencies")
        names |= {name for one in tables for kind in kinds for name in one.get(kind, {})}
    names -= {"bytepair"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    requirements = [
        *project["dependencies"],
        *(d for e in extras if e != "test" for d in extras[e]),
    ]
    names |= {re.split(r"[^\w-]", line)[0] for line in requirements}
    page = (ROOT / "docs/decisions/dependencies.md").read_text(encoding="utf-8")
    assert not {name for name in names if f"`{name}`" not in page}, "explain it in dependencies.md"


def test_the_command_line_calls_only_public_names() -> None:
    public = set(bytepair.__all__)
    for file in (PACKAGE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bytepair"):
                names = {alias.name for alias in node.names}
                module = (node.module or "").partition(".")[2].split(".")[0]
                assert module in {"cli", "files", *public} or names <= public, (file, names)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "bytepair":
                assert node.attr in public, (file, node.attr)


def test_make_run_installs_only_the_dependencies_of_the_package() -> None:
    if (make := shutil.which("make")) is None:
        pytest.skip("needs make")

    def steps(target: str) -> str:
        words = [make, "--dry-run", "--always-make", target]
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "['dependencies']" in steps("run")
    assert "tests/requirements.txt" not in steps("run")
    assert "tests/requirements.txt" in steps("test-python")


def test_the_lock_of_the_tests_has_every_package_that_they_name() -> None:
    """`make lock` was run after the last change of the extra `test`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "tests/requirements.txt").read_text().splitlines()
    locked = {line.partition("==")[0] for line in lines if "==" in line}
    for line in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        assert re.split(r"[^\w-]", line)[0].replace("_", "-") in locked, "make lock"


def test_every_public_name_is_documented() -> None:
    for name in bytepair.__all__:
        value = getattr(bytepair, name)
        if isinstance(value, str | tuple | dict):
            continue
        assert value.__doc__, name
        if isinstance(value, type):
            public = {n: m for n, m in vars(value).items() if not n.startswith("_")}
            fields = getattr(value, "__dataclass_fields__", {})
            missing = [n for n, m in public.items() if n not in fields and not inspect.getdoc(m)]
            assert not missing, (name, missing)


def test_no_file_has_two_subjects() -> None:
    for file in sources():
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 800, f"{file} has {len(lines)} lines"
        assert file.stem not in {"utils", "util", "common", "helpers", "misc"}, file


def test_no_file_names_the_machine_it_was_written_on() -> None:
    machine = re.compile(r"(?<![\w.])/(?:home|root|Users)/\w|" + re.escape(f"{ROOT}/"))
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "lessons").glob("*.md")]
    for file in [*sources(), *pages, ROOT / "Makefile", ROOT / "pyproject.toml"]:
        match = machine.search(file.read_text(encoding="utf-8"))
        assert not match, f"{file}: {match}"


def test_functions_are_short() -> None:
    lengths = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                start = node.body[0].lineno
                if ast.get_docstring(node) and len(node.body) > 1:
                    start = node.body[1].lineno
                lengths.append(((node.end_lineno or start) - start + 1, f"{file}:{node.name}"))
    assert max(lengths)[0] <= 60, max(lengths)
    short = sum(1 for length, _ in lengths if length <= 25)
    assert short >= 0.9 * len(lengths)


#: Libraries that only some calls need.
LARGE = {"numpy", "pyarrow", "rich", "click", "tiktoken", "torch", "http"}


def loaded_by(code: str) -> set[str]:
    """The top-level modules in memory after a program."""
    shown = f"{code}\nimport sys; print(*{{m.split('.')[0] for m in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


def named_file(name: str) -> Path | None:
    """The file that the page of the architecture names: of the core, of a crate or of Python."""
    crate, _, rest = name.partition("/")
    places = [ROOT / name, ROOT / "rust/core/src" / name, ROOT / "rust" / crate / "src" / rest,
              PACKAGE / name]  # fmt: skip
    return next((place for place in places if place.is_file()), None)


def test_the_walks_of_the_architecture_name_what_exists() -> None:
    """Each row has files, and what stands behind a file is a function or a type there."""
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    steps = [row.split("|")[2] for row in re.findall(r"^\| \d+ \|.*", page, re.MULTILINE)]
    assert len(steps) > 30
    for step in steps:
        text = ""
        for name in re.findall(r"`([^`]+)`", step):
            if name.endswith((".rs", ".py")):
                file = named_file(name)
                assert file is not None, name
                text = file.read_text("utf-8")
                continue
            for part in re.split(r"::|\.", name):
                assert re.search(rf"\b(?:fn|def|struct|enum|class) {part}\b", text), (step, name)


def test_the_architecture_names_files_that_exist() -> None:
    """A name without a folder is of a file in the folder that the sentence is about."""
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    names = re.findall(r"`([\w./]+\.(?:rs|py|pyi|md|h))`", page)
    files = {path.name for path in [*(ROOT / "rust").rglob("*.*"), *PACKAGE.rglob("*.py*")]}
    assert len(names) > 50
    missing = [name for name in names if not (named_file(name) if "/" in name else name in files)]
    assert missing == []


def test_import_is_quick_to_begin() -> None:
    """`import bytepair` loads none of the large libraries that only some calls need."""
    assert not LARGE & loaded_by("import bytepair")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_quick_to_begin(name: str) -> None:
    """What a command loads, before it works, is what reads the command line."""
    modules = loaded_by(f"import bytepair.cli.{COMMANDS[name]}") & {*LARGE, "pydantic"}
    assert modules <= {"click"}


def test_encoding_and_training_load_no_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello", encoding="utf-8")
    exported = bytepair.train(["hello hello"], 269).export(tmp_path / "tokenizer.json")
    uses = f"""
        import bytepair
        tok = bytepair.train(["hello hello"], 269)
        bytepair.train({str(tmp_path / "a.txt")!r}, 269)
        bytepair.train(bytepair.sample.paths(), 300)
        tok.decode(tok.encode("hello")), tok.encode_batch(["a"]), bytepair.Tokenizer.from_bytes(
            tok.to_bytes()
        )
        bytepair.load({str(exported)!r})
    """
    assert not LARGE & loaded_by(inspect.cleandoc(uses))


def test_a_native_file_is_loaded_with_little(tmp_path: Path) -> None:
    """Loading one and encoding waits for no room of conversations, files of text or formats."""
    path = bytepair.train(["hello hello"], 269).save(tmp_path)
    code = f"import bytepair; bytepair.load({str(path)!r}).encode_batch(['hello'])"
    shown = f"{code}\nimport sys; print(*(m for m in sys.modules if m.startswith('bytepair.')))"
    out = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in out.stdout.split()}
    assert rooms <= {"_core", "_internal", "corpus", "errors", "files", "formats", "properties",
                     "tokenizer"}  # fmt: skip
    assert not {"numpy", "dataclasses", "inspect", "logging"} & loaded_by(code)


def test_late_names_are_listed_and_others_refused() -> None:
    assert set(bytepair.__all__) <= set(dir(bytepair))
    assert set(bytepair.chat.__all__) <= set(dir(bytepair.chat))
    with told(AttributeError):
        bytepair.trian  # noqa: B018


def test_every_stored_message_is_that_of_a_test() -> None:
    for test in messages.read():
        file, *names = test.partition("[")[0].split("::")
        assert f"def {names[-1]}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), test
