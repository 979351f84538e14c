"""Each figure of the evaluation against a computation that shares no code with it."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import bytepair
from bytepair import evaluate, reference
from bytepair.errors import ArgumentError, NotFetchedError
from bytepair.evaluate.evaluation import LANGUAGES, declarations
from bytepair.formats import published as encodings
from commands import message_of
from conftest import refused
from formats import json_of, small
from formats import load as load_json
from messages import told
from test_cli import run

#: Where tiktoken defines its encodings; it has no types.
openai_public = importlib.import_module("tiktoken_ext.openai_public")


@pytest.fixture(scope="module")
def found(trained: bytepair.Tokenizer) -> evaluate.Evaluation:
    rival = bytepair.train(["hello hello"], vocab_size=269)
    texts = {"train": ["To be, or not to be"], "validation": ["That is", " the question: 🙂"]}
    return evaluate.measure(trained, against={"small": rival}, texts=texts)


@pytest.fixture(scope="module")
def encoding(trained: bytepair.Tokenizer) -> tiktoken.Encoding:
    return bytepair.compat.to_tiktoken(trained)


# ---------------------------------------------------------------------------- texts


def test_the_shipped_texts_are_what_they_say() -> None:
    samples = evaluate.samples()
    assert list(samples) == ["news", "korean", "code", "mathematics", "science"]
    assert all(1000 < len(text.encode()) < 4000 for text in samples.values())
    compile(samples["code"].partition("/*")[0], "code", "exec")
    hangul = re.findall("[가-힣]", samples["korean"])
    assert len(hangul) > 0.6 * len(samples["korean"])
    assert declarations().keys() == LANGUAGES.keys()
    assert len(LANGUAGES) == 60


def test_documents_come_from_any_source(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ein Text ä", encoding="utf-8")
    assert evaluate.documents(tmp_path / "a.txt") == ["ein Text ä"]
    assert len(evaluate.documents(["a", "b", "c"], max_chars=2)) == 2
    with told(bytepair.errors.CorpusError):
        evaluate.documents([])


# ---------------------------------------------------------------------------- figures


def test_compression_is_what_tiktoken_counts(
    found: evaluate.Evaluation, encoding: tiktoken.Encoding
) -> None:
    texts = {k: [v] for k, v in evaluate.samples().items()}
    texts |= {"train": ["To be, or not to be"], "validation": ["That is", " the question: 🙂"]}
    assert [one.text for one in found.compression] == list(texts)
    for one in found.compression:
        size = sum(len(text.encode("utf-8")) for text in texts[one.text])
        tokens = sum(len(encoding.encode_ordinary(text)) for text in texts[one.text])
        assert (one.bytes, one.tokens["ours"]) == (size, tokens)
        assert one.ratio("ours") == pytest.approx(size / tokens)


def test_languages_are_what_tiktoken_counts(
    found: evaluate.Evaluation, encoding: tiktoken.Encoding
) -> None:
    files = {p.stem: p.read_text("utf-8") for p in bytepair.sample.paths() if p.stem in LANGUAGES}
    counts = {code: len(encoding.encode_ordinary(text)) for code, text in files.items()}
    assert {one.code for one in found.languages} == set(files)
    for one in found.languages:
        assert one.tokens == counts[one.code]
        assert one.parity == pytest.approx(float(Fraction(counts[one.code], counts["en"])))
        assert one.bytes_per_token * one.tokens == pytest.approx(len(files[one.code].encode()))
        assert found.parity["ours"][one.code] == one.parity
    parities = [one.parity for one in found.languages[1:]]
    assert found.languages[0].code == "en"
    assert parities == sorted(parities)
    by_code = {one.code: one for one in found.languages}
    words = len(files["de"].split())
    assert by_code["de"].fertility == pytest.approx(counts["de"] / words)
    assert by_code["th"].fertility is None
    assert len(files["am"].split()) < (by_code["am"].words or 0)  # its words are divided by ፡


def test_use_is_what_a_counter_counts(found: evaluate.Evaluation) -> None:
    tok = found.tokenizer
    ids = [i for text in ["That is", " the question: 🙂"] for i in tok.encode(text)]
    times = Counter(ids)
    used = found.use
    assert used.tokens == len(ids)
    assert used.bytes == len("That is the question: 🙂".encode())
    assert set(used.unused) == set(tok.mergeable_ranks().values()) - set(ids)
    pieces = [tok.token_bytes(i) for i in ids]
    assert used.single_bytes == sum(len(p) == 1 for p in pieces) / len(ids)
    broken = sum(len(p) == 1 and p[0] >= 128 for p in pieces)
    assert used.broken_bytes == broken / len(ids)
    assert broken > 0
    power = sum((n / len(ids)) ** 2.5 for n in times.values())
    assert used.renyi == pytest.approx(math.log(power) / (1 - 2.5) / math.log(tok.vocab_size))
    assert used.counts.sum() == len(ids)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_gini_is_half_the_relative_mean_difference(numbers: list[int]) -> None:
    mean = sum(numbers) / len(numbers)
    difference = sum(abs(a - b) for a in numbers for b in numbers) / len(numbers) ** 2
    assert evaluate.gini(numbers) == pytest.approx(difference / 2 / mean, abs=1e-12)


def test_efficiency_of_known_distributions() -> None:
    assert evaluate.renyi_efficiency([1] * 8, 8) == pytest.approx(1)
    assert evaluate.renyi_efficiency([1] * 8, 64) == pytest.approx(0.5)
    assert evaluate.renyi_efficiency([3, 1], 2, order=2) == pytest.approx(math.log2(16 / 10))
    assert evaluate.renyi_efficiency([], 5) == evaluate.renyi_efficiency([4], 1) == 0


def test_vocabulary_is_what_a_plain_search_finds(found: evaluate.Evaluation) -> None:
    tok, one = found.tokenizer, found.vocabulary
    tokens = {tok.token_id(token): token for token in tok.mergeable_ranks()}
    assert one.size == tok.vocab_size == len(tokens) + one.special
    assert sum(one.lengths.values()) == len(tokens)
    assert max(one.lengths) == len(tokens[one.longest[0]]) == max(map(len, tokens.values()))
    sizes = [len(tokens[i]) for i in one.longest]
    assert sizes == sorted(sizes, reverse=True)
    rest = [len(token) for i, token in tokens.items() if i not in one.longest]
    assert max(rest) <= sizes[-1]
    whole = {i for i, t in tokens.items() if "\ufffd" not in t.decode("utf-8", "replace")}
    assert set(one.unwhole) == {i for i, t in tokens.items() if len(t) > 1} - whole
    for number, split in one.numbers.items():
        assert b"".join(split) == number.encode()
    digits = [t for t in tokens.values() if re.fullmatch(rb"[0-9]+", t)]
    assert one.digits == Counter(map(len, digits))


def test_near_duplicates_differ_in_case_or_space_only(found: evaluate.Evaluation) -> None:
    tok, groups = found.tokenizer, found.vocabulary.duplicates
    keys = set()
    for group in groups:
        texts = [tok.token_bytes(i).decode() for i in group]
        stripped = {(t[1:] if t[0] == " " else t).casefold() for t in texts}
        assert len(stripped) == 1
        assert len(texts) == len(set(texts)) > 1
        keys |= stripped
    assert len(keys) == len(groups)
    assert {"the"} <= keys
    longer = [t.decode("utf-8", "replace") for t in tok.mergeable_ranks() if len(t) > 1]
    seen = Counter(t.removeprefix(" ").casefold() for t in longer if "\ufffd" not in t)
    assert keys == {key for key, times in seen.items() if times > 1}
    table = {row[0]: row[1] for row in evaluate.tables(found)[3].rows}
    extra = f"{sum(map(len, groups)) - len(groups):,} in {len(groups):,} groups"
    assert table["near-duplicates (case, leading space)"] == extra


def test_unreachable_tokens_are_those_that_merging_alone_does_not_make() -> None:
    ranks = {bytes([b]): b for b in range(256)}
    for token in (b"ab", b"bc", b"abc", b"xyz", b"cd", b"abcd", b"ba", b"aba"):
        ranks[token] = len(ranks)
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")
    slow = []
    for token, id in ranks.items():
        without = {t: r for t, r in ranks.items() if t != token or len(t) == 1}
        # Without the token itself there is no lookup of the whole pretoken, only merges.
        parts = reference.encode(token, without)
        parents = [p for p in parts if p < id]
        if len(token) > 1 and not (len(parts) == 2 and len(parents) == 2):
            slow.append(id)
    assert evaluate.unreachable(tok) == slow == [ranks[b"xyz"]]


def test_unreachable_tokens_under_the_rule_of_merges() -> None:
    tokens = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"bc": 257, b"abc": 258}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    tok = bytepair.Tokenizer.from_merges(tokens, merges, pattern="gpt4", ignore_merges=True)
    assert tok.encode("abc") == [258]  # only as a whole pretoken
    slow = [i for t, i in tokens.items() if reference.encode_merges(t, tokens, merges) != [i]]
    assert evaluate.unreachable(tok) == slow == [258]


def test_reports_print_as_few_lines(trained: bytepair.Tokenizer) -> None:
    corpus = evaluate.documents(bytepair.sample.paths()[:2])
    reports = (
        evaluate.use(trained, corpus), evaluate.inspect(trained),
        evaluate.measure(trained, against=[]), evaluate.sweep(trained, corpus, width=8),
    )  # fmt: skip
    for report in reports:
        lines = repr(report).splitlines()
        assert lines[0] == type(report).__name__
        assert len(lines) <= 40
        assert max(map(len, lines)) <= 110


def test_split_tokens_do_not_encode_to_themselves() -> None:
    ranks = {bytes([b]): b for b in range(256)}
    for token in (b"12", b"ab", b"xyz", " ก".encode(), b"a1"):
        ranks[token] = len(ranks)
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="qwen2")
    slow = []
    for token, id in ranks.items():
        try:
            own = tok.encode(token.decode()) == [id]
        except UnicodeDecodeError:
            continue
        if not own and id not in evaluate.unreachable(tok):
            slow.append(id)
    assert evaluate.split_tokens(tok) == slow == [ranks[b"12"], ranks[b"a1"]]
    assert evaluate.inspect(tok).split == slow


def test_qwen_has_tokens_that_its_pattern_splits(shared: Path) -> None:
    tok = bytepair.load(shared / "vocabularies/qwen3.tiktoken", pattern="qwen2")
    assert len(evaluate.split_tokens(tok)) + len(evaluate.unreachable(tok)) == 1673


def test_glitch_candidates_are_near_what_is_never_trained(
    trained: bytepair.Tokenizer,
) -> None:
    rng = np.random.default_rng(1)
    embeddings = rng.normal(size=(trained.vocab_size + 3, 8)) + 3
    never = [0xC0, 0xC1, *range(0xF5, 0x100)]
    weak = [ord("q"), ord("z"), 270]
    embeddings[never] = rng.normal(size=(len(never), 8)) / 100
    embeddings[weak] = rng.normal(size=(3, 8)) / 10
    assert sorted(evaluate.glitch_candidates(trained, embeddings, limit=3)) == sorted(weak)
    with told(bytepair.errors.ArgumentError):
        evaluate.glitch_candidates(trained, embeddings[:20])
    with told(bytepair.errors.ArgumentError):
        evaluate.glitch_candidates(trained, ["a text"])  # type: ignore[arg-type]
    with told(bytepair.errors.ArgumentError):
        evaluate.measure({"mine": trained})  # type: ignore[arg-type]


def test_every_token_that_training_makes_is_reachable(trained: bytepair.Tokenizer) -> None:
    assert evaluate.unreachable(trained) == []


def test_the_sweep_is_what_each_training_would_give() -> None:
    counts = bytepair.count(bytepair.sample.paths()[:1])
    tok = bytepair.train(counts, vocab_size=700)
    text = bytepair.sample.paths()[0].read_text("utf-8")
    heldout = declarations()["en"]
    swept = evaluate.sweep(tok, [heldout], width=64)
    assert swept.sizes[0] == 265
    assert list(swept.heldout) == [350, 700]  # 175 has too few ids for the bytes
    for size in (265, 350, 700):
        small = bytepair.train(counts, vocab_size=size)
        assert swept.at(size) == pytest.approx(len(text.encode()) / len(small.encode(text)))
        if size in swept.heldout:
            ratio = len(heldout.encode()) / len(small.encode(heldout))
            assert swept.heldout[size] == pytest.approx(ratio)
    assert swept.embedding_parameters[-1] == 700 * 64


def test_the_knee_is_farthest_above_the_line() -> None:
    sizes = np.arange(300, 400)
    tokens = np.concatenate([np.linspace(1000, 500, 20), np.linspace(500, 490, 80)]).astype(int)
    swept = evaluate.Sweep(sizes, tokens, 1000, 8)
    y = [1000 / t for t in tokens.tolist()]
    slow = max(range(100), key=lambda i: y[i] - (y[0] + (y[-1] - y[0]) * i / 99))
    assert swept.knee == sizes[slow] == 319
    assert evaluate.Sweep(sizes[:1], tokens[:1], 1000, 8).knee == 300


def test_the_sweep_is_written_as_data(tmp_path: Path) -> None:
    swept = evaluate.sweep(bytepair.train(["hello hello"], vocab_size=269), width=10)
    swept.save(tmp_path / "sizes.csv")
    lines = (tmp_path / "sizes.csv").read_text().splitlines()
    assert lines[0] == "size,tokens,bytes_per_token,embedding_parameters"
    assert lines[-1] == "269,3,3.666667,2690"
    assert len(lines) == 6


def test_no_sweep_without_a_training() -> None:
    tok = bytepair.Tokenizer.from_ranks({bytes([b]): b for b in range(256)}, pattern="gpt4")
    with told(bytepair.errors.VocabularyError):
        evaluate.sweep(tok)
    assert evaluate.measure(tok, against=[]).sweep is None


# ---------------------------------------------------------------------------- bits per byte


def naive_bits(losses: list[float], targets: list[int], lengths: list[int]) -> float:
    nats, size = 0.0, 0
    for loss, target in zip(losses, targets, strict=True):
        if target >= 0 and lengths[target]:
            nats += loss
            size += lengths[target]
    return nats / math.log(2) / size


def test_bits_per_byte_leaves_out_masked_and_special_targets(trained: bytepair.Tokenizer) -> None:
    rng = np.random.default_rng(0)
    lengths = bytepair.evaluate.token_lengths(trained)
    targets = rng.integers(-1, trained.vocab_size, (8, 500))
    targets[0, :9] = list(trained.special_tokens.values())
    losses = rng.random((8, 500), np.float32)
    slow = naive_bits(losses.ravel().tolist(), targets.ravel().tolist(), lengths.tolist())
    assert evaluate.bits_per_byte(losses, targets, lengths) == pytest.approx(slow, rel=1e-12)
    losses[targets < 0] = np.nan  # whatever its value
    assert evaluate.bits_per_byte(losses, targets, lengths) == pytest.approx(slow, rel=1e-12)


def test_a_model_of_equal_bytes_needs_eight_bits(trained: bytepair.Tokenizer) -> None:
    ids = np.array(trained.encode("To be, or not to be, that is the question — or 아니면?"))
    lengths = bytepair.evaluate.token_lengths(trained)
    losses = lengths[ids] * math.log(256)
    assert evaluate.bits_per_byte(losses, ids, lengths) == pytest.approx(8)


def test_batches_add_up() -> None:
    lengths, losses = np.array([1, 2, 0]), np.array([1.0, 2.0, 3.0, 4.0])
    targets = np.array([0, 1, 2, 1])
    parts = [
        evaluate.nats_and_bytes(losses[s], targets[s], lengths) for s in (np.s_[:2], np.s_[2:])
    ]
    nats, size = map(sum, zip(*parts, strict=True))
    assert (nats, size) == evaluate.nats_and_bytes(losses, targets, lengths) == (7.0, 5)
    assert evaluate.bits_per_byte(losses[2:3], targets[2:3], lengths) == math.inf
    with told(ValueError):
        evaluate.bits_per_byte(losses, targets[:3], lengths)


class Tensor:
    """The methods of a torch tensor that `bits_per_byte` needs, and none that only numpy has."""

    def __init__(self, values: object) -> None:
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def reshape(self, *shape: int) -> Tensor:
        return Tensor(self.values.reshape(*shape))

    def __getitem__(self, key: Tensor) -> Tensor:
        return Tensor(self.values[key.values])

    def __ge__(self, other: int) -> Tensor:
        return Tensor(self.values >= other)

    def __gt__(self, other: int) -> Tensor:
        return Tensor(self.values > other)

    def double(self) -> Tensor:
        return Tensor(self.values.astype(np.float64))

    def sum(self) -> Tensor:
        return Tensor(self.values.sum())

    def __float__(self) -> float:
        return float(self.values)

    def __int__(self) -> int:
        return int(self.values)


def test_tensors_are_taken_as_arrays_are() -> None:
    losses, targets, lengths = [[1.0, 2.0], [4.0, 8.0]], [[0, 1], [-1, 2]], [1, 3, 0]
    arrays = [np.array(x) for x in (losses, targets, lengths)]
    torn = [Tensor(x) for x in (losses, targets, lengths)]
    assert evaluate.bits_per_byte(*torn) == evaluate.bits_per_byte(*arrays)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    losses, targets = torch.tensor([[1.0, 2.0], [4.0, 8.0]]), torch.tensor([[0, 1], [-1, 2]])
    bits = evaluate.bits_per_byte(losses, targets, torch.tensor([1, 3, 0]))
    assert bits == pytest.approx(3 / 4 / math.log(2))


def test_token_bytes_are_those_of_the_vocabulary(
    trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    lengths = bytepair.evaluate.token_lengths(trained)
    assert lengths.dtype == np.int32
    special = set(trained.special_tokens.values())
    slow = [0 if i in special else len(trained.token_bytes(i)) for i in range(trained.vocab_size)]
    assert lengths.tolist() == slow
    saved = np.load(evaluate.save_token_bytes(trained, tmp_path / "token_bytes.npy"))
    assert (saved == lengths).all()
    path = evaluate.save_token_bytes(trained, tmp_path / "token_bytes.pt")
    with zipfile.ZipFile(path) as archive:
        (numbers,) = (name for name in archive.namelist() if name.endswith("/data/0"))
        assert archive.read(numbers) == lengths.tobytes()
    with told(ValueError):
        evaluate.save_token_bytes(trained, tmp_path / "token_bytes.txt")
    torch = pytest.importorskip("torch")
    assert torch.load(path, weights_only=True).tolist() == slow


# ---------------------------------------------------------------------------- published


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No network, and an empty cache folder."""

    def fail(name: str) -> object:
        raise ConnectionError(name)

    monkeypatch.setattr(tiktoken, "get_encoding", fail)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_without_a_network_a_published_tokenizer_is_left_out(
    trained: bytepair.Tokenizer, offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = evaluate.measure(trained)
    assert list(result.tokenizers) == ["ours"]
    assert list(result.missing) == list(evaluate.USUAL_RIVALS)
    assert evaluate.to_markdown(result).count("TIKTOKEN_CACHE_DIR") == 3  # each reason stands once
    expected = f"encodings/r50k_base.tiktoken into {offline} (TIKTOKEN_CACHE_DIR) as gpt2.tiktoken"
    with told(NotFetchedError) as missing:
        bytepair.load("gpt2")
    assert expected in str(missing.value)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(offline))
    with told(NotFetchedError):
        bytepair.load("cl100k_base")
    with told(FileNotFoundError):
        bytepair.load("gpt5")


def test_a_published_tokenizer_is_tiktokens(
    trained: bytepair.Tokenizer,
    encoding: tiktoken.Encoding,
    offline: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: encoding)
    assert bytepair.load("gpt2") == trained


@pytest.mark.parametrize("name", ["gpt2", "r50k_base", "cl100k_base", "o200k_base"])
def test_a_rank_file_in_the_folder_of_tiktoken_is_found(
    shared: Path, offline: Path, name: str
) -> None:
    """Under the name of the encoding, or of the rank file, or as tiktoken names it."""
    published = "gpt2" if name == "r50k_base" else name
    data = (shared / "vocabularies" / f"{published}.tiktoken").read_bytes()
    ranks = "r50k_base" if name == "gpt2" else name
    hashed = hashlib.sha1(f"{encodings.URL}{ranks}.tiktoken".encode()).hexdigest()
    tokenizers = []
    for file in [f"{name}.tiktoken", name, f"{ranks}.tiktoken", hashed]:
        (offline / file).write_bytes(data)
        tokenizers.append(bytepair.load(name))
        (offline / file).unlink()
    assert len({tok.fingerprint for tok in tokenizers}) == 1


@pytest.mark.parametrize("name", encodings.ENCODINGS)
def test_the_table_of_encodings_is_that_of_tiktoken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str]] = []

    def load(url: str = "", expected_hash: str = "", **_: str) -> dict[bytes, int]:
        calls.append((url, expected_hash))
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    monkeypatch.setattr(openai_public, "data_gym_to_mergeable_bpe_ranks", load)
    theirs = openai_public.ENCODING_CONSTRUCTORS[name]()
    ours = encodings.ENCODINGS[name]
    assert ours.special_tokens == theirs["special_tokens"]
    assert bytepair.PATTERNS[ours.pattern] == theirs["pat_str"]
    if name != "gpt2":  # which tiktoken reads from the files of GPT-2
        url = f"{encodings.URL}{ours.ranks}.tiktoken"
        assert calls == [(url, encodings.RANK_FILES[ours.ranks])]


def test_another_file_of_that_name_is_an_error(offline: Path) -> None:
    (offline / "gpt2.tiktoken").write_bytes(b"IQ== 0\n")
    with told(bytepair.errors.FormatError):
        bytepair.load("gpt2")


def test_explore_skips_tokenizers_that_cannot_be_fetched(
    trained: bytepair.Tokenizer, offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[list[str]] = []

    def serve(self: bytepair.explore.Server) -> None:
        served.append([one["name"] for one in self.answers.ask("about")["tokenizers"]])
        self.server_close()

    monkeypatch.setattr(bytepair.explore.Server, "serve_forever", serve)
    trained.save(offline / "mine")
    explore = importlib.import_module("bytepair.cli.look").explore
    done = CliRunner().invoke(explore, [str(offline / "mine"), "gpt2"])
    assert done.exit_code == 0
    assert served == [["mine"]]
    assert message_of(done.stderr).startswith("gpt2")
    assert "gpt2 is not on this machine" in done.stderr
    done = CliRunner().invoke(explore, ["gpt2", "o200k_base"])
    assert isinstance(done.exception, NotFetchedError)


def test_two_tokenizers_of_one_name(trained: bytepair.Tokenizer) -> None:
    with refused("name", "ours"):
        evaluate.measure(trained, against={"ours": trained})


# ---------------------------------------------------------------------------- to read


def test_tables_say_who_is_better(found: evaluate.Evaluation) -> None:
    table = evaluate.tables(found)[0]
    news = dict(zip(table.head, table.rows[0], strict=True))
    ratio = {
        name: float(cell.split("(")[1].rstrip(")")) for name, cell in news.items() if "ids" in name
    }
    ours, small = ratio
    assert (ours.split()[0], small.split()[0]) == ("ours", "small")
    assert ratio[ours] > ratio[small]
    for table in evaluate.tables(found):
        assert all(len(row) == len(table.head) for row in table.rows), table.title


def test_markdown_has_all_tables_and_no_stray_marks(found: evaluate.Evaluation) -> None:
    text = evaluate.to_markdown(found)
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        table.title for table in evaluate.tables(found)
    ]
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


@pytest.mark.parametrize("width", [200, 120, 100, 80])
def test_a_terminal_shows_every_number_whole(trained: bytepair.Tokenizer, width: int) -> None:
    """A narrower terminal than one of 80 columns breaks the lines itself."""
    rivals = {
        "cl100k_base": trained,
        "o200k_base": trained.replace(vocab_size=1000),
        "gpt2": trained,
    }
    result = evaluate.measure(trained, name="my-own", against=rivals, texts={"mine": ["1 2 3"]})
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for part in evaluate.to_terminal(result, width):
        console.print(part, crop=False)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    shown = Counter(text.split())
    assert "…" not in text
    assert max(map(cell_len, text.splitlines())) <= width
    for table in evaluate.tables(result):
        if table.title not in {"Vocabulary", "Numbers"}:
            cells = [*table.head, *(cell for row in table.rows for cell in row)]
            words = Counter(word for cell in cells for word in cell.split())
            numbers = {word for word in words if re.fullmatch(r"[+-]?[0-9][0-9.,]*%?", word)}
            assert numbers <= set(shown), table.title


@pytest.mark.parametrize("width", [200, 40])
def test_lists_of_tokens_are_folded(trained: bytepair.Tokenizer, width: int) -> None:
    result = evaluate.measure(trained, against=[])
    (table,) = [table for table in evaluate.tables(result) if table.title == "Vocabulary"]
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for part in evaluate.to_terminal(result, width):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    letters = "".join(console.file.getvalue().split())
    for row in table.rows:
        assert Counter(letters) >= Counter("".join(row[1].split()))


def test_json_holds_the_numbers(found: evaluate.Evaluation) -> None:
    value = json.loads(evaluate.to_json(found))
    assert value["compression"][0]["tokens"]["ours"] == found.compression[0].tokens["ours"]
    assert value["use"]["renyi"] == found.use.renyi
    assert len(value["languages"]) == 60
    assert value["sweep"]["knee"] == found.sweep.knee if found.sweep else None


def test_the_evaluate_command(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "mine")
    (tmp_path / "val.txt").write_text("To be", encoding="utf-8")
    words = ["evaluate", "mine", "--against", "none", "--val", "val.txt"]
    out = run(*words, "--sizes", "s.csv", "--token-bytes", "t.npy", cwd=tmp_path).stdout.decode()
    assert all(word in out for word in ("Compression", "validation", "Burmese", "knee"))
    assert (tmp_path / "s.csv").exists()
    assert len(np.load(tmp_path / "t.npy")) == trained.vocab_size
    value = json.loads(run(*words, "--json", cwd=tmp_path).stdout)
    assert value["name"] == "mine"
    assert run(*words, "--markdown", cwd=tmp_path).stdout.startswith(b"# mine")
    (tmp_path / "l=en").mkdir()
    (tmp_path / "l=en" / "a.txt").write_text("not to be", encoding="utf-8")
    named = [*words[:-1], "en=val.txt", "--val", "l=en", "--json"]
    texts = json.loads(run(*named, cwd=tmp_path).stdout)["compression"]
    assert [text["text"] for text in texts[-2:]] == ["en", "validation"]
    bad = run("evaluate", "nothing", cwd=tmp_path, code=1).stderr.decode()
    assert "there is no tokenizer at nothing" in bad


def test_published_vocabularies_of_the_shared_data(
    pair: tuple[bytepair.Tokenizer, tiktoken.Encoding], documents: Callable[[str], list[str]]
) -> None:
    ours, theirs = pair
    texts = documents("code")[:20]
    (one,) = evaluate.compress({"a": ours}, {"code": texts})
    assert one.tokens["a"] == sum(len(theirs.encode_ordinary(text)) for text in texts)
    for language in evaluate.by_language(ours)[::20]:
        text = declarations()[language.code]
        assert language.tokens == len(theirs.encode_ordinary(text))


def test_a_list_in_place_of_a_mapping_is_an_error_that_names_it(
    trained: bytepair.Tokenizer,
) -> None:
    wrong: Any = [trained]
    uses: list[tuple[str, Callable[[], Any]]] = [
        ("tokenizers", lambda: evaluate.compress(wrong, {"a": "b"})),
        ("texts", lambda: evaluate.compress({"a": trained}, wrong)),
        ("texts", lambda: evaluate.measure(trained, texts=wrong)),
        ("texts", lambda: evaluate.parallel(wrong)),
        ("tokenizer", lambda: evaluate.use(wrong, ["b"])),
        ("tokenizer", lambda: evaluate.sweep(wrong)),
        ("tokenizer", lambda: evaluate.by_language(wrong)),
    ]
    for name, use in uses:
        with pytest.raises(ArgumentError) as caught:
            use()
        assert caught.value.option == name


def test_a_notebook_shows_tables_as_markdown(found: evaluate.Evaluation) -> None:
    for table in evaluate.tables(found):
        assert table._repr_markdown_() == table.to_markdown()


def test_a_text_may_have_no_tokens_in_any_language() -> None:
    document = json_of(small())
    document["normalizer"] = {"type": "Replace", "pattern": {"Regex": "[^~]"}, "content": ""}
    tok = load_json(document)
    evaluation = evaluate.measure(tok, against={}, texts={"mine": ["hello"]})
    assert {one.tokens for one in evaluation.languages} == {0}
    assert {one.bytes_per_token for one in evaluation.languages} == {0}
    assert "hello" not in evaluate.to_markdown(evaluation)


@pytest.mark.parametrize("note", ["", "abc", "-5", "1_0", "9" * 30, "9" * 5_000])
def test_a_forged_number_of_bytes_makes_no_curve(note: str) -> None:
    tok = bytepair.train(["hello hello"], 269).replace(notes={"text_bytes": note})
    assert not evaluate.compression_curve(tok).size
