"""Superwords: tokens that cross spaces, against the definition in `bytepair.reference`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
import reference_twins
from bytepair import _core, reference
from bytepair.errors import ArgumentError, CorpusError, CountsError, VocabularyError
from bytepair.evaluate import compression_curve
from bytepair.formats.gguf import llamacpp
from bytepair.training import Superwords
from bytepair.training.options import Stages, Ties
from commands import run
from conftest import refused
from messages import told

ALL_TIES: tuple[Ties, ...] = get_args(Ties)
PATHS = bytepair.sample.paths()

#: Texts with repeated words and phrases, and with what the rules forbid within a superword.
TEXTS = st.lists(
    st.lists(
        st.sampled_from(["by", " the", " way", " sea", ": ", ":", " ", "  ", "\n", "12", "3", "é"]),
        max_size=25,
    ).map("".join),
    min_size=1,
    max_size=6,
)
#: Patterns that match nothing at some or all places, where they do not split.
ZERO_WIDTH = [r"x*", r"(?=e)", r"[^\n]*", r"[^\n]*\n?|", r"(?:\p{N}{1,3})?"]
RULES = st.fixed_dictionaries(
    {
        "max_words": st.sampled_from([None, 1, 2, 4]),
        "never": st.sampled_from([(), (": ",), ("e w", "y")]),
        "pattern": st.sampled_from([None, r"\p{N}{1,3}", r"[^\n]*\n", r"(?s:.)+", *ZERO_WIDTH]),
    }
)


def merges_of(tok: bytepair.Tokenizer) -> list[tuple[int, int]]:
    """The merges as pairs of ids, numbered as in the reference."""
    ids = tok.mergeable_ranks()
    return [(ids[left], ids[right]) for left, right in tok.merges()]


@given(TEXTS, RULES, st.sampled_from(ALL_TIES), st.integers(0, 12), st.integers(0, 30))
@pytest.mark.filterwarnings("ignore::bytepair.errors.ExhaustedWarning")
def test_merges_are_those_of_the_reference(
    texts: list[str], rules: dict[str, Any], ties: Ties, first: int, more: int
) -> None:
    texts.append("by the way")
    superwords = Superwords(start=256 + first, **rules)
    tok = bytepair.train(texts, 256 + first + more, special_tokens=(), ties=ties, recipe=superwords)
    regex = superwords.regex(bytepair.PATTERNS["nanochat"])
    counts = reference.count(texts, "nanochat")
    lines = reference.count(texts, regex)
    expected = reference_twins.train_superwords(
        counts, lines, first, first + more, rules["max_words"], rules["never"], ties
    )
    assert merges_of(tok) == expected
    assert tok.pattern == regex
    assert (tok.notes.get("exhausted") == "true") == (len(expected) < first + more)


@given(TEXTS, st.integers(0, 12))
@pytest.mark.filterwarnings("ignore::bytepair.errors.ExhaustedWarning")
def test_encoding_splits_by_the_second_pattern_and_merges_by_rank(
    texts: list[str], first: int
) -> None:
    texts = ["by the way, by the sea 123\nby the way", *texts]
    tok = bytepair.train(texts, 300, special_tokens=(), recipe=Superwords(start=256 + first))
    ranks = tok.mergeable_ranks()
    merges = [(left, right) for left, right in tok.merges()]
    for text in texts:
        pretokens = reference.split(text, tok.pattern)
        expected = [id for pretoken in pretokens for id in reference.encode(pretoken, ranks)]
        assert tok.encode(text) == expected
        rows = [reference.encode_merges(pretoken, ranks, merges) for pretoken in pretokens]
        assert list(itertools.chain.from_iterable(rows)) == expected
        assert tok.decode(expected) == text


@pytest.fixture(scope="module")
def counts() -> tuple[bytepair.Counts, bytepair.Counts]:
    """The sample text under both patterns."""
    regex = Superwords().regex(bytepair.PATTERNS["nanochat"])
    return bytepair.count(PATHS), bytepair.count(PATHS, pattern=regex)


@pytest.mark.parametrize("ties", ALL_TIES)
def test_threads_and_sources_do_not_matter(
    counts: tuple[bytepair.Counts, bytepair.Counts], ties: Ties
) -> None:
    one = bytepair.train(PATHS, 3000, ties=ties, threads=1, recipe=Superwords())
    words, lines = counts
    again = bytepair.train(words, 3000, ties=ties, threads=3, recipe=Superwords(counts=lines))
    assert again == one
    assert again.merges() == one.merges()
    plain = bytepair.train(words, 2400, ties=ties)
    first = len(plain.merges())
    assert one.merges()[:first] == plain.merges()
    new = [left + right for left, right in one.merges()[first:]]
    assert any(b" " in token.strip() for token in new)
    assert not any(b": " in token or len(token.split()) > 4 for token in new)


def test_a_memory_limit_does_not_matter() -> None:
    one = bytepair.train(PATHS, 2000, recipe=Superwords())
    tight = bytepair.train(
        PATHS, 2000, reading=bytepair.Reading(memory_limit=1 << 16), recipe=Superwords()
    )
    assert tight == one


@pytest.mark.parametrize("ties", ALL_TIES)
def test_resumed_cut_saved_and_verified(
    counts: tuple[bytepair.Counts, bytepair.Counts], ties: Ties, tmp_path: Path
) -> None:
    words, lines = counts
    rules = Superwords(start=1500, counts=lines)
    large = bytepair.train(words, 2500, ties=ties, recipe=rules)
    small = bytepair.train(words, 2000, ties=ties, recipe=rules)
    assert large.replace(vocab_size=2000) == small
    small.save(tmp_path)
    resumed = bytepair.training.resume(bytepair.load(tmp_path), lines, 2500, ties=ties)
    assert resumed == large
    assert resumed.notes["superwords"] == large.notes["superwords"]
    assert bytepair.training.verify_merges(resumed, words, superword_counts=lines, ties=ties)
    other = lines + bytepair.count(["zq zq " * 9999], pattern=lines.pattern)
    wrong = bytepair.training.verify_merges(large, words, superword_counts=other, ties=ties)
    assert wrong.steps == len(small.merges()) - 500


def test_a_merge_that_the_rules_forbid_is_found(
    counts: tuple[bytepair.Counts, bytepair.Counts],
) -> None:
    words, lines = counts
    free = Superwords(start=1500, counts=lines, max_words=None, never=())
    tok = bytepair.train(words, 2500, recipe=free)
    assert bytepair.training.verify_merges(tok, words, superword_counts=lines)
    strict = Stages(1500 - 265, words.pattern, 4, [": "]).note
    verdict = bytepair.training.verify_merges(
        tok.replace(notes=strict), words, superword_counts=lines
    )
    left, right = verdict.wrong[0] if verdict.wrong else (b"", b"")
    assert b": " in left + right or len((left + right).split()) > 4


def test_the_pattern_keeps_the_digits_of_the_first_stage() -> None:
    for name, digits in [
        ("nanochat", r"\p{N}{1,2}"), ("gpt4", r"\p{N}{1,3}+"), ("qwen2", r"\p{N}"),
        ("gpt2", r"\p{N}++"), ("llama3", r"\p{N}{1,3}"),
    ]:  # fmt: skip
        regex = Superwords().regex(bytepair.PATTERNS[name])
        assert regex.startswith(f"{digits}| ?[^")
    assert Superwords().regex(r"\S+|\s+").startswith(r"\p{N}{1,3}| ?[^")
    assert Superwords(pattern="gpt2").regex("x+") == bytepair.PATTERNS["gpt2"]


@pytest.mark.parametrize("pattern", ZERO_WIDTH)
@pytest.mark.filterwarnings("ignore::bytepair.errors.ExhaustedWarning")
def test_a_match_of_nothing_does_not_split(pattern: str) -> None:
    text = "by the way, by the sea 123\nby the way x e\n\n"
    tok = bytepair.train([text], 280, recipe=Superwords(start=265, pattern=pattern))
    pretokens = reference.split(text, pattern)
    assert [one.encode() for one in bytepair.pretokenize(text, pattern)] == pretokens
    assert b"" not in pretokens
    ranks = tok.mergeable_ranks()
    expected = [id for pretoken in pretokens for id in reference.encode(pretoken, ranks)]
    assert tok.encode(text) == expected
    assert tok.decode(expected) == text


@pytest.mark.parametrize("pattern", [None, r"[^\n]*\n", r"[^e]+|e", "x*"])
def test_the_curve_falls_by_what_each_merge_joins(pattern: str | None) -> None:
    texts = [path.read_bytes().decode() for path in PATHS]
    rules = Superwords(start=1500, pattern=pattern)
    tok = bytepair.train(texts, 2000, special_tokens=(), recipe=rules)
    curve = compression_curve(tok)
    plain = bytepair.train(texts, 1500, special_tokens=())
    assert curve[: 1500 - 255].tolist() == compression_curve(plain).tolist()
    sizes = [1500, 1501, 1700, 2000]
    tokens = [
        bytepair.tokenizer.count_batch(tok.replace(vocab_size=size), texts).sum() for size in sizes
    ]
    # The second pattern may split tokens of the first stage.
    shift = int(tokens[-1]) - int(curve[-1])
    assert [int(curve[size - 256]) + shift for size in sizes] == tokens
    if pattern is None:
        assert abs(shift) < curve[-1] / 1000


class Again:
    """Texts that can be read again and again."""

    def __iter__(self) -> Iterator[str]:
        return iter(["by the way, by the way"])


def test_a_source_is_read_twice() -> None:
    rules = Superwords(start=270)
    tok = bytepair.train(bytepair.corpus.Texts(Again()), vocab_size=275, recipe=rules)
    assert tok == bytepair.train(list(Again()), 275, recipe=rules)
    with told(CorpusError):
        bytepair.train(iter(Again()), 275, recipe=rules)
    with told(CorpusError):
        bytepair.train(
            {"a": iter(Again())}, 275, recipe=[bytepair.training.Mixture({"a": 1}), rules]
        )
    assert bytepair.train(Again(), 275, recipe=rules) == tok


def test_a_mixture_has_both_stages() -> None:
    groups: dict[str, Iterable[str]] = {"a": ["by the way, by the way"], "b": Again()}
    shares = {"a": 1, "b": 3}
    rules = Superwords(start=270)
    tok = bytepair.train(groups, 275, recipe=[bytepair.training.Mixture(shares), rules])
    regex = rules.regex(bytepair.PATTERNS["nanochat"])
    mixed = [
        bytepair.Counts.mixture(
            {
                name: bytepair.count(bytepair.corpus.Texts(texts), pattern=pattern)
                for name, texts in groups.items()
            },
            shares,
        )
        for pattern in ("nanochat", regex)
    ]
    again = Superwords(start=270, counts=mixed[1])
    assert tok == bytepair.train(mixed[0], 275, recipe=again)


def test_lines_are_encoded_as_by_plain_merging() -> None:
    tok = bytepair.train(PATHS, 6000, recipe=Superwords(start=0.5))
    texts = [path.read_text(encoding="utf-8")[:100_000] for path in PATHS]
    for text in [*texts, "the of the " * 3000, "中文" * 9999 + " the of", "\n" * 999]:
        pretokens = bytepair.pretokenize(text, tok.pattern)
        expected = [
            id for pretoken in pretokens for id in _core.encode_pretoken(tok, pretoken.encode())
        ]
        assert tok.encode(text) == expected
        assert tok.encode(text) == expected  # from the cache


@pytest.mark.parametrize(
    "pattern", [None, *(rule.pattern for rule in llamacpp.RULES if "superbpe" in rule.names)]
)
def test_other_formats_hold_superwords(pattern: str | None, tmp_path: Path) -> None:
    rules = Superwords(start=0.7, pattern=pattern)
    tok = bytepair.train(PATHS, 2000, special_tokens=["<|bos|>"], recipe=rules)
    text = PATHS[0].read_text(encoding="utf-8")[:50_000] + " 1234567 12½ ½123 "
    tok.export(tmp_path / "hf", format="huggingface")
    assert bytepair.load(tmp_path / "hf").encode(text) == tok.encode(text)
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    assert theirs.encode(text, add_special_tokens=False).ids == tok.encode(text)
    if pattern is not None:
        assert bytepair.compat.export_losses(tok, "gguf") == []
        loaded = bytepair.load(tok.export(tmp_path / "x.gguf"))
        assert loaded.encode(text) == tok.encode(text)
        assert bytepair.pretokenize("a 1234567 12½ ½123", pattern) == [
            "a ", "1", "234", "567", " ", "12½", " ", "½", "123",
        ]  # fmt: skip


def test_the_command_line_has_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("so it is, so it was, so it goes: so it is\n" * 3)
    options = ["--superwords", "--superword-start", "270", "--vocab-size", "275"]
    run("train", "a.txt", *options, cwd=tmp_path)
    rules = Superwords(start=270)
    tok = bytepair.load(tmp_path / "tokenizer")
    assert tok == bytepair.train(tmp_path / "a.txt", 275, recipe=rules)
    for name, pattern in [("words", "nanochat"), ("lines", tok.pattern)]:
        bytepair.count(tmp_path / "a.txt", pattern=pattern).save(tmp_path / f"{name}.parquet")
    both = ["words.parquet", "--superword-counts", "lines.parquet"]
    run("train", *both, *options, "-o", "again", cwd=tmp_path)
    assert bytepair.load(tmp_path / "again") == tok
    output = run("verify", "tokenizer", *both, cwd=tmp_path).stdout
    assert output == f"all {len(tok.merges())} merges verified\n"
    for wrong, why, code in [
        (["a.txt", "--superword-start", "0.5"], "these options need --superwords", 2),
        (["a.txt", "--superwords", "--weight", "a.txt=2"], "weight sources with --mixture", 2),
        (["words.parquet", "--superwords"], "need counts with two patterns", 1),
    ]:
        assert why in run("train", *wrong, "--out", "w", cwd=tmp_path, code=code).stderr


def test_errors_name_the_rule(counts: tuple[bytepair.Counts, bytepair.Counts]) -> None:
    words, lines = counts
    wrongs: list[dict[str, Any]] = [
        {"start": 0}, {"start": 1.5},
        {"max_words": 0}, {"never": [""]},
    ]  # fmt: skip
    for wrong in wrongs:
        with told(ArgumentError):
            Superwords(**wrong)
    with refused("never", ": "):
        Superwords(never=": ")
    for start in (100, 0.01, 3001):
        with told(VocabularyError):
            bytepair.train(words, 3000, recipe=Superwords(start=start, counts=lines))
    for source, rules in [(words, Superwords()), (["a b"], Superwords(counts=lines))]:
        with told(CountsError):
            bytepair.train(source, 3000, recipe=rules)
    with told(CountsError):
        bytepair.train(words, 3000, recipe=Superwords(counts=words))
    tok = bytepair.train(words, 1000, recipe=Superwords(counts=lines))
    with told(CountsError):
        bytepair.training.verify_merges(tok, words)
    with told(CountsError):
        bytepair.training.verify_merges(bytepair.train(words, 300), words, superword_counts=lines)
    with told(CountsError):
        bytepair.training.resume(tok.replace(notes={"superwords": "{}"}), lines, 1100)


@pytest.mark.parametrize(
    "changed",
    [
        {"merges": "x"}, {"merges": -1}, {"merges": 10**30}, {"pattern": 5}, {"pattern": [5]},
        {"max_words": "x"}, {"max_words": -1}, {"max_words": 10**30}, {"never": [5]},
        {"never": ["\ud800"]}, None,
    ],
)  # fmt: skip
def test_a_forged_note_is_an_error_of_the_counts(changed: dict[str, Any] | None) -> None:
    fields = {"merges": 2, "pattern": "gpt4", "max_words": 2, "never": []}
    note = "[" * 100_000 if changed is None else json.dumps(fields | changed)
    tok = bytepair.train(["hello"], 266).replace(notes={"superwords": note})
    for use in (
        lambda: bytepair.training.resume(tok, ["hello"], 270),
        lambda: bytepair.training.verify_merges(tok, bytepair.count(["hello"])),
    ):
        with told(CountsError, "is damaged"):
            use()


def test_superwords_over_a_pattern_in_steps_can_be_verified() -> None:
    texts, steps = ["hello hello world, hello world"], ["[a-z]+|[^a-z]+", "[^,]+|,"]
    words, lines = (bytepair.count(texts, pattern=pattern) for pattern in (steps, "[^,]+|,"))
    tok = bytepair.train(
        words, 275, recipe=Superwords(start=268, pattern=lines.pattern, counts=lines)
    )
    assert bytepair.training.verify_merges(tok, words, superword_counts=lines)
