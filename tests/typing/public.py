"""The types a user sees. `make mypy` checks this file; it is never run."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import tiktoken
from numpy.typing import NDArray

import bytepair


def a_tokenizer_is_trained_saved_and_loaded() -> None:
    tok = bytepair.train(["a text"], vocab_size=265)
    assert_type(tok, bytepair.Tokenizer)
    tok.save("tokenizer")
    assert_type(bytepair.load("tokenizer"), bytepair.Tokenizer)
    bytepair.train(["a text"], ties="oldest")  # type: ignore[arg-type]


def texts_become_ids_and_texts_again(tok: bytepair.Tokenizer) -> None:
    assert_type(tok.encode("a text"), list[int])
    assert_type(tok.encode("a text", special={"<|bos|>"}, prepend="<|bos|>"), list[int])
    assert_type(tok.encode_batch(["a", "b"], threads=2), list[list[int]])
    assert_type(
        bytepair.compat.pad(tok, tok.encode_batch(["a"]))["attention_mask"], NDArray[np.integer]
    )
    assert_type(tok.decode([1, 2]), str)
    assert_type(tok.decode_bytes([1, 2]), bytes)
    assert_type(tok.decode_batch([[1], [2]]), list[str])
    tok.encode(b"bytes are not text")  # type: ignore[arg-type]


def a_tokenizer_shows_its_values(tok: bytepair.Tokenizer) -> None:
    assert_type(tok.mergeable_ranks(), dict[bytes, int])
    assert_type(tok.merges(), list[tuple[bytes, bytes]])
    assert_type(tok.special_tokens, dict[str, int])
    assert_type(bytepair.compat.to_tiktoken(tok), tiktoken.Encoding)


def a_tokenizer_is_evaluated(tok: bytepair.Tokenizer) -> None:
    evaluation = bytepair.evaluate.measure(tok, against=["gpt2"], texts={"validation": ["a text"]})
    assert_type(evaluation, bytepair.evaluate.Evaluation)
    assert_type(evaluation.compression[0].tokens, dict[str, int])
    assert_type(evaluation.languages[0].fertility, float | None)
    assert_type(bytepair.evaluate.token_lengths(tok), NDArray[np.int32])
    assert_type(bytepair.explore.Server({"mine": tok}).url, str)
