"""A token without bytes, which Whisper's files list: no text has it, and no file loses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiktoken

import bytepair
from formats import json_of

PLAIN = bytepair.train(["hello hello"] * 2, 259, pattern="gpt2", special_tokens=[])
ID = PLAIN.vocab_size
SPECIAL = {"<|endoftext|>": ID + 1}


def is_kept(tok: bytepair.Tokenizer) -> None:
    assert tok.notes["empty_token"] == str(ID)
    assert tok.special_tokens == SPECIAL
    assert tok.encode("hello<|endoftext|>", special="all") == [*PLAIN.encode("hello"), ID + 1]


def rank_file(folder: Path) -> bytepair.Tokenizer:
    path = PLAIN.export(folder / "plain.tiktoken", lossy=True)
    with path.open("ab") as file:
        file.write(b"= %d\n" % ID)
    return bytepair.load(path, pattern="gpt2", special_tokens=SPECIAL)


def test_of_a_rank_file(tmp_path: Path) -> None:
    tok = rank_file(tmp_path)
    is_kept(tok)
    file = tok.export(tmp_path / "again.tiktoken", lossy=True)
    assert file.read_bytes() == (tmp_path / "plain.tiktoken").read_bytes()


def test_of_an_encoding() -> None:
    ranks = PLAIN.mergeable_ranks() | {b"": ID}
    pattern = bytepair.PATTERNS["gpt2"]
    is_kept(
        bytepair.load(
            tiktoken.Encoding("e", pat_str=pattern, mergeable_ranks=ranks, special_tokens=SPECIAL)
        )
    )


@pytest.mark.parametrize("format", ["huggingface", "gpt2"])
def test_of_names(format: Any, tmp_path: Path) -> None:
    tok = rank_file(tmp_path)
    path = tok.export(tmp_path / "folder", format)
    file = path / {"huggingface": "tokenizer.json", "gpt2": "vocab.json"}[format]
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document.get("model", {}).get("vocab", document)[""] == ID
    is_kept(bytepair.load(path))


def test_it_goes_where_its_id_does(tmp_path: Path) -> None:
    tok = rank_file(tmp_path)
    other = bytepair.Tokenizer.from_ranks(
        tok.mergeable_ranks(), pattern="gpt2", special_tokens={"<a>": ID}
    ).replace(notes=tok.notes)
    assert "" not in json_of(other)["model"]["vocab"]
    assert "empty_token" not in bytepair.prune(tok, 258).tokenizer.notes
