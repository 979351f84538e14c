"""The formats of engines in C, of nanochat and of Mistral: layouts, scores, what they refuse."""

from __future__ import annotations

import base64
import json
import math
import pickle
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bytepair
from bytepair import AddedToken
from bytepair.compat import export_losses
from bytepair.errors import FormatError, LossError, UnsupportedError, VocabularyError
from bytepair.formats import llama2c
from formats import small, written
from messages import told
from texts import hard_text

TOK = bytepair.train(bytepair.sample.paths(), 2000, special_tokens=["<|bos|>", "<|im_end|>"])


# ---------------------------------------------------------------------------- llama2.c, qwen3


def entries(data: bytes, header: int) -> list[tuple[float, bytes]]:
    """Score and bytes of each id, read as a C program would."""
    rows, at = [], header
    while at < len(data):
        score, length = struct.unpack_from("<fI", data, at)
        rows.append((score, data[at + 8 : at + 8 + length]))
        at += 8 + length
    return rows


def by_score(pretoken: bytes, scores: dict[bytes, float]) -> list[bytes]:
    """Merge the neighbours of the best score, the leftmost of them, until none makes a token."""
    parts = [pretoken[at : at + 1] for at in range(len(pretoken))]
    while True:
        best, where = -1e10, -1
        for at in range(len(parts) - 1):
            score = scores.get(parts[at] + parts[at + 1])
            if score is not None and score > best:
                best, where = score, at
        if where < 0:
            return parts
        parts[where : where + 2] = [parts[where] + parts[where + 1]]


@pytest.mark.parametrize(("format", "header"), [("llama2c", 4), ("qwen3", 12)])
def test_an_encoder_by_score_finds_the_same_ids(format: str, header: int, tmp_path: Path) -> None:
    rows = entries(written(TOK, tmp_path, format).read_bytes(), header)
    assert len(rows) == TOK.vocab_size
    ids = {token: id for id, (_, token) in enumerate(rows)}
    scores = {token: score for score, token in rows}

    @given(hard_text)
    def check(text: str) -> None:
        pieces = [by_score(part.encode(), scores) for part in bytepair.pretokenize(text, TOK)]
        assert [ids[token] for piece in pieces for token in piece] == TOK.encode(text)

    check()


# ---------------------------------------------------------------------------- run.c

#: The encoder of `run.c` of llama2.c, written again from its description: it reads the
#: vocabulary (file, number of ids) and texts that end with a byte 0, and writes their ids.
RUN_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **words;
static float *scores;
static int size;

static int find(const char *text) {
    for (int id = 0; id < size; id++)
        if (strcmp(words[id], text) == 0) return id;
    return -1;
}

static int encode(const char *text, int *ids) {
    int count = 0;
    ids[count++] = 1;
    if (*text) ids[count++] = find(" ");
    while (*text) {
        int length = 1;
        while ((text[length] & 0xC0) == 0x80 && length < 4) length++;
        char piece[5] = {0};
        memcpy(piece, text, length);
        int id = find(piece);
        if (id >= 0) ids[count++] = id;
        else for (int i = 0; i < length; i++) ids[count++] = (unsigned char)piece[i] + 3;
        text += length;
    }
    for (;;) {
        float best = -1e10f;
        int best_id = -1, place = -1;
        for (int i = 0; i + 1 < count; i++) {
            char joined[4096];
            snprintf(joined, sizeof joined, "%s%s", words[ids[i]], words[ids[i + 1]]);
            int id = find(joined);
            if (id >= 0 && scores[id] > best) best = scores[id], best_id = id, place = i;
        }
        if (place < 0) return count;
        ids[place] = best_id;
        memmove(ids + place + 1, ids + place + 2, (--count - place - 1) * sizeof *ids);
    }
}

int main(int argc, char **argv) {
    FILE *file = fopen(argv[1], "rb");
    int longest, length;
    size = atoi(argv[2]);
    words = malloc(size * sizeof *words);
    scores = malloc(size * sizeof *scores);
    if (argc != 3 || fread(&longest, 4, 1, file) != 1) return 1;
    for (int id = 0; id < size; id++) {
        if (fread(scores + id, 4, 1, file) != 1 || fread(&length, 4, 1, file) != 1) return 1;
        words[id] = calloc(length + 1, 1);
        if (fread(words[id], length, 1, file) != 1) return 1;
    }
    char text[4096];
    int ids[4096], count = 0, byte;
    while ((byte = getchar()) != EOF) {
        text[count++] = byte;
        if (byte) continue;
        int total = encode(text, ids);
        for (int i = 0; i < total; i++) printf("%d ", ids[i]);
        puts("");
        count = 0;
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def run_c(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[list[int]]]:
    """The ids that the engine finds: of a vocabulary, for texts."""
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("engine")
    (folder / "run.c").write_text(RUN_C)
    subprocess.run([compiler, "-O2", "-o", folder / "run", folder / "run.c"], check=True)

    def encode(tok: bytepair.Tokenizer, texts: list[str]) -> list[list[int]]:
        path = tok.export(folder / tok.fingerprint, "llama2c", lossy=True)
        done = subprocess.run(
            [folder / "run", path, str(tok.vocab_size)],
            input=b"".join(text.encode() + b"\0" for text in texts),
            capture_output=True, check=True, timeout=300,
        )  # fmt: skip
        return [list(map(int, line.split())) for line in done.stdout.splitlines()]

    return encode


def pretokens(tok: bytepair.Tokenizer, *languages: str) -> list[str]:
    """Pretokens of the sample that begin with a space, which the engine puts before a text."""
    paths = [path for path in bytepair.sample.paths() if path.stem in languages]
    assert paths
    texts = [path.read_text(encoding="utf-8")[:8000] for path in paths]
    parts = {part for text in texts for part in bytepair.pretokenize(text, tok)}
    return sorted(part for part in parts if re.fullmatch(r" \w+", part))


def test_run_c_finds_the_ids_of_pretokens(run_c: Callable[..., list[list[int]]]) -> None:
    paths = [path for path in bytepair.sample.paths() if path.stem in LATIN]
    letters = sorted({c for path in paths for c in path.read_text("utf-8") if not c.isascii()})
    first = bytepair.train(
        paths, 1000, pattern="gpt2", options=bytepair.TrainOptions(initial_tokens=letters)
    )
    assert not any(llama2c._crosses_character(token) for token in first.mergeable_ranks())
    tok = bytepair.engines.with_sentencepiece_ids(first)
    parts = [*pretokens(tok, *LATIN), " hello", " wörld", " é", " 你好", " 😀", " naïve"]
    assert len(parts) > 500
    assert run_c(tok, [part[1:] for part in parts]) == [[1, *tok.encode(part)] for part in parts]
    # without these ids, bytes of characters that are no token would be other tokens
    losses = " ".join(export_losses(first, "llama2c"))
    assert "run.c uses the values of their bytes plus 3 as ids" in losses
    (wrong,) = run_c(first, ["你"])
    assert wrong[2:] == [byte + 3 for byte in "你".encode()] != first.encode("你")


LATIN = ("en", "de", "fr", "es")


def test_differences_of_run_c_are_reported(
    run_c: Callable[..., list[list[int]]], tmp_path: Path
) -> None:
    tok = bytepair.engines.with_sentencepiece_ids(TOK)
    parts = pretokens(tok, "hi", "th", "ko")
    rows = run_c(tok, [part[1:] for part in parts])
    wrong = [part for part, ids in zip(parts, rows, strict=True) if ids[1:] != tok.encode(part)]
    across = [token for token in tok.mergeable_ranks() if llama2c._crosses_character(token)]
    assert wrong
    assert f"{len(across)} tokens with a part of a character" in export_losses(tok, "llama2c")[-1]
    with pytest.raises(LossError) as other:
        tok.export(tmp_path / "other", "llama2c")
    with pytest.raises(LossError) as refused:
        TOK.export(tmp_path / "refused", "llama2c")
    assert "with_sentencepiece_ids()" not in str(other.value)
    assert "with_sentencepiece_ids()" in str(refused.value)
    assert " ".join(export_losses(tok, "llama2c")).count("run.c uses") == 0
    assert " ".join(export_losses(TOK, "llama2c")).count("run.c uses") == 2
    assert "qwen3-rs" in " ".join(export_losses(TOK, "qwen3"))
    forged = small(special_tokens={"hello": 259, "<|bos|>": 260})
    assert any("merge text to 'hello'" in lost for lost in export_losses(forged, "llama2c"))
    zero = bytepair.Tokenizer.from_ranks(
        small().mergeable_ranks() | {b"a\0": 259}, pattern="gpt2", special_tokens={"<|bos|>": 260}
    )
    assert any("with the byte 0" in lost for lost in export_losses(zero, "llama2c"))


def test_the_ids_of_sentencepiece(tmp_path: Path) -> None:
    tok = bytepair.engines.with_sentencepiece_ids(TOK)
    assert [tok.token_id(bytes([byte])) for byte in range(256)] == list(range(3, 259))
    assert tok.special_tokens == {"<unk>": 0, "<|bos|>": 1, "<|im_end|>": 2}
    assert tok.roles == {"bos": "<|bos|>", "eos": "<|im_end|>", "end_of_turn": "<|im_end|>"}
    assert bytepair.engines.with_sentencepiece_ids(tok) == tok
    text = "Hello, 1234 wörld 你好\n"
    pieces = [TOK.token_bytes(id) for id in TOK.encode(text)]
    assert [tok.token_bytes(id) for id in tok.encode(text)] == pieces
    path = tok.export(tmp_path / "x", "llama2c", lossy=True)
    back = bytepair.load(path, pattern=tok.pattern, special_tokens=tok.special_tokens)
    assert back == tok
    merged = bytepair.Tokenizer.from_merges(
        TOK.mergeable_ranks(), TOK.merges()[::2], pattern=TOK.pattern, normalizer="NFC",
        special_tokens=[AddedToken("<x>", 5000, lstrip=True)],
    )  # fmt: skip
    again = bytepair.engines.with_sentencepiece_ids(merged)
    assert list(again.special_tokens) == ["<unk>", "<s>", "</s>", "<x>"]
    assert (again.pattern, bytepair.tokenizer.text_rules(again).normalizer) == (
        TOK.pattern,
        ["NFC"],
    )
    assert [token.content for token in bytepair.tokenizer.added_tokens(again) if token.lstrip] == [
        "<x>"
    ]
    assert again.merges() == merged.merges()
    assert again.vocab_size == len(merged.mergeable_ranks()) + 4
    few = bytepair.Tokenizer.from_ranks({b"a": 0}, pattern="gpt2")
    with told(VocabularyError):
        bytepair.engines.with_sentencepiece_ids(few)


def test_scores_are_of_the_merge_that_makes_the_token(tmp_path: Path) -> None:
    rows = entries(written(TOK, tmp_path, "llama2c").read_bytes(), 4)
    tokens = [left + right for left, right in TOK.merges()]
    for rank, token in enumerate(tokens):
        score, bytes_of_id = rows[256 + rank]
        assert bytes_of_id == token
        assert score == np.float32(-math.log(rank + 1))
    others = [score for score, token in rows if token not in tokens]
    assert others == [-1e6] * 258


def test_the_header_says_what_begins_and_ends_a_text(tmp_path: Path) -> None:
    data = written(TOK, tmp_path, "qwen3").read_bytes()
    longest = max(map(len, TOK.mergeable_ranks()))
    assert struct.unpack_from("<3I", data) == (max(longest, 10), 1998, 1999)
    with told(LossError):
        small(special_tokens={}).export(tmp_path / "x", "qwen3", lossy=True)
    back = bytepair.load(
        tmp_path / "out.tokenizer", pattern="nanochat", special_tokens=TOK.special_tokens
    )
    assert (back.notes["bos_token"], back.notes["eos_token"]) == ("<|bos|>", "<|im_end|>")


def test_ids_that_are_no_ranks_are_read_by_score(tmp_path: Path) -> None:
    path = tmp_path / "x"
    order = [b"he", b"ll", b"hell"]
    scores = {b"he": -0.0, b"ll": -0.7, b"hell": -1.1}
    for tokens in (order, order[::-1]):
        rows = [(-1e6, bytes([b])) for b in range(256)] + [(scores[t], t) for t in tokens]
        parts = [struct.pack("<fI", score, len(token)) + token for score, token in rows]
        path.write_bytes(struct.pack("<I", 4) + b"".join(parts))
        tok = bytepair.load(path, "llama2c", pattern="gpt2")
        assert tok.merge_rule == ("ranks" if tokens == order else "merges")
        for text in ("hell", "hello", "hll", "lhe"):
            parts = by_score(text.encode(), scores)
            assert tok.encode(text) == [tok.token_id(part) for part in parts]


def test_scores_that_are_no_order(tmp_path: Path) -> None:
    path = tmp_path / "x"

    def write(*scores: float) -> None:
        rows = [(-1e6, bytes([b])) for b in range(256)]
        rows += list(zip(scores, [b"he", b"ll"], strict=True))
        parts = [struct.pack("<fI", score, len(token)) + token for score, token in rows]
        path.write_bytes(struct.pack("<I", 4) + b"".join(parts))

    options: dict[str, Any] = {"pattern": "gpt2", "special_tokens": {}}
    for scores in [
        (-1e6, -1e6),
        (-1.0, -1.0),
        (math.nan, -1.0),
    ]:
        write(*scores)
        with told(FormatError):
            bytepair.load(path, "llama2c", **options)


def test_a_vocabulary_of_sentencepiece_is_refused(tmp_path: Path) -> None:
    rows = [(0.0, b"<unk>"), (0.0, b"\n<s>\n"), (0.0, b"\n</s>\n"), (-1.0, b" t")]
    parts = [struct.pack("<fI", score, len(token)) + token for score, token in rows]
    (tmp_path / "x").write_bytes(struct.pack("<I", 27) + b"".join(parts))
    with told(UnsupportedError):
        bytepair.load(tmp_path / "x", pattern="gpt2")


def test_too_many_merges_for_distinct_scores() -> None:
    class Many:
        def __init__(self) -> None:
            self.made = [(b"x", index.to_bytes(3)) for index in range(1_060_000)]

        def merges(self) -> list[tuple[bytes, bytes]]:
            return self.made

    with told(LossError):
        llama2c.scores(Many())  # type: ignore[arg-type]


def test_holes_are_filled_and_found_again(tmp_path: Path) -> None:
    tok = small(special_tokens={"<|bos|>": 300})
    for format in ("llama2c", "qwen3", "gguf"):
        path = written(tok, tmp_path, format)
        options: dict[str, Any] = {"pattern": "gpt2", "special_tokens": tok.special_tokens}
        assert bytepair.load(path, format, **({} if format == "gguf" else options)) == tok


# ---------------------------------------------------------------------------- nanochat


def tensor(path: Path) -> list[int]:
    """The numbers of a file that holds one tensor of int32."""
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/data/0"))
        return list(np.frombuffer(archive.read(name), "<i4"))


def test_nanochat_loads_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "tiktoken", None)
        TOK.export(tmp_path, "nanochat")
    with (tmp_path / "tokenizer.pkl").open("rb") as file:
        encoding = pickle.load(file)  # as nanochat loads it
    assert encoding.name == "rustbpe"
    assert encoding.encode_ordinary("hello world") == TOK.encode("hello world")
    assert encoding.encode_single_token("<|bos|>") == TOK.special_tokens["<|bos|>"]
    lengths = tensor(tmp_path / "token_bytes.pt")
    assert lengths == [len(TOK.token_bytes(id)) for id in range(1998)] + [0, 0]


def test_the_tensor_is_one_for_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    TOK.export(tmp_path, "nanochat")
    loaded = torch.load(tmp_path / "token_bytes.pt", weights_only=True)
    assert loaded.dtype == torch.int32
    assert loaded.tolist() == bytepair.evaluate.token_lengths(TOK).tolist()
    torch.save(loaded, tmp_path / "theirs.pt")
    assert tensor(tmp_path / "theirs.pt") == loaded.tolist()


class _Reduced:
    """Pickled as a call."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


def test_a_pickle_of_anything_else_runs_nothing(tmp_path: Path) -> None:
    path, ran = tmp_path / "tokenizer.pkl", tmp_path / "ran"
    evil = [
        pickle.dumps(_Reduced(Path.touch, (ran,))),
        pickle.dumps(_Reduced(eval, ("1",)), protocol=0),
        pickle.dumps([1, 2]),
        pickle.dumps({"mergeable_ranks": {}}),
        b"\x80\x04r\xff\xff\xff\x7f.",  # an offset far outside the file
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",  # a text longer than any
        b"\x80\x04N.",
        b"",
        b"ctiktoken.core\nEncoding\n.",
    ]
    values = {"name": "x", "pat_str": "gpt2", "mergeable_ranks": {b"a": 0}, "special_tokens": {}}
    good = pickle.dumps(bytepair.compat.to_tiktoken(small(), "rustbpe"))
    for change in ({"pat_str": 5}, {"mergeable_ranks": {"a": 0}}, {"mergeable_ranks": {b"a": -1}},
                   {"mergeable_ranks": 3}, {"special_tokens": {b"x": 1}}):  # fmt: skip
        state = {**values, **change}
        body = pickle.dumps(state, protocol=2)[2:-1]
        evil.append(b"\x80\x02ctiktoken.core\nEncoding\n)\x81" + body + b"b.")
    for data in evil:
        path.write_bytes(data)
        with pytest.raises(FormatError):
            bytepair.load(path, allow_pickle=True)
    assert not ran.exists()
    path.write_bytes(good)
    with told(FormatError):
        bytepair.load(tmp_path)
    assert bytepair.load(tmp_path, allow_pickle=True) == small()


# ---------------------------------------------------------------------------- Mistral


def tekken_document(**changes: Any) -> dict[str, Any]:
    tokens = [bytes([byte]) for byte in range(256)] + [b"he", b"ll", b"hell", b"unused"]
    return {
        "config": {
            "pattern": bytepair.PATTERNS["gpt2"],
            "num_vocab_tokens": 260,
            "default_vocab_size": 262,
            "default_num_special_tokens": 3,
            "version": "v7",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": 0, "token_str": "<unk>", "is_control": True},
            {"rank": 1, "token_str": "<s>", "is_control": True},
        ],
        **changes,
    }


def test_tekken(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(tekken_document()))
    for source in (path, tmp_path):
        tok = bytepair.load(source)
        assert tok.special_tokens == {"<unk>": 0, "<s>": 1, "<SPECIAL_2>": 2}
        assert tok.encode("hello unused"[:5]) == [261, 114]
        assert tok.vocab_size == 262
    path.write_text(json.dumps(tekken_document(special_tokens=None)))
    assert bytepair.load(path).special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}


@pytest.mark.parametrize(
    "change",
    [
        {"config": {}},
        {"vocab": []},
        {"vocab": [{"rank": 1, "token_bytes": "AA=="}] * 260},
        {"vocab": [{"rank": 0, "token_bytes": "A"}] * 260},
        {"vocab": [{"rank": 0, "token_bytes": "é"}] * 260},
        {"vocab": [[]] * 260},
        {"special_tokens": [{"rank": 1, "token_str": "x"}]},
        {"special_tokens": [{"rank": 0, "token_str": "<SPECIAL_2>"}]},
        {"special_tokens": 5},
    ],
)
def test_tekken_files_that_break_a_rule(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tekken.json").write_text(json.dumps(tekken_document(**change)))
    with told(FormatError):
        bytepair.load(tmp_path)
