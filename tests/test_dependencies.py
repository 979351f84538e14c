"""What the package does with the three libraries that it needs, and no others."""

from __future__ import annotations

import gzip
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair

ROOT = Path(__file__).resolve().parents[1]

#: The libraries that the package needs, and those that they need themselves.
ALLOWED = {
    "numpy", "click", "rich", "markdown_it", "mdurl", "pygments", "colorama", "bytepair",
}  # fmt: skip

#: A program that finds no other library begins like this.
BLOCKED = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in {ALLOWED!r} and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {{top!r}}: it is blocked", name=top)

sys.meta_path.insert(0, Blocked())
"""

TEXTS = [f"line {i % 7} of {i % 13}, number {i}: hello hello world, é\n" for i in range(2000)]


def run(code: str, folder: Path) -> str:
    """The output of a program that has only the libraries that are needed."""
    program = f"{BLOCKED}\n{inspect.cleandoc(code)}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def cli(words: str, folder: Path) -> str:
    """The output of a command that has only the libraries that are needed."""
    argv = ["bytepair", *words.split()]
    code = f"import sys\nfrom bytepair.cli import main\nsys.argv = {argv!r}\nsys.exit(main())"
    return run(code, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("".join(TEXTS), encoding="utf-8")
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "a.parquet", row_group_size=300)
    return tmp_path


def test_pyarrow_is_blocked_in_these_tests(tmp_path: Path) -> None:
    code = "import numpy, click, rich.progress\ntry:\n import pyarrow\nexcept ImportError: print(1)"
    assert run(code, tmp_path) == "1\n"


def test_training_encoding_and_saving(folder: Path) -> None:
    run(
        """
        import bytepair
        texts = open("a.txt", encoding="utf-8").read().splitlines(True)
        tok = bytepair.train(texts, 300)
        assert tok.decode(tok.encode("hello é")) == "hello é"
        tok.save("tok")
        assert bytepair.load("tok") == tok
        bytepair.train("a.txt", 300).save("of-text")
        limits = bytepair.Reading(max_chars=5000, doc_cap=4000)
        bytepair.train("a.txt", 300, reading=limits).save("limited")
        bytepair.train("a.parquet", 300).save("of-parquet")
        limits = bytepair.Reading(max_chars=50_000, doc_cap=40)
        bytepair.train("a.parquet", 300, reading=limits).save("of-less")
        """,
        folder,
    )
    text = folder / "a.txt"
    assert bytepair.load(folder / "tok") == bytepair.train(TEXTS, 300)
    assert bytepair.load(folder / "of-parquet") == bytepair.train(TEXTS, 300)
    assert bytepair.load(folder / "of-text") == bytepair.train(text, 300)
    less = bytepair.train(TEXTS, 300, reading=bytepair.Reading(max_chars=50_000, doc_cap=40))
    assert bytepair.load(folder / "of-less") == less
    limited = bytepair.train(text, 300, reading=bytepair.Reading(max_chars=5000, doc_cap=4000))
    assert bytepair.load(folder / "limited") == limited


def test_counts_and_checkpoints(folder: Path) -> None:
    run(
        """
        import bytepair
        partial = bytepair.Reading(checkpoint="partial")
        counts = bytepair.count("a.txt", reading=partial)
        assert bytepair.count("a.txt", reading=partial) == counts
        for _ in range(2):
            reading = bytepair.Reading(checkpoint="rows", errors="replace")
            rows = bytepair.count("a.parquet", reading=reading)
            assert rows == bytepair.count("a.parquet")
        (counts * 2 + counts).save("c.parquet", metadata={"corpus": "é"})
        assert bytepair.training.load_counts("c.parquet") == counts * 3
        assert bytepair.Counts.is_counts_file("c.parquet")
        assert not bytepair.Counts.is_counts_file("a.parquet")
        assert not bytepair.Counts.is_counts_file("a.txt")
        """,
        folder,
    )
    assert (
        bytepair.training.load_counts(folder / "c.parquet") == bytepair.count(folder / "a.txt") * 3
    )


def test_files_of_every_kind(folder: Path) -> None:
    pq.write_table(pa.table({"text": TEXTS}), folder / "b.parquet", compression="gzip")
    (folder / "c.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    (folder / "d.jsonl.gz").write_bytes(gzip.compress((folder / "c.jsonl").read_bytes()))
    (folder / "e.parquet.gz").write_bytes(gzip.compress((folder / "b.parquet").read_bytes()))
    run(
        """
        import pathlib, bytepair
        texts = open("a.txt", encoding="utf-8").read().splitlines(True)
        expected, tok = bytepair.count(texts), bytepair.train(texts, 300)
        for path in sorted(pathlib.Path().glob("[b-e].*")):
            assert bytepair.count(path) == expected, path
            assert bytepair.shards.write(path, tok, f"{path}-shards").documents == len(texts)
        try:
            bytepair.count("a.parquet", reading=bytepair.Reading(column="body"))
        except bytepair.errors.CorpusError as error:
            assert "it has no column 'body'; it has text" in str(error)
        talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        pathlib.Path("f.jsonl").write_text(__import__("json").dumps({"messages": talk}))
        assert len(tok.render_batch("f.jsonl")) == 1
        """,
        folder,
    )


def test_commands(folder: Path) -> None:
    size = "--vocab-size 300"
    assert "c.parquet" in cli("count a.txt -o c.parquet --checkpoint partial", folder)
    assert not (folder / "partial").exists()
    cli(f"train c.parquet {size} -o of-counts", folder)
    cli(f"train a.txt {size} -o of-text", folder)
    cli(f"train a.parquet {size} -o of-parquet", folder)
    expected = bytepair.train(folder / "a.txt", 300)
    assert bytepair.load(folder / "of-counts") == expected == bytepair.load(folder / "of-text")
    assert bytepair.load(folder / "of-parquet") == bytepair.train(TEXTS, 300)
    shown = cli("encode a.txt -t of-text", folder)
    assert [int(id) for id in re.findall(r"\d+", shown)][:5]
    (folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    shown = cli("encode a.jsonl a.parquet -t of-text", folder)
    assert len(shown.splitlines()) == 2 + len(TEXTS)


#: What needs each extra.
USES = [
    ("data", "bytepair.compat.encode_arrow(bytepair.train(['hi hi'], 257, special_tokens=()), [])"),
    ("data", "next(bytepair.corpus.read_documents('a.txt'))"),
    ("data", "bytepair.count('s3://bucket/a.parquet')"),
    ("tiktoken", "bytepair.compat.to_tiktoken(bytepair.train(['hi hi'], 265))"),
    ("hf", "bytepair.compat.to_huggingface(bytepair.train(['hi hi'], 265))"),
    (
        "chat",
        "bytepair.train(['hi'], 265).render_conversation([{'role': 'user', 'content': 'x'}], "
        "template=bytepair.chat.JinjaTemplate('x', name='x'))",
    ),
    ("reference", "bytepair.reference.split('a b', 'gpt2')"),
    ("infer", "bytepair.training.infer_mixture(bytepair.train(['hi'], 265), {'a': ['hi']})"),
    ("ray", "bytepair.distributed.count('a.txt', 'c.parquet', ray=True)"),
    ("llguidance", "bytepair.engines.to_llguidance(bytepair.train(['hi'], 265))"),
    ("xgrammar", "bytepair.engines.to_xgrammar(bytepair.train(['hi'], 265))"),
    ("torch", "bytepair.compat.pad(bytepair.train(['hi'], 265), [[1]], tensors='pt')"),
    ("plot", "bytepair.plot.bars({'a': 1})"),
]


def test_the_package_needs_three_libraries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^\w-]", line)[0] for line in project["dependencies"]}
    assert names == {"numpy", "click", "rich"}
    # What the page needs is there without an extra; test_available.py tries `hub`; two are for
    # those who work on the package.
    others, extras = {"explore", "hub", "docs", "test", "all"}, project["optional-dependencies"]
    assert {extra for extra, _ in USES} == set(extras) - others
    [everything] = extras["all"]
    named = re.fullmatch(r"bytepair\[([\w,]+)\]", everything)
    assert named
    assert named[1].split(",") == sorted(set(extras) - {"docs", "test", "all"})


@pytest.mark.parametrize(("extra", "code"), USES)
def test_what_needs_an_extra_names_it(extra: str, code: str, folder: Path) -> None:
    output = run(
        f"""
        import bytepair
        try:
            {code}
        except ImportError as error:
            print(error)
        """,
        folder,
    )
    assert f"pip install 'bytepair[{extra}]'" in output


def test_chats_reports_and_the_page(folder: Path) -> None:
    run(
        """
        import json, pathlib, urllib.request, bytepair
        tok = bytepair.train("a.txt", 300)
        talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
        ids, mask = tok.render_conversation(talk)
        assert tok.parse_conversation(ids) == {"messages": talk}
        pathlib.Path("chats.jsonl").write_text(json.dumps(talk) + "\\n")
        assert len(tok.render_batch("chats.jsonl")) == 1
        with bytepair.explore.Server({"mine": tok}) as server:
            assert b"<html" in urllib.request.urlopen(server.url).read()
        """,
        folder,
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.txt.gz"])
def test_training_on_lines_and_compressed_files(name: str, folder: Path) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    data = (lines if "jsonl" in name else "".join(TEXTS)).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    run(f"import bytepair\nbytepair.train({name!r}, 300).save('made')", folder)
    limited = f"bytepair.train({name!r}, 300, reading=bytepair.Reading(max_chars=9000))"
    run(f"import bytepair\n{limited}.save('limited')", folder)
    assert bytepair.load(folder / "made") == bytepair.train(folder / name, 300)
    assert bytepair.load(folder / "limited") == bytepair.train(
        folder / name, 300, reading=bytepair.Reading(max_chars=9000)
    )
