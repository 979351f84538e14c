"""Text rules of a hostile file: what loads can be used, or an error names the step that grows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.errors import BytepairError
from messages import told

pytest.importorskip("resource")
if not sys.platform.startswith("linux"):
    pytest.skip("address space is limited on Linux", allow_module_level=True)

TEXT = "ten letters, <s> and <s> more"
CHILD = """
import functools, resource, sys, tempfile
import bytepair
from bytepair.errors import BytepairError

print = functools.partial(print, flush=True)
path, text = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

def attempt(name, use):
    try:
        use()
    except BytepairError as error:
        assert str(error)
        print(name, type(error).__name__, str(error)[:200])
    except MemoryError:
        print(name, "MemoryError")
    else:
        print(name, "done")

tok = None
def load():
    global tok
    tok = bytepair.load(path)
attempt("load", load)
if tok is not None:
    ids = list(range(min(len(tok), 400))) * 4
    stream = tok.decode_stream()
    attempt("encode", lambda: tok.encode(text))
    attempt("special", lambda: tok.encode(text, special="all"))
    attempt("long", lambda: tok.encode(text * 2000, special="all"))
    attempt("batch", lambda: tok.encode_batch([text] * 8))
    attempt("offsets", lambda: tok.encode_offsets(text))
    attempt("count", lambda: tok.count(text))
    attempt("session", lambda: bytepair.tokenizer.Session(tok).append(text))
    attempt("decode", lambda: tok.decode(ids))
    attempt("stream", lambda: [stream.push(id) for id in ids])
    folder = tempfile.mkdtemp()
    attempt("save", lambda: tok.save(f"{folder}/saved"))
    for format in ("huggingface", "tiktoken", "gguf"):
        attempt(format, lambda: tok.export(f"{folder}/{format}", format, lossy=True))
print("end")
"""


def replacing(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def byte_level(prefix: bool = False) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": prefix,
        "trim_offsets": False,
        "use_regex": False,
    }


def split(regex: str) -> dict[str, Any]:
    return {
        "type": "Split",
        "pattern": {"Regex": regex},
        "behavior": "Isolated",
        "invert": False,
    }


def sequence(kind: str, steps: list[Any]) -> dict[str, Any]:
    return {"type": "Sequence", kind: steps}


def document(names: bool = False, **fields: Any) -> dict[str, Any]:
    """A small `tokenizer.json` with these fields."""
    letters = [chr(code) for code in range(0x21, 0x7F)] + ["Ġ", "▁", "<0x41>"]
    special = {"id": len(letters), "content": "<s>", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    model: dict[str, Any] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": {letter: number for number, letter in enumerate(letters)},
        "merges": [],
    }
    if names:
        model |= {"unk_token": "!", "end_of_word_suffix": "</w>"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special | flags],
        "normalizer": None,
        "pre_tokenizer": byte_level(),
        "post_processor": None,
        "decoder": {"type": "ByteLevel"},
        "model": model | fields.pop("model", {}),
    } | fields


BIG = "ab" * 500_000
DOUBLING = [replacing({"String": one}, other * 2) for _ in range(30) for one, other in ("ax", "xa")]
ANY = replacing({"Regex": "[a-z]"}, "xx")
DOCUMENTS: dict[str, dict[str, Any]] = {
    "doubling normalizer": document(
        normalizer=sequence("normalizers", [replacing({"String": "t"}, "a"), *DOUBLING])
    ),
    "doubling expressions": document(normalizer=sequence("normalizers", [ANY] * 60)),
    "one large replacement": document(normalizer=replacing({"Regex": "[a-z]"}, BIG)),
    "replacements of names": document(
        names=True, normalizer=sequence("normalizers", [ANY] * 60), decoder=None
    ),
    "large prefixes": document(
        normalizer=sequence("normalizers", [{"type": "Prepend", "prepend": BIG}] * 60)
    ),
    "normalized tokens": document(
        normalizer=sequence("normalizers", [ANY] * 14),
        added_tokens=[
            {
                "id": 100 + number,
                "content": f"<{number}>",
                "special": True,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": True,
            }
            for number in range(3000)
        ],
    ),
    "repeated bytes": document(
        pre_tokenizer=sequence("pretokenizers", [byte_level(prefix=True)] * 60)
    ),
    "repeated spaces": document(
        pre_tokenizer=sequence(
            "pretokenizers",
            [
                {"type": "Metaspace", "replacement": chr(0x2581 + n), "prepend_scheme": "always"}
                for n in range(60)
            ],
        )
    ),
    "many steps": document(normalizer=sequence("normalizers", [{"type": "Lowercase"}] * 100_000)),
    "many scripts": document(
        pre_tokenizer=sequence(
            "pretokenizers", [{"type": "UnicodeScripts"}] * 20_000 + [byte_level()]
        )
    ),
    "many decoders": document(
        decoder=sequence("decoders", [{"type": "Strip", "content": "x", "start": 1, "stop": 1}])
        | {"decoders": [{"type": "Strip", "content": "x", "start": 1, "stop": 1}] * 100_000}
    ),
    "pieces of no length": document(pre_tokenizer={"type": "FixedLength", "length": 0}),
    "pieces of any length": document(pre_tokenizer={"type": "FixedLength", "length": 2**64 - 1}),
    "doubling decoder": document(
        decoder=sequence("decoders", [replacing({"String": "a"}, "aa")] * 60)
    ),
    "doubling decoder of expressions": document(
        decoder=sequence("decoders", [replacing({"Regex": "[a-z]"}, "xx")] * 60)
    ),
    "a decoder that adds between": document(
        decoder=sequence("decoders", [replacing({"String": ""}, "x")] * 60)
    ),
    "a decoder with a large replacement": document(decoder=replacing({"String": "a"}, BIG)),
    "suffixes of nothing": document(
        decoder=sequence("decoders", [{"type": "BPEDecoder", "suffix": ""}] * 60)
    ),
    "words": document(
        decoder=sequence("decoders", [{"type": "WordPiece", "prefix": "##", "cleanup": True}] * 60)
    ),
    "a long prefix of symbols": document(
        model={"continuing_subword_prefix": "A" * 1_000_000, "byte_fallback": True}
    ),
    "a long suffix of symbols": document(
        model={"end_of_word_suffix": "A" * 1_000_000, "byte_fallback": True}
    ),
    "many look-arounds": document(pre_tokenizer=split(r"(?!\p{L}{20})a" * 5000)),
    "a long expression": document(decoder=replacing({"Regex": "a" * 10_000_000}, "b")),
    "many expressions": document(
        pre_tokenizer=sequence("pretokenizers", [split(rf"\p{{L}}{{1,60}}{n}") for n in range(256)])
    ),
    "many expressions of a normalizer": document(
        normalizer=sequence(
            "normalizers", [replacing({"Regex": rf"\p{{L}}{{1,60}}{n}"}, "b") for n in range(256)]
        )
    ),
    "a long template": document(
        post_processor={
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}]
            + [{"SpecialToken": {"id": "<s>", "type_id": 0}}] * 100_000,
            "pair": [],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [97] * 1000, "tokens": ["<s>"] * 1000}},
        }
    ),
}


def run(path: Path, text: str = TEXT) -> dict[str, str]:
    """What each use of a file ends with, in a child with a gigabyte."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path, text],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    assert lines[-1] == "end"
    return dict(line.split(" ", 1) for line in lines[:-1])


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.slow
def test_what_loads_can_be_used(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(DOCUMENTS[name]), encoding="utf-8")
    run(path)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("doubling expressions", "encode"),
        ("one large replacement", "encode"),
        ("repeated bytes", "encode"),
        ("doubling decoder of expressions", "decode"),
        ("suffixes of nothing", "decode"),
    ],
)
def test_the_error_names_the_step(name: str, use: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(DOCUMENTS[name]), encoding="utf-8")
    tok = bytepair.load(path)
    uses: dict[str, Callable[[], object]] = {
        "encode": lambda: tok.encode(TEXT),
        "decode": lambda: tok.decode([70, 71]),
    }
    with told(BytepairError) as caught:
        uses[use]()
    assert "64" in str(caught.value)


def test_rules_may_make_a_text_longer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(
        json.dumps(document(normalizer=replacing({"String": "a"}, "b" * 60))), encoding="utf-8"
    )
    tok = bytepair.load(path)
    assert len(tok.encode("a" * 100_000)) == 6_000_000
    assert tok.decode(tok.encode("cat")) == "c" + "b" * 60 + "t"
