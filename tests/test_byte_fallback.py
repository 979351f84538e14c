"""Vocabularies of characters with byte fallback: the ids of `tokenizers` and of `sentencepiece`."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
import reference_twins
from against_tokenizers import differences
from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.properties.tokens import all_tokens
from commands import package, run
from messages import told
from pieces import BYTES, META, around, document, field, learnt, model, number, piece
from texts import hard_text

Documents = Callable[[str], list[str]]

KINDS = [
    "prepend",
    "replace",
    "metaspace-first",
    "metaspace-always",
    "metaspace-never",
    "metaspace-first-split",
    "metaspace-always-split",
]
#: Where a space is put before text, in the words of the reference.
PUTS = {"prepend": "always", "replace": "never", "first": "first", "always": "missing", "never": ""}

RUNS = [META * length for length in (2, 3, 4, 5, 8)]
PLAIN = learnt(150)
ACROSS = learnt(250, across=True)
#: The pieces of letters only (with spaces at their ends), and single characters.
APART = [p for p in PLAIN if p.strip(META).isalpha() or len(p) == 1]

words = st.sampled_from(
    ["the", " other", "théâtre", "中文字", "中", "字符", "龍", " ", "  ", "   ", META, META * 2,
     "\n", "\n\n", "<s>", "</s>", "<0x0A>", "\x00", "é", "e\u0301", "😀", "12", ".", "'s",
     "dog,", "\ufffd"]
)  # fmt: skip
texts = st.one_of(st.lists(words, max_size=14).map("".join), hard_text)


def written(folder: Path, value: dict[str, Any], name: str = "tokenizer.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@lru_cache
def pair(kind: str, across: bool) -> tuple[bytepair.Tokenizer, tokenizers.Tokenizer]:
    words = APART if kind.startswith("metaspace") else PLAIN
    pieces = ACROSS if across else [*RUNS, *words]
    data = document(pieces, **around(kind))
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    return bytepair.load(theirs), theirs


def theirs_of(theirs: tokenizers.Tokenizer, text: str) -> list[int]:
    ids: list[int] = theirs.encode(text, add_special_tokens=False).ids
    return ids


def plain_ids(tok: bytepair.Tokenizer, text: str, put: str) -> list[int]:
    """The ids by the reference, with the text as one pretoken."""
    data = reference_twins.spaced(text, put or "never").encode()
    return (
        reference_twins.encode_characters(data, tok.mergeable_ranks(), tok.merges()) if data else []
    )


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_of_tokenizers(kind: str, across: bool) -> None:
    tok, theirs = pair(kind, across)
    assert tok.merge_rule == "characters"

    @settings(max_examples=200)
    @given(texts)
    def on_any_text(text: str) -> None:
        ids = tok.encode(text, special="all")
        assert ids == theirs_of(theirs, text)
        assert tok.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
        if not kind.endswith("split"):
            put = PUTS[kind.removeprefix("metaspace-")]
            assert tok.encode(text) == plain_ids(tok, text, put)

    on_any_text()


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_gives_the_same_ids(kind: str) -> None:
    tok, _ = pair(kind, False)

    @settings(max_examples=100)
    @given(st.lists(texts, max_size=4))
    def on_any_texts(batch: list[str]) -> None:
        ids = [tok.encode(text) for text in batch]
        assert tok.encode_batch(batch) == ids
        arrays = tok.encode_batch_to_numpy(batch)
        joined, offsets = arrays
        assert joined.tolist() == [id for one in ids for id in one]
        assert offsets.tolist()[-1] == len(joined)
        assert [tok.count(text) for text in batch] == [len(one) for one in ids]
        assert tok.decode_batch(ids) == [tok.decode(one) for one in ids]
        for one in ids:
            stream = tok.decode_stream()
            assert "".join([*map(stream.push, one), stream.flush()]) == tok.decode(one)
            assert tok.decode_bytes(one) == tok.decode(one).encode()

    on_any_texts()


@pytest.mark.parametrize("special", ["text", "all"])
@pytest.mark.parametrize("kind", ["prepend", "replace", "metaspace-first", "metaspace-always"])
def test_a_text_in_pieces(kind: str, special: Any) -> None:
    tok, _ = pair(kind, False)

    @settings(max_examples=150)
    @given(st.lists(texts, max_size=6))
    def on_any_pieces(pieces: list[str]) -> None:
        session = bytepair.tokenizer.Session(tok, special=special)
        for end in range(1, len(pieces) + 1):
            session.append(pieces[end - 1])
            assert session.ids == tok.encode("".join(pieces[:end]), special=special)

    on_any_pieces()


@pytest.mark.parametrize("kind", ["prepend", "replace", "metaspace-first", "metaspace-always"])
def test_spans_cover_the_text(kind: str) -> None:
    tok, theirs = pair(kind, False)

    @settings(max_examples=150)
    @given(texts)
    def on_any_text(text: str) -> None:
        ids, places, chars = tok.encode_offsets(text, special="all")
        assert ids == tok.encode(text, special="all")
        assert [tuple(c) for c in chars.tolist()] == theirs.encode(text).offsets
        sizes = [0, *itertools.accumulate(len(c.encode()) for c in text)]
        assert places.tolist() == [[sizes[start], sizes[stop]] for start, stop in chars.tolist()]
        for most in (0, 1, 3):
            for keep in ("start", "end"):
                cut = bytepair.tokenizer.truncate_text(tok, text, most, keep=keep)
                assert len(tok.encode(cut)) <= most
                assert text.startswith(cut) if keep == "start" else text.endswith(cut)

    on_any_text()


def test_offsets_are_those_of_tokenizers() -> None:
    tok, theirs = pair("prepend", False)
    for text in ["the other", "the théâtre", "other\n", "the 中文字"]:
        ids, _, chars = tok.encode_offsets(text)
        encoding = theirs.encode(text, add_special_tokens=False)
        assert (ids, [tuple(c) for c in chars.tolist()]) == (encoding.ids, encoding.offsets)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_files_come_back(kind: str, across: bool, tmp_path: Path) -> None:
    tok, theirs = pair(kind, across)
    assert bytepair.Tokenizer.from_bytes(tok.to_bytes()) == tok
    assert bytepair.load(tok.save(tmp_path / "native")).fingerprint == tok.fingerprint
    folder = tok.export(tmp_path / "hf", "huggingface")
    back = bytepair.load(folder)
    assert back == tok
    assert back.fingerprint == tok.fingerprint
    exported = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in ["the other  dog", "中文 <s> 龍\n", "", " ", META]:
        assert theirs_of(exported, text) == theirs_of(theirs, text)
        assert exported.decode(tok.encode(text)) == tok.decode(tok.encode(text))


def test_many_special_tokens_are_written_in_linear_time(tmp_path: Path) -> None:
    """Gemma 3 has 6,249 special tokens among 262,144."""
    data = document([chr(0x4E00 + n) for n in range(20_000)])
    ids = data["model"]["vocab"]
    flags = data["added_tokens"][0] | {"special": True}
    for place in range(30_000):
        name = f"<unused{place}>"
        ids[name] = len(ids)
        data["added_tokens"].append(flags | {"id": ids[name], "content": name})
    tok = bytepair.load(written(tmp_path, data))
    start = time.process_time()
    tok.export(tmp_path / "again.json", "huggingface")
    assert time.process_time() - start < 4  # 0.4 when it was measured, and 9 in quadratic time
    assert bytepair.load(tmp_path / "again.json") == tok


def test_each_id_has_bytes() -> None:
    tok, theirs = pair("prepend", False)
    assert all_tokens(tok)[3 : 3 + 256] == [bytes([byte]) for byte in range(256)]
    assert bytepair.evaluate.token_lengths(tok)[3 : 3 + 256].tolist() == [1] * 256
    twin = _core.twin_ids(tok)[-1]
    assert tok.token_bytes(twin).isascii()
    assert tok.decode([tok.token_id("the"), twin]) == theirs.decode([tok.token_id("the"), twin])
    assert _core.twin_ids(bytepair.Tokenizer.from_bytes(tok.to_bytes())) == _core.twin_ids(tok)
    assert _core.twin_ids(tok.replace(special_tokens=["<x>"])) == _core.twin_ids(tok)
    assert tok.replace(special_tokens=["<x>"]).encode("the<x>") == tok.encode("the<x>")


@pytest.mark.parametrize("across", [False, True])
def test_a_long_text_without_a_split(across: bool) -> None:
    tok, theirs = pair("replace", across)
    for text in ["the" * 50_000, "ab" * 70_000, "中文字符" * 20_000, " " * 90_001, "龍" * 50_000,
                 "thé龍oth" * 20_000]:  # fmt: skip
        ids = tok.encode(text)
        assert ids == theirs_of(theirs, text)
        assert tok.encode("x" + text + "x") == theirs_of(theirs, "x" + text + "x")


def test_conversations() -> None:
    tok, theirs = pair("prepend", False)
    from bytepair import _core

    segments: list[str | int | None] = [1, "the other", " dog" + META, 2, "thé"]
    ids, mask, _ = _core.render(tok, segments, bytes([0, 0, 1, 1, 1]), [len(segments)], join=True)
    whole = "<s>the other dog" + META + "</s>thé"
    assert ids.tolist() == theirs_of(theirs, whole) == tok.encode(whole, special="all")
    assert mask[0] == 0
    assert mask[-1] == 1
    assert tok.decode(ids[mask.astype(bool)]).startswith("dog")


def test_files_and_commands(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(model([*PLAIN]))
    (tmp_path / "a.txt").write_text("the other dog\n中文 龍", encoding="utf-8")
    tok = bytepair.load(tmp_path / "tokenizer.model")
    text = "the other dog\n中文 龍"
    assert tok.encode_file(tmp_path / "a.txt")[0].tolist() == tok.encode(text)
    out = run("encode", "-t", "tokenizer.model", "a.txt", cwd=tmp_path).stdout
    assert [int(word) for word in out.split()] == tok.encode(text)
    assert "characters" in run("inspect", "tokenizer.model", cwd=tmp_path).stdout
    refused = run("convert", "tokenizer.model", "tokenizer.json", cwd=tmp_path, code=1).stderr
    assert "the roles of tokens: unk_token (export to a folder" in refused
    run("convert", "tokenizer.model", "tokenizer.json", "--lossy", cwd=tmp_path)
    run("convert", "tokenizer.model", "hf", "--format", "huggingface", cwd=tmp_path)
    assert bytepair.load(tmp_path / "tokenizer.json") == bytepair.load(tmp_path / "hf") == tok
    assert bytepair.load(tmp_path / "hf").notes["unk_token"] == "<unk>"


@pytest.mark.parametrize("format", ["tiktoken", "gpt2", "llama2c", "qwen3", "nanochat"])
def test_formats_of_bytes_are_refused(format: str, tmp_path: Path) -> None:
    tok, _ = pair("prepend", False)
    assert "merges characters" in " ".join(bytepair.compat.export_losses(tok, format))
    with told(UnsupportedError):
        tok.export(tmp_path / "x", format, lossy=True)


def test_what_needs_bytes_says_so() -> None:
    tok, _ = pair("prepend", False)
    with told(ValueError):
        bytepair.compat.to_tiktoken(tok)
    with told(bytepair.errors.PatternError):
        bytepair.engines.cover(tok, "the")


# ---------------------------------------------------------------------------- what is refused


def changed(**parts: Any) -> dict[str, Any]:
    return document(PLAIN, **parts)


def flagged(name: str, **flags: Any) -> dict[str, Any]:
    data = document(PLAIN)
    token = {"id": len(data["model"]["vocab"]), "content": name, **flags}
    data["added_tokens"].append(token)
    index = data["model"]["vocab"].get(name)
    token["id"] = token["id"] if index is None else index
    return data


def without(name: str) -> dict[str, Any]:
    data = document(PLAIN)
    del data["model"]["vocab"][name]
    return data


NFKC = {"type": "NFKC"}
STEP = {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": False}


NO_SCHEME = STEP | {"replacement": META, "prepend_scheme": ""}


@pytest.mark.parametrize(
    "data",
    [
        changed(model={"ignore_merges": True}), changed(normalizer=NFKC),
        changed(pre_tokenizer={
            "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True
        }),
        changed(normalizer=None, pre_tokenizer=STEP), changed(decoder={"type": "Fuse"}),
        changed(decoder=around("replace")["decoder"]), without("<0x41>"), flagged("<0x0A>"),
        flagged("<x>", normalized=True), flagged(META + " x", normalized=False),
        changed(model={"vocab": {n: i for i, n in enumerate([*BYTES, "a b"])}, "merges": []},
                added_tokens=[]),
    ],
)  # fmt: skip
def test_unusual_documents_do_what_they_do_in_tokenizers(
    data: dict[str, Any], tmp_path: Path
) -> None:
    results = differences(
        data, ["the other A\n", " <x>t ▁ x", "", "a b\u00e9\ufb01<0x0A>_"], tmp_path
    )
    assert not list(results)


@pytest.mark.parametrize(
    "data",
    [
        changed(normalizer=None, pre_tokenizer=NO_SCHEME),
        changed(model={"type": "WordPiece"}),
        changed(model={"type": "WordLevel"}),
        changed(model={"type": "Unigram", "vocab": [["a", 0.0]]}),
        changed(model={"merges": ["t"]}),
        changed(model={"merges": ["t zz"]}),
        changed(model={"vocab": dict.fromkeys([*BYTES, "a"], 7)}),
    ],
)  # fmt: skip
def test_unsupported_documents_are_refused(data: dict[str, Any], tmp_path: Path) -> None:
    with told(FormatError):
        bytepair.load(written(tmp_path, data))


def test_a_pair_that_is_listed_twice_counts_once() -> None:
    data = document(PLAIN)
    merges = data["model"]["merges"]
    data["model"]["merges"] = [*merges, merges[0], merges[5]]
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    tok = bytepair.load(theirs)
    for text in ["the other", "the theatre there, then them", "mother father"]:
        assert tok.encode(text) == theirs_of(theirs, text)


# ---------------------------------------------------------------------------- SentencePiece


def loaded(folder: Path, data: bytes, **options: Any) -> bytepair.Tokenizer:
    path = folder / "tokenizer.model"
    path.write_bytes(data)
    return bytepair.load(path, **options)


def test_a_model_is_its_tokenizer_json(tmp_path: Path) -> None:
    tok = loaded(tmp_path, model(PLAIN))
    same = bytepair.load(written(tmp_path, document(PLAIN)))
    assert tok.mergeable_ranks() == same.mergeable_ranks()
    assert (tok.pattern, tok.special_tokens) == (same.pattern, same.special_tokens)
    assert tok.roles == {"bos": "<s>", "eos": "</s>"}
    for text in ["the other dog", "", " ", "le théâtre 龍\n"]:
        assert tok.encode(text) == same.encode(text)


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("lengths", [(2, 4, 8), (2, 3, 4, 5, 8), (2, 3, 5, 6, 7, 9, 12), (3, 4)])
def test_the_ids_of_sentencepiece(
    lengths: tuple[int, ...], across: bool, prefix: bool, tmp_path: Path
) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    pieces = [p for p in (ACROSS if across else PLAIN) if not p.startswith(META * 2) or len(p) < 2]
    pieces = [p for p in pieces if META * 2 not in p]
    runs = b"".join(piece(META * length, -1e9) for length in lengths)
    spec = field(1, b"identity") + field(3, int(prefix)) + field(4, 0)
    data = model(pieces, normalization=spec, more=runs)
    tok = loaded(tmp_path, data)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    assert tok.vocab_size == len(theirs)

    @settings(max_examples=300)
    @given(st.one_of(texts, st.integers(0, 60).map(lambda n: "the" + " " * n + "dog")))
    def on_any_text(text: str) -> None:
        ids = tok.encode(text)
        assert ids == theirs.encode(text)
        assert tok.decode(ids) == theirs.decode(ids) == text.replace(META, " ")

    on_any_text()


def test_what_sentencepiece_trains(documents: Documents, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    lines = [line for kind in ("english", "multilingual") for text in documents(kind)[:40]
             for line in text[:3000].splitlines()]  # fmt: skip
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(tmp_path / "m"), model_type="bpe",
        vocab_size=3000, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, split_digits=True, character_coverage=0.99,
        minloglevel=2,
    )  # fmt: skip
    tok = bytepair.load(tmp_path / "m.model")
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    for kind in ("english", "multilingual", "code"):
        for text in documents(kind)[:100]:
            assert tok.encode(text[:20_000]) == theirs.encode(text[:20_000])


@pytest.mark.parametrize("version", ["v1", "v2", "v3", "v7", "v7m1"])
def test_mistral(version: str, documents: Documents, tmp_path: Path) -> None:
    (path,) = (package("mistral_common") / "data").glob(f"*.model.{version}")
    check_published(path, documents, tmp_path)


def test_other_published_models(documents: Documents, tmp_path: Path) -> None:
    folder = os.environ.get("BYTEPAIR_SENTENCEPIECE")
    if folder is None:
        pytest.skip("needs BYTEPAIR_SENTENCEPIECE, a folder with models of SentencePiece")
    for path in sorted(Path(folder).glob("*.model")):
        check_published(path, documents, tmp_path / path.stem)


def check_published(path: Path, documents: Documents, folder: Path) -> None:
    """Compare a model with `sentencepiece`, and what is written of it with `tokenizers`."""
    sentencepiece = pytest.importorskip("sentencepiece")
    tok = bytepair.load(path)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    is_lossy = bool(bytepair.compat.export_losses(tok, "huggingface"))
    tok.export(folder / "hf", "huggingface", lossy=is_lossy)
    others = tokenizers.Tokenizer.from_file(str(folder / "hf" / "tokenizer.json"))
    assert is_lossy or bytepair.load(folder / "hf") == tok

    @settings(max_examples=300, deadline=None)
    @given(texts)
    def on_any_text(text: str) -> None:
        ids = tok.encode(text)
        assert ids == theirs.encode(text)
        assert tok.decode(ids) == theirs.decode(ids)
        assert is_lossy or tok.encode(text, special="all") == theirs_of(others, text)

    on_any_text()
    for kind in ("english", "multilingual", "code"):
        for text in documents(kind)[:150]:
            assert tok.encode(text[:5000]) == theirs.encode(text[:5000])
    lost = bytepair.compat.export_losses(tok, "gguf")
    assert all("user-defined" in loss for loss in lost)
    again = tok.export(folder / "x.gguf", lossy=bool(lost))
    assert bytepair.load(again, lossy=bool(lost)).merges() == tok.merges()


NORMAL = field(1, b"identity") + field(3, 1)


@pytest.mark.parametrize(
    "data",
    [
        model(PLAIN, training=field(3, 1)),
        model(PLAIN, training=b""),
        model(PLAIN, training=field(3, 2) + field(24, 1)),
        model(PLAIN, normalization=NORMAL),
        model(PLAIN, normalization=NORMAL + field(2, b"x")),
        model(PLAIN, normalization=NORMAL + field(4, 0) + field(5, 0)),
        model(PLAIN, more=piece("<a b>", 0.0, 4)),
        model(PLAIN, more=piece("zz", 0.0, 5)),
        model(PLAIN, more=piece("the龍", 0.0)),
        model(PLAIN, more=piece("he" * 300, 0.0)),
        model(PLAIN, more=piece("hehe", float("nan"))),
        model(PLAIN, more=piece("hehe", -1.0) + piece("ehe", -1.0)),
        model(PLAIN, more=piece("the", 0.0)),
        model(PLAIN, more=piece("", 0.0)),
        model(PLAIN, more=piece("Ж", 0.0, 9)),
        model(PLAIN, more=piece("\n", 0.0, 3)),
        model(PLAIN, more=piece("zz", 0.0, 6)),
        model(PLAIN, more=b"\x0b"),
        model(PLAIN, more=number(1 << 80)),
        model(PLAIN, more=field(1, field(1, b"\xff"))),
        model(PLAIN, more=field(1, field(1, 7))),
        model(PLAIN, more=field(1, field(2, b"abc"))),
        model(PLAIN, more=field(1, field(3, b"abc"))),
    ],
)
def test_unsupported_models(data: bytes, tmp_path: Path) -> None:
    with told(FormatError):
        loaded(tmp_path, data)


def test_a_normalized_model_is_read_with_lossy(tmp_path: Path) -> None:
    tok = loaded(tmp_path, model(PLAIN, normalization=NORMAL), lossy=True)
    assert tok.encode("the dog") == loaded(tmp_path, model(PLAIN)).encode("the dog")


def test_a_damaged_model_is_an_error(tmp_path: Path) -> None:
    whole = model(PLAIN[:40] + PLAIN[150:])
    for end in [*range(1, 60), *range(60, len(whole) - 1, 97)]:
        with pytest.raises(bytepair.errors.FileFormatError):
            loaded(tmp_path, whole[:end], format="sentencepiece")


def test_a_pattern_is_chosen_that_changes_no_id() -> None:
    finest = r" *[\p{L}\p{M}]+| *\p{Nd}+| *[^ \n\p{L}\p{M}\p{Nd}]+|\n+| +"
    first, never, whole = (
        pair(*key)[0] for key in [("metaspace-first", False), ("replace", False), ("replace", True)]
    )
    assert (bytepair.tokenizer.text_rules(first).normalizer, first.pattern) == (
        ["spaces first"],
        finest,
    )
    assert (bytepair.tokenizer.text_rules(never).normalizer, never.pattern) == (
        ["spaces"],
        r" *[^ \n]+|\n+| +",
    )
    assert (bytepair.tokenizer.text_rules(whole).normalizer, whole.pattern) == (
        ["spaces"],
        "(?s:.+)",
    )
    assert _core.harmless_pattern([b"a.", b" a"]) == r" *[^ \n]+|\n+| +"
    assert _core.harmless_pattern([b"a\nb", b" a"]) == r" *[^ ]+| +"
