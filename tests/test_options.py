"""Options that contradict each other, or would be ignored, are errors, everywhere.

The errors of the functions behind the commands are tested here, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.cli import COMMANDS
from bytepair.errors import ArgumentError, CountsError, DownloadError, FormatError, ShardError
from bytepair.training.options import TrainSettings
from commands import message_of
from formats import TARGETS, load_options, small, written
from messages import told
from training_options import keywords

TOK = small()


def run(
    *words: str, cwd: Path, code: int = 0, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "bytepair", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, input=stdin, check=False)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, its counts, a tokenizer, a rank file and shards."""
    cwd = tmp_path_factory.mktemp("options")
    (cwd / "a.txt").write_text("hello hello help world " * 10)
    (cwd / "names.json").write_text('{"<x>": 1}')
    tok = bytepair.train(cwd / "a.txt", 268)
    tok.save(cwd / "tokenizer")
    tok.export(cwd / "x.tiktoken", lossy=True)
    bytepair.count(cwd / "a.txt").save(cwd / "counts.parquet")
    bytepair.shards.write(cwd / "a.txt", tok, cwd / "shards")
    return cwd


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("encode --text hi a.txt", "[FILES]... and --text contradict each other"),
        ("evaluate --markdown --json", "--markdown and --json contradict each other"),
        ("evaluate --against none --against gpt2", "--against none contradicts the other"),
        ("evaluate --max-chars 5", "--max-chars would be ignored: there is neither --train nor"),
        ("evaluate --sizes x.png", "x.png must end in .csv"),
        ("evaluate --token-bytes x.txt", "x.txt must end in .npy or .pt"),
        ("plan --params 1M --depth 2", "--params and --depth contradict each other"),
        ("plan --preset nanochat-2026", "give the number of parameters (--params) or of layers"),
        ("plan --params 1M --corpus a.txt", "--corpus would be ignored: it needs --tokenizer"),
        (
            "plan --params 1M -t tokenizer --vocab-size 1M",
            "--vocab-size would be ignored: it is measured",
        ),
        ("plan --params 1M --vocab-size 9", "a vocabulary has at least the 256 bytes"),
        ("verify tokenizer --ties hf", "--ties would be ignored: it needs COUNTS"),
        ("verify shards --min-count 2", "--min-count would be ignored: shards contains shards"),
        (
            "count a.txt --rank 0 --world-size 1 --memory-limit 1M",
            "--memory-limit would be ignored: ranks and Ray read",
        ),
        ("count a.txt --ray --max-chars 9", "--max-chars would be ignored: ranks and Ray read all"),
        ("shard a.txt -o out --bos --bos-token <|bos|>", "--bos and --bos-token contradict"),
        ("shard a.txt -o out --eos --eos-token <|bos|>", "--eos and --eos-token contradict"),
    ],
)
def test_contradictory_or_ignored_options_are_wrong_usage(
    folder: Path, words: str, message: str
) -> None:
    error = run(*words.split(" "), cwd=folder, code=2).stderr.decode()
    assert message in " ".join(error.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("count a.txt --ray --rank 0", "Ray needs no ranks"),
        ("shard a.txt -o out --ray --world-size 2", "Ray needs no ranks"),
        ("download fineweb-edu --pattern *.json", "fineweb-edu has a fixed list of files"),
        ("train counts.parquet --force --max-chars 5", "the source is counts"),
        ("train counts.parquet --force --pattern gpt2", "the counts have the pattern"),
        ("convert tokenizer x.json --pattern gpt2", "not \"'(?:[sdmt]"),
        ("convert tokenizer x.json --revision main", "--revision main does not apply"),
        ("convert tokenizer x.json --special-tokens names.json", "<x>' does not exist"),
        ("verify nope", "there is no tokenizer at nope"),
        ("verify .", "there is no tokenizer at ."),
        ("verify tokenizer nope.parquet", "nope.parquet does not exist; check the path"),
        ("inspect x.tiktoken", "a rank file does not contain it"),
    ],
)  # fmt: skip
def test_errors_of_functions_are_one_line(folder: Path, words: str, message: str) -> None:
    error = run(*words.split(" "), cwd=folder, code=1).stderr.decode()
    assert message in message_of(error[error.index("error: ") :])
    assert not (folder / "x.json").exists()


def test_the_pattern_of_a_file_that_has_none_is_taken_by_all(folder: Path) -> None:
    options = ["--pattern", "nanochat"]
    assert b"268" not in run("inspect", "x.tiktoken", *options, cwd=folder).stderr
    ids = run("encode", "-t", "x.tiktoken", *options, "--text", "hello", cwd=folder).stdout
    assert [int(id) for id in ids.split()] == bytepair.load(folder / "tokenizer").encode("hello")
    words = ["decode", "-t", "x.tiktoken", *options]
    assert run(*words, *ids.decode().split(), cwd=folder).stdout == b"hello"
    assert b"verified" in run("verify", "x.tiktoken", *options, cwd=folder).stdout
    words = ["plan", "--params", "1M", "-t", "x.tiktoken", *options, "--corpus", "a.txt"]
    assert b"parameters" in run(*words, cwd=folder).stdout


def test_a_foreign_tokenizer_is_verified(folder: Path) -> None:
    bytepair.load(folder / "tokenizer").export(folder / "foreign", "huggingface")
    assert b"verified, all tables are correct" in run("verify", "foreign", cwd=folder).stdout


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_has_a_short_name(name: str, tmp_path: Path) -> None:
    words = [name] if name else []
    short, long = (run(*words, flag, cwd=tmp_path).stdout for flag in ("-h", "--help"))
    assert short == long
    assert b"-h, --help" in short


def test_a_dash_is_standard_input(folder: Path, tmp_path: Path) -> None:
    text = (folder / "a.txt").read_bytes()
    run("train", "-", "--vocab-size", "268", "-o", "out", cwd=tmp_path, stdin=text)
    assert bytepair.load(tmp_path / "out") == bytepair.load(folder / "tokenizer")
    run("count", "-", cwd=tmp_path, stdin=text)
    assert bytepair.training.load_counts(tmp_path / "counts.parquet") == bytepair.count(
        [text.decode()]
    )
    tokenizer = str(folder / "tokenizer")
    twice = run("encode", "-", "-t", tokenizer, cwd=tmp_path, stdin=text).stdout
    assert twice == run("encode", "-t", tokenizer, cwd=tmp_path, stdin=text).stdout != b"\n"
    error = run("count", "-", "--checkpoint", "c", cwd=tmp_path, stdin=text, code=2).stderr
    assert b"standard input cannot be read again" in error
    error = run("train", "-", cwd=tmp_path, stdin=b"a\xff", code=1).stderr
    assert b"standard-input.txt is not UTF-8 at byte 1" in error


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with told(ImportError):
        bytepair.compat.to_huggingface(TOK)


def test_sizes_of_vocabularies_have_endings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello help world " * 10)
    run("train", "a.txt", "--vocab-size", "0.266k", cwd=tmp_path)
    assert bytepair.load(tmp_path / "tokenizer").vocab_size == 266
    error = run("train", "a.txt", "--vocab-size", "64kB", cwd=tmp_path, code=2).stderr.decode()
    assert "'64kB' is not an integer" in error
    out = run("plan", "--params", "1M", "--vocab-size", "64k", cwd=tmp_path).stdout
    assert b"shards" in out


def test_a_min_count_that_is_too_high_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello help world " * 10)
    words = ["train", "a.txt", "--vocab-size", "300", "--min-count", "1000"]
    error = run(*words, cwd=tmp_path).stderr.decode()
    assert "no more pairs to merge that occur at least 1,000 times (--min-count)" in error
    assert "lower --min-count" in error


@pytest.mark.parametrize("call", [bytepair.train, TrainSettings])
def test_the_order_of_special_tokens_is_that_of_their_ids(call: Any) -> None:
    more = [["hello"]] if call is bytepair.train else []
    for wrong in [
        {"<|bos|>": 0}, {"<|bos|>"},
        "<|bos|>",
    ]:  # fmt: skip
        with told(TypeError):
            call(*more, vocab_size=265, special_tokens=wrong)


def test_options_of_training_are_checked_before_the_text_is_read() -> None:
    def text() -> Any:
        assert not wrong, "the text is read"
        yield ""

    wrong: list[dict[str, Any]] = [
        {"vocab_size": 264}, {"min_count": 0}, {"ties": "x"}, {"pattern": "("},
        {"special_tokens": ["a", "a"]}, {"initial_tokens": ["two words"]}, {"max_token_bytes": 0},
        {"errors": "x"}, {"memory_limit": 0}, {"max_chars": 0},
    ]  # fmt: skip
    for option in wrong:
        with pytest.raises(ValueError):  # noqa: PT011
            bytepair.train(text(), **keywords(**{"vocab_size": 300, **option}))


def test_functions_refuse_what_they_would_ignore(tmp_path: Path) -> None:
    counts = bytepair.count(["hello hello"])
    with told(CountsError):
        bytepair.extend(
            bytepair.train(counts, 266), counts, 1, reading=bytepair.Reading(column="body")
        )
    with told(ArgumentError):
        bytepair.plan.plan_data(1e6, depth=2, width=4)
    with told(DownloadError):
        bytepair.corpus.download_dataset(pattern="*.json")
    with told(ShardError):
        bytepair.distributed.count(["a"], tmp_path / "c.parquet", ray=True, rank=0)


@pytest.mark.parametrize("format", TARGETS)
def test_a_file_and_the_caller_do_not_contradict_each_other(format: str, tmp_path: Path) -> None:
    path, options = written(TOK, tmp_path, format), load_options(TOK, format)
    assert bytepair.load(path, format, **options) == bytepair.load(
        path, format, **{**options, "pattern": "gpt2", "special_tokens": TOK.special_tokens}
    )
    if "pattern" not in options and format != "gpt2":
        with told(FormatError):
            bytepair.load(path, format, **options, pattern="qwen2")
    if "special_tokens" not in options:
        with told(FormatError):
            bytepair.load(path, format, **options, special_tokens={"<|bos|>": 7})
    with told(FormatError):
        bytepair.load(path, format, **options, revision="main")


def test_an_object_has_no_format_and_no_revision() -> None:
    for option in ({"format": "huggingface"}, {"revision": "main"}):
        with told(FormatError):
            bytepair.load(bytepair.compat.to_tiktoken(TOK), **option)  # type: ignore[arg-type]
    assert json.loads(bytepair.compat.to_huggingface(TOK).to_str())


def test_counts_replace_neither_text_nor_what_is_read(tmp_path: Path) -> None:
    text = "hello hello help " * 10
    (tmp_path / "a.txt").write_text(text)
    refused = run("count", "a.txt", "-o", "a.txt", cwd=tmp_path, code=2).stderr
    assert b"a.txt is also read" in refused
    assert (tmp_path / "a.txt").read_text() == text
    for _ in range(2):  # counts may be replaced
        run("count", "a.txt", "-o", "counts.parquet", cwd=tmp_path)
    refused = run("count", ".", "-o", "counts.parquet", cwd=tmp_path, code=2).stderr
    assert b"counts.parquet is also read" in refused


def test_shards_without_a_manifest_are_not_verified(folder: Path, tmp_path: Path) -> None:
    run("shard", "a.txt", "-t", "tokenizer", "-o", str(tmp_path / "s"), cwd=folder)
    run("verify", "s", cwd=tmp_path)
    (tmp_path / "s" / "manifest.json").unlink()
    refused = run("verify", "s", cwd=tmp_path, code=1).stderr
    assert b"there is no s/manifest.json: no shards are here" in refused
