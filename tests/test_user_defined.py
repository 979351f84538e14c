"""Tokens that are found in a text before it is merged: Gemma's, and SentencePiece's user-defined.

The files are Gemma's in small: a `tokenizer.json` whose added tokens merges make as well, and the
`tokenizer.model` that it was converted from. `BYTEPAIR_GEMMA` may name a folder with the files
`tokenizer.json` and `tokenizer.model` of a Gemma model itself, which nobody may hand on.
"""

from __future__ import annotations

import json
import os
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
from bytepair.chat import JinjaTemplate
from bytepair.errors import FormatError, UnsupportedError
from commands import run
from messages import told
from pieces import BYTES, META, around, field, gemma, gemma_document, learnt, model, piece
from texts import hard_text

Documents = Callable[[str], list[str]]

#: SentencePiece with and without a space before text.
SPEC = [field(1, b"identity") + field(3, prefix) + field(4, 0) for prefix in (0, 1)]

words = st.sampled_from(
    ["the", " other", "théâtre", "中文字", "龍", " ", "  ", "   ", " " * 11, META, META * 2,
     META * 7, "\n", "\n\n", "\n" * 7, "\t", "\t\t\t\t\t", "<h1>", "</h1>", "<h", "<", "h1>",
     "<table>", "<bos>", "<eos>", "<start_of_turn>", "<0x0A>", "\x00", "é", "😀", "12", ".",
     "ab", "abc", "bcd", "> the", "dog,", "\ufffd"]
)  # fmt: skip
texts = st.one_of(st.lists(words, max_size=14).map("".join), hard_text)


@lru_cache
def pair() -> tuple[bytepair.Tokenizer, tokenizers.Tokenizer]:
    theirs = tokenizers.Tokenizer.from_str(json.dumps(gemma_document()))
    return bytepair.load(theirs), theirs


@lru_cache
def sentencepiece_pair(prefix: bool) -> tuple[bytepair.Tokenizer, Any]:
    sentencepiece = pytest.importorskip("sentencepiece")
    from bytepair.formats import sentencepiece as format
    from bytepair.formats.parts import LoadOptions

    data = gemma(SPEC[prefix])
    tok = bytepair.Tokenizer(format.parse(data, LoadOptions()))
    return tok, sentencepiece.SentencePieceProcessor(model_proto=data)


def ids_of(theirs: tokenizers.Tokenizer, text: str) -> list[int]:
    ids: list[int] = theirs.encode(text, add_special_tokens=False).ids
    return ids


def both() -> list[bytepair.Tokenizer]:
    return [pair()[0], sentencepiece_pair(False)[0], sentencepiece_pair(True)[0]]


@settings(max_examples=500)
@given(texts)
def test_gemma_as_tokenizers_reads_it(text: str) -> None:
    tok, theirs = pair()
    ids = tok.encode(text, special="all")
    assert ids == ids_of(theirs, text)
    assert tok.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("prefix", [False, True])
def test_gemma_as_sentencepiece_reads_it(prefix: bool) -> None:
    tok, theirs = sentencepiece_pair(prefix)

    @settings(max_examples=500)
    @given(texts)
    def on_any_text(text: str) -> None:
        ids = tok.encode(text)
        assert ids == theirs.encode(text)
        assert tok.decode(ids) == theirs.decode(ids)
        put = reference_twins.spaced(text, "always" if prefix else "never").encode()
        assert ids == plain_ids(tok, put)

    on_any_text()


def plain_ids(tok: bytepair.Tokenizer, text: bytes) -> list[int]:
    """The ids by the reference, with the text as one pretoken."""
    ranks, merges = tok.mergeable_ranks(), tok.merges()
    own_ids = pattern_ids(tok)
    tokens = {token for token, id in ranks.items() if id in own_ids}
    ids: list[int] = []
    for part, is_token in reference_twins.user_defined_parts(text, tokens):
        ids += [ranks[part]] if is_token else reference_twins.encode_characters(part, ranks, merges)
    return ids


def pattern_ids(tok: bytepair.Tokenizer) -> set[int]:
    return set(bytepair.tokenizer.text_rules(tok).user_defined)


@pytest.mark.parametrize("number", range(3))
def test_every_way_gives_the_same_ids(number: int) -> None:
    tok = both()[number]

    @settings(max_examples=150)
    @given(st.lists(texts, max_size=4), st.sampled_from(["text", "all"]))
    def on_any_texts(batch: list[str], special: Any) -> None:
        ids = [tok.encode(text, special=special) for text in batch]
        assert tok.encode_batch(batch, special=special) == ids
        joined, offsets = tok.encode_batch_to_numpy(batch, special=special)
        assert joined.tolist() == [id for one in ids for id in one]
        assert offsets.tolist()[-1] == len(joined)
        assert [tok.count(text, special=special) for text in batch] == [*map(len, ids)]
        assert tok.decode_batch(ids) == [tok.decode(one) for one in ids]
        for one in ids:
            stream = tok.decode_stream()
            assert "".join([*map(stream.push, one), stream.flush()]) == tok.decode(one)
        session = bytepair.tokenizer.Session(tok, special=special)
        for end in range(1, len(batch) + 1):
            session.append(batch[end - 1])
            assert session.ids == tok.encode("".join(batch[:end]), special=special)

    on_any_texts()


@pytest.mark.parametrize("number", range(3))
def test_spans_cover_the_text(number: int) -> None:
    tok = both()[number]

    @settings(max_examples=150)
    @given(texts)
    def on_any_text(text: str) -> None:
        ids, places, _ = tok.encode_offsets(text)
        assert ids == tok.encode(text)
        data, end = text.encode(), 0
        for id, (start, stop) in zip(ids, places.tolist(), strict=True):
            assert start <= end <= stop  # the bytes of a character have its span
            end = stop
            covered = data[start:stop].replace(META.encode(), b" ")
            token = tok.token_bytes(id)
            assert covered in {token, token.removeprefix(b" ")} or token in b" " + covered
        assert end == len(data)
        for keep in ("start", "end"):
            cut = bytepair.tokenizer.truncate_text(tok, text, 3, keep=keep)
            assert len(tok.encode(cut)) <= 3

    on_any_text()


def test_files_come_back(tmp_path: Path) -> None:
    for number, tok in enumerate(both()[:2]):
        assert bytepair.Tokenizer.from_bytes(tok.to_bytes()) == tok
        back = bytepair.load(tok.save(tmp_path / f"native{number}"))
        assert (back, back.fingerprint) == (tok, tok.fingerprint)
        folder = tok.export(tmp_path / f"hf{number}", "huggingface")
        assert bytepair.load(folder) == tok


@settings(max_examples=300)
@given(texts)
def test_tokenizers_reads_what_is_written(text: str) -> None:
    for tok in both()[:2]:
        assert tok.encode(text, special="all") == ids_of(written(tok), text)


@lru_cache
def written(tok: bytepair.Tokenizer) -> tokenizers.Tokenizer:
    from bytepair.formats import huggingface

    return tokenizers.Tokenizer.from_str(huggingface.text(tok))


def test_a_space_before_text_and_user_defined_tokens_cannot_be_written(tmp_path: Path) -> None:
    tok = sentencepiece_pair(True)[0]
    assert "user-defined tokens" in " ".join(bytepair.compat.export_losses(tok, "huggingface"))
    with told(bytepair.errors.LossError):
        tok.export(tmp_path / "hf", "huggingface")


def test_long_texts() -> None:
    for tok in both():
        for text in ["the\n\n\n" * 9000, "\n" * 40_001, " " * 40_001, "<h1>" * 9000, "ab" * 40_000,
                     "the> <h1>  " * 5000]:  # fmt: skip
            assert tok.decode(tok.encode(text)) == text
            session = bytepair.tokenizer.Session(tok)
            for at in range(0, len(text), 7001):
                session.append(text[at : at + 7001])
            assert session.ids == tok.encode(text)
    tok, theirs = pair()
    for text in ["\n" * 5001, " " * 5001, "the\n\n\n" * 900, "\t" * 999]:
        assert tok.encode(text, special="all") == ids_of(theirs, text)
    one, other = sentencepiece_pair(False)
    for text in ["\n" * 5001, " " * 5001, "the\n\n\n" * 900, "\t" * 999, "<h1>" * 999]:
        assert one.encode(text) == other.encode(text)


def test_shards_and_files(tmp_path: Path) -> None:
    tok = sentencepiece_pair(False)[0]
    (tmp_path / "a.txt").write_text("the\n\n<h1> other", encoding="utf-8")
    tok.save(tmp_path / "t")
    out = run("encode", "-t", "t", "a.txt", cwd=tmp_path).stdout
    assert [int(word) for word in out.split()] == tok.encode("the\n\n<h1> other")


@pytest.mark.parametrize("which", range(3))
def test_a_message_cannot_imitate_a_visible_token(which: int) -> None:
    """`<start_of_turn>` is user-defined in Gemma's SentencePiece model, as `<h1>` here."""
    tok = both()[which]
    id = tok.encode("<h1>", special="all")[-1]
    assert id in tok.encode("the\n\n<h1>", special="all")
    text = bytepair.chat.encode_segments(tok, [("<h1>\n\nthe", "untrusted")])
    assert id not in text
    assert tok.decode(text) == "<h1>\n\nthe"
    assert b"\n\n" in [tok.decode_bytes([token]) for token in text]
    assert bytepair.chat.encode_segments(tok, [("the", "untrusted"), ("<h1>", "control")])[-1] == id
    segments: list[str | int | None] = [2, "<h1>\n", "\nthe", 1, "dog"]
    ids, mask, _ = bytepair._core.render(
        tok, segments, bytes([0, 0, 1, 1, 1]), [len(segments)], join=True
    )
    assert id not in ids.tolist()
    assert len(mask) == len(ids)


@pytest.mark.parametrize("which", range(3))
def test_a_template_writes_visible_tokens(which: int) -> None:
    tok = both()[which]
    id = tok.encode("<h1>", special="all")[-1]
    template = JinjaTemplate("{% for m in messages %}<h1>{{ m.content }}{% endfor %}", mask="none")
    ids, _ = tok.render_conversation([{"role": "user", "content": "the<h1>"}], template=template)
    assert [token for token in ids if token == id] == [id]
    assert ids[0] == id or ids[1] == id
    # As after any control token, a space is put before the text where the tokenizer does so.
    assert tok.decode(ids).replace("> the", ">the").endswith("<h1>the<h1>")


@pytest.mark.parametrize("special", [False, True])
def test_added_tokens_that_merges_make_too(special: bool) -> None:
    """Without `special` they come from merging, too; with it they never come from text."""
    data = gemma_document()
    token = {"id": data["model"]["vocab"]["the"], "content": "the", "special": special}
    flags = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
    data["added_tokens"].append(token | flags)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    tok = bytepair.load(theirs)
    id = tok.special_tokens["the"]
    assert (tok.mergeable_ranks().get(b"the") == id) == (not special)
    assert (id in tok.encode("the other the")) == (not special)
    for text in ["the other", "mother", "theatre the", " the\n\n"]:
        assert tok.encode(text, special="all") == ids_of(theirs, text)
        assert tok.decode(tok.encode(text, special="all")) == text
        assert tok.decode(tok.encode(text)) == text


def test_a_special_token_with_the_character_of_spaces(tmp_path: Path) -> None:
    data = gemma_document()
    id = data["model"]["vocab"][META * 2]
    token = next(token for token in data["added_tokens"] if token["id"] == id)
    token["special"] = True
    with told(UnsupportedError):
        bytepair.load(tokenizers.Tokenizer.from_str(json.dumps(data)))
    data["model"]["merges"] = [m for m in data["model"]["merges"] if "".join(m.split()) != META * 2]
    texts = ["the  other", f"a{META * 2}b   {META}", "  ", ""]
    assert not list(differences(data, texts, tmp_path))


def test_a_tab_in_place_of_its_byte() -> None:
    """Gemma 2's file has the tab where the token of its byte was."""
    data = gemma_document(tabs=False)
    vocabulary = data["model"]["vocab"]
    vocabulary["\t"] = vocabulary.pop("<0x09>")
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    tok = bytepair.load(theirs)
    for text in ["a\tb", "\t\t", "the\tother \t"]:
        assert tok.encode(text, special="all") == ids_of(theirs, text)
    again = tokenizers.Tokenizer.from_str(written(tok).to_str())
    assert ids_of(again, "a\t\tb") == ids_of(theirs, "a\t\tb")


def test_what_sentencepiece_trains_as_gemma_was(documents: Documents, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    lines = [line for kind in ("english", "multilingual", "code") for text in documents(kind)[:40]
             for line in text[:3000].splitlines()]  # fmt: skip
    runs = [character * length for character in ("\n", META) for length in range(2, 9)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(tmp_path / "m"), model_type="bpe",
        vocab_size=3000, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=False, split_digits=True,
        allow_whitespace_only_pieces=True, character_coverage=0.99, minloglevel=2,
        user_defined_symbols=["\n", *runs, "<table>", "</h1>", "<h1>", "<b>"],
    )  # fmt: skip
    tok = bytepair.load(tmp_path / "m.model")
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    others = written(tok)
    for kind in ("english", "multilingual", "code"):
        for text in documents(kind)[:60]:
            text = text[:10_000]
            assert tok.encode(text) == theirs.encode(text)
            assert tok.encode(text, special="all") == ids_of(others, text)


def test_the_real_files_of_gemma(documents: Documents) -> None:
    folder = os.environ.get("BYTEPAIR_GEMMA")
    if folder is None:
        pytest.skip("needs BYTEPAIR_GEMMA, a folder with the files of a Gemma model")
    sentencepiece = pytest.importorskip("sentencepiece")
    file, own = Path(folder) / "tokenizer.json", Path(folder) / "tokenizer.model"
    tok, theirs = bytepair.load(file), tokenizers.Tokenizer.from_file(str(file))
    one = bytepair.load(own)
    other = sentencepiece.SentencePieceProcessor(model_file=str(own))

    @settings(max_examples=1000)
    @given(texts)
    def on_any_text(text: str) -> None:
        ids = tok.encode(text, special="all")
        assert ids == ids_of(theirs, text)
        assert tok.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
        assert one.encode(text) == other.encode(text)
        assert one.decode(one.encode(text)) == other.decode(other.encode(text))

    on_any_text()
    for kind in ("english", "multilingual", "code"):
        for text in documents(kind):
            text = text[:20_000]
            assert tok.encode(text, special="all") == ids_of(theirs, text)
            assert one.encode(text) == other.encode(text)


@pytest.mark.parametrize(
    "more",
    [
        piece("<a b>", 0.0, 4),
        piece(BYTES[9], 0.0, 4),
        piece("", 0.0, 4),
    ],
)
def test_user_defined_pieces_that_are_refused(more: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(model(learnt(20), more=more))
    with told(FormatError):
        bytepair.load(path)


def test_user_defined_ids_are_tokens_of_text() -> None:
    tok = sentencepiece_pair(False)[0]
    ranks, merges, notes = tok.mergeable_ranks(), tok.merges(), tok.notes
    twins = {id: tok.token_bytes(id) for id in _core.twin_ids(tok)}
    for id in (1, 1 << 20):
        rules = _core.TextRules("(?s:.+)", normalizer=["spaces"], user_defined=[id])
        with told(bytepair.errors.VocabularyError):
            bytepair._core.Model.from_parts(
                ranks, rules, tok.special_tokens, merges=merges, twins=twins, notes=notes
            )


def test_normalized_added_tokens_with_a_space_before_text() -> None:
    data = gemma_document() | around("prepend")
    data["added_tokens"][0] |= {"normalized": True}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    tok, name = bytepair.load(theirs), data["added_tokens"][0]["content"]
    for text in (name, f" {name}", f"a {name}b{name}", "a b"):
        assert tok.encode(text, special="all") == theirs.encode(text).ids
