"""Smaller, larger, and proved: `replace(vocab_size=)`, resume, extend, verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import rustbpe

import bytepair
import memory
from bytepair.errors import CorpusError, CountsError, VocabularyError
from bytepair.evaluate import compression_curve
from bytepair.training.options import Ties
from commands import run
from messages import told

ALL_TIES: tuple[Ties, ...] = get_args(Ties)


@pytest.fixture(scope="module")
def counts() -> bytepair.Counts:
    return bytepair.count(bytepair.sample.paths())


@pytest.mark.parametrize("ties", ALL_TIES)
def test_every_size_is_one_run(counts: bytepair.Counts, ties: Ties, tmp_path: Path) -> None:
    large = bytepair.train(counts, 2000, ties=ties)
    for size in (265, 700, 1999, 2000):
        small = bytepair.train(counts, size, ties=ties)
        cut = large.replace(vocab_size=size)
        assert cut == small
        assert cut.merges() == small.merges()
        assert np.array_equal(compression_curve(cut), compression_curve(small))
        # After saving and loading, too: the file stores what resuming needs.
        small.save(tmp_path, overwrite=True)
        resumed = bytepair.training.resume(bytepair.load(tmp_path), counts, 2000, ties=ties)
        assert resumed == large
        assert resumed.merges() == large.merges()
        assert np.array_equal(compression_curve(resumed), compression_curve(large))


def test_the_curve_is_what_encoding_gives(counts: bytepair.Counts) -> None:
    tok = bytepair.train(counts, 900)
    texts = [path.read_text(encoding="utf-8") for path in bytepair.sample.paths()]
    for merges in (0, 100, 635):
        small = tok.replace(vocab_size=265 + merges)
        assert sum(map(len, small.encode_batch(texts))) == compression_curve(tok)[merges]
    assert len(compression_curve(tok)) == 636
    assert (
        len(compression_curve(bytepair.Tokenizer.from_ranks(tok.mergeable_ranks(), pattern="gpt4")))
        == 0
    )


@pytest.mark.parametrize("ties", ALL_TIES)
def test_extending_keeps_everything(ties: Ties) -> None:
    base = bytepair.train(bytepair.sample.paths()[:1], 600)
    korean = (Path(bytepair.sample.__file__).parent / "udhr" / "ko.txt").read_text(encoding="utf-8")
    more = bytepair.extend(base, [korean], 100, ties=ties)
    assert more.vocab_size == 700
    assert more.merges()[: len(base.merges())] == base.merges()
    assert more.special_tokens == base.special_tokens
    assert all(more.token_bytes(i) == base.token_bytes(i) for i in range(600))
    assert len(more.encode(korean)) < 0.8 * len(base.encode(korean))
    assert more.decode(more.encode(korean)) == korean
    again = bytepair.extend(base, bytepair.count([korean]), 100, ties=ties)
    assert again == more


def test_growing_reads_text_as_training_does(tmp_path: Path) -> None:
    texts = ["hello hello help", "the theme of the hour", "others helped"]
    (tmp_path / "a.txt").write_text("".join(texts), encoding="utf-8")
    lines = "".join(f'{{"body": "{text}"}}\n' for text in texts)
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    small, counts = bytepair.train(texts, 270), bytepair.count(texts)
    usual, body = bytepair.Reading(), bytepair.Reading(column="body")
    for source, reading in ((texts, usual), (tmp_path / "a.jsonl", body)):
        assert bytepair.training.resume(small, source, 280, reading=reading) == bytepair.train(
            counts, 280
        )
        assert bytepair.extend(small, source, 9, reading=reading) == (
            bytepair.extend(small, counts, 9)
        )
    file = tmp_path / "a.txt"
    assert bytepair.training.resume(small, file, 280) == bytepair.train(file, 280)
    for name in ("max_chars", "doc_cap"):
        reading = bytepair.Reading(**{name: 20})  # type: ignore[arg-type]
        less = bytepair.count(file, reading=reading)
        assert bytepair.extend(small, file, 9, reading=reading) == (bytepair.extend(small, less, 9))
    (tmp_path / "bad.txt").write_bytes(b"hello \xff hello")
    repaired = bytepair.count(["hello \ufffd hello"])
    assert bytepair.extend(
        small, tmp_path / "bad.txt", 3, reading=bytepair.Reading(errors="replace")
    ) == (bytepair.extend(small, repaired, 3))


def test_ignored_options_are_refused(counts: bytepair.Counts) -> None:
    small = bytepair.train(counts, 300)
    with pytest.raises(TypeError, match="'extra'"):
        bytepair.extend(small, counts)  # type: ignore[call-arg]
    values: list[dict[str, Any]] = [{"column": "a"}, {"memory_limit": 1 << 30}, {"split": "val"}]
    for value in values:
        reading = bytepair.Reading(**value)
        for call in (
            bytepair.training.resume,
            lambda _, *rest, **more: bytepair.train(*rest, **more),
        ):
            with told(CountsError):
                call(small, counts, 400, reading=reading)
    with pytest.raises(TypeError, match="'source'"):
        bytepair.extend(small, extra=3)  # type: ignore[call-arg]
    with told(CorpusError):
        bytepair.training.resume(small, ["/data/typo.txt"], 400)


def test_extending_a_list_of_merges() -> None:
    ids = {bytes([b]): b for b in range(256)} | {b"ab": 256}
    make = bytepair.Tokenizer.from_merges
    base = make(ids, [(b"a", b"b")], pattern="gpt4", ignore_merges=True)
    more = bytepair.extend(base, ["abab abab"], 1)
    assert more.merge_rule == "merges"
    assert bytepair.tokenizer.ignores_merges(more)
    assert more.merges() == [(b"a", b"b"), (b"ab", b"ab")]


def test_verify_finds_the_first_wrong_merge(counts: bytepair.Counts) -> None:
    tok = bytepair.train(counts, 1000)
    verdict = bytepair.training.verify_merges(tok, counts)
    assert verdict
    assert verdict.steps == 735
    other = bytepair.training.verify_merges(tok, counts, ties="bytes-max")
    assert not other
    assert other.wrong is not None
    assert other.best is not None
    assert other.wrong[1] == other.best[1]  # a tie, broken by another rule
    assert tok.merges()[other.steps] == other.wrong[0]
    assert not bytepair.training.verify_merges(tok, counts + bytepair.count(["zqzq " * 100_000]))


def test_verify_works_for_what_others_trained(counts: bytepair.Counts) -> None:
    theirs = rustbpe.Tokenizer()
    texts = [path.read_text(encoding="utf-8") for path in bytepair.sample.paths()]
    theirs.train_from_iterator(iter(texts), 800, pattern=counts.pattern)
    ranks = {bytes(token): rank for token, rank in theirs.get_mergeable_ranks()}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern=counts.pattern)
    assert str(bytepair.training.verify_merges(tok, counts)) == "all 544 merges verified"


def test_errors_of_growing_say_what_to_do(counts: bytepair.Counts) -> None:
    tok = bytepair.train(counts, 300)
    with told(VocabularyError):
        tok.replace(vocab_size=301)
    with told(VocabularyError):
        tok.replace(vocab_size=200)
    with told(VocabularyError):
        bytepair.training.resume(tok, counts, 299)
    foreign = bytepair.Tokenizer.from_ranks(
        {bytes([b]): 255 - b for b in range(256)}, pattern="gpt2"
    )
    with told(VocabularyError):
        foreign.replace(vocab_size=256)
    for call in (
        lambda: bytepair.training.verify_merges(foreign, counts),
        lambda: bytepair.extend(foreign, counts, 1),
    ):
        with told(CountsError):
            call()


def test_tokens_may_be_kept_short(counts: bytepair.Counts) -> None:
    tok = bytepair.train(counts, 1500, options=bytepair.TrainOptions(max_token_bytes=4))
    assert max(map(len, tok.mergeable_ranks())) == 4


@pytest.mark.parametrize("size", [2_097_151, 10**9, 2**40, 2**63 - 1])
def test_a_vocabulary_beyond_the_largest_is_an_error_in_words(size: int) -> None:
    tok, few = bytepair.train(["hello hello"], 269), bytepair.count(["hello hello"])
    with told(VocabularyError):
        bytepair.train(few, size)
    with told(VocabularyError):
        bytepair.training.resume(tok, few, size)
    with told(VocabularyError):
        bytepair.extend(tok, few, size)
    with told(VocabularyError):
        tok.replace(vocab_size=size)


def test_memory_follows_what_is_learnt() -> None:
    program = """
        import warnings, bytepair
        warnings.simplefilter("ignore")
        counts = bytepair.count(["hello hello"])
        tok, before = bytepair.train(counts, 300), peak_mb()
        for ties in bytepair._core.TIES:
            assert bytepair.train(counts, 2_097_150, ties=ties).vocab_size == 270
        bytepair.extend(tok, counts, 2_000_000)
        print(peak_mb() - before)
    """
    (grown,) = memory.run(program)
    assert float(grown) < 8


def test_the_command_extends_as_python_does(tmp_path: Path) -> None:
    tok = bytepair.train(["hello hello"], 269)
    tok.save(tmp_path / "tok")
    (tmp_path / "new.txt").write_text("hello world, world")
    said = run("extend", "tok", "new.txt", "--extra", "4", "-o", "larger", cwd=tmp_path).stdout
    assert "273 ids, 4 more" in said
    larger = bytepair.load(tmp_path / "larger")
    assert larger == bytepair.extend(tok, ["hello world, world"], 4)
    run("extend", "tok", "new.txt", "--extra", "4", "-o", "larger", cwd=tmp_path, code=1)


def test_a_rank_file_takes_the_special_tokens_beside_it(tmp_path: Path) -> None:
    tok = bytepair.train(["hello hello"], 269)
    tok.export(tmp_path / "qwen.tiktoken", lossy=True)
    plain = bytepair.load(tmp_path / "qwen.tiktoken", pattern="nanochat")
    assert plain.special_tokens == {}
    added = {str(id): {"content": name, "special": True} for name, id in tok.special_tokens.items()}
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"added_tokens_decoder": added}))
    beside = bytepair.load(tmp_path / "qwen.tiktoken", pattern="nanochat")
    assert beside.special_tokens == tok.special_tokens
    words = ["qwen.tiktoken", "out.bytepair", "--pattern", "nanochat"]
    (tmp_path / "none.json").write_text("{}")
    for special in ("none.json", "elsewhere.json", "names.json"):
        if special == "elsewhere.json":
            config.rename(tmp_path / special)
        (tmp_path / "names.json").write_text(json.dumps(tok.special_tokens))
        run("convert", *words, "--special-tokens", special, "--force", cwd=tmp_path)
        made = bytepair.load(tmp_path / "out.bytepair")
        assert made.special_tokens == ({} if special == "none.json" else tok.special_tokens)
    for name in ("elsewhere.json", "names.json"):
        named = bytepair.load(
            tmp_path / "qwen.tiktoken", pattern="nanochat", special_tokens=tmp_path / name
        )
        assert named == beside
    for wrong in ("[]", '{"added_tokens_decoder": 3}', '{"added_tokens_decoder": {"x": {}}}'):
        config.write_text(wrong)
        with told(bytepair.errors.FormatError):
            bytepair.load(tmp_path / "qwen.tiktoken", pattern="nanochat")


def test_the_folder_of_kimi_is_loaded_with_its_pattern(tmp_path: Path) -> None:
    text = "中文English混合 北京市 Pascal's 12345"
    expected = ["中文", "English", "混合", " ", "北京市", " Pascal's", " ", "123", "45"]
    assert bytepair.tokenizer.pretokenize(text, "kimi") == expected
    tok = bytepair.train([text] * 3, 280, pattern="kimi", special_tokens=["[BOS]"])
    tok.export(tmp_path / "a.tiktoken", lossy=True).rename(tmp_path / "tiktoken.model")
    added = {str(id): {"content": name, "special": True} for name, id in tok.special_tokens.items()}
    code = {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}
    config = {"added_tokens_decoder": added, "auto_map": code}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert bytepair.load(tmp_path) == bytepair.load(tmp_path / "tiktoken.model") == tok
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    with told(bytepair.errors.FormatError):
        bytepair.load(tmp_path)
    assert bytepair.load(tmp_path, pattern="kimi") == tok
