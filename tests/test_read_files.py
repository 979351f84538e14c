"""Files that the core reads, against `json.loads` for each line and a regex for pretokens."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import reference
from bytepair.errors import CorpusError
from bytepair.training import counting
from bytepair.training.counts import read_counts
from messages import told

GPT2 = bytepair.PATTERNS["gpt2"]

value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
#: Versions of Unicode differ in what an unassigned code point is.
assigned = st.characters(exclude_categories=["Cn"])
hard = st.text('ab \n\t"\\é中\ud83d\ude00\udc00', max_size=40)
text = st.none() | st.text(assigned, max_size=40) | hard
line = st.fixed_dictionaries({"id": value}, optional={"text": text, "é": value})


def plain(lines: bytes) -> list[str]:
    """The texts of lines; an unpaired surrogate is U+FFFD."""
    texts = [json.loads(line).get("text") or "" for line in lines.splitlines() if line.strip()]
    return [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]


@given(
    objects=st.lists(line, min_size=1, max_size=12),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\n \n", "\n\n\t\r\n"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    block=st.sampled_from([1, 7, 50, 1 << 20]),
    threads=st.integers(1, 3),
    pack=st.sampled_from(["", ".gz", ".zst"]),
)
@settings(max_examples=150, deadline=None)
def test_jsonl_equals_json_loads(
    tmp_path_factory: pytest.TempPathFactory,
    objects: list[dict[str, Any]],
    ascii_only: bool,
    end: str,
    mark: bytes,
    block: int,
    threads: int,
    pack: str,
) -> None:
    content = "".join(json.dumps(item, ensure_ascii=ascii_only) + end for item in objects)
    data = content.encode("utf-8", "replace")
    texts = plain(data)
    path = tmp_path_factory.mktemp("jsonl") / f"a.jsonl{pack}"
    packed: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd}
    path.write_bytes(packed[pack](mark + data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bytepair.corpus.column.BLOCK_BYTES", block)
        if not any("text" in item and item["text"] is not None for item in objects):
            with told(CorpusError, str(path), "'text'"):
                bytepair.count(path, pattern="gpt2", threads=threads)
            return
        counts = bytepair.count(
            path, pattern="gpt2", threads=threads, reading=bytepair.Reading(errors="replace")
        )
    assert dict(counts.items()) == reference.count(texts, GPT2)
    assert (
        counts.items()
        == bytepair.count(bytepair.corpus.Texts(texts), pattern="gpt2", threads=1).items()
    )


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


def test_half_of_a_surrogate_pair_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "good"}\n{"text": "b\\ud800"}\n')
    with pytest.raises(CorpusError) as caught:
        bytepair.count(path)
    assert str(caught.value) == (
        rf"{path}, line 2: the text has the lone surrogate \ud800, half of a character; repair it, "
        'or pass errors="replace" to read U+FFFD instead, or errors="skip" to leave the document '
        "out"
    )
    with told(CorpusError):
        bytepair.count(["good", "b\ud800"])
    assert bytepair.count(
        ["good", "b\ud800"], reading=bytepair.Reading(errors="replace")
    ) == bytepair.count(["good", "b\ufffd"])
    assert bytepair.count(path, reading=bytepair.Reading(errors="replace")) == bytepair.count(
        ["good", "b\ufffd"]
    )


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_members_follow_each_other_and_a_part_is_an_error(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / ("a.txt.gz" if pack is gzip.compress else "a.txt.zst")
    path.write_bytes(pack(b"one two ") + pack(b"") + pack(b"three"))
    assert bytepair.count(path) == bytepair.count(["one two three"])
    path.write_bytes(pack(b"one two " * 1000)[:-3])
    with told(CorpusError):
        bytepair.count(path)


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.zst"])
def test_zeros_at_the_end_and_a_long_window_are_no_damage(name: str, tmp_path: Path) -> None:
    text = b"one two three"
    # a header with a window of 2^28 bytes, and one block that is not compressed
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(28 - 10) << 3])
    frame += (len(text) << 3 | 1).to_bytes(3, "little") + text
    packed = gzip.compress(text) + bytes(300_000) if name.endswith(".gz") else frame
    (tmp_path / name).write_bytes(packed)
    assert bytepair.count(tmp_path / name) == bytepair.count([text.decode()])


@pytest.mark.parametrize("save_every", [0.0, 1e9])
def test_a_count_of_files_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_every: float
) -> None:
    monkeypatch.setattr(counting, "SAVE_SECONDS", save_every)
    monkeypatch.setattr("bytepair.corpus.column.BLOCK_BYTES", 1000)
    folder, file = tmp_path / "in", tmp_path / "partial.parquet"
    folder.mkdir()
    words = " ".join(f"word{number}" for number in range(3000))
    (folder / "a.txt").write_text(words)
    (folder / "b.jsonl.gz").write_bytes(
        gzip.compress(b"".join(b'{"text": "%d and more"}\n' % n for n in range(5000)))
    )
    expected = bytepair.count(folder)

    def broken(_stage: str, done: int, _total: int | None) -> None:
        if done and not file.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bytepair.count(folder, progress=broken, reading=bytepair.Reading(checkpoint=file))
    if file.exists():
        assert read_counts(file).text_bytes <= expected.text_bytes
    assert bytepair.count(folder, reading=bytepair.Reading(checkpoint=file)) == expected
    assert bytepair.count(folder, reading=bytepair.Reading(checkpoint=file)) == expected


def test_files_of_a_cloud_are_read_as_those_of_this_machine(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    contents = {
        "a.txt": b"one two",
        "b.jsonl": b'{"text": "three"}\n{"text": "four"}\n',
        "c.jsonl.gz": gzip.compress(b'{"text": "five"}\n'),
        "d.txt": b"broken \xff",
    }
    memory = fsspec.filesystem("memory")
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        memory.pipe(f"/here/{name}", content)
    whole = [f"memory://here/{name}" for name in contents]
    local = [tmp_path / name for name in contents]
    counted = bytepair.count(
        bytepair.corpus.Paths(whole), pattern="gpt2", reading=bytepair.Reading(errors="replace")
    )
    assert (
        counted.items()
        == bytepair.count(local, pattern="gpt2", reading=bytepair.Reading(errors="replace")).items()
    )
    with told(CorpusError):
        bytepair.count(bytepair.corpus.Paths(whole), pattern="gpt2")
    memory.pipe("/here/e.jsonl", b'{"text": "a"}\n\n\n7\n')
    with told(CorpusError):
        bytepair.count("memory://here/e.jsonl", pattern="gpt2")
