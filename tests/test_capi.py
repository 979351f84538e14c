"""The library for C and C++: built, installed, linked and called as an engine does."""

from __future__ import annotations

import itertools
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import bytepair
from bytepair.properties.roles import NOTES
from conftest import VOCABULARIES

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "c"
PROGRAMS = ROOT / "tests" / "capi"

#: Defects that a compiled program finds in itself, where the compiler can do that.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
LANGUAGES = {".c": ("cc", "-std=c11"), ".cpp": ("c++", "-std=c++20")}

IS_MEMBER = '"rust/capi"' in (ROOT / "Cargo.toml").read_text("utf-8")

# Building the library takes a minute or two if nothing of it is built yet.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(platform.system() == "Windows", reason="the Makefile is for Unix"),
    pytest.mark.skipif(not IS_MEMBER, reason="the workspace of a source archive has no rust/capi"),
]

#: Compiles a program of one file and returns its path.
Compile = Callable[..., Path]


def program(name: str) -> str:
    """The path of a program of the system; without it, the test is skipped."""
    return shutil.which(name) or pytest.skip(f"needs {name}")


def run(*words: str | Path, stdin: bytes | None = None) -> bytes:
    """The output of a program that must succeed."""
    done = subprocess.run(words, input=stdin, capture_output=True, check=False, timeout=1000)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, installed by `make capi` with the profile of the tests of Rust."""
    program("cargo")
    folder = tmp_path_factory.mktemp("library")
    run(program("make"), "-C", ROOT, "capi", "CAPI_PROFILE=test", f"CAPI={folder}")
    return folder


@pytest.fixture(scope="session")
def sanitizers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options with which programs find their own defects; none if the compiler has none."""
    folder = tmp_path_factory.mktemp("sanitizers")
    (folder / "try.c").write_text("int main(void) { return 0; }")
    compiler = program("cc")
    words = [compiler, *SANITIZERS, str(folder / "try.c"), "-o", str(folder / "try")]
    works = not subprocess.run(words, capture_output=True, check=False).returncode
    works = works and not subprocess.run([folder / "try"], check=False).returncode
    return SANITIZERS if works else []


@pytest.fixture(scope="session")
def compiled(
    library: Path, sanitizers: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Compile:
    """Compiles a program with the static library and the sanitizers."""
    folder = tmp_path_factory.mktemp("programs")

    def make(source: Path) -> Path:
        name, standard = LANGUAGES[source.suffix]
        target = folder / source.name.replace(".", "-")
        if not target.exists():
            words = ["-O1", "-g", *WARNINGS, *sanitizers, source, library / "lib/libbytepair.a"]
            words += ["-I", library / "include", "-lpthread", "-ldl", "-lm", "-o", target]
            run(program(name), standard, *map(str, words))
        return target

    return make


def known() -> bytepair.Tokenizer:
    """The tokenizer of `calls.c`: its ids can be told by hand."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"he", b"ll", b"llo", b"hello"]
    special = {"<s>": 260, "</s>": 261, "<|im_end|>": 262}
    ranks = {token: id for id, token in enumerate(tokens)}
    return bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4", special_tokens=special)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that `calls.c` names."""
    tok = known()
    tok.save(tmp_path)
    tok.export(tmp_path / "tokenizer.json", lossy=True)
    tok.export(tmp_path / "vocab.tiktoken", lossy=True)
    return tmp_path


# ---------------------------------------------------------------------------- the calls


@pytest.mark.parametrize("name", ["calls.c", "calls.cpp"])
def test_each_call_gives_and_fails_as_the_header_says(
    compiled: Compile, folder: Path, name: str
) -> None:
    assert run(compiled(PROGRAMS / name), folder) == b"all calls\n"


def test_a_tokenizer_of_c_equals_that_of_python(compiled: Compile, folder: Path) -> None:
    run(compiled(PROGRAMS / "calls.c"), folder)
    same = bytepair.train(["hello hello", "hello"], 261, pattern="gpt4", special_tokens=["<s>"])
    assert bytepair.load(folder / "trained.bytepair") == same


def test_the_table_of_roles_is_that_of_python() -> None:
    tok = known()
    assert tok.roles == {"bos": "<s>", "eos": "</s>", "end_of_turn": "<|im_end|>"}
    for role, note in NOTES.items():
        assert tok.replace(roles={role: "</s>"}).notes[note] == "</s>"
        assert tok.replace(roles={role: "</s>"}).roles[role] == "</s>"
        assert role not in tok.replace(roles={role: None}).roles


# ---------------------------------------------------------------------------- the same ids


def ids_of_c(compiled: Compile, path: Path, texts: Sequence[str], *around: str) -> list[list[int]]:
    """The ids of texts, by a program with four threads; with `around`, also those around a text."""
    encoded = [text.encode() for text in texts]
    stdin = b"".join(struct.pack("=I", len(text)) + text for text in encoded)
    printed = run(compiled(PROGRAMS / "texts.c"), path, "4", *around, stdin=stdin)
    numbers = np.frombuffer(printed, np.uint32)
    rows, at = [], 0
    for _ in texts:
        end = at + 1 + int(numbers[at])
        rows.append(numbers[at + 1 : end].tolist())
        at = end
    assert at == len(numbers)
    return rows


HARD = [
    "", " ", "\0", "don't", "naïve  \n\n x", "e\u0301", "你好，世界",
    "\U0001f469\u200d\U0001f467", "<|bos|>a<|eos|>", "a" * 5000,
]  # fmt: skip


def test_ids_equal_those_of_python(
    compiled: Compile, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    texts = [*HARD, *(path.read_text("utf-8") for path in bytepair.sample.paths())]
    for path in (trained.save(tmp_path), trained.export(tmp_path / "tokenizer.json", lossy=True)):
        ids = ids_of_c(compiled, path, texts)
        assert ids == [trained.encode(text, special="all") for text in texts]


def test_ids_equal_those_of_python_on_shared_text(
    compiled: Compile, shared: Path, documents: Callable[[str], list[str]], tmp_path: Path
) -> None:
    texts = [path.read_text("utf-8") for path in sorted((shared / "udhr").rglob("*.txt"))]
    more = [text for name in ("english", "multilingual", "code") for text in documents(name)]
    assert len(texts) > 50
    assert len(more) > 10_000
    for name, pattern in VOCABULARIES.items():
        path = shared / "vocabularies" / f"{name}.tiktoken"
        tok = bytepair.load(path, pattern=pattern, special_tokens={"<|endoftext|>": 210_000})
        all_texts = [*texts, *more] if name == "o200k_base" else texts
        ids = ids_of_c(compiled, tok.save(tmp_path / name), all_texts)
        assert ids == tok.encode_batch(all_texts, special="all")


def test_files_of_other_publishers_give_the_ids_of_python(
    compiled: Compile, shared: Path, tmp_path: Path
) -> None:
    texts = [path.read_text("utf-8") for path in sorted((shared / "udhr").rglob("*.txt"))[::6]]
    read = 0
    for path in sorted((shared / "tokenizers").glob("*.tokenizer.json")):
        try:
            tok = bytepair.load(path, "huggingface")
        except bytepair.errors.FileFormatError:
            continue
        read += 1
        expected = [tok.encode(text, special="all") for text in texts]
        unchanged = [tok.decode(ids) == text for ids, text in zip(expected, texts, strict=True)]
        if all(unchanged):  # the program compares the decoded text with the text
            assert ids_of_c(compiled, path, texts) == expected, path
        whole = [tok.encode(text, special="all", add_special_tokens=True) for text in texts[:3]]
        assert ids_of_c(compiled, path, texts[:3], "around") == whole, path
    assert read > 3


# ---------------------------------------------------------------------------- the examples


@pytest.mark.parametrize("name", ["engine.c", "engine.cpp"])
def test_an_engine_prints_its_prompt_token_by_token(
    compiled: Compile, trained: bytepair.Tokenizer, tmp_path: Path, name: str
) -> None:
    path = trained.save(tmp_path)
    engine = compiled(EXAMPLES / name)
    for text in ("Hello world", "你好, 👩‍👩‍👧 <|bos|>", ""):
        assert run(engine, path, text).decode() == text


def test_the_ids_of_an_engine_are_those_of_python(
    compiled: Compile, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    path, engine = trained.save(tmp_path), compiled(EXAMPLES / "engine.c")
    text = "\n".join(path.read_text("utf-8") for path in bytepair.sample.paths())
    output = run(engine, "--ids", path, stdin=text.encode())
    assert list(map(int, output.split())) == trained.encode(text, prepend="<|bos|>")
    assert run(engine, path, stdin=text.encode()).decode() == text
    done = subprocess.run([engine, tmp_path / "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error 11: ")
    assert "none cannot be read" in done.stderr


def test_a_chat_is_cut_to_its_context_and_ends_at_a_stop_string(
    compiled: Compile, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    path, chat = trained.save(tmp_path), compiled(EXAMPLES / "chat.c")
    words: list[str | Path] = [chat, path, "many words " * 40, "an <|user_end|> answer", "Say 😀!"]
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout.decode() == "Say 😀!"
    names = ("<|user_start|>", "control"), ("<|user_end|>", "control")
    parts = [names[0], ("user\nSay 😀!", "untrusted"), names[1], names[0]]
    ids = bytepair.chat.encode_segments(trained, [*parts, ("assistant\n", "untrusted")], join=True)  # type: ignore[list-item]
    assert done.stderr.decode() == f"{len(ids)} ids, without the first 2 messages\n"


def commands(page: str) -> str:
    """The commands of a page that compile an example, with those before and after them."""
    blocks = re.findall(r"^```text\n(.*?)^```", page, re.M | re.S)
    text = "".join(block for block in blocks if re.search(r"examples/c/|^\$ \./", block, re.M))
    lines = [line for line in text.splitlines() if line != "make capi"]
    return "\n".join(line.removeprefix("$ ") for line in lines if line != "Hello world")


def test_the_commands_of_the_page_for_engines(library: Path, tmp_path: Path) -> None:
    program("cc")
    (tmp_path / "target").mkdir()
    (tmp_path / "target/capi").symlink_to(library)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = commands((ROOT / "docs/c.md").read_text("utf-8"))
    assert script.count("\n") == 7
    python = f'bytepair() {{ "{sys.executable}" -m bytepair "$@"; }}\n'
    done = subprocess.run(
        [program("sh"), "-e", "-c", python + script],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Hello world") == 3


def flags(library: Path, *options: str) -> list[str]:
    """What pkg-config says of the library."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(library / "lib/pkgconfig")}
    words = [program("pkg-config"), *options, "bytepair"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("name", ["engine.c", "engine.cpp"])
def test_pkg_config_finds_the_shared_library(library: Path, folder: Path, name: str) -> None:
    compiler, standard = LANGUAGES[Path(name).suffix]
    options = flags(library, "--cflags", "--libs")
    words = [str(EXAMPLES / name), *options, "-o", str(folder / "engine")]
    run(program(compiler), standard, f"-Wl,-rpath,{library / 'lib'}", *words)
    assert run(folder / "engine", folder / "tokenizer.json", "hello") == b"hello"
    assert flags(library, "--modversion") == [bytepair.__version__]


def test_cmake_finds_both_libraries(library: Path, folder: Path) -> None:
    cmake = program("cmake")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\n"
        "project(engines C CXX)\n"
        f"find_package(bytepair {bytepair.__version__} REQUIRED)\n"
        f'add_executable(one "{(EXAMPLES / "engine.c").as_posix()}")\n'
        "target_link_libraries(one PRIVATE bytepair::shared)\n"
        f'add_executable(two "{(EXAMPLES / "engine.c").as_posix()}")\n'
        "target_link_libraries(two PRIVATE bytepair::static)\n"
    )
    run(cmake, "-S", folder, "-B", folder / "built", f"-DCMAKE_PREFIX_PATH={library}")
    run(cmake, "--build", folder / "built")
    for name in ("one", "two"):
        assert run(folder / "built" / name, folder / "tokenizer.json", "hello") == b"hello"


@pytest.mark.skipif(platform.system() != "Linux", reason="ELF has these names")
def test_the_shared_library_is_named_by_the_versions_that_are_compatible(
    library: Path, folder: Path
) -> None:
    """A program asks for that name, so a later version that is not compatible is not loaded."""
    first, second, *_ = bytepair.__version__.split(".")
    series = f"0.{second}" if first == "0" else first
    names = ["libbytepair.so", f"libbytepair.so.{series}", f"libbytepair.so.{bytepair.__version__}"]
    assert {path.name for path in (library / "lib").glob("*.so*")} == set(names)
    for name, target in itertools.pairwise(names):
        assert (library / "lib" / name).readlink() == Path(target)
    readelf, shared = program("readelf"), library / "lib" / names[-1]
    assert f"Library soname: [{names[1]}]" in run(readelf, "-d", shared).decode()
    link = [f"-L{library / 'lib'}", f"-I{library / 'include'}", "-lbytepair"]
    run(program("cc"), "-std=c11", EXAMPLES / "engine.c", *link, "-o", folder / "engine")
    assert f"Shared library: [{names[1]}]" in run(readelf, "-d", folder / "engine").decode()


def test_the_shared_library_has_only_the_names_of_the_header(library: Path) -> None:
    output = run(program("nm"), "-D", "--defined-only", next((library / "lib").glob("*.so")))
    names = {line.split()[-1] for line in output.decode().splitlines()}
    header = (library / "include/bytepair.h").read_text("utf-8")
    declared = set(re.findall(r"\b(bytepair_\w+)\(", header))
    assert len(declared) > 30
    assert {name for name in names if not name.startswith("_")} == declared


# ---------------------------------------------------------------------------- without a library


def test_the_format_for_engines_can_be_read_by_its_specification(
    compiled: Compile, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    reader = compiled(EXAMPLES / "bin_reader.c")
    ranks = {id: rank for rank, id in enumerate(merged(trained))}
    for name, format in (("tokenizer.bin", "llama2c"), ("out.tokenizer", "qwen3")):
        path = trained.export(tmp_path / name, format, lossy=True)
        lines = run(reader, "--list", path).decode().splitlines()
        if format == "qwen3":
            begins, ends = trained.special_tokens["<|bos|>"], "<|assistant_end|>"
            assert lines.pop(0) == f"{begins} {trained.special_tokens[ends]}"
        assert len(lines) == trained.vocab_size
        for id, line in enumerate(lines):
            number, score, token = line.split(" ")
            rank = ranks.get(id)
            expected = -1e6 if rank is None else -np.log(rank + 1)
            assert (int(number), bytes.fromhex(token)) == (id, trained.token_bytes(id))
            assert np.float32(score) == np.float32(expected)


def merged(tok: bytepair.Tokenizer) -> list[int]:
    """The ids that merges make, in the order of merges."""
    ids = tok.mergeable_ranks()
    return [ids[left + right] for left, right in tok.merges()]


def test_the_format_for_engines_gives_the_ids_of_pretokens(
    compiled: Compile, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    reader = compiled(EXAMPLES / "bin_reader.c")
    path = trained.export(tmp_path / "tokenizer.bin", "llama2c", lossy=True)
    texts = [path.read_text("utf-8")[:2000] for path in bytepair.sample.paths()]
    pretokens = sorted({part for text in texts for part in bytepair.pretokenize(text, trained)})
    for part in [*pretokens[:: len(pretokens) // 25], " 你好", "<|bos|>", "é", "😀"]:
        (only,) = (
            bytepair.pretokenize(part, trained) if part not in trained.special_tokens else (part,)
        )
        output = run(reader, "--ids", path, stdin=only.encode())
        expected = trained.encode(part) if part == only else []
        if part not in trained.special_tokens:
            assert list(map(int, output.split())) == expected
        assert trained.decode(list(map(int, output.split()))) == part
        assert run(reader, path, stdin=part.encode()).decode() == part
    whole = bytepair.train(texts, 400, pattern="(?s:.+)", special_tokens=["<|bos|>"])
    path = whole.export(tmp_path / "whole.bin", "llama2c", lossy=True)
    for text in (text[:600] for text in texts[:3]):
        output = run(reader, "--ids", path, stdin=text.encode())
        assert list(map(int, output.split())) == whole.encode(text)
