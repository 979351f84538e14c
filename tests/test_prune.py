"""Pruned vocabularies: which tokens stay, and that texts of these keep their ids."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
import reference_twins
from bytepair import AddedToken, _core, reference
from bytepair.errors import CountsError, UnknownIdError, VocabularyError
from bytepair.evaluate import compression_curve
from bytepair.formats import huggingface, pieces
from bytepair.formats.parts import build
from bytepair.tokenizer import pruning
from bytepair.tokenizer.pruning import Pruned
from commands import run
from messages import told
from pieces import META, gemma_document

BYTES = {bytes([byte]): byte for byte in range(256)}
ALPHABET = [b"a", b"b", b"c", b" "]


def by_ranks(rng: random.Random, size: int) -> bytepair.Tokenizer:
    """Random tokens: some that no merge makes, and some with parts of a higher rank."""
    tokens = {b"".join(rng.choices(ALPHABET, k=rng.randint(2, 6))) for _ in range(size)}
    ids = BYTES | {
        token: 256 + 2 * n for n, token in enumerate(rng.sample(sorted(tokens), len(tokens)))
    }
    return bytepair.Tokenizer.from_ranks(ids, pattern="gpt2", special_tokens={"<s>": 2000})


def by_merges(rng: random.Random, size: int) -> bytepair.Tokenizer:
    """Random merges, in an order in which some never apply, and several make the same token."""
    ids, merges = dict(BYTES), []
    for _ in range(size):
        left, right = (rng.choice([*ALPHABET, *list(ids)[256:]]) for _ in range(2))
        ids.setdefault(left + right, len(ids))
        merges.append((left, right))
    rng.shuffle(merges)
    return bytepair.Tokenizer.from_merges(
        ids, merges, pattern="gpt2", special_tokens={"<s>": 2000},
        ignore_merges=rng.random() < 0.5,
    )  # fmt: skip


def by_characters(rng: random.Random, size: int) -> bytepair.Tokenizer:
    """Byte fallback: bytes, some of them characters too, and random merges of characters; some
    tokens are user-defined, and one is a special token as well."""
    names = rng.sample([*"abcé中", META], rng.randint(2, 6))
    merges = []
    for _ in range(size):
        left, right = (rng.choice(names) for _ in range(2))
        names += [left + right] * (left + right not in names)
        merges.append((left, right))
    rng.shuffle(merges)
    merges = list(dict.fromkeys(merges))
    ids = {name: id for id, name in enumerate([*pieces.BYTES, *names], 1)}
    user_defined = rng.sample(names[6:], min(len(names[6:]), rng.randint(0, 2)))
    special = {"<s>": 0, names[0]: ids[names[0]]}
    special.pop(META, None)
    form = "spaces" if rng.random() < 0.5 else "spaces always"
    tokens = {name.replace(META, " ").encode(): ids[name] for name in names}
    twins = {}
    for name, byte in pieces.BYTES.items():
        if tokens.setdefault(bytes([byte]), ids[name]) != ids[name]:
            twins[ids[name]] = bytes([byte])
    pairs = [tuple(name.replace(META, " ").encode() for name in pair) for pair in merges]
    rules = _core.TextRules(
        _core.harmless_pattern(list(tokens)), normalizer=[form],
        user_defined=[ids[name] for name in user_defined],
    )  # fmt: skip
    return bytepair.Tokenizer(build(tokens, rules, special, pairs, twins=twins))


def any_tokenizer(seed: int) -> tuple[random.Random, bytepair.Tokenizer]:
    rng = random.Random(seed)
    make = rng.choice([by_ranks, by_merges, by_characters])
    return rng, make(rng, rng.randint(1, 40))


def texts_of(rng: random.Random) -> list[str]:
    return ["".join(rng.choices("aabbcc é中龍", k=rng.randint(0, 12))) for _ in range(50)]


def check(tok: bytepair.Tokenizer, pruned: Pruned, texts: list[str]) -> int:
    """Texts whose ids all stay keep them; all can be encoded. Returns how many keep theirs."""
    exact = 0
    for text in texts:
        old = tok.encode(text, special="all")
        new = pruned.tokenizer.encode(text, special="all")
        assert pruned.tokenizer.decode_bytes(new) == tok.decode_bytes(old)
        if (pruned.ids[old] >= 0).all():
            assert new == pruned.ids[old].tolist(), (text, tok.merge_rule)
            exact += 1
    return exact


def test_pruning_keeps_the_ids_of_what_stays() -> None:
    exact = 0
    for seed in range(150):
        rng, tok = any_tokenizer(seed)
        ordinary = list(tok.mergeable_ranks().values())
        keep = rng.sample(ordinary, rng.randint(0, len(ordinary)))
        pruned = bytepair.prune(tok, keep)
        assert (pruned.ids[keep] >= 0).all()
        assert pruned.tokenizer.merge_rule == tok.merge_rule
        assert bytepair.tokenizer.ignores_merges(
            pruned.tokenizer
        ) == bytepair.tokenizer.ignores_merges(tok)
        exact += check(tok, pruned, [*texts_of(rng), "a<s>b"])
        for token, id in tok.mergeable_ranks().items():
            new = int(pruned.ids[id])
            assert new < 0 or pruned.tokenizer.token_bytes(new) == token
            if new >= 0 and _core.encode_pretoken(tok, token) == [id]:
                assert _core.encode_pretoken(pruned.tokenizer, token) == [new]
    assert exact > 2000


def test_new_ids_have_the_order_of_the_old_ones_and_no_holes() -> None:
    _, tok = any_tokenizer(5)
    pruned = bytepair.prune(tok, list(tok.mergeable_ranks().values())[::3])
    stayed = pruned.ids[pruned.ids >= 0]
    assert stayed.tolist() == list(range(pruned.tokenizer.vocab_size))
    assert pruned.ids.dtype == np.int32
    assert len(pruned.ids) == tok.vocab_size
    assert pruned.tokenizer.special_tokens == {
        name: pruned.ids[id] for name, id in tok.special_tokens.items()
    }
    rows = np.random.default_rng(0).normal(size=(tok.vocab_size, 3))
    rest = rows[np.flatnonzero(pruned.ids >= 0)]
    assert (rest[pruned.ids[97]] == rows[97]).all()


def test_nothing_pruned_is_nothing_changed(trained: bytepair.Tokenizer) -> None:
    for same in (bytepair.prune(trained, drop=[]), bytepair.prune(trained, trained.vocab_size)):
        assert same.tokenizer == trained
        assert same.tokenizer.notes == trained.notes
        assert (compression_curve(same.tokenizer) == compression_curve(trained)).all()
        assert same.ids.tolist() == list(range(trained.vocab_size))


def test_parents_are_what_merging_one_by_one_does() -> None:
    count = 0
    for seed in range(100):
        _, tok = any_tokenizer(seed)
        parents, ranks = pruning.parents(tok), tok.mergeable_ranks()
        order = {pair: n for n, pair in reversed(list(enumerate(tok.merges())))}
        characters = ranks if tok.merge_rule == "characters" else ()
        user_defined = bytepair.tokenizer.text_rules(tok).user_defined
        rank: Callable[[bytes, bytes], int | None] = (
            (lambda left, right: ranks.get(left + right))  # noqa: B023
            if tok.merge_rule == "ranks"
            else (lambda left, right: order.get((left, right)))  # noqa: B023
        )
        for token, id in ranks.items():
            steps = list(reference.steps(reference_twins.characters(token, characters), rank))
            is_merged = len(steps) > 1 and steps[-1] == [token] and id not in user_defined
            if user_defined:  # a token that contains one is never merged
                is_merged = is_merged and _core.encode_pretoken(tok, token) == [id]
            expected = tuple(steps[-2]) if is_merged else None
            assert parents.get(token) == expected
            count += expected is not None
    assert count > 500


def test_a_long_token_of_two_merges_takes_no_square_of_its_length() -> None:
    tokens = [b"a" * 2**power for power in range(18)]
    merges = [(token, token) for token in tokens[:-1]]
    quarter, half = tokens[-3:-1]
    merges += [(half, quarter), (half + quarter, quarter)]  # the latter is never made
    made = [left + right for left, right in reversed(merges)]  # ids in another order than merges
    ids = BYTES | {token: 256 + n for n, token in enumerate(dict.fromkeys(made))}
    tok = bytepair.Tokenizer.from_merges(ids, merges, pattern="gpt2")
    start = time.process_time()
    assert pruning.parents(tok)[tokens[-1]] == (half, half)
    assert time.process_time() - start < 10  # 0.6 when it was measured; a square takes an hour


def test_only_ancestors_stay_beside_what_is_asked_for() -> None:
    for seed in range(100):
        rng, tok = any_tokenizer(seed)
        ranks, parents = tok.mergeable_ranks(), pruning.parents(tok)
        targets = set(rng.sample(sorted(ranks), 3))
        pruned = bytepair.prune(tok, [ranks[token] for token in targets])
        special = set(tok.special_tokens.values())
        needed = {t for t, id in ranks.items() if len(t) == 1 or id in special} | targets
        while more := {part for t in needed for part in parents.get(t, ())} - needed:
            needed |= more
        assert {t for t, id in ranks.items() if pruned.ids[id] >= 0} == needed


def test_the_least_used_go_as_the_reference_says() -> None:
    for seed in range(60):
        rng, tok = any_tokenizer(seed)
        ids, parents = tok.mergeable_ranks(), pruning.parents(tok)
        used = {token: rng.randint(0, 5) for token in ids if rng.random() < 0.7}
        size = rng.randint(256, len(ids))
        always = {token for token in ids if len(token) == 1}
        assert pruning.cut(set(ids), parents, used, ids, size, always) == (
            reference_twins.prune(ids, parents, used, size)
        )


def test_the_tokens_of_a_corpus_are_kept(trained: bytepair.Tokenizer) -> None:
    texts = [path.read_text("utf-8") for path in bytepair.sample.paths()[:12]]
    counts = bytepair.count(texts, pattern=trained.pattern)
    pruned = bytepair.prune(trained, counts)
    assert pruned.tokenizer.vocab_size < trained.vocab_size
    assert check(trained, pruned, texts) == len(texts)
    used = np.flatnonzero(np.bincount(trained.encode_batch_to_numpy(texts)[0]))
    by_ids = bytepair.prune(trained, used)
    assert by_ids.tokenizer == pruned.tokenizer
    assert (by_ids.ids == pruned.ids).all()

    fewer = bytepair.prune(trained, counts, vocab_size=1000)
    assert fewer.tokenizer.vocab_size == 1000
    assert list(fewer.tokenizer.special_tokens) == list(trained.special_tokens)
    lengths = [sum(bytepair.tokenizer.count_batch(tok, texts)) for tok in (
        fewer.tokenizer, bytepair.prune(trained, 1000).tokenizer, pruned.tokenizer,
    )]  # fmt: skip
    assert lengths[2] <= lengths[0] < lengths[1]


def test_a_size_is_that_of_the_first_ids(trained: bytepair.Tokenizer) -> None:
    assert bytepair.prune(trained, 1000).tokenizer == trained.replace(vocab_size=1000)
    for seed in range(30):
        _, tok = any_tokenizer(seed)
        ranks = tok.mergeable_ranks()
        size = 265 + len(ranks) // 20
        pruned = bytepair.prune(tok, size)
        assert pruned.tokenizer.vocab_size <= size


def test_byte_fallback_by_uses(tmp_path: Path) -> None:
    tok = bytepair.load(write_json(tmp_path / "gemma.json", gemma_document()))
    texts = ["the theatre there\n\n", "le café  <h1>\t", "龍"]
    with told(CountsError):
        bytepair.prune(tok, bytepair.count(texts))
    used = Counter(id for text in texts for id in tok.encode(text, special="all"))
    pruned = bytepair.prune(tok, used)
    assert check(tok, pruned, texts) == len(texts)
    assert pruned.tokenizer.merge_rule == "characters"
    assert (pruned.ids[_core.twin_ids(tok)] >= 0).all()
    fewer = bytepair.prune(tok, used, vocab_size=pruned.tokenizer.vocab_size - 5)
    assert fewer.tokenizer.vocab_size == pruned.tokenizer.vocab_size - 5
    for text in texts:
        assert fewer.tokenizer.decode(fewer.tokenizer.encode(text)) == text
    with pytest.raises(UnknownIdError):
        bytepair.prune(tok, Counter([9999]))
    theirs = tokenizers.Tokenizer.from_str(huggingface.text(pruned.tokenizer))
    for text in [*texts, "other mother", " the\n"]:
        ids = pruned.tokenizer.encode(text, special="all")
        assert ids == theirs.encode(text, add_special_tokens=False).ids


def write_json(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("special", [{}, {"<pad>": 7000}])
def test_unreachable_tokens_can_go(special: dict[str, int]) -> None:
    ranks = BYTES | {b"ab": 256, b"xyz": 257, b"abc": 258}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4", special_tokens=special)
    pruned = bytepair.prune(tok, drop=bytepair.evaluate.unreachable(tok))
    assert pruned.ids[[256, 257, 258]].tolist() == [256, -1, 257]
    assert bytepair.evaluate.unreachable(pruned.tokenizer) == []
    needed = bytepair.prune(tok, drop=[256, 97])
    assert (needed.ids[[256, 97]] >= 0).all()  # `abc` needs them


def test_published_vocabularies(
    pair: tuple[bytepair.Tokenizer, Any], documents: Callable[[str], list[str]]
) -> None:
    tok, _ = pair
    texts = documents("english")[:300]
    pruned = bytepair.prune(tok, bytepair.count(texts, pattern=tok.pattern))
    assert pruned.tokenizer.vocab_size < tok.vocab_size // 2
    assert check(tok, pruned, texts) == len(texts)
    held_out = documents("code")[:100]
    check(tok, pruned, held_out)


def test_flags_roles_and_notes_follow() -> None:
    tok = bytepair.Tokenizer.from_ranks(
        BYTES | {b"ab": 256, b"cd": 257}, pattern=r"\w+|\W+",
        special_tokens=[AddedToken("<s>", 258, lstrip=True), AddedToken("<e>", 300)],
    )  # fmt: skip
    tok = (
        tok.replace(roles={"eos": "<e>"})
        .replace(chat_template="{{ messages }}")
        .replace(notes={"name": "n"})
    )
    small = bytepair.prune(tok, [256]).tokenizer
    assert bytepair.tokenizer.added_tokens(small)[0] == AddedToken("<s>", 257, lstrip=True)
    assert small.encode("cd  <s>", special="all") == [99, 100, 257]
    assert small.roles == tok.roles
    assert (small.chat_templates.get("default"), small.notes["name"]) == ("{{ messages }}", "n")


def test_notes_on_a_training_go(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    small = bytepair.prune(trained, drop=range(2000, 2500)).tokenizer
    assert "text_bytes" not in small.notes
    assert len(compression_curve(small)) == 0
    small.save(tmp_path)
    assert bytepair.load(tmp_path) == small


@settings(max_examples=40)
@given(st.sets(st.integers(0, 279)), st.text(max_size=30))
def test_any_ids_may_be_kept(keep: set[int], text: str) -> None:
    tok = bytepair.train(["hello hello help, the theme of the hour"], 280)
    check(tok, bytepair.prune(tok, keep), [text, "hello the hour"])


def test_invalid_selections_are_errors(trained: bytepair.Tokenizer) -> None:
    with told(VocabularyError):
        bytepair.prune(trained, 264)
    assert bytepair.prune(trained, 265).tokenizer.vocab_size == 265
    with pytest.raises(UnknownIdError):
        bytepair.prune(trained, [3000])
    with pytest.raises(UnknownIdError):
        bytepair.prune(trained, drop=[3000])
    with told(CountsError):
        bytepair.prune(trained, bytepair.count(["a"], pattern="gpt2"))
    both: list[dict[str, Any]] = [{}, {"keep": [1], "drop": [2]}, {"keep": [1], "vocab_size": 300}]
    for options in both:
        with pytest.raises(TypeError):
            bytepair.prune(trained, **options)
    for wrong in (np.array([True, False]), "abc", [1.5]):
        with pytest.raises(TypeError):
            bytepair.prune(trained, wrong)  # type: ignore[arg-type]


def test_the_prune_command(tmp_path: Path) -> None:
    tok = bytepair.train(["hello hello help, the theme of the hour"], 280)
    tok.save(tmp_path / "tok")
    counts = bytepair.count(["hello the hour"])
    counts.save(tmp_path / "counts.parquet")
    words = ["prune", "tok", "--counts", "counts.parquet"]
    (tmp_path / "ids.npy").touch()
    (tmp_path / "shared.npy").hardlink_to(tmp_path / "ids.npy")
    run(*words, "-o", "small", "--ids", "ids.npy", "--force", cwd=tmp_path, code=2)
    assert not (tmp_path / "shared.npy").stat().st_size  # a file with two names is not written to
    (tmp_path / "ids.npy").unlink()
    output = run(*words, "-o", "small", "--ids", "ids.npy", cwd=tmp_path).stdout
    assert "next: bytepair compare tok small --by tokens" in output
    pruned = bytepair.prune(tok, counts)
    assert bytepair.load(tmp_path / "small") == pruned.tokenizer
    assert (np.load(tmp_path / "ids.npy") == pruned.ids).all()
    run(*words, "--vocab-size", "270", "-o", "less", cwd=tmp_path)
    assert bytepair.load(tmp_path / "less").vocab_size == 270
    assert "0 fewer" in run("prune", "tok", "--unreachable", "-o", "same", cwd=tmp_path).stdout
    run("prune", "tok", "--vocab-size", "275", "-o", "first", cwd=tmp_path)
    assert bytepair.load(tmp_path / "first") == tok.replace(vocab_size=275)
    assert "which tokens to keep" in run("prune", "tok", "-o", "x", cwd=tmp_path, code=2).stderr
    refused = run(*words, "--vocab-size", "3", "-o", "x", cwd=tmp_path, code=1)
    assert "--vocab-size 3 is too" in refused.stderr
