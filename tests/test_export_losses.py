"""What an export loses: each value comes back in the format's own library, or is named."""

from __future__ import annotations

import base64
import json
import pickle
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import tiktoken

import bytepair
import json_documents
from bytepair.compat import export_losses
from bytepair.errors import BytepairError
from bytepair.formats import registry
from bytepair.formats.parts import WrittenFormat
from formats import TARGETS, json_of, load, small
from test_formats_gguf import llama_cpp_ids

tokenizers = pytest.importorskip("tokenizers")

#: Texts in which each of the values below shows.
TEXTS = [
    "hello hell", "Hell HELLO", "he\u0301 h\u00e9 \ufb01 \u2460", "a b\n\nhell  hell",
    "12345 1 1234567",
    "x<|endoftext|> hell", "  </s>  hell", "<|fim_prefix|>he", "<|channel|>he",
    "\x0bhell", "aword word",
    "he  word  ll", "it's IT'S", "hell<eos>", "a.b,c", "q\tq",
]  # fmt: skip


def base() -> dict[str, Any]:
    """The `tokenizer.json` of a tokenizer with the pattern of GPT-2 and one special token."""
    document = json_of(small(special_tokens={"<|endoftext|>": 259}))
    document["model"]["vocab"]["<|endoftext|>"] = 259
    return document


def added(content: str, id: int = 260, **flags: bool) -> dict[str, Any]:
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": id, "content": content, **usual, "special": True, **flags}


def normalized(*steps: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["normalizer"] = {"type": "Sequence", "normalizers": list(steps)}

    return change


def with_token(*tokens: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["added_tokens"].extend(tokens)
        document["model"]["vocab"].update(
            (token["content"], token["id"]) for token in tokens if token["content"] != "hell"
        )

    return change


def split_in_steps(document: dict[str, Any]) -> None:
    punctuation = {"type": "Punctuation", "behavior": "Contiguous"}
    steps = [punctuation, document["pre_tokenizer"], {"type": "Digits", "individual_digits": False}]
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}


def space_before(document: dict[str, Any]) -> None:
    document["pre_tokenizer"] = {
        "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True,
    }  # fmt: skip


def split_by(regex: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        split = {
            "type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False,
        }  # fmt: skip
        level = {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
            "use_regex": False,
        }  # fmt: skip
        document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, level]}

    return change


def other_merges(document: dict[str, Any]) -> None:
    model = document["model"]
    model["vocab"] |= {"el": 261, "ell": 262}
    model["merges"] = ["e l", *model["merges"]]


def whole_pretokens(document: dict[str, Any]) -> None:
    document["model"]["vocab"] |= {"hello": 261}
    document["model"]["ignore_merges"] = True


def without_a_byte(document: dict[str, Any]) -> None:
    del document["model"]["vocab"]["\u010b"]  # the vertical tab


def around(document: dict[str, Any]) -> None:
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            "<|endoftext|>": {"id": "<|endoftext|>", "ids": [259], "tokens": ["<|endoftext|>"]}
        },
    }


VALUES: dict[str, Callable[[dict[str, Any]], None]] = {
    "nothing else": lambda _: None,
    "NFC": normalized({"type": "NFC"}),
    "NFKC": normalized({"type": "NFKC"}),
    "lower case": normalized({"type": "Lowercase"}),
    "no accents": normalized({"type": "NFD"}, {"type": "StripAccents"}),
    "replacing": normalized({"type": "Replace", "pattern": {"String": "l"}, "content": "h"}),
    "stripping": normalized({"type": "Strip", "strip_left": True, "strip_right": True}),
    "a prefix": normalized({"type": "Prepend", "prepend": "h"}),
    "another pattern": split_by(bytepair.PATTERNS["qwen2"]),
    "a pattern that leaves out text": split_by(r"\w+|\s+"),
    "steps": split_in_steps,
    "a space before": space_before,
    "lstrip": with_token(added("</s>", lstrip=True, special=False)),
    "rstrip": with_token(added("<|im_end|>", rstrip=True), added("he<", 261, rstrip=True)),
    "single words": with_token(added("word", single_word=True, special=False)),
    "found in every text": with_token(added("<|user|>", special=False)),
    "found where normalized": lambda document: (
        normalized({"type": "Lowercase"})(document),
        with_token(added("hell", 258, special=False, normalized=True))(document),
    )[0],
    "ordinary, like control": with_token(
        added("</s>", special=False), added("<|fim_prefix|>", 261, special=False)
    ),
    "special, like ordinary": with_token(added("<|channel|>"), added("<|message|>", 261)),
    "special, but a pretoken": with_token(added("word", 300)),
    "other merges": other_merges,
    "whole pretokens": whole_pretokens,
    "a byte without a token": without_a_byte,
    "tokens around": around,
}  # fmt: skip


def special_of(tok: bytepair.Tokenizer) -> dict[str, int]:
    return dict(tok.special_tokens)


def ids_of_tokenizers(path: Path, _tok: bytepair.Tokenizer) -> list[list[int] | None]:
    library = tokenizers.Tokenizer.from_file(str(path))
    library.encode_special_tokens = True

    def ids(text: str) -> list[int] | None:
        try:
            return list(library.encode(text, add_special_tokens=False).ids)
        except Exception as error:  # the library raises no narrower class
            assert "Unk token" in str(error)  # noqa: PT017
            return None

    return [ids(text) for text in TEXTS]


def ids_of_tiktoken(path: Path, tok: bytepair.Tokenizer) -> list[list[int]]:
    lines = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    pattern = tok.pattern if isinstance(tok.pattern, str) else bytepair.PATTERNS["gpt2"]
    encoding = tiktoken.Encoding(
        "x", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special_of(tok)
    )
    return ids_of_encoding(encoding)


def ids_of_encoding(encoding: tiktoken.Encoding) -> list[list[int]]:
    def ids(text: str) -> list[int]:
        try:
            return encoding.encode(text, disallowed_special=())
        except BaseException as error:
            assert type(error).__name__ == "PanicException"  # noqa: PT017
            return [-1]

    return [ids(text) for text in TEXTS]


def ids_of_pickle(path: Path, _tok: bytepair.Tokenizer) -> list[list[int]]:
    return ids_of_encoding(pickle.loads((path / "tokenizer.pkl").read_bytes()))


def ids_of_gpt2(path: Path, _tok: bytepair.Tokenizer) -> list[list[int]]:
    model = tokenizers.models.BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt"))
    library = tokenizers.Tokenizer(model)
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return [library.encode(text).ids for text in TEXTS]


def ids_of_llama_cpp(path: Path, tok: bytepair.Tokenizer) -> list[list[int]]:
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gguf")
    return llama_cpp_ids(path, TEXTS, special=False)


LIBRARIES: dict[str, Callable[[Path, bytepair.Tokenizer], Sequence[list[int] | None]]] = {
    "huggingface": ids_of_tokenizers,
    "tiktoken": ids_of_tiktoken,
    "nanochat": ids_of_pickle,
    "gpt2": ids_of_gpt2,
    "gguf": ids_of_llama_cpp,
}


def ids_here(tok: bytepair.Tokenizer, text: str) -> list[int] | None:
    try:
        return tok.encode(text)
    except bytepair.errors.BytepairError:
        return None  # a byte without a token


@pytest.mark.parametrize("format", LIBRARIES)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_comes_back_in_the_library_of_a_format_or_is_named(
    value: str, format: str, tmp_path: Path
) -> None:
    plain, document = base(), base()
    VALUES[value](document)
    tok = load(document)
    lost = set(export_losses(tok, format)) - set(export_losses(load(plain), format))
    if lost:
        return
    path = tok.export(tmp_path / TARGETS[format], format, lossy=True)
    rows = LIBRARIES[format](path, tok)
    for text, ids in zip(TEXTS, rows, strict=True):
        here = ids_here(tok, text)
        assert here == ids or (here is None and format == "huggingface"), text


@pytest.mark.parametrize("value", VALUES)
def test_a_gguf_file_is_read_as_llama_cpp_reads_it(value: str, tmp_path: Path) -> None:
    """Nothing that llama.cpp does not know is restored: files that lose something are not equal."""
    document = base()
    VALUES[value](document)
    tok = load(document)
    back = bytepair.load(tok.export(tmp_path / "x.gguf", lossy=True))
    lost = set(export_losses(tok, "gguf")) - set(export_losses(load(base()), "gguf"))
    if not lost:
        assert all(ids_here(tok, text) == ids_here(back, text) for text in TEXTS)
    elif value not in {"tokens around", "a byte without a token"}:
        assert back != tok


@pytest.mark.parametrize("format", sorted({*registry.FORMATS} - {"sentencepiece"}))
@pytest.mark.parametrize("value", ["NFC", "lower case", "replacing", "a prefix", "steps"])
def test_every_format_but_tokenizer_json_names_a_change_of_texts(value: str, format: str) -> None:
    document = base()
    VALUES[value](document)
    lost = set(export_losses(load(document), format)) - set(export_losses(load(base()), format))
    assert bool(lost) == (format != "huggingface")


def test_losses_of_a_vocabulary_with_gaps(tmp_path: Path) -> None:
    ranks = {bytes([byte]): 3 * byte for byte in range(256)}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt2")
    for format, lost in (("gguf", "no token"), ("llama2c", "without a token")):
        assert lost in " ".join(export_losses(tok, format))
        assert tok.export(tmp_path / format, format, lossy=True).stat().st_size > 766 * 8


@pytest.mark.parametrize("format", ["tekken", "sentencepiece"])
def test_a_format_that_is_only_read_loses_everything(format: str) -> None:
    assert export_losses(small(), format)


def test_lossless_says_whether_every_text_comes_back() -> None:
    for value, change in VALUES.items():
        document = base()
        change(document)
        tok = load(document)
        if value in {"a byte without a token", "stripping", "lstrip", "lower case", "NFKC"}:
            assert not bytepair.tokenizer.is_lossless(tok), value
        if bytepair.tokenizer.is_lossless(tok):
            assert [tok.decode(tok.encode(text)) for text in TEXTS] == TEXTS


def test_bytes_that_no_text_has_need_no_token() -> None:
    document = base()
    for byte in (0xC0, 0xC1, *range(0xF5, 0x100)):
        del document["model"]["vocab"][bytepair._core.to_characters(bytes([byte]))]
    assert bytepair.tokenizer.is_lossless(load(document))


def test_ids_that_a_list_of_merges_gives_are_not_called_nearly_equal() -> None:
    document = base()
    other_merges(document)
    (lost,) = (one for one in export_losses(load(document), "nanochat") if "merges" in one)
    assert "few" not in lost


#: Texts of which one does not come back if a rule changes any.
EVERYTHING = [
    *map(chr, range(0x80)), "\u0085", "\u00a0 x", "é", "e\u0301", "ß", "ﬁ", "½", "Ä", "Ġ", "ĊĠ",
    "中 文", "İ", "\u2581", "a\u2581b", " a", "a ", "  a  b  ", "\n", " \n", "A", "aB", "<s>",
    " <s> ", "<unk>", "##a", "a</w>", "<0x0A>", "'s don't", "a , b . c", "1 2", "٣", "²", "\ufeff",
    "😀", "\U0010fffd", "ab", "\ue000", "\U000e0001", "x" * 50, " the", "a, \u0327b", "''",
    *json_documents.PIECES,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_lossless_is_true_exactly_if_every_text_comes_back(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(15):
        document = json_documents.document(rng)
        for part in ("normalizer", "pre_tokenizer", "decoder", "added_tokens"):
            if rng.random() < 0.5:  # most rules lose something
                document[part] = base()[part]
        (tmp_path / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
        try:
            tok = bytepair.load(tmp_path / "tokenizer.json")
        except BytepairError:
            continue
        names = (token["content"] for token in document["added_tokens"])
        contents = [text for name in names for text in (name, f"x\t{name}\ny")]
        others = [*range(0x80, 0xD800, 97), *range(0xE000, 0x110000, 997)]
        texts = [*EVERYTHING, *contents, *map(chr, others)]
        lost = [text for text in texts if not comes_back(tok, text)]
        assert bytepair.tokenizer.is_lossless(tok) == (not lost), (lost[:5], document)


def comes_back(tok: bytepair.Tokenizer, text: str) -> bool:
    try:
        return tok.decode(tok.encode(text)) == text
    except BytepairError:
        return False


@pytest.mark.timeout(20)
@pytest.mark.parametrize("format", get_args(WrittenFormat))
def test_losses_of_a_long_name_take_little_time(format: Any) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    name = "".join(random.Random(1).choices("abcdefgh", k=4096))
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4", special_tokens={name: 256})
    export_losses(tok, format)
