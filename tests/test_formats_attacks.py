"""Damaged and hostile files of every foreign format: a documented error or a tokenizer, fast."""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import bytepair
import memory
from bytepair import chat
from bytepair.compat import export_losses
from bytepair.errors import FileFormatError, SpecialTokenError
from bytepair.formats import nanochat
from bytepair.formats.huggingface import companions
from formats import TARGETS, json_of, load_options, small, written
from messages import told

TOK = small()
FORMATS = [format for format in TARGETS if format != "bytepair"]


def attempt(path: Path, format: str) -> bytepair.Tokenizer | None:
    """Load a file; whatever it holds, the result is a tokenizer or a documented error."""
    try:
        return bytepair.load(path, format, **load_options(TOK, format))
    except FileFormatError as error:
        return None if str(error) else pytest.fail("an error without words")


def files(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


def victims(tmp_path: Path, format: str) -> list[tuple[Path, Path, bytes]]:
    """The path that is loaded, the file in it that is attacked, and its content."""
    path = written(TOK, tmp_path, format)
    return [
        (path, file, file.read_bytes())
        for file in files(path)
        if file.name != nanochat.TOKEN_BYTES_NAME
    ]


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_cut_off_anywhere(format: str, tmp_path: Path) -> None:
    for path, file, data in victims(tmp_path, format):
        step = 1 if len(data) < 6000 else 3
        for size in range(0, len(data), step):
            file.write_bytes(data[:size])
            tok = attempt(path, format)
            if format in {"huggingface", "nanochat", "gguf"}:
                assert tok is None or data[size:].isspace(), size
        file.write_bytes(data)
    assert attempt(path, format) is not None


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_bits_flipped(format: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    for path, file, data in victims(tmp_path, format):
        for _ in range(400):
            changed = bytearray(data)
            for _ in range(rng.choice([1, 1, 1, 8])):
                changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
            attempt(path, format)
        file.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_pieces_doubled_and_removed(format: str, tmp_path: Path) -> None:
    rng = random.Random(1)
    for path, file, data in victims(tmp_path, format):
        for _ in range(200):
            start, size = rng.randrange(len(data)), rng.choice([1, 4, 8, 50])
            piece = data[start : start + size] * rng.choice([0, 2, 5])
            file.write_bytes(data[:start] + piece + data[start + size :])
            attempt(path, format)
        file.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["llama2c", "qwen3", "gguf"])
def test_numbers_that_are_huge(format: str, tmp_path: Path) -> None:
    for path, file, data in victims(tmp_path, format):
        for at in range(0, min(len(data), 600)):
            for number in (b"\xff" * 4, b"\xff" * 8, b"\0\0\0\x80", b"\xff\xff\xff\x7f", b"\0" * 8):
                file.write_bytes(data[:at] + number + data[at + len(number) :])
                attempt(path, format)


def gguf_keys(*keys: tuple[str, int, bytes], count: int | None = None) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    body = b"".join(text(key) + struct.pack("<I", kind) + data for key, kind, data in keys)
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(keys) if count is None else count) + body


def line(token: bytes, rank: object) -> bytes:
    return base64.b64encode(token) + f" {rank}\n".encode()


def document(**model: Any) -> bytes:
    content = json_of(TOK)
    content["model"].update(model)
    return json.dumps(content).encode()


ATTACKS: list[tuple[str, bytes]] = [
    ("tiktoken", line(b"a", 1 << 40)),
    ("tiktoken", line(b"a", (1 << 31) - 1)),
    ("tiktoken", line(b"a", -1)),
    ("tiktoken", line(b"a", 0) + line(b"a", 1)),
    ("tiktoken", line(b"a", 0) + line(b"b", 0)),
    ("tiktoken", b"a===== 0\n"),
    ("tiktoken", b"YQ 0\n"),
    ("tiktoken", b"YQ== 0\n= 1\n= 2\n"),
    ("tiktoken", b"\n\n"),
    ("gguf", gguf_keys(count=1 << 60)),
    ("gguf", gguf_keys(("a", 9, struct.pack("<IQ", 8, 1 << 60)))),
    ("gguf", gguf_keys(("a", 9, struct.pack("<IQ", 0, 1 << 63)))),
    ("gguf", gguf_keys(("a", 9, struct.pack("<IQ", 9, 5) * 50))),
    ("gguf", gguf_keys(("a", 8, struct.pack("<Q", 1 << 62)))),
    ("gguf", gguf_keys(("a", 77, b""))),
    ("gguf", gguf_keys(("a", 0, b"x"), ("a", 0, b"x"))),
    ("gguf", gguf_keys(("a", 8, struct.pack("<Q", 1) + b"\xff"))),
    ("gguf", struct.pack("<4sIQQ", b"GGUF", 1, 0, 0)),
    ("llama2c", struct.pack("<IfI", 4, -1.0, 1 << 31)),
    ("llama2c", struct.pack("<IfI", 1 << 31, -1.0, 1 << 31)),
    ("llama2c", struct.pack("<I", 4)),
    ("llama2c", struct.pack("<I", 1) + 2 * (struct.pack("<fI", -1.0, 1) + b"a")),
    ("qwen3", struct.pack("<3IfI", 4, 9, 9, -1.0, 1) + b"a"),
    ("huggingface", b"[" * 500_000),
    ("huggingface", b"[" * 500_000 + b"]" * 500_000),
    ("huggingface", b'{"a":' * 500_000),
    (
        "huggingface",
        b'{"normalizer": ' + b'{"a":' * 500_000 + b"1" + b"}" * 500_000
        + b', "model": {"type": "BPE", "vocab": {}, "merges": []}}',
    ),
    ("huggingface", document(vocab={"a": 1 << 31})),
    ("huggingface", document(vocab={"a": 0.5})),
    ("huggingface", document(merges=[["a", "he"], ["he", "a"]])),
    ("huggingface", document(vocab={"": 0})),
]  # fmt: skip


@pytest.mark.parametrize(("format", "data"), ATTACKS, ids=count())
def test_hostile_files(format: str, data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(data)
    with told(FileFormatError) as caught:
        bytepair.load(file, format, pattern="gpt2", allow_pickle=True)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("vocabulary", "merges"),
    [
        (b"[]", b""),
        (b'{"\\ud800": 0}', b""),
        (b'{"a": 0, "b": 0}', b""),
        (b'{"a": 0, "a": 1}', b""),
        (b'{"a": 9999999}', b""),
        (b'{"a": 0}', b"a\n"),
        (b'{"a": 0}', b"a a\n"),
        (b'{"a": 0}', b"\xff a\n"),
        (b'{"a": 0}', "a ▁\n".encode()),
        (b'{"\xe2\x96\x81": 0}', b""),
    ],
)
def test_hostile_pairs_of_files(vocabulary: bytes, merges: bytes, tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_bytes(vocabulary)
    (tmp_path / "merges.txt").write_bytes(merges)
    with told(FileFormatError):
        bytepair.load(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with told(FileFormatError):
        bytepair.load(tmp_path / "vocab.json")


BOUNDED = """
import bytepair

bytepair.load(sys.argv[1], sys.argv[2], pattern="gpt2", special_tokens={})
before = peak_mb()
for path, format in zip(sys.argv[3::2], sys.argv[4::2]):
    try:
        bytepair.load(path, format, pattern="gpt2", allow_pickle=True, special_tokens={})
    except ValueError:
        pass
print(peak_mb() - before)
"""


def test_memory_is_bounded_by_the_size_of_the_file(tmp_path: Path) -> None:
    words: list[str | Path] = [TOK.export(tmp_path / "good.gguf"), "gguf"]
    for number, (format, data) in enumerate(ATTACKS):
        if len(data) < 100_000:
            path = tmp_path / str(number)
            path.write_bytes(data)
            words += [path, format]
    evil = tmp_path / "evil.pkl"
    evil.write_bytes(b"\x80\x04r\xff\xff\xff\x7f\x8c\x01a.")
    (grown,) = memory.run(BOUNDED, *words, evil, "nanochat")
    assert float(grown) < 64


EXPORTED = """
import bytepair

ranks = {bytes([byte]): byte for byte in range(256)} | {b"he": 2_097_140}
tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt2")
before = peak_mb()
for path in sys.argv[1:]:
    tok.export(path, path.rpartition("/")[2], lossy=True)
print(peak_mb() - before)
"""


@pytest.mark.slow
def test_ids_near_the_limit_are_exported_in_bounded_memory(tmp_path: Path) -> None:
    (grown,) = memory.run(EXPORTED, tmp_path / "gguf", tmp_path / "llama2c", tmp_path / "nanochat")
    assert float(grown) < 400  # the first two files have 46 MB


def of_pieces(*more: tuple[str, float, int]) -> bytes:
    """A GGUF file of pieces: all bytes, and these texts with scores and types."""
    pieces = [("<unk>", 0.0, 2), *((f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)), *more]
    texts, scores, kinds = zip(*pieces, strict=True)
    encoded = b"".join(struct.pack("<Q", len(text.encode())) + text.encode() for text in texts)
    count, place = len(pieces), "tokenizer.ggml."
    return gguf_keys(
        (f"{place}model", 8, struct.pack("<Q", 5) + b"llama"),
        (f"{place}tokens", 9, struct.pack("<IQ", 8, count) + encoded),
        (f"{place}scores", 9, struct.pack(f"<IQ{count}f", 6, count, *scores)),
        (f"{place}token_type", 9, struct.pack(f"<IQ{count}i", 5, count, *kinds)),
    )


@pytest.mark.timeout(60)
def test_time_is_in_proportion_to_the_length_of_a_token(tmp_path: Path) -> None:
    path, long = tmp_path / "x", b"x" * 1_000_000
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"abc", long]
    scores = [-1e6] * 256 + [-2.0, -1.0, -3.0]
    pairs = zip(scores, tokens, strict=True)
    data = b"".join(struct.pack("<fI", score, len(token)) + token for score, token in pairs)
    path.write_bytes(struct.pack("<I", len(long)) + data)
    tok = bytepair.load(path, "llama2c", pattern="gpt2", special_tokens={})
    assert tok.vocab_size == len(tokens)
    path.write_bytes(of_pieces((long.decode()[:4096], 0.0, 3)))
    assert bytepair.load(path).special_tokens[long.decode()[:4096]] == 257
    path.write_bytes(of_pieces((long.decode(), 0.0, 3)))
    with told(FileFormatError):
        bytepair.load(path)


@pytest.mark.timeout(60)
def test_time_is_in_proportion_to_runs_with_one_score(tmp_path: Path) -> None:
    runs = [(letter * size, -1.0 - (size > 1), 1) for letter in "abcdefgh" for size in range(1, 99)]
    path = tmp_path / "x"
    path.write_bytes(of_pieces(*runs[:98]))
    assert bytepair.load(path).encode("a" * 98)[-1] == 354
    path.write_bytes(of_pieces(*runs))
    with told(FileFormatError):
        bytepair.load(path)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["steps", "classes", "groups"])
def test_patterns_are_counted_before_they_are_translated(tmp_path: Path, kind: str) -> None:
    split = {"type": "Split", "behavior": "Removed", "invert": True}
    patterns = {"steps": "a|b", "classes": r"\b" * 300_000, "groups": "(" * 300_000}
    steps = [{**split, "pattern": {"Regex": patterns[kind]}}] * (3000 if kind == "steps" else 1)
    TOK.export(tmp_path / "h", "huggingface")
    path = tmp_path / "h" / "tokenizer.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    path.write_text(json.dumps(values), encoding="utf-8")
    with told(FileFormatError):
        bytepair.load(path)


def test_tokens_that_are_parts_of_each_other_in_all_ways(tmp_path: Path) -> None:
    """With tokens of a, aa and so on, in an order of their own, the list of merges is a square."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"a" * size for size in range(3, 700)]
    scores = [*[-1e6] * 256, *range(len(tokens) - 256)]
    data = struct.pack("<I", 700) + b"".join(
        struct.pack("<fI", score, len(token)) + token
        for token, score in zip(tokens, scores, strict=True)
    )
    (tmp_path / "x.bin").write_bytes(data)
    with told(FileFormatError):
        bytepair.load(tmp_path / "x.bin", "llama2c", pattern="gpt2", special_tokens={})


def test_user_defined_pieces_are_few(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(of_pieces(*((f"u{number}", 0.0, 4) for number in range(32_769))))
    data = path.read_bytes() + struct.pack("<Q", 31) + b"tokenizer.ggml.add_space_prefix"
    path.write_bytes(data[:16] + struct.pack("<Q", 5) + data[24:] + struct.pack("<IB", 7, 0))
    with told(FileFormatError):
        bytepair.load(path)


def test_special_tokens_that_are_a_number_alone_are_few(tmp_path: Path) -> None:
    numbers = {"default_vocab_size": 2_000_001, "default_num_special_tokens": 2_000_000}
    config = {"pattern": "a", "version": "v3", **numbers}
    path, vocabulary = tmp_path / "tekken.json", [{"rank": 0, "token_bytes": "YQ=="}]
    path.write_text(json.dumps({"config": config, "vocab": vocabulary}))
    with told(FileFormatError):
        bytepair.load(path)


@pytest.mark.timeout(60)
def test_parts_of_long_names_are_not_compared() -> None:
    name = "<" * 4096
    tok = small(special_tokens={name: 300})
    template = chat.JinjaTemplate("{{ messages[0].content }}")
    assert tok.encode(name, special="all") == [300]
    with told(SpecialTokenError):
        tok.render_for_completion([{"role": "user", "content": "hi"}], template=template)
    assert any("too long to be compared" in loss for loss in export_losses(tok, "gguf"))


def test_forged_native_files(tmp_path: Path) -> None:
    """With a correct checksum, so that the content is read."""
    path = written(TOK, tmp_path, "bytepair")
    good, rng = path.read_bytes(), random.Random(4)
    for _ in range(300):
        data = bytearray(good)
        data[rng.randrange(28, len(data))] ^= 1 << rng.randrange(8)
        bare = bytes(data[:24]) + b"\0" * 4 + bytes(data[28:])
        path.write_bytes(bare[:24] + struct.pack("<I", zlib.crc32(bare)) + bare[28:])
        attempt(path, "bytepair")


STRANGE: list[Any] = [
    None, True, False, 0, -1, 1.5, 1 << 31, 1 << 70, "", "x", "\ud800", "\0", "▁", [], {}, [[]],
    [None], {"type": None}, {"type": "Sequence"}, {"type": "Split"}, {"type": "NFC"}, ["a", "b"],
]  # fmt: skip


def replaced(node: Any, strange: Any) -> list[Any]:
    """Copies of a JSON value, each with one part (of many alike, the first two) replaced."""
    copies = [strange]
    if isinstance(node, dict):
        for name in [*list(node)[:12], *list(node)[-2:]]:
            copies += [{**node, name: inner} for inner in replaced(node[name], strange)]
            copies.append({other: value for other, value in node.items() if other != name})
        copies.append({**node, "more": strange})
    if isinstance(node, list):
        for at in range(min(2, len(node))):
            copies += [[*node[:at], new, *node[at + 1 :]] for new in replaced(node[at], strange)]
    return copies


@pytest.mark.slow
@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: json.dumps(value))
def test_any_part_of_a_json_file_replaced(strange: Any, tmp_path: Path) -> None:
    small_enough = json_of(TOK)
    config = companions.config(TOK) | {"bos_token": {"content": "<|bos|>"}, "chat_template": "x"}
    entries = [
        {"rank": n, "token_bytes": base64.b64encode(bytes([n])).decode()} for n in range(256)
    ]
    numbers = {"default_vocab_size": 257, "default_num_special_tokens": 1, "version": "v7"}
    mistral = {"config": {"pattern": "a", **numbers}, "vocab": entries, "special_tokens": [
        {"rank": 0, "token_str": "<unk>"}]}  # fmt: skip
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": "<|bos|>"}')
    for copy in replaced(small_enough, strange):
        (tmp_path / "tokenizer.json").write_text(json.dumps(copy))
        attempt(tmp_path, "huggingface")
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_enough))
    for copy in replaced(config, strange):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(copy))
        tok = attempt(tmp_path, "huggingface")
        if tok is not None:
            tok.export(tmp_path / "again", "huggingface", overwrite=True)
    (tmp_path / "tokenizer_config.json").unlink()
    for copy in replaced({"eos_token_id": [259], "bos_token_id": 1}, strange):
        (tmp_path / "generation_config.json").write_text(json.dumps(copy))
        tok = attempt(tmp_path, "huggingface")
        if tok is not None:
            tok.export(tmp_path / "again", "huggingface", overwrite=True)
    for copy in replaced(mistral, strange):
        (tmp_path / "tekken.json").write_text(json.dumps(copy))
        attempt(tmp_path / "tekken.json", "tekken")
    for copy in replaced({"a": 0, "b": 1, "ab": 2}, strange):
        (tmp_path / "vocab.json").write_text(json.dumps(copy))
        (tmp_path / "merges.txt").write_text("a b\n")
        attempt(tmp_path, "gpt2")
