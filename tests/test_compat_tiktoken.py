"""`compat.tiktoken` gives what tiktoken gives."""

from __future__ import annotations

import base64
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken as original
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair.compat import tiktoken
from bytepair.errors import ArgumentError, FormatError
from messages import told

SPECIAL = {"<|endoftext|>": 400, "<|fim|>": 401, "<|fim|>x": 403, "<|pad|>": 410}


def values() -> dict[str, Any]:
    tok = bytepair.train(bytepair.sample.paths(), vocab_size=399, special_tokens=())
    return {
        "name": "sample",
        "pat_str": bytepair.PATTERNS["gpt4"],
        "mergeable_ranks": tok.mergeable_ranks(),
        "special_tokens": SPECIAL,
    }


VALUES = values()
OURS, THEIRS = tiktoken.Encoding(**VALUES), original.Encoding(**VALUES)

pieces = st.one_of(st.text(max_size=8), st.sampled_from([*SPECIAL, " the", "\n \n", "  ", "é"]))
texts = st.lists(pieces, max_size=5).map("".join)
names = st.frozensets(st.sampled_from(sorted(SPECIAL)))
allowed = st.one_of(st.just("all"), names.map(set), names)
disallowed = st.one_of(st.just("all"), names, names.map(list), st.just(()))
ids = st.lists(st.sampled_from([*VALUES["mergeable_ranks"].values(), *SPECIAL.values()]))


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the kind of error that it raises."""
    try:
        result = call()
    except (ValueError, KeyError, OverflowError) as error:
        kinds = (UnicodeDecodeError, ValueError, KeyError, OverflowError)
        return next(kind for kind in kinds if isinstance(error, kind))
    return result.tolist() if isinstance(result, np.ndarray) else result


def unambiguous(text: str) -> bool:
    """`<|fim|>x` also begins with `<|fim|>`; tiktoken's choice then depends on a hash."""
    return "<|fim|>x" not in text


@given(texts.filter(unambiguous), allowed, disallowed)
def test_encoding(text: str, allow: Any, forbid: Any) -> None:
    options = {"allowed_special": allow, "disallowed_special": forbid}
    for method in ("encode", "encode_to_numpy"):
        ours = outcome(lambda: getattr(OURS, method)(text, **options))  # noqa: B023
        assert ours == outcome(lambda: getattr(THEIRS, method)(text, **options))  # noqa: B023
    batch = [text, "x", text]
    assert outcome(lambda: OURS.encode_batch(batch, **options)) == outcome(
        lambda: THEIRS.encode_batch(batch, **options)
    )


@given(texts, names)
def test_the_first_of_many_names_is_that_of_a_regular_expression(
    text: str, forbid: frozenset[str]
) -> None:
    expected = OURS._first_of(forbid, text) if forbid else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bytepair.compat.tiktoken.encoding._MOST_TRIED", -1)
        assert (OURS._first_of(forbid, text) if forbid else None) == expected


@given(texts)
def test_ordinary_encoding(text: str) -> None:
    assert OURS.encode_ordinary(text) == THEIRS.encode_ordinary(text)
    assert OURS.encode_ordinary_batch([text, ""]) == THEIRS.encode_ordinary_batch([text, ""])


@pytest.mark.parametrize("text", ["\ud83d\udc4d", "\ud83d", "a\udc00<|fim|>"])
def test_surrogates(text: str) -> None:
    assert OURS.encode(text, disallowed_special=()) == THEIRS.encode(text, disallowed_special=())


@given(ids)
def test_decoding(tokens: list[int]) -> None:
    for method in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"):
        ours = outcome(lambda: getattr(OURS, method)(tokens))  # noqa: B023
        assert ours == outcome(lambda: getattr(THEIRS, method)(tokens))  # noqa: B023
    assert OURS.decode_batch([tokens, []]) == THEIRS.decode_batch([tokens, []])
    assert OURS.decode_bytes_batch([tokens]) == THEIRS.decode_bytes_batch([tokens])
    assert outcome(lambda: OURS.decode(tokens, errors="strict")) == outcome(
        lambda: THEIRS.decode(tokens, errors="strict")
    )


@pytest.mark.parametrize("id", [399, 402, 411, 1 << 31, 1 << 32, -1])
def test_unknown_ids_raise_what_tiktoken_raises(id: int) -> None:
    for method in ("decode_single_token_bytes",):
        assert outcome(lambda: getattr(OURS, method)(id)) == outcome(  # noqa: B023
            lambda: getattr(THEIRS, method)(id)  # noqa: B023
        )
    for method in ("decode", "decode_bytes", "decode_tokens_bytes"):
        ours = outcome(lambda: getattr(OURS, method)([65, id]))  # noqa: B023
        assert ours == outcome(lambda: getattr(THEIRS, method)([65, id]))  # noqa: B023


@given(st.one_of(st.text(max_size=3), st.binary(max_size=3), st.sampled_from(sorted(SPECIAL))))
def test_single_tokens(token: str | bytes) -> None:
    assert outcome(lambda: OURS.encode_single_token(token)) == outcome(
        lambda: THEIRS.encode_single_token(token)
    )


def test_properties() -> None:
    for name in ("name", "n_vocab", "max_token_value", "eot_token", "special_tokens_set"):
        assert getattr(OURS, name) == getattr(THEIRS, name)
    assert OURS.token_byte_values() == THEIRS.token_byte_values()
    assert repr(OURS) == repr(THEIRS)
    for id in (65, 400, 403, 404):
        assert OURS.is_special_token(id) == THEIRS.is_special_token(id)


def test_the_wrapper_has_every_public_name() -> None:
    public = {name for name in dir(THEIRS) if not name.startswith("_")} - {"encode_with_unstable"}
    assert public <= set(dir(OURS))
    assert {name for name in vars(original) if name[0] != "_"} - {
        "core", "model", "registry", "load",
    } <= set(vars(tiktoken))  # fmt: skip


def test_a_size_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(AssertionError):
        tiktoken.Encoding(**VALUES, explicit_n_vocab=3)


def test_pickling() -> None:
    again = pickle.loads(pickle.dumps(OURS))
    assert again.encode("hello<|fim|>", allowed_special="all") == OURS.encode(
        "hello<|fim|>", allowed_special="all"
    )


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_a_pickle_is_read_without_running_it(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.pkl"
    special = {name: id for name, id in SPECIAL.items() if id != 403}
    ours = tiktoken.Encoding(**{**VALUES, "special_tokens": special})
    path.write_bytes(pickle.dumps(ours, protocol))
    loaded = bytepair.load(path, allow_pickle=True)
    theirs = original.Encoding(**{**VALUES, "special_tokens": special})
    assert loaded == bytepair.load(ours) == bytepair.load(theirs)
    with told(FormatError):
        bytepair.load(path)


STAND_IN = r"""
import base64, os, pickle, sys
os.environ["TIKTOKEN_CACHE_DIR"] = ""
import bytepair, bytepair.compat.tiktoken
sys.modules["tiktoken"] = bytepair.compat.tiktoken

import tiktoken, tiktoken.core, tiktoken.load, tiktoken.model, tiktoken.registry
from tiktoken import Encoding, encoding_for_model, get_encoding, list_encoding_names
from tiktoken.load import load_tiktoken_bpe
import tiktoken_ext.openai_public

assert tiktoken.core.Encoding is Encoding is bytepair.compat.tiktoken.Encoding
assert sys.modules["tiktoken.core"].Encoding is Encoding
assert tiktoken_ext.openai_public.load_tiktoken_bpe is load_tiktoken_bpe
assert "tiktoken._tiktoken" not in sys.modules  # nothing is encoded by the original
assert tiktoken.__version__.count(".") == 2
assert tiktoken.model.encoding_name_for_model("gpt-4o") == "o200k_base"
assert "cl100k_base" in list_encoding_names()

ranks = {bytes([b]): b for b in range(256)} | {b"he": 256, b"hell": 257, b"ll": 258}
with open("tiny.tiktoken", "wb") as file:
    file.writelines(base64.b64encode(t) + b" %d\n" % rank for t, rank in ranks.items())
assert load_tiktoken_bpe("tiny.tiktoken") == ranks
tiktoken_ext.openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
base = get_encoding("cl100k_base")
assert base is encoding_for_model("gpt-4") is tiktoken.registry.ENCODINGS["cl100k_base"]
assert base.decode(base.encode("hello world")) == "hello world"
assert base.encode("<|endoftext|>", allowed_special={"<|endoftext|>"}) == [base.eot_token]
try:
    base.encode("<|endoftext|>")
except ValueError as error:
    assert "disallowed special token" in str(error)

# An encoding with more special tokens, as tiktoken's page has it.
more = tiktoken.Encoding(
    name="cl100k_im",
    pat_str=base._pat_str,
    mergeable_ranks=base._mergeable_ranks,
    special_tokens={**base._special_tokens, "<|im_start|>": 100264, "<|im_end|>": 100265},
)
assert more.encode("<|im_end|>", allowed_special="all") == [100265]
assert more.encode_batch(["hello", "he"]) == [more.encode("hello"), more.encode("he")]
assert pickle.loads(pickle.dumps(more)).encode("hello") == more.encode("hello")
with open("tokenizer.pkl", "wb") as file:
    pickle.dump(more, file)
tok = bytepair.load("tokenizer.pkl", allow_pickle=True)
theirs = bytepair.compat.to_tiktoken(tok)
assert theirs.encode("hello") == tok.encode("hello") == more.encode("hello")
assert type(theirs) is Encoding and bytepair.load(theirs) == tok
"""


def test_the_wrapper_can_be_registered_as_tiktoken(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", STAND_IN], cwd=tmp_path, check=True)


def test_two_special_tokens_may_share_an_id() -> None:
    shared = {**VALUES, "special_tokens": {"<|a|>": 500, "<|b|>": 500}}
    ours = tiktoken.Encoding(**shared)
    assert ours.encode("<|a|><|b|>", allowed_special="all") == [500, 500]
    assert ours.encode_single_token("<|a|>") == ours.encode_single_token("<|b|>") == 500


def test_a_tokenizer_with_a_list_of_merges_has_no_wrapper() -> None:
    tokens = {bytes([b]): b for b in range(256)} | {b"ab": 256}
    tok = bytepair.Tokenizer.from_merges(tokens, [(b"a", b"b")], pattern="gpt4")
    with told(ValueError):
        tiktoken.Encoding.from_tokenizer(tok)


@pytest.fixture
def registry(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tiktoken's loader, fed from the shared rank files instead of the network."""

    def load(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        name = Path(url).name.replace("r50k_base", "gpt2")
        lines = (shared / "vocabularies" / name).read_bytes().splitlines()
        return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}

    monkeypatch.setattr("tiktoken_ext.openai_public.load_tiktoken_bpe", load)
    monkeypatch.setattr("bytepair.compat.tiktoken.encoding.ENCODINGS", {})


@pytest.mark.usefixtures("registry")
def test_encodings_of_the_registry() -> None:
    for name in ("r50k_base", "cl100k_base", "o200k_base", "o200k_harmony"):
        encoding = tiktoken.get_encoding(name)
        assert tiktoken.get_encoding(name) is encoding
        text = "hello world <|endoftext|>"
        theirs = original.get_encoding(name)
        assert encoding.encode(text, allowed_special="all") == theirs.encode(
            text, allowed_special="all"
        )
        assert pickle.loads(pickle.dumps(encoding)).encode("x") == encoding.encode("x")
    assert tiktoken.encoding_for_model("gpt-4o").name == "o200k_base"


def test_unknown_encodings_are_errors() -> None:
    with told(ValueError):
        tiktoken.get_encoding("none")
    with told(ValueError):
        tiktoken.get_encoding(3)
    with pytest.raises(KeyError):
        tiktoken.encoding_for_model("no-such-model")
    assert "gpt2" in tiktoken.list_encoding_names()


@pytest.mark.parametrize("texts", [{"text": ["a"]}, "abc", b"abc"], ids=type)
@pytest.mark.parametrize(
    "call", ["encode_batch", "encode_ordinary_batch", "decode_batch", "decode_bytes_batch"]
)
def test_a_table_or_a_text_is_no_list_of_texts(call: str, texts: Any) -> None:
    with pytest.raises(ArgumentError):
        getattr(OURS, call)(texts)


def test_two_names_of_one_id() -> None:
    special = {"<|a|>": 400, "<|b|>": 400}
    ours, theirs = (kind(**VALUES | {"special_tokens": special}) for kind in
                    (tiktoken.Encoding, original.Encoding))  # fmt: skip
    for allowed in ("all", {"<|a|>"}, {"<|b|>"}, set()):
        how: Any = {"allowed_special": allowed, "disallowed_special": ()}
        expected = theirs.encode("x<|a|> y<|b|>", **how)
        assert ours.encode("x<|a|> y<|b|>", **how) == expected
        assert ours.encode_batch(["x<|a|> y<|b|>"] * 2, **how) == [expected] * 2
