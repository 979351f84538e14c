"""The native file: mapped, shared, checked; hostile, damaged and replaced ones."""

from __future__ import annotations

import copy
import os
import pickle
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import _core
from bytepair.errors import BytepairError, FileFormatError, VocabularyError
from bytepair.explore.answers import Answers
from conftest import refused
from messages import told

TEXT = "abc bcabcab hello, 中文字符 é 😀 <|bos|> 12345\n"
linux = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


def large(pattern: str = "gpt4", size: int = 6000) -> bytepair.Tokenizer:
    """A vocabulary that is large enough to be saved with tables."""
    tokens = [bytes([b]) for b in range(256)] + [b"he", b"hello", "中".encode(), "中文".encode()]
    members, rng = set(tokens), random.Random(1)
    while len(tokens) < size:
        token = (rng.choice(tokens) + rng.choice(tokens))[:40]
        if token not in members:
            members.add(token)
            tokens.append(token)
    ranks = {token: id for id, token in enumerate(tokens)}
    return bytepair.Tokenizer.from_ranks(ranks, pattern=pattern, special_tokens={"<|bos|>": size})


def by_merges(*, ignore_merges: bool) -> bytepair.Tokenizer:
    tok = large()
    tokens = tok.mergeable_ranks()
    merges = [pair for pair in tok.merges() if b"".join(pair) in tokens][::2]
    return bytepair.Tokenizer.from_merges(
        tokens,
        merges,
        pattern="gpt2",
        special_tokens=tok.special_tokens,
        ignore_merges=ignore_merges,
    )


@pytest.fixture(scope="module")
def many() -> list[bytepair.Tokenizer]:
    """Large and small ones, under each rule."""
    return [
        large(),
        by_merges(ignore_merges=False),
        by_merges(ignore_merges=True),
        bytepair.train([TEXT * 20], 300),
        large(pattern=r"\S+|\s+"),
    ]


def same(one: bytepair.Tokenizer, two: bytepair.Tokenizer) -> None:
    assert one == two
    assert (one.fingerprint, one.notes, one.merges()) == (two.fingerprint, two.notes, two.merges())
    assert _core.merge_counts(one).tolist() == _core.merge_counts(two).tolist()
    ids = one.encode(TEXT * 3, special="all")
    assert two.encode(TEXT * 3, special="all") == ids
    assert two.decode(ids) == one.decode(ids)
    assert [two.token_bytes(i) for i in ids] == [one.token_bytes(i) for i in ids]


def signed(data: bytes | bytearray) -> bytes:
    """The same bytes with a correct checksum."""
    checksum = zlib.crc32(bytes(data[:24]) + bytes(4) + bytes(data[28:]))
    return bytes(data[:24]) + checksum.to_bytes(4, "little") + bytes(data[28:])


def sections(data: bytes) -> dict[int, range]:
    """Where each section is."""
    lines = struct.iter_unpack("<IIQQ", data[64 : 64 + 24 * data[12]])
    return {kind: range(start, start + length) for kind, _, start, length in lines}


class TestRoundTrip:
    def test_mapped_and_copied_files_are_equal(
        self, many: list[bytepair.Tokenizer], tmp_path: Path
    ) -> None:
        for tok in many:
            for tables in (True, False):
                path = tok.save(tmp_path, tables=tables, overwrite=True)
                same(tok, bytepair.load(tmp_path))
                same(tok, bytepair.load(path, check=True))
                same(tok, bytepair.Tokenizer.from_bytes(path.read_bytes()))
                assert path.read_bytes() == tok.to_bytes(tables=tables)

    def test_the_same_tokenizer_is_the_same_file(self, many: list[bytepair.Tokenizer]) -> None:
        for tok in many:
            data = tok.to_bytes()
            assert bytepair.Tokenizer.from_bytes(data).to_bytes() == data
            without = bytepair.Tokenizer.from_bytes(tok.to_bytes(tables=False))
            assert without.to_bytes() == data
            assert large().to_bytes() == large().to_bytes()

    def test_a_token_that_a_forged_file_makes_of_itself_has_no_parts(self) -> None:
        tok = large()
        data = bytearray(tok.to_bytes())
        merges, tokens = (sections(bytes(data))[kind] for kind in (5, 26))
        left, right = struct.unpack_from("<2I", data, merges.start)
        result = tok.token_id(tok.token_bytes(left) + tok.token_bytes(right))
        for at in tokens[48::64]:  # the ids of three tokens; the first merge makes its left part
            (ids,) = struct.unpack_from("<Q", data, at)
            for shift in (0, 21, 42):
                if ids >> shift & (1 << 21) - 1 == result:
                    struct.pack_into("<Q", data, at, ids ^ (result ^ left) << shift)
        tok = bytepair.Tokenizer.from_bytes(signed(data))
        tree = Answers({"forged": tok}).ask("token", t=0, id=left)["tree"]
        assert "parts" not in tree

    def test_sections_of_unknown_kinds_are_passed_over(self, tmp_path: Path) -> None:
        tok, path = large(), tmp_path / "tokenizer.bytepair"
        for kind in (27, 200):
            data = bytearray(tok.to_bytes())
            last = 64 + 24 * (data[12] - 1)
            struct.pack_into("<I", data, last, kind)
            path.write_bytes(signed(data))
            assert bytepair.load(path) == tok

    def test_repeated_text_need_not_be_kept(self, tmp_path: Path) -> None:
        large().save(tmp_path)
        for repeats in (0, 1000, 1 << 20, None):
            tok = bytepair.load(tmp_path).replace(repeats=repeats)
            assert all(tok.encode(TEXT * 999) == large().encode(TEXT * 999) for _ in range(4))
        with refused("repeats", -1):
            bytepair.load(tmp_path).replace(repeats=-1)

    @pytest.mark.parametrize("repeats", [0, 1 << 20])
    def test_derived_tokenizers_have_the_same_cache_limit(
        self, repeats: int, tmp_path: Path
    ) -> None:
        bytepair.train(["hello hello help"], 268).save(tmp_path)
        assert _core.repeats(bytepair.load(tmp_path)) == 32 << 20
        tok = bytepair.load(tmp_path).replace(repeats=repeats)
        tokenizers = [
            tok,
            tok.replace(special_tokens=["<new>"]),
            tok.replace(roles={"bos": "<|bos|>"}),
            tok.replace(notes={"a": "b"}),
            tok.replace(vocab_size=266),
            bytepair.engines.with_sentencepiece_ids(tok),
            bytepair.prune(tok, 266).tokenizer,
            bytepair.training.resume(
                tok, bytepair.corpus.Texts(["hello hello help"]), vocab_size=269
            ),
            bytepair.extend(tok, ["high high"], extra=1),
            pickle.loads(pickle.dumps(tok)),
            copy.deepcopy(tok),
        ]
        assert [_core.repeats(one) for one in tokenizers] == [repeats] * len(tokenizers)

    @given(
        tokens=st.sets(st.binary(min_size=2, max_size=20), max_size=40),
        order=st.randoms(use_true_random=False),
        special=st.sets(st.text(min_size=1, max_size=5), max_size=4),
        notes=st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3),
        text=st.text(max_size=40),
    )
    def test_any_vocabulary(
        self,
        tokens: set[bytes],
        order: random.Random,
        special: set[str],
        notes: dict[str, str],
        text: str,
    ) -> None:
        every = [bytes([b]) for b in range(256)] + sorted(tokens)
        ids = order.sample(range(2 * len(every)), len(every))
        names = dict(zip(sorted(special), range(2 * len(every), 3 * len(every)), strict=False))
        tok = bytepair.Tokenizer.from_ranks(
            dict(zip(every, ids, strict=True)), pattern="gpt2", special_tokens=names
        ).replace(notes=notes)
        again = bytepair.Tokenizer.from_bytes(tok.to_bytes())
        assert (again, again.notes) == (tok, notes)
        assert again.encode(text) == tok.encode(text)

    def test_small_vocabularies_are_small_files(self) -> None:
        tok = bytepair.train([TEXT * 20], 300)
        assert len(tok.to_bytes()) == len(tok.to_bytes(tables=False)) < 5000
        assert len(large().to_bytes()) > len(large().to_bytes(tables=False))

    def test_notes_about_the_origin(self, tmp_path: Path) -> None:
        tok = bytepair.train(["hello hello world"], 270, options=bytepair.TrainOptions(min_count=1))
        tok.replace(notes={"name": "hello", "date": "2026-11-21"}).save(tmp_path)
        notes = bytepair.load(tmp_path).notes
        origin = {key: notes[key] for key in ("name", "date", "text_bytes", "pretokens", "ties")}
        assert origin == {
            "name": "hello", "date": "2026-11-21", "text_bytes": "17", "pretokens": "3",
            "ties": "rustbpe",
        }  # fmt: skip
        assert len(notes["counts"]) == 64
        other = bytepair.train(["hello world hello"], 270)
        assert other.notes["counts"] != notes["counts"], "another order of first occurrence"
        assert (
            _core.merge_counts(bytepair.load(tmp_path)).tolist() == _core.merge_counts(tok).tolist()
        )


class TestDamage:
    def test_every_cut_and_every_byte(self, tmp_path: Path) -> None:
        data = bytepair.train(["hello hello"], 260, special_tokens=["<s>"]).to_bytes()
        path = tmp_path / "tokenizer.bytepair"
        rng = random.Random(0)
        for at in range(len(data)):
            path.write_bytes(data[:at])
            with told(FileFormatError, f"{path}: "):
                bytepair.load(path)
            damaged = bytearray(data)
            damaged[at] ^= rng.randint(1, 255)
            with pytest.raises(FileFormatError):
                bytepair.Tokenizer.from_bytes(bytes(damaged))

    def test_the_first_version_says_what_to_do(self, tmp_path: Path) -> None:
        data = bytearray(large().to_bytes())
        data[8] = 1
        (tmp_path / "tokenizer.bytepair").write_bytes(signed(data))
        with told(FileFormatError):
            bytepair.load(tmp_path)

    @pytest.mark.parametrize("kind", [17, 18, 19, 21, 25, 26])
    def test_forged_tables(self, kind: int, tmp_path: Path) -> None:
        """The full check finds it; without the check it raises nothing but our errors."""
        tok = by_merges(ignore_merges=True)
        data = tok.to_bytes()
        rng = random.Random(kind)
        path = tmp_path / "tokenizer.bytepair"
        for _ in range(30):
            hostile = bytearray(data)
            for _ in range(rng.choice([1, 1000])):
                at = rng.choice(sections(data)[kind]) // 4 * 4
                value = rng.choice([0, 1, 6000, 6001, 2**22 - 1, 2**31, 2**32 - 1])
                hostile[at : at + 4] = value.to_bytes(4, "little")
            path.write_bytes(signed(hostile))
            if hostile == data:
                continue
            with told(FileFormatError, "at byte "):
                bytepair.load(path, check=True)
            try:
                loaded = bytepair.load(path)
                for act in (loaded.encode, loaded.encode_offsets):
                    act(TEXT * 9)
                loaded.encode_batch_to_numpy([TEXT * 9])
                loaded.decode(loaded.encode(TEXT))
                bytepair.tokenizer.truncate_text(loaded, TEXT, 3)
            except BytepairError:
                pass

    @pytest.mark.parametrize("id", [256 + 11, 256 + 700])
    def test_merges_are_of_ordinary_tokens_and_not_all_of_the_longest(
        self, id: int, tmp_path: Path
    ) -> None:
        """As a list of texts, many merges of a long token would take any memory."""
        long = [b"a" * (1 << size) for size in range(1, 13)]
        pairs = [bytes([one, two]) for one in range(65, 90) for two in range(65, 90)]
        tokens = [*(bytes([byte]) for byte in range(256)), *long, *pairs]
        ranks = {token: rank for rank, token in enumerate(tokens)}
        tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4", special_tokens={"<s>": 956})
        data = bytearray(tok.to_bytes())
        merges = sections(bytes(data))[5]
        data[merges.start : merges.stop] = struct.pack("<I", id) * (len(merges) // 4)
        loaded = bytepair.Tokenizer.from_bytes(signed(data))
        assert loaded.decode(loaded.encode("hello")) == "hello"
        with told(VocabularyError):
            loaded.merges()
        with told(VocabularyError):
            loaded.export(tmp_path / "out", "huggingface")

    @pytest.mark.parametrize("field", ["kind", "start", "length", "reach", "count"])
    def test_a_forged_table_of_sections(self, field: str) -> None:
        data = large().to_bytes()
        values = [
            0,
            1,
            2,
            63,
            64,
            65,
            len(data) - 1,
            len(data),
            2**31,
            2**32 - 1,
            2**63,
            2**64 - 64,
        ]
        for line in range(data[12]):
            at, width = {
                "count": (12, 4), "kind": (64 + 24 * line, 4), "reach": (68 + 24 * line, 4),
                "start": (72 + 24 * line, 8), "length": (80 + 24 * line, 8),
            }[field]  # fmt: skip
            for value in values:
                hostile = bytearray(data)
                hostile[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
                try:
                    loaded = bytepair.Tokenizer.from_bytes(signed(hostile))
                    loaded.encode(TEXT)
                except BytepairError:
                    pass

    def test_a_file_without_a_table_is_as_good(self) -> None:
        """Sections of unknown kinds are skipped, and missing tables are built."""
        tok = large()
        data = tok.to_bytes()
        last = 64 + 24 * (data[12] - 1)
        other = bytearray(data)
        other[last : last + 4] = (77).to_bytes(4, "little")
        same(tok, bytepair.Tokenizer.from_bytes(signed(other)))

    def test_pipes_are_refused(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "tokenizer.bytepair")
        with told(FileFormatError):
            bytepair.load(tmp_path)


class TestReplacement:
    def test_a_mapped_file_survives_its_replacement(self, tmp_path: Path) -> None:
        old, new = large(), large(pattern="gpt2")
        old.save(tmp_path)
        loaded = bytepair.load(tmp_path)
        new.save(tmp_path, overwrite=True)
        same(old, loaded)
        same(new, bytepair.load(tmp_path))
        (tmp_path / "tokenizer.bytepair").unlink()
        same(old, loaded)

    def test_a_loaded_tokenizer_saves_over_its_own_file(self, tmp_path: Path) -> None:
        tok = large()
        tok.save(tmp_path)
        for _ in range(3):
            bytepair.load(tmp_path).save(tmp_path)
        same(tok, bytepair.load(tmp_path))

    def test_two_threads_save_at_once(self, tmp_path: Path) -> None:
        toks = [large(), large(pattern="gpt2")]
        for tok in toks:
            tok.save(tmp_path, overwrite=True)
        threads = [
            threading.Thread(
                target=lambda t=tok: [t.save(tmp_path, overwrite=True) for _ in range(10)]
            )
            for tok in toks
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert bytepair.load(tmp_path) in toks
        assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.bytepair"]

    @linux
    def test_killed_while_saving(self, tmp_path: Path) -> None:
        code = """
import bytepair, sys
tok = bytepair.load(sys.argv[1])
print("ready", flush=True)
while True:
    tok.save(sys.argv[2])
"""
        one, home = large(), tmp_path / "home"
        one.save(tmp_path)
        for delay in range(5):
            process = subprocess.Popen(
                [sys.executable, "-c", code, str(tmp_path), str(home)], stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            process.stdout.readline()
            threading.Event().wait(0.003 * delay)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if (home / "tokenizer.bytepair").exists():
                assert bytepair.load(home, check=True) == one


def memory(path: Path) -> dict[str, int]:
    """The memory of this process that maps a file, by kind, in bytes, from the system."""
    sizes: dict[str, int] = {}
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            inside = line.endswith(str(path))
        elif inside and line.endswith(" kB"):
            name, size = line.removesuffix(" kB").split(":")
            sizes[name] = sizes.get(name, 0) + 1024 * int(size)
    return sizes


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder that is not in memory, as those of tests may be: its mapped pages are counted."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@linux
class TestMemory:
    def test_a_file_is_mapped_and_nothing_of_it_is_copied(self, disk_path: Path) -> None:
        path = large(size=50_000).save(disk_path)
        loaded = bytepair.load(path)
        assert memory(path)["Size"] >= path.stat().st_size
        # Pages that encoding does not read are released after the check.
        assert memory(path)["Rss"] < 0.95 * path.stat().st_size
        assert memory(path)["Private_Dirty"] == 0
        loaded.encode(TEXT)
        assert memory(path)["Rss"] > 0
        del loaded
        assert memory(path) == {}

    def test_processes_share_it(self, disk_path: Path) -> None:
        path = large().save(disk_path)
        code = f"""
import bytepair, sys
tok = bytepair.load(sys.argv[1])
assert tok.encode({TEXT!r})
print("ready", flush=True)
sys.stdin.read()
"""
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert other.stdout is not None
        other.stdout.readline()
        loaded = bytepair.load(path)
        loaded.encode(TEXT)
        shared = memory(path)
        other.communicate()
        assert shared["Shared_Clean"] > 0
        assert shared["Private_Dirty"] == 0

    def test_processes_that_are_forked_share_it(self, tmp_path: Path) -> None:
        loaded = bytepair.load(large().save(tmp_path))
        expected = loaded.encode(TEXT)
        child = os.fork()
        if child == 0:
            os._exit(0 if loaded.encode(TEXT) == expected else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_model_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    with told(FileNotFoundError, "nothing"):
        _core.Model.map(tmp_path / "nothing")


# ---------------------------------------------------------------------------- names and full disks


@pytest.mark.parametrize("name", ["tokenizer.json", "t.bytepair", "v.gguf", "x.tiktoken", "t.pkl"])
def test_a_folder_with_the_name_of_a_file_is_not_made(name: str, tmp_path: Path) -> None:
    tok = large(size=300)
    with told(NotADirectoryError):
        tok.save(tmp_path / name)
    with told(NotADirectoryError):
        tok.export(tmp_path / name, "nanochat", lossy=True)
    assert not list(tmp_path.iterdir())
    (tmp_path / name).mkdir()  # a folder that somebody has given this name is used
    assert bytepair.load(tok.save(tmp_path / name)) == tok


def test_what_is_missing_or_no_folder_is_named(tmp_path: Path) -> None:
    tok = large(size=300)
    (tmp_path / "file").write_text("text")
    with told(NotADirectoryError):
        tok.save(tmp_path / "file")
    with told(NotADirectoryError):
        tok.export(tmp_path / "missing" / "tokenizer.json", lossy=True)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_a_full_disk_names_the_file_and_its_size(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    code = """
import resource, sys, bytepair
tok = bytepair.train(bytepair.sample.paths(), 1000)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
folder = sys.argv[1]
for write, name in [(tok.save, "new"), (tok.export, "tokenizer.json")]:
    try:
        write(f"{folder}/{name}")
    except OSError as error:
        print(error.filename.removeprefix(folder), error.strerror)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    named = re.findall(r"^(\S+) File too large for [\d,]+ bytes$", run.stdout, re.MULTILINE)
    assert named == ["/new/tokenizer.bytepair", "/tokenizer.json"]
    assert not list(tmp_path.iterdir())
