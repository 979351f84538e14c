"""`compat.nanochat`, called as nanochat calls its own tokenizer module."""

from __future__ import annotations

import inspect
import os
import pickle
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import rustbpe
import tiktoken

import nanochat_source
from bytepair.compat import nanochat
from bytepair.compat.nanochat import SPECIAL_TOKENS, RustBPETokenizer
from bytepair.errors import FileFormatError
from messages import told
from nanochat_source import FIRST, LAST_OF_2025, TODAY

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
    """The tokenizer that nanochat makes: rustbpe's merges in a tiktoken encoding."""
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
    with told(ValueError):
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
    assert shown.endswith(f"\x1b[92m<|assistant_end|>\x1b[0m|\x1b[90m({end})\x1b[0m")
    cut, cut_mask = tokenizer.render_conversation(TALK, max_tokens=3)
    assert cut == ids[:3]
    assert cut_mask == [0, 0, 0]


def test_rendering_for_completion(tokenizer: RustBPETokenizer) -> None:
    ids = tokenizer.render_for_completion(TALK)
    assert tokenizer.decode(ids) == "<|bos|><|user_start|>hi<|user_end|><|assistant_start|>"
    long = [{"role": "user", "content": "x " * 3000}, {"role": "assistant", "content": "y"}]
    assert len(tokenizer.render_for_completion({"messages": long})) == 2049
    with told(ValueError):
        tokenizer.render_for_completion({"messages": long[:1]})


def test_texts_may_look_like_paths() -> None:
    names = ["train.txt", "data/val.parquet"] * 40
    assert RustBPETokenizer.train_from_iterator(names, 270).get_vocab_size() == 270


def test_a_vocabulary_without_room_is_an_error() -> None:
    with told(ValueError):
        RustBPETokenizer.train_from_iterator(CORPUS, 264)


# ---------------------------------------------------------------------------- nanochat's own

TALKS: list[dict[str, Any]] = [
    TALK,
    {"messages": [{"role": "system", "content": "Be <|bos|> brief."}, *TALK["messages"]]},
    {
        "messages": [
            {"role": "user", "content": "naïve 12345\n\n"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see: "},
                    {"type": "python", "text": "1 + 2"},
                    {"type": "python_output", "text": "3"},
                    {"type": "text", "text": "<|assistant_end|> 🙂"},
                ],
            },
            {"role": "user", "content": ""},
            {"role": "assistant", "content": "y"},
        ]
    },
]


@pytest.fixture(params=[FIRST, LAST_OF_2025, TODAY], scope="module")
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Any]]:
    """nanochat's class at a commit, and that of `compat.nanochat`, trained on the same text."""
    with nanochat_source.modules(request.param, "tokenizer") as (module,):
        assert module.SPECIAL_TOKENS == SPECIAL_TOKENS
        assert module.SPLIT_PATTERN == nanochat.SPLIT_PATTERN
        theirs = module.RustBPETokenizer.train_from_iterator(iter(CORPUS), SIZE)
        yield theirs, RustBPETokenizer.train_from_iterator(iter(CORPUS), SIZE)


def test_the_class_has_all_methods_of_nanochat(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    names = {name for name in dir(theirs) if not name.startswith("_")}
    assert names <= set(dir(ours))
    for name in names:
        if callable(value := getattr(theirs, name)):
            expected = list(inspect.signature(value).parameters)
            parameters = list(inspect.signature(getattr(ours, name)).parameters)
            assert parameters[: len(expected)] == expected, name


def test_every_call_gives_what_nanochat_gives(pair: tuple[Any, Any]) -> None:
    bos = pair[0].get_bos_token_id()
    texts = [*CORPUS[:3], "<|bos|> unseen zqx", ""]

    def calls(tokenizer: Any) -> Iterator[Any]:
        yield tokenizer.get_vocab_size(), tokenizer.get_special_tokens(), tokenizer.bos_token_id
        yield [tokenizer.encode_special(name) for name in SPECIAL_TOKENS]
        yield [tokenizer.id_to_token(id) for id in range(SIZE)]
        for affixes in ({}, {"prepend": bos}, {"prepend": "<|bos|>", "append": "<|user_end|>"}):
            yield tokenizer(texts, **affixes), tokenizer.encode(texts, **affixes, num_threads=2)
            yield [tokenizer.encode(text, **affixes) for text in texts]
        yield [tokenizer.decode(tokenizer.encode(text)) for text in texts]
        for talk in TALKS:
            for limit in (2048, 7, 1):
                ids, mask = tokenizer.render_conversation(talk, max_tokens=limit)
                yield ids, mask, tokenizer.visualize_tokenization(ids, mask)
            yield tokenizer.render_for_completion(talk)

    for expected, result in zip(calls(pair[0]), calls(pair[1]), strict=True):
        assert expected == result


def test_the_bytes_of_tokens_are_those_of_today(pair: tuple[Any, Any]) -> None:
    """Until July 2026 nanochat counted the bytes of U+FFFD for tokens that are not UTF-8."""
    theirs, ours = pair
    special = {theirs.encode_special(name) for name in theirs.get_special_tokens()}
    counted = [
        0 if id in special else len(theirs.enc.decode_single_token_bytes(id)) for id in range(SIZE)
    ]
    assert nanochat.token_bytes(ours) == counted


def test_ids_are_shown_as_in_nanochat(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    if "with_token_id" in inspect.signature(theirs.visualize_tokenization).parameters:
        ids, mask = theirs.render_conversation(TALKS[2])
        assert theirs.visualize_tokenization(ids, mask, True) == ours.visualize_tokenization(
            ids, mask, True
        )


def test_each_reads_the_folder_of_the_other(pair: tuple[Any, Any], tmp_path: Path) -> None:
    theirs, ours = pair
    ours.save(tmp_path / "ours")
    theirs.save(tmp_path / "theirs")
    again = type(theirs).from_directory(tmp_path / "ours")
    assert again.encode(CORPUS) == theirs.encode(CORPUS)
    read = RustBPETokenizer.from_directory(tmp_path / "theirs", allow_pickle=True)
    assert read.tokenizer == ours.tokenizer


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
        with told(FileFormatError):
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


@pytest.mark.parametrize("data", EVIL, ids=count())
def test_a_pickle_of_anything_else_runs_nothing(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.pkl").write_bytes(data)
    with told(FileFormatError):
        RustBPETokenizer.from_directory(tmp_path, allow_pickle=True)
    assert not (tmp_path / "evil").exists()


def test_the_folder_of_nanochat(
    tokenizer: RustBPETokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NANOCHAT_BASE_DIR", str(tmp_path / "base"))
    with told(FileNotFoundError):
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
