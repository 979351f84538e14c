"""Arrow columns, files, pieces of text, spans and cuts, each against `encode` of one text."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
import memory
from bytepair.compat import encode_arrow
from bytepair.errors import ArgumentError, CorpusError, SpecialTokenError
from conftest import refused
from messages import told
from texts import hard_text, unsplittable

BYTES = {bytes([b]): b for b in range(256)}
MORE = {b"ab": 256, b" the": 257, b"\xa9a": 258, b"b\xe4\xb8": 259, b"  ": 260}
#: "theé" merges from its end, so "the" is none of its tokens.
MORE |= {b"e\xc3": 261, b"he\xc3": 262, b"the\xc3": 263}
SMALL = bytepair.Tokenizer.from_ranks(BYTES | MORE, pattern="gpt4", special_tokens={"<s>": 300})
LARGE = bytepair.Tokenizer.from_ranks(BYTES | MORE, pattern="gpt4o", special_tokens={"<s>": 70_001})
KINDS = [pa.string(), pa.large_string(), pa.string_view()]
texts_and_nulls = st.lists(st.one_of(st.none(), hard_text), max_size=12)


class OnlyCapsules:
    """An Arrow column of another library: an object with the one method of the interface."""

    def __init__(self, inner: Any, method: str) -> None:
        setattr(self, method, getattr(inner, method))


def one_by_one(tok: bytepair.Tokenizer, texts: list[str | None], **keywords: Any) -> list[Any]:
    return [None if text is None else tok.encode(text, **keywords) for text in texts]


class TestTextsThatComeAgain:
    @given(
        st.lists(st.tuples(hard_text, st.integers(1, 400)), min_size=1, max_size=4),
        st.lists(hard_text, min_size=1, max_size=3),
        st.sampled_from(["gpt2", "gpt4", "gpt4o", r"\w+|\W"]),
        st.sampled_from([(), "all"]),
    )
    def test_ids_are_those_of_the_first_time(
        self, start: list[tuple[str, int]], ends: list[str], pattern: str, special: Any
    ) -> None:
        def fresh() -> bytepair.Tokenizer:
            return bytepair.Tokenizer.from_ranks(
                BYTES | MORE, pattern=pattern, special_tokens={"<s>": 300}
            )

        texts = ["".join(text * times for text, times in start) + end for end in ends]
        expected = [fresh().encode(text, special=special) for text in texts]
        tok = fresh()
        for _ in range(3):
            assert tok.encode_batch(texts, special=special, threads=2) == expected
            ids, offsets = tok.encode_batch_to_numpy(texts, special=special)
            assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == expected
            assert [*bytepair.tokenizer.count_batch(tok, texts, special=special)] == list(
                map(len, expected)
            )


class TestArrow:
    @given(texts_and_nulls, st.sampled_from(KINDS), st.integers(1, 3))
    def test_an_array_of_any_kind(
        self, texts: list[str | None], kind: pa.DataType, threads: int
    ) -> None:
        array = pa.array(texts, pa.string()).cast(kind)
        for tok, ids in ((SMALL, pa.uint16()), (LARGE, pa.uint32())):
            lists = encode_arrow(tok, array, append="<s>", threads=threads)
            lists.validate(full=True)
            assert lists.type == pa.list_(ids)
            assert lists.to_pylist() == one_by_one(tok, texts, append="<s>")

    @given(texts_and_nulls, st.integers(0, 12), st.integers(0, 12))
    def test_a_slice(self, texts: list[str | None], start: int, length: int) -> None:
        array = pa.array(texts, pa.string()).slice(min(start, len(texts)), length)
        assert encode_arrow(SMALL, array).to_pylist() == one_by_one(SMALL, array.to_pylist())

    @given(st.lists(texts_and_nulls, max_size=4))
    def test_chunks_and_streams(self, chunks: list[list[str | None]]) -> None:
        column = pa.chunked_array([pa.array(c, pa.string()) for c in chunks], pa.string())
        for source in (column, OnlyCapsules(column, "__arrow_c_stream__")):
            lists = encode_arrow(SMALL, source)
            assert [chunk.to_pylist() for chunk in lists.chunks] == [
                one_by_one(SMALL, texts) for texts in chunks
            ]
            assert lists.type == pa.list_(pa.uint16())

    def test_any_object_with_the_interface(self) -> None:
        source = OnlyCapsules(pa.array(["the ab", None]), "__arrow_c_array__")
        assert encode_arrow(SMALL, source).to_pylist() == [
            SMALL.encode("the ab"),
            None,
        ]

    def test_nulls_alone(self) -> None:
        assert encode_arrow(SMALL, pa.nulls(3)).to_pylist() == [None] * 3

    def test_a_null_may_have_bytes(self) -> None:
        buffers = pa.array(["ab", "secret", "ab"]).buffers()
        valid = pa.py_buffer(bytes([0b101]))
        array = pa.Array.from_buffers(pa.string(), 3, [valid, *buffers[1:]])
        lists = encode_arrow(SMALL, array, prepend="<s>")
        assert lists.to_pylist() == [[300, 256], None, [300, 256]]
        assert len(lists.values) == 4

    def test_what_is_no_column_of_text(self) -> None:
        with told(TypeError):
            encode_arrow(SMALL, pa.array([1]))
        with told(TypeError):
            encode_arrow(SMALL, pa.table({"text": ["a"]}))
        with told(TypeError):
            encode_arrow(SMALL, ["a"])

    def test_bytes_that_are_not_utf8(self) -> None:
        array = pa.array([b"ok", b"ab\xff"], pa.binary()).view(pa.string())
        with told(CorpusError):
            encode_arrow(SMALL, array)


class TestFile:
    @given(
        st.lists(hard_text, min_size=1, max_size=6), st.sampled_from(["|", "<s>", "\n\n", "the"])
    )
    def test_documents(self, parts: list[str], separator: str) -> None:
        text = separator.join(parts)
        path = Path(self.folder, "text")
        path.write_bytes(text.encode())
        for tok, kind in ((SMALL, np.uint16), (LARGE, np.uint32)):
            ids, offsets = tok.encode_file(path, separator=separator, append="<s>")
            assert ids.dtype == kind
            assert offsets.dtype == np.int64
            expected = [tok.encode(part, append="<s>") for part in text.split(separator)]
            assert [ids[start:end].tolist() for start, end in pairwise(offsets)] == expected
            assert tok.encode_file(path)[0].tolist() == tok.encode(text)
            assert tok.encode_file(path, special="all")[0].tolist() == tok.encode(
                text, special="all"
            )

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        type(self).folder = tmp_path_factory.mktemp("file")

    folder: Path

    @pytest.mark.parametrize("threads", [1, 2, 5])
    def test_a_long_file(
        self, trained: bytepair.Tokenizer, documents: Callable[[str], list[str]], threads: int
    ) -> None:
        texts = documents("english")[:150] + documents("multilingual")[:150]
        path = self.folder / "long"
        path.write_text("\0".join(texts), encoding="utf-8", newline="")
        ids, offsets = trained.encode_file(path, threads=threads)
        assert ids.tolist() == trained.encode("\0".join(texts))
        assert offsets.tolist() == [0, len(ids)]
        ids, offsets = trained.encode_file(path, separator=b"\0", threads=threads)
        assert [ids[start:end].tolist() for start, end in pairwise(offsets)] == [
            trained.encode(text) for text in texts
        ]

    @pytest.mark.parametrize("threads", [1, 3])
    def test_bytes_that_are_not_utf8(self, threads: int) -> None:
        rng = random.Random(0)
        path = self.folder / "broken"
        good = b"the ab and the ab|" * 40_000
        for _ in range(10):
            at = rng.randrange(len(good))
            data = good[:at] + rng.choice([b"\xff", b"\xe4\xb8", b"\xed\xa0\x80"]) + good[at:]
            path.write_bytes(data)
            for separator in (None, "|"):
                with told(CorpusError, f"{path} ", f" at byte {at}"):
                    SMALL.encode_file(path, separator=separator, threads=threads)
            ids, _ = SMALL.encode_file(path, errors="replace", threads=threads)
            assert ids.tolist() == SMALL.encode(data.decode(errors="replace"))

    def test_errors(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            SMALL.encode_file(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            SMALL.encode_file(tmp_path)
        path = tmp_path / "text"
        path.write_bytes(b"")
        assert SMALL.encode_file(path)[1].tolist() == [0, 0]
        with refused("separator", ""):
            SMALL.encode_file(path, separator="")
        with refused("errors", "ignore"):
            SMALL.encode_file(path, errors="ignore")  # type: ignore[arg-type]
        path.write_text("Hi <s>")
        with told(SpecialTokenError):
            SMALL.encode_file(path, special="error")


class TestIterable:
    @given(st.lists(hard_text, max_size=8))
    def test_encode_iterable_equals_the_joined_text(self, pieces: list[str]) -> None:
        for tok in (SMALL, LARGE):
            assert list(tok.encode_stream(pieces)) == tok.encode("".join(pieces))

    @pytest.mark.parametrize("kind", ["english", "multilingual", "code"])
    def test_long_texts(
        self, pair: tuple[bytepair.Tokenizer, Any], documents: Callable[[str], list[str]], kind: str
    ) -> None:
        text = "\n\n".join(documents(kind)[:100])[:3_000_000]
        expected = pair[0].encode(text)
        for length in (1 << 12, 100_001):
            pieces = [text[at : at + length] for at in range(0, len(text), length)]
            counted = iter(enumerate(pieces))
            ids = pair[0].encode_stream(piece for _, piece in counted)
            head = [next(ids)]
            left = list(counted)
            assert left, "ids come before the end"
            assert list(pair[0].encode_stream(pieces)) == expected
            assert head == expected[:1]
        lines = io.StringIO(text, newline="")
        assert list(pair[0].encode_stream(lines)) == expected

    @pytest.mark.parametrize("kind", ["a", "spaces", "chinese"])
    def test_a_megabyte_without_a_split_point(self, kind: str) -> None:
        text = unsplittable(kind)
        pieces = (text[at : at + 1000] for at in range(0, len(text), 1000))
        assert list(SMALL.encode_stream(pieces)) == SMALL.encode(text)

    def test_ids_come_while_text_is_still_to_come(self) -> None:
        def endless() -> Iterator[str]:
            while True:
                yield "the ab "

        stream = LARGE.encode_stream(endless())
        head = [next(stream) for _ in range(100_000)]
        assert head == LARGE.encode("the ab " * 40_000)[:100_000]

    def test_a_text_is_no_iterable_of_texts(self) -> None:
        with told(TypeError):
            list(SMALL.encode_stream("text"))
        with pytest.raises(TypeError):
            list(SMALL.encode_stream([b"bytes"]))  # type: ignore[list-item]


class TestOffsets:
    @given(hard_text, st.sampled_from(["text", "all"]))
    def test_spans_are_what_each_id_covers(self, text: str, special: Any) -> None:
        text += "é<s>abé中"
        starts = np.cumsum([0, *(len(c.encode()) for c in text)])
        for tok in (SMALL, LARGE):
            ids, in_bytes, in_chars = tok.encode_offsets(text, special=special)
            assert ids == tok.encode(text, special=special)
            assert in_bytes.shape == in_chars.shape == (len(ids), 2)
            data, end = text.encode(), 0
            for i, (a, b), (c, d) in zip(ids, in_bytes, in_chars, strict=True):
                assert a == end
                assert data[a:b] == tok.token_bytes(i)
                assert starts[c] <= a < starts[c + 1]
                assert starts[d - 1] < b <= starts[d]
                end = b
            assert end == len(data)

    def test_prepended_and_appended_ids_cover_nothing(self) -> None:
        ids, in_bytes, in_chars = SMALL.encode_offsets("é", prepend="<s>", append="<s>")
        assert ids == [300, 0xC3, 0xA9, 300]
        assert in_bytes.tolist() == [[0, 0], [0, 1], [1, 2], [2, 2]]
        assert in_chars.tolist() == [[0, 0], [0, 1], [0, 1], [1, 1]]
        ids, in_bytes, _ = SMALL.encode_offsets("")
        assert (ids, in_bytes.shape) == ([], (0, 2))


class TestTruncate:
    @given(hard_text, st.integers(0, 20), st.sampled_from(["start", "end"]))
    def test_truncation_equals_the_plain_loop(self, text: str, most: int, keep: Any) -> None:
        for tok in (SMALL, LARGE):
            cut = bytepair.tokenizer.truncate_text(tok, text, most, keep=keep)
            assert tok.count(cut) <= most
            plain = text
            while len(ids := tok.encode(plain)) > most:
                part = ids[:most] if keep == "start" else ids[len(ids) - most :]
                data = tok.decode_bytes(part)
                if keep == "end":
                    data = data.lstrip(bytes(range(0x80, 0xC0)))
                plain = data.decode(errors="ignore")
            assert cut == plain

    def test_a_cut_through_a_token_is_cut_again(self) -> None:
        assert SMALL.encode("theé") == [263, 0xA9]
        assert bytepair.tokenizer.truncate_text(SMALL, "theé", 1) == "t"
        assert bytepair.tokenizer.truncate_text(SMALL, "theé", 2) == "theé"

    def test_invalid_arguments_of_truncate(self) -> None:
        with told(ValueError):
            bytepair.tokenizer.truncate_text(SMALL, "text", 1, keep="middle")  # type: ignore[arg-type]
        with told(ArgumentError):
            bytepair.tokenizer.truncate_text(SMALL, "text", -1)


def test_a_file_that_is_encoded_does_not_stay_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    with path.open("w") as file:
        for _ in range(100):
            file.write(" internationalization" * 100_000)
    program = """
        import bytepair
        tok = bytepair.train([" internationalization" * 9], 300)
        assert len(tok.encode(" internationalization")) == 1
        before = peak_mb()
        tok.encode_file(sys.argv[1], threads=2)
        print(peak_mb() - before)
    """
    (grown,) = memory.run(program, path)
    assert float(grown) < path.stat().st_size / 1e6
