"""`compat.autoresearch`, called as the `prepare.py` and `train.py` of autoresearch call theirs."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import rustbpe
import tiktoken

from bytepair.compat.autoresearch import BOS_TOKEN, SPECIAL_TOKENS, Tokenizer
from bytepair.compat.nanochat import SPLIT_PATTERN, RustBPETokenizer
from bytepair.errors import FileFormatError

CORPUS = ["the quick brown fox, the lazy dog", "hello hello 12345 naïve 你好 🙂", "f(x)\n  y\n"] * 5
SIZE = 256 + len(SPECIAL_TOKENS) + 20


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(CORPUS, SIZE)


@pytest.fixture(scope="module")
def original() -> tiktoken.Encoding:
    """The tokenizer that `prepare.py` makes: rustbpe's merges in a tiktoken encoding."""
    trained = rustbpe.Tokenizer()
    pattern = SPLIT_PATTERN
    trained.train_from_iterator(iter(CORPUS), SIZE - len(SPECIAL_TOKENS), pattern=pattern)
    ranks = dict(trained.get_mergeable_ranks())
    special = {name: len(ranks) + i for i, name in enumerate(SPECIAL_TOKENS)}
    return tiktoken.Encoding(
        "rustbpe", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )


def test_the_tokenizer_equals_that_of_prepare(
    tokenizer: Tokenizer, original: tiktoken.Encoding
) -> None:
    assert [f"<|reserved_{i}|>" for i in range(4)] == SPECIAL_TOKENS
    assert tokenizer.enc._mergeable_ranks == original._mergeable_ranks
    assert tokenizer.enc._special_tokens == original._special_tokens
    assert tokenizer.enc._pat_str == original._pat_str
    assert tokenizer.get_vocab_size() == original.n_vocab == SIZE
    bos = original.encode_single_token(BOS_TOKEN)
    assert tokenizer.get_bos_token_id() == tokenizer.bos_token_id == bos
    texts = [*CORPUS, "<|reserved_0|> unseen zqx", ""]
    expected = original.encode_ordinary_batch(texts)
    assert tokenizer.encode(texts) == expected
    assert tokenizer.encode(texts, prepend=bos, num_threads=2) == [[bos, *ids] for ids in expected]
    assert tokenizer.encode(texts[-2], prepend=BOS_TOKEN) == [bos, *expected[-2]]
    assert [tokenizer.decode(ids) for ids in expected] == texts
    with pytest.raises(ValueError, match="not int"):
        tokenizer.encode(3)


def test_a_vocabulary_without_room_is_an_error() -> None:
    with pytest.raises(ValueError, match="pass at least 260"):
        Tokenizer.train(CORPUS, 259)


def test_folders(tokenizer: Tokenizer, original: tiktoken.Encoding, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.pkl").write_bytes(pickle.dumps(original))
    with pytest.raises(FileFormatError, match="allow_pickle=True"):
        Tokenizer.from_directory(tmp_path)
    read = Tokenizer.from_directory(tmp_path, allow_pickle=True)
    assert read.tokenizer == tokenizer.tokenizer
    tokenizer.save(tmp_path)
    assert Tokenizer.from_directory(tmp_path).tokenizer == tokenizer.tokenizer
    again = pickle.loads((tmp_path / "tokenizer.pkl").read_bytes())
    assert isinstance(again, tiktoken.Encoding)
    assert again.encode_ordinary(CORPUS[1]) == original.encode_ordinary(CORPUS[1])
    assert (tmp_path / "token_bytes.pt").exists()
    with pytest.raises(FileNotFoundError, match="no tokenizer"):
        Tokenizer.from_directory(tmp_path / "nothing")


def test_a_tokenizer_without_the_token_before_documents_is_an_error() -> None:
    with pytest.raises(KeyError):
        Tokenizer(RustBPETokenizer.train_from_iterator(CORPUS, 270).enc)
