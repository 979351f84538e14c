"""Added tokens that are not special are found in every text, whatever `special` says."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import chat
from bytepair.chat import encode_segments
from bytepair.compat import export_losses
from bytepair.errors import ArgumentError, LossError, SpecialTokenError
from bytepair.properties.tokens import ordinary
from messages import told

hf = pytest.importorskip("tokenizers")

SPACES = [" " * n for n in range(2, 9)]
CODE = "def f(x):\n        return x\n"
ATOMS = [" ", "  ", "\t", "\n", "ab", "<|end|>", "word", "é", "x.", " " * 8, "the", "<user>"]


def texts(number: int, longest: int = 60) -> list[str]:
    pick = random.Random(number)
    return ["".join(pick.choices(ATOMS, k=pick.randrange(longest))) for _ in range(number)]


@pytest.fixture(scope="module")
def original() -> Any:
    """A tokenizer like that of Phi-2: one control token, and runs of spaces that are not."""
    theirs = hf.Tokenizer(hf.models.BPE())
    theirs.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = hf.decoders.ByteLevel()
    alphabet = hf.pre_tokenizers.ByteLevel.alphabet()
    trainer = hf.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    theirs.train_from_iterator(["the word is the word that the code of f(x) returns"] * 3, trainer)
    strips = hf.AddedToken("<user>", rstrip=True, normalized=False)
    theirs.add_tokens([*(hf.AddedToken(s, normalized=False) for s in SPACES), strips])
    return theirs


@pytest.fixture(scope="module")
def tok(original: Any, tmp_path_factory: pytest.TempPathFactory) -> bytepair.Tokenizer:
    folder = tmp_path_factory.mktemp("added")
    original.save(str(folder / "tokenizer.json"))
    return bytepair.load(folder / "tokenizer.json")


def test_the_default_is_that_of_tokenizers(original: Any, tok: bytepair.Tokenizer) -> None:
    assert tok.encode(CODE).count(tok.special_tokens[" " * 8]) == 1
    for special in (None, "all"):
        original.encode_special_tokens = special is None
        for text in texts(500):
            ids = tok.encode(text, special=special)
            assert ids == original.encode(text).ids
            assert ids == original.encode(tok.decode(ids)).ids


def test_real_vocabularies_are_those_of_tokenizers(shared: Path) -> None:
    for name in ("phi-2", "mpt", "phi-3-mini"):
        file = shared / "tokenizers" / f"{name}.tokenizer.json"
        original = hf.Tokenizer.from_file(str(file))
        original.encode_special_tokens = True
        tok = bytepair.load(file)
        assert ordinary(tok)
        for text in [CODE, *texts(200)]:
            assert tok.encode(text) == original.encode(text, add_special_tokens=False).ids
    phi = bytepair.load(shared / "tokenizers" / "phi-2.tokenizer.json")
    assert len(phi.encode(CODE)) == 10


def test_every_way_to_encode_gives_the_same_ids(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    pick = random.Random(1)
    for text in [*texts(60), *texts(3, 60_000)]:
        ids = tok.encode(text)
        assert tok.count(text) == len(ids)
        assert tok.encode_batch([text, "a  b", text], threads=2)[::2] == [ids, ids]
        if "<user>" not in text:
            assert tok.encode_offsets(text)[0] == ids
        (tmp_path / "text.txt").write_text(text, encoding="utf-8")
        assert tok.encode_file(tmp_path / "text.txt", threads=2)[0].tolist() == ids
        pieces, rest = [], text
        while rest:
            cut = pick.choice([1, 2, 5, 70_000])
            pieces.append(rest[:cut])
            rest = rest[cut:]
        assert list(tok.encode_stream(pieces)) == ids
        if len(text) < 1000:
            session = bytepair.tokenizer.Session(tok)
            for piece in pieces:
                session.append(piece)
            assert list(session.ids) == ids
            if "<user>" not in text:
                short = bytepair.tokenizer.truncate_text(tok, text, 5)
                assert text.startswith(short)
                assert len(tok.encode(short)) <= 5


@pytest.mark.parametrize("special", [None, "all"])
def test_offsets_include_the_white_space_that_a_token_takes(
    original: Any, tok: bytepair.Tokenizer, special: str | None
) -> None:
    spans = tok.encode_offsets("a<user>\nb  c", special=special)[1].tolist()
    assert spans == [[0, 1], [1, 8], [8, 9], [9, 11], [11, 12]]
    assert bytepair.tokenizer.truncate_text(tok, "a<user>\nb  c", 2) == "a<user>\n"
    # The second token is found in white space that the first takes.
    text = "<user>" + " " * 10
    ids, spans, _ = tok.encode_offsets(text, special=special)
    encoding = original.encode(text)
    assert (ids, [tuple(span) for span in spans.tolist()]) == (encoding.ids, encoding.offsets)


def test_they_are_no_error_where_special_tokens_are_one(tok: bytepair.Tokenizer) -> None:
    assert tok.encode("a  b", special="error") == tok.encode("a  b")
    with told(SpecialTokenError):
        tok.encode("a  b<|end|>", special="error")
    end = tok.special_tokens["<|end|>"]
    assert tok.encode("  <|end|>", special={"<|end|>"}) == [tok.special_tokens["  "], end]


def test_none_finds_no_added_token(original: Any, tok: bytepair.Tokenizer) -> None:
    bare = hf.Tokenizer.from_str(json.dumps(json.loads(original.to_str()) | {"added_tokens": []}))
    for text in texts(300):
        assert tok.encode(text, special="none") == bare.encode(text).ids
        assert tok.decode(tok.encode(text, special="none")) == text


@pytest.mark.parametrize("join", [False, True])
def test_in_messages_only_white_space_is_found(tok: bytepair.Tokenizer, join: bool) -> None:
    """`<tool_call>` and `<think>` are not special in Qwen's file; text must not imitate them."""
    special, user = tok.special_tokens, "a  b<user> <|end|>" + " " * 8
    ids = encode_segments(tok, [(user, "untrusted"), ("<user>", "control")], join=join)
    specials = [id for id in ids if id in special.values()]
    assert specials == [special["  "], special[" " * 8], special["<user>"]]
    roles = {
        "user": chat.Role(open=(chat.Special("<user>"),)),
        "assistant": chat.Role(open=(), trained=True),
    }
    template = chat.Template("small", begin=(), roles=roles, join=join)
    talk = [{"role": "user", "content": user}, {"role": "assistant", "content": "<user>"}]
    rendered, mask = tok.render_conversation(talk, template=template)
    assert rendered == [special["<user>"], *ids[:-1], *tok.encode("<user>", special="none")]
    assert tok.decode(rendered) == "<user>" + user + "<user>"
    batch = tok.render_batch([talk], template=template)
    assert (batch[0][0].tolist(), batch[0][1].tolist()) == (rendered, mask)


def test_files_keep_them(original: Any, tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "native")
    tok.export(tmp_path / "hf", "huggingface")
    tok.export(tmp_path / "tok.gguf", "gguf", lossy=True)
    loaded = [bytepair.load(tmp_path / name) for name in ("native", "hf", "tok.gguf")]
    again = hf.Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    original.encode_special_tokens = again.encode_special_tokens = True
    flags = {id: (token.content, token.special) for id, token in
             original.get_added_tokens_decoder().items()}  # fmt: skip
    assert flags == {id: (token.content, token.special) for id, token in
                     again.get_added_tokens_decoder().items()}  # fmt: skip
    for text in texts(100):
        ids = original.encode(text).ids
        assert again.encode(text).ids == ids
        if "<user>" not in text:  # GGUF has no rstrip
            assert [one.encode(text) for one in loaded] == [ids] * 3


def test_what_cannot_hold_them_says_so(tmp_path: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    spaces = [bytepair.AddedToken("  ", 256, special=False)]
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt2", special_tokens=spaces)
    assert tok.encode("a  b") == [97, 256, 98]
    assert any("are found in every text" in loss for loss in export_losses(tok, "nanochat"))
    with told(LossError):
        tok.export(tmp_path / "nanochat", "nanochat")
    with told(ArgumentError):
        bytepair.compat.to_tiktoken(tok)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("side", ["lstrip", "rstrip"])
def test_white_space_that_tokens_take_is_read_once(side: str) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    token = bytepair.AddedToken("  ", 256, special=False, **{side: True})
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt2", special_tokens=[token])
    text = " " * 400_000
    assert len(tok.encode(f"a{text}b")) < 200_003
