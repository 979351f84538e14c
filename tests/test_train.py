"""Training against the reference and rustbpe, from every kind of source."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
import rustbpe
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import _core, reference
from bytepair.errors import CorpusError
from bytepair.tokenizer import Tokenizer
from bytepair.training.options import Ties, TrainSettings
from conftest import refused
from messages import told

ALL_TIES: tuple[Ties, ...] = get_args(Ties)


def learnt(counts: dict[bytes, int], merges: int, ties: Ties, min_count: int = 1) -> list[bytes]:
    """The tokens that `bytepair.train` learns from counts."""
    table = _core.Counts.from_items(counts.items(), _core.PATTERNS["gpt2"])
    settings = TrainSettings(
        vocab_size=256 + merges, special_tokens=(), ties=ties, min_count=min_count
    )
    model = _core.train(table, settings)
    return list(Tokenizer(model).mergeable_ranks())


def random_counts(rng: random.Random) -> dict[bytes, int]:
    letters = rng.sample([b"a", b"b", b" ", b"\x80", b"\xff"], rng.randint(2, 5))
    counts: dict[bytes, int] = {}
    for _ in range(rng.randint(1, 14)):
        run = rng.random() < 0.3
        size = rng.randint(1, 14)
        pretoken = rng.choice(letters) * size if run else b"".join(rng.choices(letters, k=size))
        counts[pretoken] = rng.choice([1, 1, 2, 3, 2**31, 2**40])
    return counts


@pytest.mark.parametrize("ties", ALL_TIES)
def test_merges_equal_the_reference_on_random_corpora(ties: Ties) -> None:
    rng = random.Random(ties)
    for _ in range(600):
        counts, min_count = random_counts(rng), rng.choice([1, 1, 1, 2])
        expected = reference.vocabulary(reference.train(counts, 30, ties, min_count))
        assert learnt(counts, 30, ties, min_count) == expected, counts


@given(
    texts=st.lists(st.text(st.sampled_from("ab '1é\n"), max_size=30), max_size=12).filter(any),
    threads=st.integers(1, 8),
    ties=st.sampled_from(ALL_TIES),
)
@pytest.mark.filterwarnings("ignore::bytepair.errors.ExhaustedWarning")
def test_texts_equal_the_reference_on_any_number_of_threads(
    texts: list[str], threads: int, ties: Ties
) -> None:
    tok = bytepair.train(texts, 280, special_tokens=[], ties=ties, threads=threads)
    counts = reference.count(texts, bytepair.PATTERNS["nanochat"])
    expected = reference.vocabulary(reference.train(counts, 24, ties))
    assert list(tok.mergeable_ranks()) == expected


@pytest.mark.parametrize("ties", ALL_TIES)
def test_real_text_equals_the_reference(ties: Ties) -> None:
    """Shakespeare's first 15,000 characters, until most pairs have equal counts."""
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")[:15_000]
    counts = reference.count([text], bytepair.PATTERNS["gpt2"])
    tok = bytepair.train([text], 256 + 400, pattern="gpt2", special_tokens=[], ties=ties)
    expected = reference.train(counts, 400, ties)
    assert list(tok.mergeable_ranks()) == reference.vocabulary(expected)
    pairs = [(tok.token_id(left), tok.token_id(right)) for left, right in tok.merges()]
    assert pairs == expected


def test_merges_equal_rustbpe(documents: Callable[[str], list[str]]) -> None:
    texts = documents("english")
    theirs = rustbpe.Tokenizer()
    theirs.train_from_iterator(iter(texts), 32768, pattern=bytepair.PATTERNS["nanochat"])
    expected = {bytes(token): rank for token, rank in theirs.get_mergeable_ranks()}
    ours = bytepair.train(texts, 32768, special_tokens=[])
    assert ours.mergeable_ranks() == expected
    again = bytepair.train(iter(texts), 32768, special_tokens=[], threads=1)
    assert again == ours
    assert again.fingerprint == ours.fingerprint


def tokens_by_tokenizers(source: list[str] | Path, size: int) -> list[bytes]:
    """The tokens that Hugging Face's trainer learns with GPT-2's pattern, in the order of ids."""
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet() if isinstance(source, list) else []
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, show_progress=False
    )
    if isinstance(source, list):
        tok.train_from_iterator(source, trainer)
    else:
        tok.train([str(source)], trainer)
    names = sorted(tok.get_vocab().items(), key=lambda item: item[1])
    decoder = tokenizers.decoders.ByteLevel()
    byte = {c: bytes([b]) for c, b in zip(*_characters(), strict=True)}
    assert decoder.decode([names[-1][0]])
    return [b"".join(byte[c] for c in name) for name, _ in names]


def _characters() -> tuple[list[str], list[int]]:
    """GPT-2's character for each byte, from its definition."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in shown]
    return [chr(b) for b in shown] + [chr(256 + i) for i in range(len(hidden))], shown + hidden


@pytest.mark.parametrize("kind", ["english", "multilingual", "code"])
def test_merges_equal_those_of_tokenizers(documents: Callable[[str], list[str]], kind: str) -> None:
    texts = documents(kind)[:200]
    ours = bytepair.train(texts, 6000, pattern="gpt2", ties="hf", special_tokens=[])
    assert list(ours.mergeable_ranks())[256:] == tokens_by_tokenizers(texts, 6000)[256:]


def test_merges_equal_those_that_tokenizers_learns_from_a_file(
    documents: Callable[[str], list[str]], tmp_path: Path
) -> None:
    """That trainer reads a file by lines, and its alphabet is the bytes of the file."""
    file = tmp_path / "text.txt"
    file.write_text("\n".join(documents("english")[:200]), encoding="utf-8", newline="")
    lines = re.findall(r"[^\n]*\n|[^\n]+", file.read_text(encoding="utf-8"))
    theirs = tokens_by_tokenizers(file, 6000)
    seen = sum(len(token) == 1 for token in theirs)
    assert seen < 256
    ours = bytepair.train(
        lines, 256 + len(theirs) - seen, pattern="gpt2", ties="hf", special_tokens=[]
    )
    assert list(ours.mergeable_ranks())[256:] == theirs[seen:]


def test_initial_tokens_are_there_whatever_the_text() -> None:
    words = [" kubernetes", "天気予報", " kubectl"]
    tok = bytepair.train(
        ["hello hello world"] * 3, 299, options=bytepair.TrainOptions(initial_tokens=words)
    )
    assert [len(tok.encode(word)) for word in words] == [1, 1, 1]
    assert len(tok.encode("hello")) == 1
    assert list(tok.special_tokens.values())[-1] == tok.vocab_size - 1
    assert bytepair.train(
        ["hello"], 266, options=bytepair.TrainOptions(initial_tokens=[])
    ) == bytepair.train(["hello"], 266)
    with told(bytepair.errors.VocabularyError):
        bytepair.train(["x"], 300, options=bytepair.TrainOptions(initial_tokens=["New York"]))
    with told(bytepair.errors.VocabularyError):
        bytepair.train(["x"], 270, options=bytepair.TrainOptions(initial_tokens=words))
    with refused("initial_tokens", "word"):
        bytepair.train(["x"], 300, options=bytepair.TrainOptions(initial_tokens="word"))


def test_behind_initial_tokens_training_is_exact() -> None:
    """The merges equal those of the reference on text with a byte for each initial token."""
    texts = ["xyz abab abc xyz xyz cabab"] * 2
    tok = bytepair.train(
        texts,
        256 + 6,
        special_tokens=[],
        pattern="gpt2",
        options=bytepair.TrainOptions(initial_tokens=["xyz"]),
    )
    plain = [text.replace("xyz", "\x01") for text in texts]
    rest = bytepair.train(plain, 256 + 4, special_tokens=[], pattern="gpt2")
    assert tok.merges()[:2] == [(b"x", b"y"), (b"xy", b"z")]
    assert tok.merges()[2:] == [
        tuple(part.replace(b"\x01", b"xyz") for part in pair) for pair in rest.merges()
    ]


def test_counts_beyond_31_bits_are_right() -> None:
    counts = {b"ab": 2**31 + 1, b"bc": 2**31, b"cd": 2**62}
    assert learnt(counts, 3, "rustbpe")[256:] == [b"cd", b"ab", b"bc"]


def test_counts_beyond_64_bits_are_an_error() -> None:
    with pytest.raises(bytepair.errors.CountOverflowError):
        learnt({b"ab": 2**63, b"cd": 2**63}, 1, "rustbpe")


def test_documents_do_not_run_into_each_other() -> None:
    with pytest.warns(bytepair.errors.ExhaustedWarning):
        tok = bytepair.train(["a", "b"] * 10, 266)
    assert tok.merges() == []


def test_the_special_tokens_follow_the_last_merge() -> None:
    tok = bytepair.train(["hello hello"], 270)
    assert list(tok.special_tokens.values()) == list(range(261, 270))
    assert tuple(tok.special_tokens) == bytepair.training.NANOCHAT_SPECIAL_TOKENS
    with told(bytepair.errors.ExhaustedWarning):
        tok = bytepair.train(["hello hello"], 1000)
    assert tok.notes.get("exhausted") == "true"
    assert list(tok.special_tokens.values()) == list(range(tok.vocab_size - 9, tok.vocab_size))


def test_a_vocabulary_too_small_says_the_smallest() -> None:
    with told(bytepair.errors.VocabularyError):
        bytepair.train(["text"], 264)
    assert bytepair.train(["text"], 265).vocab_size == 265


def test_a_bad_pattern_shows_where() -> None:
    with told(ValueError) as caught:
        bytepair.train(["text"], 300, pattern=r"\p{L}+|(oops")
    assert isinstance(caught.value, bytepair.errors.PatternError)
    assert "^" in str(caught.value)


def test_special_tokens_given_twice_are_an_error() -> None:
    with told(bytepair.errors.VocabularyError):
        bytepair.train(["text"], 300, special_tokens=["<a>", "<a>"])


def test_options_that_make_no_sense_are_errors() -> None:
    with refused("min_count", 0):
        bytepair.train(["x"], 300, options=bytepair.TrainOptions(min_count=0))
    with told(TypeError):
        bytepair.train(["x"], 300, special_tokens="<a>")


def test_progress_is_told() -> None:
    seen: list[tuple[str, int, int | None]] = []
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    bytepair.train([text] * 4, 4000, progress=lambda *told: seen.append(told))
    assert seen[0] == ("count", 4 * len(text), None)


def test_an_error_in_the_progress_callback_stops_it() -> None:
    def stop(stage: str, done: int, total: int | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        bytepair.train(["some text"], 300, progress=stop)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_ctrl_c_stops_within_a_second() -> None:
    code = (
        "import bytepair, itertools\n"
        "print('ready', flush=True)\n"
        "bytepair.train((str(i) * 50 for i in itertools.count()), 300)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, error = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in error
    assert time.monotonic() - started < 5  # one second on a machine that is not busy


def test_threads_come_from_the_environment(tmp_path: Path) -> None:
    code = "import bytepair; print(bytepair.train(['hello hello'], 268).fingerprint)"
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "RAYON_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for threads in ("1", "4", "nonsense")
    }
    assert len(prints) == 1
    with told(ValueError):
        bytepair.train(["x"], 300, threads=0)


@pytest.mark.parametrize("source", [[], iter(()), [""] * 3, bytepair.count([]), pa.array([""])])
def test_nothing_to_train_on(source: Any) -> None:
    with told(CorpusError):
        bytepair.train(source, 300)


def test_the_bytes_alone_need_no_text() -> None:
    tok = bytepair.train([""], 256, special_tokens=[])
    assert (tok.vocab_size, tok.merges()) == (256, [])
    assert tok.encode("aé") == [97, 195, 169]
