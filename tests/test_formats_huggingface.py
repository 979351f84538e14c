"""Reading `tokenizer.json`: the same pretokens and ids as `tokenizers`, or an error with a name."""

from __future__ import annotations

import copy
import itertools
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import reference
from bytepair._core import to_bytes, to_characters
from bytepair.errors import FormatError, LossError, SplitError, UnsupportedError
from bytepair.formats import huggingface
from bytepair.formats.gguf.llamacpp import RULES
from bytepair.formats.parts import LoadOptions, build
from bytepair.properties.tokens import all_pairs
from formats import json_of, load, small
from messages import told
from pre_tokenizers import from_oniguruma, pattern_of, split, steps_of, to_oniguruma
from texts import hard_text

tokenizers = pytest.importorskip("tokenizers")

TOK = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=["<|bos|>", "<|tool|>"])


def changed(path: str, value: Any) -> dict[str, Any]:
    """The document of a small tokenizer, with one value changed."""
    document = copy.deepcopy(json_of(small()))
    *parents, last = path.split(".")
    inner: Any = document
    for name in parents:
        inner = inner[int(name) if name.isdecimal() else name]
    inner[int(last) if last.isdecimal() else last] = value
    return document


# ---------------------------------------------------------------------------- pretokens

BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def sequence(*steps: dict[str, Any], use_regex: bool = False) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [*steps, {**BYTES, "use_regex": use_regex}]}


DIGITS = {"type": "Digits", "individual_digits": True}
DEEPSEEK = sequence(
    split(r"\p{N}{1,3}"),
    split("[一-龥\u3040-ゟ゠-ヿ]+"),
    split(
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
        "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
    ),
)
PRETOKENIZERS = {
    "bytes alone": BYTES,
    "a sequence of one": sequence(use_regex=True),
    "no pattern at all": {**BYTES, "use_regex": False},
    "digits one by one": sequence(DIGITS, use_regex=True),
    "runs of digits": sequence({**DIGITS, "individual_digits": False}, use_regex=True),
    "digits alone": sequence(DIGITS),
    "three digits": sequence(split(r"\p{N}{1,3}"), split(bytepair.PATTERNS["llama3"])),
    "runs of three": sequence(split(r"\p{N}{1,3}"), use_regex=True),
    "two digits": sequence(split(r"\p{N}{1,3}"), split(r"\p{N}{1,2}|\s+")),
    "deepseek": DEEPSEEK,
    "removed, inverted": sequence(
        split(bytepair.PATTERNS["qwen2"], behavior="Removed", invert=True)
    ),
    "a string": sequence(split("", pattern={"String": " "}), use_regex=True),
    "a word": sequence(split("", pattern={"String": "a.b"})),
    "gaps": sequence(split(r" ?\p{L}+")),
    "bloom": sequence(split(" ?[^(\\s|[.,!?…。，、।۔،])]+")),
    "lines and spaces": sequence(split(r"[\r\n]"), split(r"\s+"), split(r"\s+$|\S+")),
    "several patterns": sequence(split(r"\p{L}+,"), split(r"\s+,"), split(r"(?i:'s)|\s+")),
    "what a cut divides": sequence(split("[xs]"), split(r"(?i:'s)|\s+")),
    "cuts and words": sequence(split(r"\p{N}"), split(r"\d+"), split("a b|a")),
    "ends in steps": sequence(split(r"\p{N}+"), split(r" +$|\s+(?!\S)|\S"), use_regex=True),
    "starcoder 2": sequence(DIGITS, DIGITS, use_regex=True),
    **{rule.names[0]: sequence(*map(split, rule.pattern))
       for rule in RULES if isinstance(rule.pattern, tuple)},
    "ends of lines": sequence(split(r"\p{L}+$|\s{2}+|a")),
    "groups of three from the right": sequence(split(r"(?=(\d{3})+(?!\d))"), use_regex=True),
    "behind and in front of letters": sequence(split(r"(?<=a)|(?=b)|$"), split(r"\p{N}+")),
    **{name: sequence(split(to_oniguruma(p))) for name, p in bytepair.PATTERNS.items()},
}  # fmt: skip


def pretokens(node: dict[str, Any]) -> Callable[[str], list[str]]:
    """The pretokens of `tokenizers`."""
    document = changed("pre_tokenizer", node)
    step = tokenizers.Tokenizer.from_str(json.dumps(document)).pre_tokenizer

    def split(text: str) -> list[str]:
        pieces = [to_bytes(piece) or b"" for piece, _ in step.pre_tokenize_str(text)]
        return [piece.decode() for piece in pieces]

    return split


@pytest.mark.parametrize("name", PRETOKENIZERS)
def test_pretokens_are_the_same(name: str) -> None:
    node = PRETOKENIZERS[name]
    theirs = pretokens(node)
    pattern = pattern_of(node)
    ours = small(pattern=pattern)
    again = sequence(*(split(to_oniguruma(step)) for step in steps_of(pattern)))  # as written
    theirs_again = pretokens(again)
    assert pattern_of(again) == pattern

    @given(
        st.one_of(
            hard_text,
            st.text(
                "ab 12①٣\r\n゠カ・タ゛中文。、\u3040\u3097\u3098🀄!<a\u200b\u0300'sſ", max_size=30
            ),
        )
    )
    def check(text: str) -> None:
        assert bytepair.pretokenize(text, ours) == theirs(text) == theirs_again(text)

    check()


@pytest.mark.parametrize("name", bytepair.PATTERNS)
def test_patterns_come_back_from_the_other_engine(name: str) -> None:
    pattern = bytepair.PATTERNS[name]
    assert from_oniguruma(to_oniguruma(pattern)) == pattern


@pytest.mark.parametrize(
    "regex",
    [
        r"x\Z", r"^x", r"\p{Emoji}", r"\p{^L}", r"\pL", r"(?i)x", r"(?i:ss)", r"(?i:é)",
        r"(?i:(?:a|b))", r"(?<n>x)", r"\1", r"(x", r"x)", r"x\K", r".", r"(?#x)", r"[]a]",
    ],
)  # fmt: skip
def test_ambiguous_expressions_are_refused(regex: str) -> None:
    with told(UnsupportedError):
        from_oniguruma(regex)


@pytest.mark.parametrize("regex", ["x*", "a|(?=b)", r"\s*(?=b)|a", "(?:ab)?"])
def test_matches_of_some_characters_or_none_are_refused(regex: str) -> None:
    with told(UnsupportedError):
        pattern_of(sequence(split(regex)))
    tok = small(pattern=regex)
    assert "no characters" in huggingface.losses(tok)[0]
    with told(LossError):
        tok.export(Path("unused") / "tokenizer.json")


# ---------------------------------------------------------------------------- ids


def test_ids_are_equal_on_any_text() -> None:
    for ignore in (False, True):
        tok = bytepair.Tokenizer.from_merges(
            TOK.mergeable_ranks(), TOK.merges()[::-1], pattern="qwen2", ignore_merges=ignore
        )
        theirs = bytepair.compat.to_huggingface(tok)
        ours = bytepair.load(theirs)
        assert ours == tok

        check_ids(ours, theirs)


def check_ids(ours: bytepair.Tokenizer, theirs: Any) -> None:
    @given(hard_text)
    def check(text: str) -> None:
        assert ours.encode(text) == theirs.encode(text).ids

    check()


def odd_ranks() -> bytepair.Tokenizer:
    """Tokens that repeat themselves, that no merge makes, and that can be cut in many ways."""
    longer = [b"aa", b"aaa", b"ab", b"ba", b"aab", b"abab", b"zzz", b"bab", b"aaaaa", b"#version"]
    tokens = {bytes([byte]): byte for byte in range(256)}
    tokens |= {token: 256 + n for n, token in enumerate(longer)}
    return bytepair.Tokenizer.from_ranks(tokens, pattern="llama3")


@pytest.mark.parametrize("make", [lambda: TOK, odd_ranks, small])
def test_ranks_are_written_as_one_pair_a_token(
    make: Callable[[], bytepair.Tokenizer], tmp_path: Path
) -> None:
    tok = make()
    path = tok.export(tmp_path / "tokenizer.json")
    merges = json.loads(path.read_bytes())["model"]["merges"]
    tokens = [to_bytes(merge.replace(" ", "")) for merge in merges]
    assert tokens == [left + right for left, right in tok.merges()]
    assert len(set(tokens)) == len(tokens)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.save(str(tmp_path / "again.json"))
    for back in (path, tmp_path / "again.json", theirs):
        assert bytepair.load(back).fingerprint == tok.fingerprint
    check_ids(tok, theirs)


def test_one_pair_a_token_gives_the_ids_of_ranks() -> None:
    """What the docstring of `huggingface` proves, on random vocabularies, also by rank."""

    @given(
        st.lists(st.text("abc", min_size=2, max_size=6).map(str.encode), unique=True, max_size=30),
        st.randoms(use_true_random=False),
        st.lists(st.text("abc", max_size=24), max_size=5),
    )
    def check(longer: list[bytes], rng: Any, texts: list[str]) -> None:
        tokens = [bytes([byte]) for byte in range(256)] + longer
        rng.shuffle(tokens)
        ranks = {token: id for id, token in enumerate(tokens)}
        tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt2")
        theirs = bytepair.compat.to_huggingface(tok)
        for text in [
            *texts,
            "".join(rng.choices([token.decode() for token in longer] or ["a"], k=6)),
        ]:
            assert theirs.encode(text).ids == reference.encode(text.encode(), ranks)

    check()


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_a_rule_of_merges_that_could_be_that_of_ranks_comes_back(ignore_merges: bool) -> None:
    for tok in (odd_ranks(), TOK):
        other = bytepair.Tokenizer.from_merges(
            tok.mergeable_ranks(),
            tok.merges(),
            pattern=tok.pattern,
            special_tokens=tok.special_tokens,
            ignore_merges=ignore_merges,
        )
        assert load(json_of(other)) == other != tok


def test_lists_that_are_the_rule_of_ranks() -> None:
    document = json_of(odd_ranks())
    model = document["model"]
    assert "bytepair" not in model
    needed = model["merges"]

    def rule() -> str:
        return load(document).merge_rule

    for merges, expected in (
        (needed, "ranks"),
        (["a aa", *needed, "a ab"], "ranks"),  # these never occur
        (needed[1:], "merges"),
        ([*needed[1:], needed[0]], "merges"),
    ):
        model["merges"] = merges
        assert rule() == expected, merges
    model.update(merges=needed, ignore_merges=False)
    assert rule() == "merges"  # no merge makes some tokens
    document = json_of(TOK)
    model = document["model"]
    needed = model["merges"]
    for ignore_merges in (True, False):
        for merges, expected in (
            (needed, "ranks"),
            (
                [list(map(to_characters, pair)) for pair in all_pairs(TOK.mergeable_ranks())],
                "ranks",
            ),
            (needed[:-1], "merges"),
            ([needed[-1], *needed[:-1]], "merges"),
        ):
            model.update(merges=merges, ignore_merges=ignore_merges)
            assert rule() == expected


LETTERS = [bytes(text) for n in range(1, 8) for text in itertools.product(b"ab", repeat=n)]
TOKENS = [text for text in LETTERS if 2 <= len(text) <= 4]


@given(
    st.lists(st.sampled_from(TOKENS), unique=True, max_size=10),
    st.sampled_from(["all", "one", "swapped", "dropped", "shuffled", "one shuffled"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_only_lists_that_give_the_ids_of_ranks_are_taken_for_them(
    longer: list[bytes], kind: str, ignore_merges: bool, rng: Any
) -> None:
    """All texts of up to seven letters, by brute force, on random vocabularies and lists."""
    shuffled = [b"a", b"b", *longer]
    rng.shuffle(shuffled)
    tokens = {token: id for id, token in enumerate(shuffled)}
    needed = bytepair.Tokenizer.from_ranks(tokens, pattern=r"(?s:.)").merges()
    merges = list(needed if "one" in kind else all_pairs(tokens))
    if kind == "swapped" and len(merges) > 1:
        at = rng.randrange(len(merges) - 1)
        merges[at : at + 2] = merges[at + 1], merges[at]
    elif kind == "dropped" and merges:
        del merges[rng.randrange(len(merges))]
    elif "shuffled" in kind:
        rng.shuffle(merges)
    model = build(tokens, r"(?s:.+)", {}, merges, ignore_merges=ignore_merges, may_be_ranks=True)
    tok = bytepair.Tokenizer(model)
    by_ranks = tok.merge_rule == "ranks"
    same = True
    for text in LETTERS:
        ids = reference.encode_merges(text, tokens, merges, ignore_merges)
        assert tok.encode(text.decode()) == ids
        same = same and ids == reference.encode(text, tokens)
    assert same or not by_ranks
    if kind in ("all", "one"):
        assert by_ranks is (ignore_merges or len(needed) == len(longer))


def test_a_merge_that_looks_like_a_comment_is_written_as_a_pair() -> None:
    tokens = odd_ranks().mergeable_ranks()
    tokens[b"#versions"] = len(tokens)
    tok = bytepair.Tokenizer.from_merges(tokens, [(b"#version", b"s")], pattern="llama3")
    document = json_of(tok)
    assert document["model"]["merges"] == [["#version", "s"]]
    assert load(document) == tok


def test_merges_as_strings_and_as_pairs() -> None:
    document = json_of(small())
    strings = document["model"]["merges"]
    document["model"]["merges"] = ["#version: 0.2", *strings]
    assert load(document) == small()
    document["model"]["merges"] = [merge.split(" ") for merge in strings]
    assert load(document) == small()
    del document["model"]["type"], document["model"]["byte_fallback"], document["version"]
    assert load(document) == small()


def test_a_pair_that_stands_twice_counts_the_last_time() -> None:
    document = json_of(small())
    model = document["model"]
    model.update(ignore_merges=False, merges=[["h", "e"], ["l", "l"], ["he", "ll"], ["h", "e"]])
    model["vocab"] |= {"el": 259, "<|endoftext|>": 260, "<|bos|>": 261}
    for token in document["added_tokens"]:
        token["id"] += 1
    model["merges"].insert(3, ["e", "l"])
    theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
    for text in ("hell", "he", "hel", "helle"):
        assert load(document).encode(text) == theirs.encode(text).ids


def test_ids_with_holes_are_those_of_tokenizers() -> None:
    tok = small(special_tokens={"<|a|>": 300, "<|▁|>": 261})
    theirs = bytepair.compat.to_huggingface(tok)
    assert theirs.encode("<|a|>x<|▁|>").ids == [300, 120, 261]
    assert theirs.token_to_id("<|▁|>") == 261
    document = json_of(tok)
    for name in tok.special_tokens:
        del document["model"]["vocab"][name]
    with told(FormatError):
        load(document)


def test_nfc_gives_the_ids_of_tokenizers(tmp_path: Path) -> None:
    pattern = bytepair.PATTERNS["qwen2"]
    tok = bytepair.Tokenizer.from_ranks(
        TOK.mergeable_ranks(),
        pattern=pattern,
        special_tokens={"<|e\u0301|>": 1600},
        normalizer="NFC",
    )
    theirs = bytepair.compat.to_huggingface(tok)
    assert json.loads(theirs.to_str())["normalizer"] == {"type": "NFC"}
    assert bytepair.load(tok.export(tmp_path / "tokenizer.json")) == tok
    assert tok.encode("e\u0301") == tok.encode("é") == theirs.encode("e\u0301").ids
    marks = st.text(
        "ae가나ᄒ\u1161\u11ab<|>\u0301\u0327\u0308\u0345\u1ac0\u16d67 K\u212b", max_size=20
    )

    @given(st.one_of(hard_text, marks))
    def check(text: str) -> None:
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert tok.encode(text, special="all") == ids

    check()
    with told(ValueError):
        bytepair.compat.to_tiktoken(tok)
    with told(bytepair.errors.LossError):
        tok.export(tmp_path / "x", "nanochat")
    with told(bytepair.errors.LossError):
        tok.export(tmp_path / "x.gguf")
    # It is read as llama.cpp reads it, without NFC.
    assert bytepair.load(tok.export(tmp_path / "x.gguf", lossy=True)) != tok
    assert b"qwen2" in (tmp_path / "x.gguf").read_bytes()
    with told(bytepair.errors.PatternError):
        bytepair.extend(tok, ["x"], extra=1)


@pytest.mark.parametrize("pattern", ["qwen2", r"\p{L}+|\P{L}", r"(?:(?!ab)\p{L}){2}|\s+"])
def test_all_ways_of_encoding_normalize(pattern: str) -> None:
    regex = bytepair.PATTERNS.get(pattern, pattern)
    tok = bytepair.Tokenizer.from_ranks(TOK.mergeable_ranks(), pattern=regex, normalizer="NFC")
    plain = bytepair.Tokenizer.from_ranks(TOK.mergeable_ranks(), pattern=regex)
    raw = "Cafe\u0301 naive, e\u0301\u0327 한 x" * 9000
    ids = plain.encode(unicodedata.normalize("NFC", raw))
    assert tok.encode(raw) == ids
    assert tok.encode_batch([raw, raw], threads=2) == [ids, ids]
    assert tok.encode_batch_to_numpy([raw], threads=2).ids.tolist() == ids
    assert tok.count(raw) == len(ids)
    assert list(tok.encode_stream(raw[at : at + 1001] for at in range(0, len(raw), 1001))) == ids
    short = raw[:3000]
    short_ids, _, characters = tok.encode_offsets(short)
    assert short_ids == tok.encode(short)
    assert characters[:, 0].tolist() == sorted(characters[:, 0])
    cut = bytepair.tokenizer.truncate_text(tok, short, 5)
    assert short.startswith(cut)
    assert len(tok.encode(cut)) <= 5
    composed = unicodedata.normalize("NFC", raw)
    assert bytepair.tokenizer.truncate_text(tok, composed, 5) == bytepair.tokenizer.truncate_text(
        plain, composed, 5
    )


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_normalization_of_every_character_in_its_surroundings(form: str) -> None:
    """Characters newer than the tables of `tokenizers` are left as they are, as there."""
    normalizer = getattr(tokenizers.normalizers, form)()
    tok = small(pattern="(?s:.)+", normalizer=form)
    every = [chr(c) for c in (*range(0xD800), *range(0xE000, 0x110000))]
    for before, after in [("", ""), ("a", "\u0327"), ("a\u0345", "\u0301"), ("ᄒ", "\u11ab")]:
        for at in range(0, len(every), 1000):
            text = "x".join(f"{before}{c}{after}" for c in every[at : at + 1000])
            assert "".join(bytepair.pretokenize(text, tok)) == normalizer.normalize_str(text)
    for first in ("\U000105d2", "\U00011935", "\U00016d67", "\U00011382"):
        for second in ("\u0307", "\U00011930", "\U00016d67", "\U000113c9"):
            text = first + second
            assert "".join(bytepair.pretokenize(text, tok)) == normalizer.normalize_str(text)


def test_added_tokens_in_normalized_text() -> None:
    for special in ({"   ": 259}, {"<e\u0301>": 259, "x": 260}):
        document = json_of(small(normalizer="NFC", special_tokens=special))
        document["added_tokens"][0]["normalized"] = True
        theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
        for text in ("a    \u0301", "   e\u0301   ", "    ", "<\u00e9>x<e\u0301>"):
            assert load(document).encode(text, special="all") == theirs.encode(text).ids


def test_a_post_processor_is_kept() -> None:
    processor = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|bos|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [260], "tokens": ["<|bos|>"]}},
    }
    tok = load(changed("post_processor", processor))
    theirs = bytepair.compat.to_huggingface(tok)
    assert theirs.encode("he").ids == tok.encode("he", prepend="<|bos|>") == [260, 256]
    assert theirs.encode("he", add_special_tokens=False).ids == tok.encode("he")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("normalizer", {"type": "Lowercase"}),
        ("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "NFC"}]}),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("pre_tokenizer", {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}),
        ("pre_tokenizer", sequence({"type": "Punctuation", "behavior": "MergedWithNext"})),
        ("pre_tokenizer", sequence(split("a", behavior="MergedWithNext"))),
        ("pre_tokenizer", sequence(split(r"\p{L}+", behavior="Removed", invert=True))),
        ("pre_tokenizer", sequence(split("a", behavior="Removed"))),
        ("decoder", {"type": "WordPiece", "prefix": "##", "cleanup": True}),
        ("decoder", {"type": "Sequence", "decoders": []}),
        ("model.end_of_word_suffix", "</w>"),
        ("added_tokens.0.single_word", True),
    ],
)
def test_fields_do_what_they_do_in_tokenizers(path: str, value: Any) -> None:
    document = changed(path, value)
    ours, theirs = load(document), tokenizers.Tokenizer.from_str(json.dumps(document))
    for text in ("", "he", " Hello,  he!he a<|bos|>hell o", "hehe<|endoftext|>\u00c9a"):
        ids = theirs.encode(text, add_special_tokens=False).ids
        try:
            assert ours.encode(text, special="all") == ids
        except SplitError as error:  # tokenizers leaves out what has no token
            assert "no token of the vocabulary covers" in str(error)  # noqa: PT017
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", "2.0"),
        ("model.type", "Unigram"),
        ("model.dropout", 0.1),
        ("model.continuing_subword_prefix", "##"),  # merges would not give tokens
    ],
)
def test_unsupported_fields_are_refused_by_name(path: str, value: Any) -> None:
    document = changed(path, value)
    with pytest.raises(UnsupportedError) as caught:
        load(document)
    assert caught.value.place.replace("[", ".").startswith(path.split(".")[0])
    if path == "model.dropout":
        assert load(document, lossy=True) == small()
    else:
        with pytest.raises(UnsupportedError):
            load(document, lossy=True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model", None),
        ("model", 5),
        ("model.vocab", []),
        ("model.vocab.a", -1),
        ("model.vocab.a", 1 << 40),
        ("model.vocab.a", True),
        ("model.vocab.a", 98),
        ("model.vocab", {"▁": 0}),
        ("model.merges", {}),
        ("model.merges.0", "a b c"),
        ("model.merges.0", ["a"]),
        ("model.merges.0", [1, "a"]),
        ("model.merges.0", 7),
        ("model.merges.0", ["▁", "a"]),
        ("model.merges.0", ["a", "b"]),
        ("model.ignore_merges", 1),
        ("added_tokens", {}),
        ("added_tokens.0", 5),
        ("added_tokens.0.id", "x"),
        ("added_tokens.0.content", "<|bos|>"),
        ("added_tokens.0.content", "\ud800"),
        ("added_tokens.0.special", "yes"),
        ("pre_tokenizer", {"type": "Sequence"}),
        ("pre_tokenizer", sequence({"type": "Split"})),
        ("pre_tokenizer", sequence(split("("))),
        ("pre_tokenizer", sequence(split("a{1000000}"))),
    ],
)
def test_broken_rules_are_named(path: str, value: Any) -> None:
    document = changed(path, value)
    with told(bytepair.errors.BytepairError):
        load(document)


def test_a_character_that_stands_for_no_byte() -> None:
    document = json_of(small(special_tokens={}))
    document["model"]["vocab"]["▁"] = 259
    tok, theirs = load(document), tokenizers.Tokenizer.from_str(json.dumps(document))
    for text in ("▁", "he ▁", "x"):
        assert tok.encode(text) == theirs.encode(text).ids  # no text has this id
    assert tok.decode([104, 259, 101]) == theirs.decode([104, 259, 101]) == "h▁e"
    assert json_of(tok)["model"]["vocab"]["▁"] == 259
    assert load(json_of(tok)) == tok


@pytest.mark.parametrize("change", range(40))
def test_unusual_tables_are_read_as_tokenizers_reads_them(change: int) -> None:
    """A table is refused with its place, or gives the ids of `tokenizers`, which reads it too."""
    document = json_of(TOK)
    model, ids = document["model"], document["model"]["vocab"]
    pairs: list[Any] = model["merges"]
    strange: list[Any] = [
        ["h", "e"], "h e", ["h", "e", "l"], "h", ["zz", "e"], 5, None, ["", "h"], "#version: 1",
        ["<|bos|>", "h"], ["\ud800", "h"], ["Ġ", "Ġ"], "Ġ  Ġ", ["h", 1], [], {}, ["h"], True,
    ]  # fmt: skip
    if change < len(strange):
        pairs.insert(3, strange[change])
    elif change < 30:
        names = ["▁", "", "new", "<|bos|>", "\ud800", '"', "\\", "é", "a b", "\x7f", "Ā", "Ń"]
        ids[names[change - 18]] = [len(ids), 5, -1, 1 << 21, 1.0, True, "7"][change % 7]
    else:
        model["merges"] = [
            None, {}, pairs * 2, pairs[::-1], [pair.split(" ") for pair in pairs], [], pairs[5:],
            [*(pair.split(" ") for pair in pairs[:9]), *pairs[9:]], pairs[:-1],
            [[*pair.split(" ")][::-1] for pair in pairs],
        ][change - 30]  # fmt: skip
    for indent in (None, 3):
        text = json.dumps(document, indent=indent, ensure_ascii=change % 2 == 0)
        data = text.encode(errors="surrogatepass")
        twice = data.replace(b'"merges"', b'"vocab": {}, "merges"')
        with told(FormatError, 'duplicate name "vocab"'):
            huggingface.parse(twice, LoadOptions())
        try:
            tok = bytepair.Tokenizer(huggingface.parse(data, LoadOptions()))
        except FormatError as caught:
            error = caught
        else:
            model["merges"] = [
                pair.split(" ") if isinstance(pair, str) else pair
                for pair in model["merges"]
                if not str(pair).startswith("#version")
            ]  # it reads no list that mixes both forms
            theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
            for words in ("hello the world, he said", "Ġ the\n\n  then\x7f é ▁", "aab new bb"):
                assert tok.encode(words) == theirs.encode(words).ids
            continue
        assert re.match(r"model|added_tokens|tokenizer\.json, byte", error.place)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_a_merge_that_makes_an_added_token(ignore_merges: bool, special: bool) -> None:
    document = json_of(small(special_tokens={"<|a|>": 259}))
    document["added_tokens"][0] |= {"content": "hell", "id": 258, "special": special}
    document["model"]["ignore_merges"] = ignore_merges
    tok, theirs = load(document), tokenizers.Tokenizer.from_str(json.dumps(document))
    assert tok.special_tokens == {"hell": 258}
    for text in ["hell", "hello hell", "he ll", " hell", "shellhellhe", "hel", ""]:
        assert tok.encode(text, special="all") == theirs.encode(text).ids, text
        plain = tok.encode(text)
        assert (258 in plain) == (not special and "hell" in text)
        assert tok.decode(plain) == text
    assert bytepair.Tokenizer.from_bytes(tok.to_bytes()) == tok
    again = json.loads(huggingface.text(tok))
    assert load(again) == tok
    assert again["added_tokens"] == document["added_tokens"]


def test_deep_and_broken_json() -> None:
    for data in [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000,
        json.dumps(changed("normalizer", "HERE")).encode(),
        json.dumps(changed("normalizer", [])).replace("[]", "[" * 200 + "]" * 200).encode(),
        b'{"model": 1, "model": 2}',
        b'{"a": NaN}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "\xff"}',
        b"[]",
        b"",
    ]:
        with told(FormatError):
            huggingface.parse(data, LoadOptions())
    text = json.dumps(changed("pre_tokenizer", "HERE"))
    for depth in (200, 300, 450, 490):
        deep = '{"type":"Sequence","pretokenizers":[' * depth + json.dumps(BYTES) + "]}" * depth
        data = text.replace('"HERE"', deep).encode()
        try:
            huggingface.parse(data, LoadOptions())
        except FormatError as error:
            assert "nested too deeply" in str(error)  # noqa: PT017 - as deep as Python can go


# ---------------------------------------------------------------------------- folders


def test_a_folder_with_its_companions(tmp_path: Path) -> None:
    document = changed("added_tokens.1.special", False)
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    config: dict[str, Any] = {
        "bos_token": {"content": "<|bos|>", "lstrip": False},
        "eos_token": "<|endoftext|>",
        "model_max_length": 4096,
        "chat_template": "{{ messages }}",
        "added_tokens_decoder": {"259": {"content": "<|endoftext|>"}},
        "tokenizer_class": "LlamaTokenizerFast",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = bytepair.load(tmp_path)
    assert tok.notes["bos_token"] == "<|bos|>"
    assert tok.notes["chat_template"] == "{{ messages }}"
    tok.export(tmp_path / "out", "huggingface")
    again = bytepair.load(tmp_path / "out")
    assert again == tok
    assert again.notes["chat_template"] == "{{ messages }}"
    fields = json.loads((tmp_path / "out/tokenizer_config.json").read_text())
    assert fields["model_max_length"] == 4096
    assert fields["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert "260" not in fields["added_tokens_decoder"]  # transformers would make it special
    (tmp_path / "special_tokens_map.json").write_text('{"mask_token": {"content": "<|bos|>"}}')
    assert "mask_token" not in bytepair.load(tmp_path).notes  # read without a decoder only
    config["added_tokens_decoder"]["259"]["lstrip"] = True
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert bytepair.tokenizer.added_tokens(bytepair.load(tmp_path))[
        0
    ].lstrip  # as transformers does
    (tmp_path / "chat_template.jinja").write_text("other")
    del config["added_tokens_decoder"]["259"]["lstrip"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert bytepair.load(tmp_path).notes["chat_template"] == "other"
    config["added_tokens_decoder"] = {"7": {"content": "<|new|>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with told(UnsupportedError):
        bytepair.load(tmp_path)


def test_a_companion_with_a_number_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    TOK.export(tmp_path, "huggingface")
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 1e400}')
    with told(FormatError):
        bytepair.load(tmp_path)


def test_transformers_loads_what_is_written(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tok = bytepair.Tokenizer(
        bytepair._core.Model.from_parts(
            TOK.mergeable_ranks(),
            TOK.pattern,
            TOK.special_tokens,
            notes={
                "bos_token": "<|bos|>",
                "eos_token": "<|bos|>",
                "chat_template": "{{ bos_token }}hi",
            },
        )
    )
    tok.export(tmp_path, "huggingface")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.is_fast
    text = "Hello <|bos|>'ll  \n naïve 你好<|tool|>"
    ids = theirs(text, add_special_tokens=False)["input_ids"]
    assert ids == tok.encode(text, special="all")
    assert theirs.decode(ids) == text
    assert (theirs.bos_token, theirs.bos_token_id) == ("<|bos|>", tok.special_tokens["<|bos|>"])
    assert (
        theirs.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
        == "<|bos|>hi"
    )
    assert bytepair.load(theirs).encode(text, special="all") == ids
