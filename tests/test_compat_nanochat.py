"""The face of nanochat's tokenizer module, used as nanochat uses its own."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import rustbpe
import tiktoken

from bytepair.compat import nanochat
from bytepair.compat.nanochat import SPECIAL_TOKENS, RustBPETokenizer
from bytepair.errors import FileFormatError

CORPUS = ["the quick brown fox, the lazy dog", "hello hello 12345 naïve 你好 🙂", "f(x)\n  y\n"] * 5
SIZE = 256 + len(SPECIAL_TOKENS) + 20
TALK = {
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello!"},
    ]
}


@pytest.fixture(scope="module")
def tokenizer() -> RustBPETokenizer:
    return RustBPETokenizer.train_from_iterator(iter(CORPUS), SIZE)


@pytest.fixture(scope="module")
def original() -> tiktoken.Encoding:
    """What nanochat makes: rustbpe's merges in a tiktoken encoding."""
    trained = rustbpe.Tokenizer()
    trained.train_from_iterator(
        iter(CORPUS), SIZE - len(SPECIAL_TOKENS), pattern=nanochat.SPLIT_PATTERN
    )
    ranks = dict(trained.get_mergeable_ranks())
    return tiktoken.Encoding(
        "rustbpe",
        pat_str=trained.get_pattern(),
        mergeable_ranks=ranks,
        special_tokens={name: len(ranks) + i for i, name in enumerate(SPECIAL_TOKENS)},
    )


def test_training_gives_what_nanochat_trains(
    tokenizer: RustBPETokenizer, original: tiktoken.Encoding
) -> None:
    assert tokenizer.enc._mergeable_ranks == original._mergeable_ranks
    assert tokenizer.enc._special_tokens == original._special_tokens
    assert tokenizer.enc._pat_str == original._pat_str
    assert tokenizer.get_vocab_size() == original.n_vocab == SIZE
    assert tokenizer.get_special_tokens() == original.special_tokens_set
    for text in [*CORPUS, "<|bos|> unseen zqx"]:
        assert tokenizer.encode(text) == original.encode_ordinary(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_looking_up(tokenizer: RustBPETokenizer) -> None:
    ids = [tokenizer.encode_special(name) for name in SPECIAL_TOKENS]
    assert ids == list(range(SIZE - len(SPECIAL_TOKENS), SIZE))
    assert tokenizer.get_bos_token_id() == ids[0] == tokenizer.bos_token_id
    assert [tokenizer.id_to_token(id) for id in ids] == SPECIAL_TOKENS
    assert tokenizer.decode_single_token_bytes(65) == b"A"
    assert tokenizer.id_to_token(0xFF) == "\ufffd"


def test_encoding_with_affixes(tokenizer: RustBPETokenizer) -> None:
    bos, end = tokenizer.get_bos_token_id(), tokenizer.encode_special("<|user_end|>")
    plain = tokenizer.encode("hello")
    assert tokenizer.encode("hello", prepend="<|bos|>", append=end) == [bos, *plain, end]
    assert tokenizer(["hello", ""], prepend=bos, num_threads=2) == [[bos, *plain], [bos]]
    assert tokenizer.encode("x", prepend=0) == [0, *tokenizer.encode("x")]
    with pytest.raises(ValueError, match="not int"):
        tokenizer.encode(3)
    with pytest.raises(KeyError):
        tokenizer.encode("x", prepend="<|none|>")


def test_rendering(tokenizer: RustBPETokenizer) -> None:
    ids, mask = tokenizer.render_conversation(TALK)
    end = tokenizer.encode_special("<|assistant_end|>")
    trained = [id for id, m in zip(ids, mask, strict=True) if m]
    assert trained == [*tokenizer.encode("hello!"), end]
    assert ids[0] == tokenizer.get_bos_token_id()
    shown = tokenizer.visualize_tokenization(ids, mask, with_token_id=True)
    assert f"<|assistant_end|>⟫\x1b[0m|\x1b[90m({end})\x1b[0m" in shown
    cut, kept = tokenizer.render_conversation(TALK, max_tokens=3)
    assert cut == ids[:3]
    assert kept == [0, 0, 0]


def test_rendering_for_completion(tokenizer: RustBPETokenizer) -> None:
    ids = tokenizer.render_for_completion(TALK)
    assert tokenizer.decode(ids) == "<|bos|><|user_start|>hi<|user_end|><|assistant_start|>"
    long = [{"role": "user", "content": "x " * 3000}, {"role": "assistant", "content": "y"}]
    assert len(tokenizer.render_for_completion({"messages": long})) == 2049
    with pytest.raises(ValueError, match="must be from the assistant"):
        tokenizer.render_for_completion({"messages": long[:1]})


def test_a_vocabulary_without_room_is_an_error() -> None:
    with pytest.raises(ValueError, match="need 265"):
        RustBPETokenizer.train_from_iterator(CORPUS, 264)


# ---------------------------------------------------------------------------- folders


def test_nanochat_reads_what_save_writes(
    tokenizer: RustBPETokenizer, original: tiktoken.Encoding, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path)
    with (tmp_path / "tokenizer.pkl").open("rb") as file:
        read = pickle.load(file)
    assert isinstance(read, tiktoken.Encoding)
    assert read.name == "rustbpe"
    assert read.encode_ordinary(CORPUS[1]) == original.encode_ordinary(CORPUS[1])
    again = RustBPETokenizer.from_directory(tmp_path)
    assert again.tokenizer == tokenizer.tokenizer


def test_a_folder_of_nanochat_is_read_if_that_is_allowed(
    tokenizer: RustBPETokenizer, original: tiktoken.Encoding, tmp_path: Path
) -> None:
    for encoding in (original, tokenizer.enc):
        (tmp_path / "tokenizer.pkl").write_bytes(pickle.dumps(encoding))
        with pytest.raises(FileFormatError, match="allow_pickle=True"):
            RustBPETokenizer.from_directory(tmp_path)
        read = RustBPETokenizer.from_directory(tmp_path, allow_pickle=True)
        assert read.tokenizer == tokenizer.tokenizer
    read.save(tmp_path)
    assert RustBPETokenizer.from_directory(tmp_path).tokenizer == tokenizer.tokenizer


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("evil",)


EVIL: list[Any] = [
    pickle.dumps(Evil()),
    pickle.dumps([Evil()]),
    pickle.dumps({"pat_str": "x", "mergeable_ranks": {}}),
    b"",
    b"cbuiltins\neval\n(S'1'\ntR.",
    b"\x80\x04garbage",
]


@pytest.mark.parametrize("data", EVIL)
def test_a_pickle_of_anything_else_runs_nothing(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.pkl").write_bytes(data)
    with pytest.raises(FileFormatError, match="not the pickle of an encoding"):
        RustBPETokenizer.from_directory(tmp_path, allow_pickle=True)
    assert not (tmp_path / "evil").exists()


def test_the_folder_of_nanochat(
    tokenizer: RustBPETokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NANOCHAT_BASE_DIR", str(tmp_path / "base"))
    with pytest.raises(FileNotFoundError, match="no tokenizer"):
        nanochat.get_tokenizer()
    tokenizer.save(Path(nanochat.get_base_dir()) / "tokenizer")
    assert nanochat.get_tokenizer().tokenizer == tokenizer.tokenizer


def test_token_bytes(
    tokenizer: RustBPETokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = nanochat.token_bytes(tokenizer)
    assert len(lengths) == SIZE
    assert lengths[-len(SPECIAL_TOKENS) :] == [0] * len(SPECIAL_TOKENS)
    for text in CORPUS:
        assert sum(lengths[id] for id in tokenizer.encode(text)) == len(text.encode())
    torch: Any = ModuleType("torch")
    torch.int32 = "int32"
    torch.tensor = lambda values, dtype, device: (values, dtype, device)
    torch.load = lambda path, map_location, weights_only: ("loaded", path.name, weights_only)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("NANOCHAT_BASE_DIR", str(tmp_path))
    tokenizer.save(tmp_path / "tokenizer")
    assert nanochat.get_token_bytes() == (lengths, "int32", "cpu")
    (tmp_path / "tokenizer" / "token_bytes.pt").touch()
    assert nanochat.get_token_bytes() == ("loaded", "token_bytes.pt", True)
