"""Decoding of arrays and of streams, against tiktoken and Python's own decoder."""

from __future__ import annotations

import codecs
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair.errors import ArgumentError, UnknownIdError
from formats import load
from fuzz_streams import byte_ids, difference, random_ids
from messages import told
from pieces import document, learnt

TOK = bytepair.Tokenizer.from_ranks(
    {bytes([b]): b for b in range(256)}
    | {"é".encode(): 256, "中".encode()[1:] + b"a\xf0": 300, b"a longer token than others": 301},
    pattern="gpt4",
    special_tokens={"<s>": 400},
)
ids_of_tok = st.lists(
    st.one_of(st.integers(0, 256), st.sampled_from([0xE4, 0xF0, 0x9F, 0xED, 0xA0, 300, 301, 400]))
)


#: 400 is special; 401 is an added token that is ordinary text.
ADDED = TOK.__class__.from_ranks(
    {bytes([b]): b for b in range(256)} | {"é".encode(): 256},
    pattern="gpt4",
    special_tokens=[
        bytepair.AddedToken("<s>", 400),
        bytepair.AddedToken("   ", 401, special=False),
    ],
)


class TestSkipping:
    """Special tokens are left out as if they had not been among the ids."""

    @given(st.lists(st.one_of(st.integers(0, 256), st.sampled_from([0xC3, 0xA9, 400, 401]))))
    def test_the_others_are_decoded_as_if_alone(self, ids: list[int]) -> None:
        left = [id for id in ids if id != 400]
        expected = ADDED.decode(left)
        for kind in (list, tuple, lambda ids: np.array(ids, np.uint16), np.array):
            if kind is np.array and not ids:
                continue
            assert ADDED.decode(kind(ids), skip_special_tokens=True) == expected
        batch = [ids, [], left]
        assert ADDED.decode_batch(batch, skip_special_tokens=True) == [expected, "", expected]
        stream = ADDED.decode_stream(skip_special_tokens=True)
        assert "".join([stream.push(id) for id in ids] + [stream.flush()]) == expected
        assert ADDED.decode(ids, skip_special_tokens=False) == ADDED.decode(ids)

    def test_unknown_ids_are_errors_still(self) -> None:
        for call in (ADDED.decode, lambda ids, **k: ADDED.decode_batch([ids], **k)):
            with told(UnknownIdError):
                call([400, 999], skip_special_tokens=True)
        stream = ADDED.decode_stream(skip_special_tokens=True)
        with told(UnknownIdError):
            stream.push(999)

    def test_it_is_what_transformers_skips(self) -> None:
        pytest.importorskip("transformers")
        tok = bytepair.train(["hello hello"], 269)
        ids = tok.encode("hello<|bos|> hello<|user_end|>", special="all")
        theirs = bytepair.compat.to_transformers(tok).decode(ids, skip_special_tokens=True)
        assert tok.decode(ids, skip_special_tokens=True) == theirs == "hello hello"

    def test_a_value_that_is_no_flag_is_refused(self) -> None:
        calls: list[Any] = [lambda **k: TOK.decode([], **k), TOK.decode_stream]
        for call in calls:
            with told(ArgumentError):
                call(skip_special_tokens=2)


class TestArrays:
    @given(ids_of_tok)
    def test_ids_of_any_type(self, ids: list[int]) -> None:
        expected = b"".join(TOK.token_bytes(i) for i in ids)
        assert TOK.decode_bytes(ids) == expected
        assert TOK.decode(ids) == expected.decode(errors="replace")
        for kind in ("u2", "u4", "u8", "i2", "i4", "i8", ">u4"):
            array = np.array(ids, kind)
            assert TOK.decode_bytes(array) == expected
            assert TOK.decode(array) == expected.decode(errors="replace")
            assert TOK.decode_bytes(np.repeat(array, 2)[::2]) == expected
        for arrow in (pa.array(ids, pa.uint16()), pa.array(ids, pa.int64())):
            assert TOK.decode_bytes(arrow) == expected
        assert TOK.decode_bytes(iter(ids)) == expected

    @given(st.lists(ids_of_tok, max_size=8), st.integers(1, 4))
    def test_batches(self, lists: list[list[int]], threads: int) -> None:
        expected = [TOK.decode(ids) for ids in lists]
        assert TOK.decode_batch(lists, threads=threads) == expected
        arrays = [np.array(ids, np.uint16) for ids in lists]
        assert TOK.decode_batch(arrays, threads=threads) == expected
        mixed: Iterable[list[int] | np.ndarray] = (
            ids if n % 2 else np.array(ids, np.int64) for n, ids in enumerate(lists)
        )
        assert TOK.decode_batch(mixed, threads=threads) == expected

    def test_a_row_of_a_matrix(self) -> None:
        assert TOK.decode_batch(np.array([[97, 98], [99, 301]])) == [
            "ab",
            "ca longer token than others",
        ]

    @pytest.mark.parametrize("wrong", [-1, 257, 401, 2**40])
    def test_an_unknown_id_is_named(self, wrong: int) -> None:
        for ids in ([65, wrong], np.array([65, wrong]), pa.array([65, wrong])):
            for call in (TOK.decode, TOK.decode_bytes):
                with told(UnknownIdError, str(wrong)):
                    call(ids)
            with told(UnknownIdError, str(wrong)):
                TOK.decode_batch([[65], ids])

    def test_what_is_no_id(self) -> None:
        for wrong in ([1.5], ["a"], np.array([1.5]), np.zeros((2, 2), np.uint16), 65, None):
            with pytest.raises(TypeError):
                TOK.decode_bytes(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            TOK.decode_bytes(pa.array([65, None]))


class TestStream:
    @given(ids_of_tok)
    def test_a_stream_equals_decode(self, ids: list[int]) -> None:
        stream, theirs = TOK.decode_stream(), codecs.getincrementaldecoder("utf-8")("replace")
        parts, plain = [], ""
        for i in ids:
            parts.append(stream.push(i))
            plain += theirs.decode(TOK.token_bytes(i))
            assert "".join(parts).startswith(plain), "no later than Python's"
        parts.append(stream.flush())
        assert "".join(parts) == TOK.decode(ids)

    def test_many_streams_at_once(self, pair: tuple[bytepair.Tokenizer, tiktoken.Encoding]) -> None:
        ours, theirs = pair
        texts = [f"{n} 😀 naïve 中文字符 {chr(0x1F600 + n % 60)} ก้ {n}" for n in range(2000)]
        lists = theirs.encode_ordinary_batch(texts, num_threads=1)
        streams = [ours.decode_stream() for _ in texts]
        done = [""] * len(texts)
        for place in range(max(map(len, lists))):
            for n, ids in enumerate(lists):
                if place < len(ids):
                    done[n] += streams[n].push(ids[place])
                    assert texts[n].startswith(done[n])
        assert done == texts
        assert not any(stream.flush() for stream in streams)

    def test_an_unknown_id_changes_nothing(self) -> None:
        stream = TOK.decode_stream()
        assert stream.push(0xC3) == ""
        with told(UnknownIdError):
            stream.push(5000)
        assert stream.push(0xA9) == "é"


def test_the_parts_of_a_stream_are_the_text_of_all_ids_for_every_form_of_a_tokenizer(
    shared: Path,
) -> None:
    for file in sorted((shared / "tokenizers").glob("*.json")):
        tok = bytepair.load(file)
        of_bytes = byte_ids(tok)
        for seed in range(40):
            assert difference(tok, random_ids(random.Random(seed), tok, of_bytes)) is None


def test_a_run_of_byte_tokens_is_given_out_as_a_whole(shared: Path) -> None:
    check_runs(bytepair.load(shared / "tokenizers" / "llama2.tokenizer.json"), "ab")


def check_runs(tok: bytepair.Tokenizer, word: str) -> None:
    """Decode runs of tokens of bytes beside a word, in streams and as a whole."""
    of_bytes = byte_ids(tok)
    line_break, first = of_bytes[0x0A], of_bytes[0xE3]
    for text in (word * 30 + "\n\nフォント", f"{word}\n" * 40 + "ﾌｫﾝﾄ\n", "\n" * 90 + "é\n"):
        encoded = tok.encode(text)
        assert difference(tok, encoded) is None
        assert difference(tok, [*encoded, line_break, first]) is None
        assert difference(tok, [first, line_break, *encoded]) is None


def fallback(*decoders: dict[str, Any]) -> bytepair.Tokenizer:
    """A tokenizer with tokens of bytes such as `<0x0A>`, and these steps of its decoder."""
    steps = {"decoder": {"type": "Sequence", "decoders": list(decoders)}} if decoders else {}
    return load(document(learnt(60), **steps))


#: A tokenizer of each form that a stream has.
FORMS: dict[str, Callable[[], bytepair.Tokenizer]] = {
    "bytes": lambda: TOK,
    "byte fallback": fallback,
    "names": lambda: fallback({"type": "ByteFallback"}, {"type": "Fuse"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_text_after_a_run_of_byte_tokens_is_not_lost(form: str) -> None:
    check_runs(FORMS[form](), "the")


def cut_at_stop(text: str, stops: list[str], *, keep: bool) -> tuple[str, str | None]:
    """The slow twin: each beginning of a text is looked at for a stop string with which it ends."""
    for end in range(1, len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            longest = max(complete, key=len)
            return text[: end if keep else end - len(longest)], longest
    return text, None


class TestStops:
    """A stop string ends a stream; the result does not depend on the tokens."""

    @pytest.mark.parametrize("form", FORMS)
    def test_a_text_ends_at_the_first_stop_string(self, form: str) -> None:
        tok = FORMS[form]()
        for seed in range(150):
            rng = random.Random(seed)
            ids = random_ids(rng, tok, byte_ids(tok))
            text, keep = tok.decode(ids), rng.random() < 0.5
            places = [rng.randrange(len(text) + 1) for _ in range(2)]
            inside = [text[at : at + rng.randint(1, 9)] or "x" for at in places]
            stops = rng.sample([*inside, "\ufffd", "</s>", "ab"], k=rng.randint(1, 4))
            stream = tok.decode_stream(stop=stops, keep_stop=keep)
            for _ in range(2):
                pieces = [*map(stream.push, ids), stream.flush()]
                expected = cut_at_stop(text, stops, keep=keep)
                assert ("".join(pieces), stream.stopped) == expected, seed

    def test_what_is_certain_is_given_out_at_once(self) -> None:
        stream = TOK.decode_stream(stop=["\n\n", "\nUser:"])
        pieces = [stream.push(id) for id in b"ab\nUs\nUser: hello"]
        assert pieces[:6] == ["a", "b", "", "", "", "\nUs"]
        assert "".join(pieces) + stream.flush() == "ab\nUs"
        assert stream.stopped == "\nUser:"

    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("skip", [False, True])
    def test_a_special_token_stops_at_its_id(self, keep: bool, skip: bool) -> None:
        stream = TOK.decode_stream(stop="<s>", keep_stop=keep, skip_special_tokens=skip)
        pieces = [stream.push(id) for id in (97, 60, 115, 0xC3, 400, 98)]
        assert "".join(pieces) == "a<s\ufffd" + "<s>" * keep
        assert (stream.flush(), stream.stopped) == ("", "<s>")
        assert (stream.push(98), stream.stopped) == ("b", None)

    def test_a_stop_string_may_come_with_the_end(self) -> None:
        stream = TOK.decode_stream(stop="\ufffd")
        assert (stream.push(97), stream.push(0xC3), stream.flush()) == ("a", "", "")
        assert stream.stopped == "\ufffd"

    @pytest.mark.parametrize("stop", ["", ["a", ""], 5, [5], b"a"])
    def test_what_is_no_stop_string_is_refused(self, stop: Any) -> None:
        with pytest.raises(ArgumentError) as caught:
            TOK.decode_stream(stop=stop)
        assert caught.value.option == "stop"
