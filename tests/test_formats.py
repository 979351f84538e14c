"""Formats in general: round trips, recognition, losses, atomic writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tiktoken

import bytepair
from bytepair import AddedToken
from bytepair.cli import option
from bytepair.errors import FormatError, LossError, UnsupportedError
from bytepair.formats import registry, writing
from formats import TARGETS, load_options, small, written
from messages import told

#: GPT-2's pattern and one special token of a usual name, which all formats can store.
TOK = bytepair.train(
    bytepair.sample.paths(), 1200, pattern="gpt2", special_tokens=["<|endoftext|>"]
)
*FIRST, LAST = TOK.merges()
#: The same merges in another order, which the rule of ranks cannot express.
LIST = bytepair.Tokenizer.from_merges(
    TOK.mergeable_ranks(), [LAST, *FIRST], pattern="gpt2", special_tokens=TOK.special_tokens
)


@pytest.mark.parametrize("first", TARGETS)
@pytest.mark.parametrize("second", TARGETS)
def test_every_format_to_every_other_and_back(first: str, second: str, tmp_path: Path) -> None:
    one = bytepair.load(written(TOK, tmp_path, first), first, **load_options(TOK, first))
    (tmp_path / "2").mkdir()
    two = bytepair.load(written(one, tmp_path / "2", second), second, **load_options(TOK, second))
    assert two == TOK


KINDS = {
    "ranks": TOK,
    "a list of merges": LIST,
    "whole pretokens first": bytepair.Tokenizer.from_merges(
        TOK.mergeable_ranks(), TOK.merges()[::2], pattern="llama3", ignore_merges=True
    ),
    "normalized": small(pattern="qwen2", normalizer="NFKC"),
    "lower case": small(pattern="qwen2", normalizer=["Lowercase", "StripAccents"]),
    "in steps": small(pattern=(r"\d", r"\s+\S|\p{L}+")),
    "taking white space": small(
        pattern=r"\p{L}+|\P{L}",
        special_tokens=[
            AddedToken("<|endoftext|>", 259, lstrip=True, rstrip=True),
            AddedToken("<|bos|>", 260, rstrip=True),
        ],
    ),
    "as words": small(special_tokens=[AddedToken("word", 259, single_word=True, special=False)]),
    "holes": small(special_tokens={"<|endoftext|>": 300, "naïve ▁": 271}),
    "a special token that looks ordinary": small(special_tokens={"hell": 300}),
    "no special tokens": small(special_tokens={}),
}


#: Options that the caller passes when reading, and differences that only engines have.
HARMLESS = {
    "the split pattern",
    "the start of a text",
    "characters without a token",
    "BOS and EOS",
}


@pytest.mark.parametrize("format", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_lossless_export_loads_equal(kind: str, format: str, tmp_path: Path) -> None:
    tok = KINDS[kind]
    lost = bytepair.compat.export_losses(tok, format)
    if lost:
        with told(LossError, format):
            tok.export(tmp_path / TARGETS[format], format)
    try:
        path = written(tok, tmp_path, format)
    except LossError as error:  # nothing at all can be written
        assert error.lost[0].startswith(("the token", "two ids"))  # noqa: PT017
        return
    options = load_options(tok, format) | ({} if format != "gpt2" else {"pattern": tok.pattern})
    try:
        back = bytepair.load(path, format, **options)
    except FormatError as error:
        assert lost, error  # noqa: PT017 - what is lost may be what the file needs
        return
    if not lost or (format != "gguf" and HARMLESS.issuperset(one.split(":")[0] for one in lost)):
        assert back == tok
    assert back.vocab_size <= tok.vocab_size


def test_every_format_is_in_the_table() -> None:
    assert {*registry.FORMATS, "bytepair"} == {*TARGETS, "tekken", "sentencepiece"}


TEXTS = [path.read_text(encoding="utf-8")[:3000] for path in bytepair.sample.paths()]


@pytest.mark.parametrize("format", ["bytepair", "huggingface", "gpt2", "gguf"])
@pytest.mark.parametrize("ignore_merges", [False, True])
@pytest.mark.parametrize("like_ranks", [False, True])
def test_a_list_of_merges_comes_back(
    format: str, ignore_merges: bool, like_ranks: bool, tmp_path: Path
) -> None:
    tok = bytepair.Tokenizer.from_merges(
        TOK.mergeable_ranks(),
        TOK.merges() if like_ranks else LIST.merges(),
        pattern="llama3" if ignore_merges and format == "gguf" else "gpt2",
        special_tokens=TOK.special_tokens,
        ignore_merges=ignore_merges,
    )
    back = bytepair.load(written(tok, tmp_path, format), format)
    if like_ranks and format == "gpt2":  # the file does not store that it was a list
        assert back == TOK
        assert back.encode_batch(TEXTS) == tok.encode_batch(TEXTS)
    else:
        assert (back == tok) is not (ignore_merges and format == "gpt2")


@pytest.mark.parametrize("format", TARGETS)
def test_the_format_of_a_file_is_recognised(format: str, tmp_path: Path) -> None:
    path = written(TOK, tmp_path, format)
    back = bytepair.load(path, **load_options(TOK, format))
    assert back.mergeable_ranks() == TOK.mergeable_ranks()
    if path.is_dir():
        return
    plain = path.rename(tmp_path / "plain")  # without the name of the format, too
    assert bytepair.load(plain, **load_options(TOK, format)).special_tokens == TOK.special_tokens


def test_objects_and_names() -> None:
    pytest.importorskip("tokenizers")
    assert bytepair.load(bytepair.compat.to_tiktoken(TOK)) == TOK
    assert bytepair.load(bytepair.compat.to_huggingface(LIST)) == LIST
    assert bytepair.load(bytepair.compat.to_huggingface(TOK)) == TOK
    with told(TypeError):
        bytepair.load(3)


def test_an_encoding_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    encoding = bytepair.compat.to_tiktoken(TOK, "gpt2")
    monkeypatch.setattr(tiktoken, "get_encoding", {"gpt2": encoding}.__getitem__)
    loaded = bytepair.load("gpt2")
    assert loaded == TOK
    assert loaded.notes["name"] == "gpt2"
    with told(FileNotFoundError):
        bytepair.load("nonsense")


def test_of_two_names_for_one_id_the_first_is_kept() -> None:
    encoding = tiktoken.Encoding(
        "harmony",
        pat_str=TOK.pattern,
        mergeable_ranks=TOK.mergeable_ranks(),
        special_tokens={"<|end|>": 2000, "<|reserved|>": 2000},
    )
    with told(UserWarning):
        assert bytepair.load(encoding).special_tokens == {"<|end|>": 2000}


def test_comments_in_patterns_mean_nothing() -> None:
    for pattern in (r"(?#NFC)\w|\W", r"\w+(?#then)|\W", r"(?#lstrip 2000)\w+|\W"):
        encoding = tiktoken.Encoding(
            "x",
            pat_str=pattern,
            mergeable_ranks=TOK.mergeable_ranks(),
            special_tokens={"<a>": 2000},
        )
        tok = bytepair.load(encoding)
        assert (tok.pattern, bytepair.tokenizer.text_rules(tok).normalizer) == (pattern, [])
        for text in ("e\u0301a", "aab b", " <a>"):
            assert tok.encode(text, special="all") == encoding.encode(text, allowed_special="all")


# ---------------------------------------------------------------------------- losses


@pytest.mark.parametrize(
    ("format", "lost"),
    [
        ("tiktoken", ["the split pattern", "the special tokens"]),
        ("gpt2", ["the split pattern", "special tokens"]),
        ("llama2c", ["the split pattern", "the special tokens"]),
        ("qwen3", ["the split pattern", "the special tokens"]),
        ("gguf", ["llama.cpp has no name for it"]),
    ],
)
def test_what_is_lost_is_said(format: str, lost: list[str], tmp_path: Path) -> None:
    tok = small(pattern="nanochat")
    with told(LossError) as caught:
        tok.export(tmp_path / "x", format)
    assert list(tmp_path.iterdir()) == []
    for part in lost:
        assert any(part in each for each in caught.value.lost), caught.value.lost
    assert str(caught.value).startswith(f"the format {format} cannot represent")


@pytest.mark.parametrize("format", ["bytepair", "huggingface", "nanochat"])
def test_lossless_formats_keep_everything(format: str, tmp_path: Path) -> None:
    tok = small(pattern=r"\p{L}+|\P{L}+?", special_tokens={"<|a|>": 300, "naïve ▁": 271})
    path = tok.export(tmp_path / TARGETS[format], format)
    assert bytepair.load(path, **load_options(tok, format)) == tok


@pytest.mark.parametrize("format", ["tiktoken", "nanochat"])
def test_a_list_of_merges_is_lost_to_tiktoken(format: str, tmp_path: Path) -> None:
    with told(LossError):
        LIST.export(tmp_path / "x", format)


def test_special_tokens_that_look_like_ordinary_ones(tmp_path: Path) -> None:
    tok = small(special_tokens={"hell": 300})
    for format in ("huggingface", "gguf", "gpt2"):
        with told(LossError):
            tok.export(tmp_path / "x", format)
    without = small(special_tokens={})
    assert bytepair.load(written(tok, tmp_path, "huggingface")) == without
    assert bytepair.load(written(tok, tmp_path, "gpt2")).encode("hell") == [258]


def test_a_pattern_that_another_engine_may_read_otherwise(tmp_path: Path) -> None:
    with told(LossError):
        small(pattern=r"\w+|\W+").export(tmp_path / "tokenizer.json")
    with told(LossError):
        bytepair.compat.to_huggingface(small(pattern=r"\w+|\W+"))


def test_formats_that_are_not_written(tmp_path: Path) -> None:
    with told(ValueError):
        TOK.export(tmp_path / "x", "tekken")
    with told(ValueError):
        TOK.export(tmp_path / "x", "tekken")
    assert writing._NAMES == option.WRITTEN
    with told(ValueError):
        TOK.export(tmp_path / "x", "word")
    with told(ValueError):
        TOK.export(tmp_path / "x")
    with told(ValueError):
        bytepair.load(TOK.save(tmp_path), "word")


# ---------------------------------------------------------------------------- what is no tokenizer


def test_what_is_no_tokenizer(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for data in [
        b"",
        b"hello there",
        b"\x0a\x0e\x0a\x05<unk>",
        b"{}",
        b"GGUF",
        b"BYTEPAIR",
    ]:
        file.write_bytes(data)
        with told(bytepair.errors.FileFormatError):
            bytepair.load(file)
    with told(FileNotFoundError):
        bytepair.load(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="needs pipes that have names")
def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with told(FormatError):
        bytepair.load(tmp_path / "pipe")


@pytest.mark.parametrize("format", ["tiktoken", "llama2c", "qwen3"])
def test_a_pattern_is_not_guessed(format: str, tmp_path: Path) -> None:
    path = written(TOK, tmp_path, format)
    with told(FormatError):
        bytepair.load(path, format)


@pytest.mark.parametrize("format", ["llama2c", "qwen3"])
def test_special_tokens_are_not_guessed(format: str, tmp_path: Path) -> None:
    path = written(TOK, tmp_path, format)
    with told(FormatError):
        bytepair.load(path, format, pattern="gpt2")
    plain = bytepair.load(path, format, pattern="gpt2", special_tokens={})
    assert plain.token_id(b"<|endoftext|>") == TOK.special_tokens["<|endoftext|>"]
    for wrong in ({"<|endoftext|>": 5}, {"nope": 1199}):
        with told(FormatError):
            bytepair.load(path, format, pattern="gpt2", special_tokens=wrong)


def test_the_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(b"IQ== 0\nIQ== 1\n")
    with pytest.raises(FormatError) as caught:
        bytepair.load(path, pattern="gpt2")
    assert str(caught.value) == f"{path}: line 2: the token b'!' stands twice"
    assert (caught.value.place, caught.value.reason) == (
        f"{path}: line 2", "the token b'!' stands twice",
    )  # fmt: skip


# ---------------------------------------------------------------------------- writing


@pytest.mark.parametrize("format", TARGETS)
def test_nothing_is_left_beside_what_is_written(format: str, tmp_path: Path) -> None:
    path = written(TOK, tmp_path, format)
    again = written(TOK, tmp_path, format)
    assert path == again
    assert list(tmp_path.iterdir()) == [path]
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize("format", ["huggingface", "gguf"])
def test_what_fails_leaves_the_old_file(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(TOK, tmp_path, format)

    def fail(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        LIST.export(path, format, lossy=True, overwrite=True)
    monkeypatch.undo()
    assert bytepair.load(path) == TOK
    assert list(tmp_path.iterdir()) == [path]


WRITER = """
import sys, bytepair
tok = bytepair.load(sys.argv[1])
print("ready", flush=True)
while True:
    tok.export(sys.argv[2], sys.argv[3], lossy=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("format", ["bytepair", "huggingface", "tiktoken", "gguf"])
def test_two_writers_and_a_kill_leave_a_whole_file(format: str, tmp_path: Path) -> None:
    target = tmp_path / TARGETS[format]
    writers = []
    for tok, name in ((TOK, "one"), (LIST, "two")):
        words = [str(tok.save(tmp_path / name)), str(target), format]
        writers.append(
            subprocess.Popen([sys.executable, "-c", WRITER, *words], stdout=subprocess.PIPE)
        )
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    try:
        while not target.exists():
            time.sleep(0.01)
        for _ in range(30):  # at any time the file is one or the other, whole
            tok = bytepair.load(target, format, **load_options(TOK, format))
            assert tok.mergeable_ranks() == TOK.mergeable_ranks()
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    assert bytepair.load(target, format, **load_options(TOK, format)) in (TOK, LIST)


# ---------------------------------------------------------------------------- the command


def run(*words: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "bytepair", "convert", *words],
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_the_command_converts(tmp_path: Path) -> None:
    source = str(TOK.save(tmp_path / "source"))
    out, _ = run(source, str(tmp_path / "tokenizer.json"))
    assert out == f"1,200 ids written to {tmp_path / 'tokenizer.json'}\n"
    _, error = run(source, str(tmp_path / "x.tiktoken"), code=1)
    assert "cannot represent all of this tokenizer: the split pattern" in error
    run(source, str(tmp_path / "x.tiktoken"), "--lossy")
    names = tmp_path / "names.json"
    names.write_text('{"<|endoftext|>": 1199}')
    words = ["--pattern", "gpt2", "--special-tokens", str(names), "--format", "bytepair"]
    run(str(tmp_path / "x.tiktoken"), str(tmp_path / "again"), *words)
    assert bytepair.load(tmp_path / "again") == TOK
    run(source, str(tmp_path / "x"), code=2)
    run(source, str(tmp_path / "x"), "--format", "nope", code=2)
    for wrong in ("[", '{"a": "b"}'):
        names.write_text(wrong)
        run(source, str(tmp_path / "x"), "--special-tokens", str(names), code=1)


def test_unsupported_is_a_format_error() -> None:
    error = UnsupportedError("model.type", "'Unigram' is not BPE")
    assert isinstance(error, FormatError)
    assert str(error) == "model.type: 'Unigram' is not BPE"
