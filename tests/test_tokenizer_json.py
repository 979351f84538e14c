"""The table of small `tokenizer.json` files that the tests of the Rust crate read too."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.errors import FormatError, LossError
from bytepair.formats import huggingface
from formats import json_of, small
from messages import told

tokenizers = pytest.importorskip("tokenizers")

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data/tokenizer_json.json").read_text(encoding="utf-8")
)
#: What training scripts leave behind.
TRUNCATION = {
    "direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0,
}  # fmt: skip
PADDING = {
    "strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
    "pad_type_id": 0, "pad_token": "!",
}  # fmt: skip


def read(document: dict[str, Any], folder: Path) -> bytepair.Tokenizer:
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return bytepair.load(file, "huggingface")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_table_of_files(case: dict[str, Any], tmp_path: Path) -> None:
    if "error" in case:
        place, reason = case["error"]
        with pytest.raises(FormatError) as caught:
            read(case["document"], tmp_path)
        assert caught.value.place.endswith(place)
        assert reason in caught.value.reason
        return
    tok = read(case["document"], tmp_path)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(case["document"]))
    theirs.no_padding()
    theirs.no_truncation()
    for text, ids in case["ids"]:
        assert tok.encode(text, special="all") == ids
        assert theirs.encode(text, add_special_tokens=False).ids == ids
    assert read(json.loads(huggingface.text(tok)), tmp_path) == tok


def test_truncation_and_padding_are_kept_and_not_applied(tmp_path: Path) -> None:
    document = json_of(small()) | {"truncation": TRUNCATION, "padding": PADDING}
    tok = read(document, tmp_path)
    assert tok == small()
    assert tok.encode("hello the world") == small().encode("hello the world")
    output = json_of(tok)
    assert (output["truncation"], output["padding"]) == (TRUNCATION, PADDING)
    native = bytepair.load(tok.save(tmp_path / "own"))
    assert json_of(native)["truncation"] == TRUNCATION


@pytest.mark.parametrize("name", ["byte level", "spaces of a normalizer", "spaces of Metaspace"])
def test_without_a_decoder_ids_become_text(name: str, tmp_path: Path) -> None:
    document = next(case["document"] for case in CASES if case["name"] == name)
    tok = read(document | {"decoder": None}, tmp_path)
    assert tok == read(document, tmp_path)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(document | {"decoder": None}))
    for text in ("hello he\n", "hell", ""):
        ids = tok.encode(text)
        assert ids == theirs.encode(text, add_special_tokens=False).ids
        assert tok.decode(ids) == text
    assert json_of(tok)["decoder"] is None


def test_steps_of_a_file_are_a_pattern_in_steps(tmp_path: Path) -> None:
    steps = [
        {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}"}, "behavior": "Isolated",
         "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]  # fmt: skip
    document = json_of(small()) | {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
    }
    tok = read(document, tmp_path)
    assert tok.pattern == (r"\p{N}{1,3}", bytepair.PATTERNS["gpt2"])
    assert json_of(tok)["pre_tokenizer"] == document["pre_tokenizer"]
    assert bytepair.compat.export_losses(tok, "huggingface") == []
    assert read(json_of(tok), tmp_path) == tok
    with told(LossError):
        tok.export(tmp_path / "x.tiktoken")


# ---------------------------------------------------------------------------- steps behind bytes

BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def steps(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [*items]}


@pytest.mark.parametrize("behavior", ["Isolated", "Contiguous"])
def test_punctuation_is_that_of_tokenizers(behavior: str, tmp_path: Path) -> None:
    node = {"type": "Punctuation", "behavior": behavior}
    document = json_of(small()) | {"pre_tokenizer": steps(node, {**BYTES, "use_regex": False})}
    tok = read(document, tmp_path)
    theirs = tokenizers.pre_tokenizers.Punctuation(behavior.lower())
    every = [chr(c) for c in (*range(0xD800), *range(0xE000, 0x110000))]
    for at in range(0, len(every), 2000):
        text = "a".join(every[at : at + 2000]) + "..a!?"
        assert bytepair.pretokenize(text, tok) == [
            piece for piece, _ in theirs.pre_tokenize_str(text)
        ]
    assert json_of(tok)["pre_tokenizer"] == document["pre_tokenizer"]


#: The steps of Falcon.
FALCON = steps(
    {"type": "Punctuation", "behavior": "Contiguous"},
    BYTES,
    {"type": "Digits", "individual_digits": False},
    {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated",
     "invert": False},
)  # fmt: skip


@pytest.mark.parametrize("individual", [False, True])
def test_steps_behind_bytes(individual: bool, tmp_path: Path) -> None:
    document = copy.deepcopy(json_of(small()) | {"pre_tokenizer": FALCON})
    document["model"]["ignore_merges"] = False
    document["pre_tokenizer"]["pretokenizers"][2]["individual_digits"] = individual
    tok = read(document, tmp_path)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
    numbers = "he's 1234567, 12\u00b2\u00b33 \u00f2\u00b9\u00bc5 \u0662\u0663 ...he!?"
    for text in (numbers, "", "1", " 12 123"):
        assert tok.encode(text) == theirs.encode(text, add_special_tokens=False).ids
    assert json_of(tok)["pre_tokenizer"] == document["pre_tokenizer"]
    assert read(json_of(tok), tmp_path) == tok
    document["added_tokens"] = []
    vocabulary = document["model"]["vocab"]
    vocabulary["\u00c3\u00b2"] = len(vocabulary)  # Digits would divide it
    check_ids(document, numbers, tmp_path)
    del vocabulary["\u00c3\u00b2"]
    document["model"]["ignore_merges"] = True
    assert read(document, tmp_path).encode(numbers) == tok.encode(numbers)
    vocabulary["zqzq"] = len(vocabulary)  # no merge makes it
    check_ids(document, numbers + " zqzq", tmp_path)


def check_ids(document: dict[str, Any], text: str, folder: Path) -> None:
    """The ids are those of `tokenizers`."""
    theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
    ids = read(document, folder).encode(text, special="all")
    assert ids == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("regex", [r"\s", "[0-9 ]", "\u00e9"])
def test_steps_behind_bytes_split_the_characters_that_stand_for_them(
    regex: str, tmp_path: Path
) -> None:
    node = {
        "type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip
    document = json_of(small()) | {"pre_tokenizer": steps(BYTES, node)}
    check_ids(document, "a 1\u00e9\u20a9 12 \u00e9\u00e9", tmp_path)


# ---------------------------------------------------------------------------- published files

#: Texts in which added tokens, spaces, digits and marks stand in unusual places.
HARD = [
    "",
    " ",
    "def f(x):\n        return x\n\t\tpass  # 1234567 \u00bd\u00b2\u0663\r\n\r\n",
    "<s> </s><|endoftext|><|im_start|>[CLS] [SEP]<mask> <pad>  <unk>\u2581 \u2581a<0x0A>",
    "<|0.02|><|startoftranscript|> <|en|>>>TITLE<< >>SUMMARY<<a  |||IP_ADDRESS|||b [MASK]  c",
    "e\u0301 \u1112\u1161\u11ab \u0130\u0131\u00df\ufb01 \uff21 don'T WE'LL \u00abx\u00bb ~~ --",
    "\u4e2d\u6587\u5b57\u7b26\uff0c\u6ca1\u6709\u3002 1,234.5678 \u00f2\u00f35\u00b2\u00b93",
]


@pytest.mark.parametrize(
    "name",
    [
        "claude-2", "falcon", "llama2", "mistral-7b-v0.3", "mpt", "phi-2", "phi-3-mini",
        "roberta-base", "whisper-large-v3",
    ],
)  # fmt: skip
def test_published_files_give_the_ids_of_tokenizers(
    name: str, shared: Path, documents: Callable[[str], list[str]], tmp_path: Path
) -> None:
    path = shared / "tokenizers" / f"{name}.tokenizer.json"
    tok, theirs = bytepair.load(path), tokenizers.Tokenizer.from_file(str(path))
    again = bytepair.load(tok.export(tmp_path / "tokenizer.json"))
    assert again == tok
    rng = random.Random(1)
    pieces = [*sorted(tok.special_tokens), *HARD, " ", "\n", "x", "12"]
    folders = ("english", "multilingual", "code")
    texts = [text[:2000] for folder in folders for text in documents(folder)[::400]]
    texts += [file.read_text(encoding="utf-8")[:600] for file in (shared / "udhr").glob("*.txt")]
    texts += ["".join(rng.choices(pieces, k=8)) for _ in range(40)]
    for special, as_text in (("all", False), ("text", True)):
        theirs.encode_special_tokens = as_text
        for text in [*HARD, *texts]:
            ids = theirs.encode(text, add_special_tokens=False).ids
            assert tok.encode(text, special=special) == ids, text
            assert again.encode(text, special=special) == ids
