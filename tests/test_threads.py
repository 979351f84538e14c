"""Threads share tokenizers, counts and readers, with and without the GIL."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import _core, shards
from bytepair.shards import read

THREADS = 8
TEXTS = [f"text {number} of {number % 7}: héllo wörld, 你好 <|bos|> it's {number * 7}\n" * 9
         for number in range(60)]  # fmt: skip


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(bytepair.corpus.Texts(TEXTS), vocab_size=340)


def together(*actions: Callable[[], Any]) -> list[list[Any]]:
    """Run all actions on several threads, each starting with another one; return all results."""
    barrier = threading.Barrier(THREADS)
    results: list[list[Any]] = [[] for _ in actions]

    def run(first: int) -> None:
        barrier.wait(timeout=60)
        for step in range(len(actions)):
            which = (first + step) % len(actions)
            results[which].append(actions[which]())

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))
    return results


def test_threads_share_one_tokenizer_that_is_cold(tok: bytepair.Tokenizer) -> None:
    """The first thread to need a table, cache, integer or option makes it."""
    expected = [tok.encode(text) for text in TEXTS]
    special = [tok.encode(text, special="all", prepend="<|bos|>") for text in TEXTS[:5]]

    def check(shared: bytepair.Tokenizer) -> None:
        encoded, batches, arrays, specials, decoded, counted = together(
            lambda: [shared.encode(text) for text in TEXTS],
            lambda: shared.encode_batch(TEXTS),
            lambda: [shared.encode_batch_to_numpy([text]).ids.tolist() for text in TEXTS],
            lambda: [shared.encode(text, special="all", prepend="<|bos|>") for text in TEXTS[:5]],
            lambda: shared.decode_batch(expected),
            lambda: [shared.count(text) for text in TEXTS],
        )
        assert all(one == expected for one in encoded + batches + arrays)
        assert all(one == special for one in specials)
        assert all(one == TEXTS for one in decoded)
        assert all(one == [len(ids) for ids in expected] for one in counted)

    for _ in range(5):
        check(bytepair.Tokenizer.from_bytes(tok.to_bytes(tables=False)))


def test_threads_train_while_others_encode(tok: bytepair.Tokenizer) -> None:
    expected = tok.encode_batch(TEXTS)
    trained, encoded, counts = together(
        lambda: bytepair.train(bytepair.corpus.Texts(TEXTS), vocab_size=340),
        lambda: tok.encode_batch(TEXTS),
        lambda: bytepair.count(bytepair.corpus.Texts(TEXTS), pattern=tok.pattern),
    )
    assert all(one == tok for one in trained)
    assert all(one == expected for one in encoded)
    assert all(one == counts[0] for one in counts)


def test_a_list_that_another_thread_changes_is_read_or_refused(tok: bytepair.Tokenizer) -> None:
    """Which ids are read is undefined, but every call returns."""
    texts, ids = list(TEXTS[:10]), tok.encode(TEXTS[0])
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            texts.append(texts.pop(0))
            ids.append(ids.pop(0))
            ids.extend(ids[:3])
            del ids[:3]

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(200):
            tok.encode_batch(texts)
            tok.decode_bytes(ids)
    finally:
        stop.set()
        changing.join()


def test_a_counter_takes_the_texts_of_all_threads(tok: bytepair.Tokenizer) -> None:
    counter = _core.Counter(tok.pattern)
    together(lambda: counter.add(TEXTS))
    expected = bytepair.count(bytepair.corpus.Texts(TEXTS * THREADS), pattern=tok.pattern)
    assert bytepair.Counts(counter.finish()) == expected


def test_streams_are_one_threads_at_a_time(tok: bytepair.Tokenizer) -> None:
    """Two threads that feed one stream take turns or get an error; its state stays consistent."""
    stream = tok.decode_stream()
    ids = tok.encode("hello world " * 50)
    failures: list[BaseException] = []

    def feed() -> None:
        for id in ids:
            try:
                stream.push(id)
            except RuntimeError as error:
                failures.append(error)

    running = [threading.Thread(target=feed) for _ in range(THREADS)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert all("borrowed" in str(error) for error in failures)


def test_threads_share_a_data_set(
    tok: bytepair.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each maps shards that the others have just closed."""
    monkeypatch.setattr(read, "MAPPED_SHARDS", 1)
    shards.write(bytepair.corpus.Texts(TEXTS), tok, tmp_path / "out", tokens_per_shard=2000)
    data = shards.Dataset(tmp_path / "out")
    assert len(data.shards) > 5
    expected = [data[number].tolist() for number in range(len(TEXTS))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        up, down = together(
            lambda: [data[n].tolist() for n in [*range(len(TEXTS))] * 20],
            lambda: [data[n].tolist() for n in [*reversed(range(len(TEXTS)))] * 20],
        )
    finally:
        sys.setswitchinterval(interval)
    assert all(one == expected * 20 for one in up)
    assert all(one == expected[::-1] * 20 for one in down)


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a lock"
)
def test_the_module_leaves_the_interpreter_without_its_lock() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined, unused-ignore]
