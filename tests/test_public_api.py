"""Public names, values and words: one word for one thing, in Python and in the commands.

As a script, it writes the signatures of all public names: `make public`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import _core
from bytepair.cli import COMMANDS, command
from bytepair.errors import (
    CountOverflowError,
    CountsError,
    SpecialTokenError,
    VocabularyError,
)
from bytepair.evaluate import compression_curve
from bytepair.shards.encode import ShardKeywords
from bytepair.training.options import TrainSettings
from commands import run
from conftest import refused
from messages import told
from training_options import keywords

TEXT = (
    "hello hello help, the theme of the hour; others helped each other, "
    "another one hoped there was hope"
)


def small(**options: Any) -> bytepair.Tokenizer:
    return bytepair.train([TEXT * 3], **keywords(**{"vocab_size": 280, **options}))


# ---------------------------------------------------------------------------- names


def public_functions() -> Iterator[tuple[str, Any]]:
    """All public functions and methods."""
    for home in [bytepair, *(getattr(bytepair, name) for name in bytepair.__all__)]:
        for name in getattr(home, "__all__", []):
            value = getattr(home, name)
            members = inspect.getmembers(value) if inspect.isclass(value) else [(name, value)]
            for member, function in members:
                if (
                    callable(function)
                    and not member.startswith("_")
                    and not inspect.isclass(function)
                ):
                    yield f"{home.__name__}.{name}.{member}", function


MODULES = [name for name in bytepair.__all__ if inspect.ismodule(getattr(bytepair, name))]


def test_the_face_is_narrow() -> None:
    tok = small()
    public = [name for name in dir(tok) if not name.startswith("_") and hasattr(tok, name)]
    assert sum(callable(getattr(tok, name)) for name in public) <= 27
    assert len(public) <= 38


PLUGINS = ("engines.plugins",)
WRAPPERS = ("huggingface", "nanochat", "rustbpe", "tiktoken")


@pytest.mark.parametrize("name", [*MODULES, *PLUGINS, *(f"compat.{one}" for one in WRAPPERS)])
def test_a_public_module_lists_its_names(name: str) -> None:
    if name == "compat.tiktoken":
        pytest.importorskip("tiktoken")
    module = importlib.import_module(f"bytepair.{name}")
    assert "__all__" in vars(module)
    assert all(hasattr(module, public) for public in module.__all__)


def test_no_function_has_the_name_of_a_public_module() -> None:
    for name in MODULES:
        names = getattr(getattr(bytepair, name), "__all__", [])
        assert not {*names} & {*MODULES}, name


#: All public signatures, which a change of one must change too.
SIGNATURES = Path(__file__).with_name("public.txt")


class Bare(str):
    """An annotation that is shown as it is written."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(name: str, value: Any) -> str:
    """A name with its parameters, if it has any that Python knows."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return f"{name}: {', '.join(kind.__name__ for kind in value.__bases__)}"
    try:
        shown = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parameters = [one.replace(annotation=bare(one)) for one in shown.parameters.values()]
    returned = bare(shown, "return_annotation")
    return f"{name}{shown.replace(parameters=parameters, return_annotation=returned)}"


def bare(one: Any, name: str = "annotation") -> Any:
    """An annotation, without quotes if it is a string."""
    annotation = getattr(one, name)
    # Those of a named tuple stand in a wrapper.
    annotation = getattr(annotation, "__forward_arg__", annotation)
    return Bare(annotation) if isinstance(annotation, str) else annotation


def signatures() -> Iterator[str]:
    """The public names of the package and of its modules, with their signatures."""
    modules = [importlib.import_module(f"bytepair.compat.{one}") for one in WRAPPERS]
    for home in [bytepair, *(getattr(bytepair, name) for name in MODULES), *modules]:
        for name in sorted(home.__all__):
            value, full = getattr(home, name), f"{home.__name__}.{name}"
            if inspect.ismodule(value):
                continue
            yield signature(full, value)
            if inspect.isclass(value):
                yield from members(full, value)


def members(name: str, kind: type) -> Iterator[str]:
    """The public methods and properties of a class that are those of this package."""
    own = [one for one in kind.__mro__ if one.__module__.startswith("bytepair")]
    own += [one for one in kind.__mro__ if one.__module__ == "builtins" and one in CORE]
    for member in sorted({member for one in own for member in vars(one) if member[0] != "_"}):
        value = inspect.getattr_static(kind, member)
        is_called = isinstance(value, classmethod | staticmethod) or callable(value)
        shown = signature(member, getattr(kind, member)) if is_called else member
        yield f"{name}.{shown}"


#: The classes of the compiled module, some of which are said to be built in.
CORE = {value for value in vars(_core).values() if isinstance(value, type)}


def test_a_signature_changes_together_with_the_list_of_all() -> None:
    """`make public` writes the list: a change of what users call is seen as one."""
    pytest.importorskip("tiktoken")
    pytest.importorskip("tokenizers")
    kept = SIGNATURES.read_text(encoding="utf-8").splitlines()
    assert [*signatures()] == kept, "run `python tests/test_public_api.py`, and read its change"


def test_a_parameter_has_one_name() -> None:
    """`errors` says what happens to unreadable documents, everywhere; the default is strict."""
    checked = set()
    for name, function in public_functions():
        with contextlib.suppress(ValueError):
            parameters = inspect.signature(function).parameters
            assert not {"on_error", "untrained", "world", "specials", "n_threads"} & {*parameters}
            if "errors" in parameters and "decode" not in name:
                assert parameters["errors"].default == "strict", name
                checked.add(name)
    assert len(checked) >= 3


def test_options_are_named_once() -> None:
    """Functions that take options as keywords take all of them, with the same defaults."""
    train = inspect.signature(bytepair.train).parameters
    usual = {one.name: one.default for one in dataclasses.fields(TrainSettings)}
    for function in (bytepair.training.resume, bytepair.extend):
        grow = inspect.signature(function).parameters
        assert all(grow[name].default == usual[name] for name in ("ties", "min_count"))
    assert all(train[name].default == usual[name] for name in ("vocab_size", "ties"))
    for call in (bytepair.train, bytepair.count, bytepair.training.resume, bytepair.extend):
        parameters = inspect.signature(call).parameters
        assert len(parameters) <= 10
        assert parameters["reading"].default == bytepair.Reading()
    sharding = {field.name for field in dataclasses.fields(bytepair.shards.ShardOptions)}
    assert set(ShardKeywords.__annotations__) == sharding
    for write in (bytepair.shards.write, bytepair.distributed.shard):
        assert "ShardKeywords" in str(inspect.signature(write).parameters["options"])


# ---------------------------------------------------------------------------- special tokens


def test_special_tokens_are_nanochats_or_a_list_or_none() -> None:
    assert small() == small(special_tokens="nanochat")
    assert list(small().special_tokens) == list(bytepair.training.NANOCHAT_SPECIAL_TOKENS)
    assert small(special_tokens=()).special_tokens == {}
    assert list(small(special_tokens=["<|a|>", "<|b|>"]).special_tokens) == ["<|a|>", "<|b|>"]
    with told(TypeError):
        small(special_tokens="<|a|>")


def test_reserved_ids_are_room_for_special_tokens() -> None:
    tok = small(special_tokens=["<|bos|>"], reserved=2)
    assert tok.special_tokens == {"<|bos|>": 277, "<|reserved_0|>": 278, "<|reserved_1|>": 279}
    more = tok.replace(special_tokens=["<|tool|>"]).replace(special_tokens=["<|image|>", "<|x|>"])
    assert more.special_tokens == {"<|bos|>": 277, "<|tool|>": 278, "<|image|>": 279, "<|x|>": 280}
    assert more.encode(TEXT) == tok.encode(TEXT)
    assert more.encode("a<|x|>", special="all") == [97, 280]
    assert more.merges() == tok.merges()
    assert _core.merge_counts(more).tolist() == _core.merge_counts(tok).tolist()
    assert compression_curve(more).tolist() == compression_curve(tok).tolist()
    assert more.notes == tok.notes
    assert pickle.loads(pickle.dumps(more)) == more
    with refused("reserved", -1):
        small(reserved=-1)


def test_reserved_ids_of_llama_are_used() -> None:
    names = {"<|begin_of_text|>": 256, "<|reserved_special_token_3|>": 257}
    bytes_ = {bytes([byte]): byte for byte in range(256)}
    tok = bytepair.Tokenizer.from_ranks(bytes_, pattern="llama3", special_tokens=names)
    assert tok.replace(special_tokens=["<|tool|>"]).special_tokens["<|tool|>"] == 257


def test_a_merge_list_keeps_its_rule_with_more_special_tokens() -> None:
    tok = small(special_tokens=())
    first = bytepair.Tokenizer.from_merges(
        tok.mergeable_ranks(), tok.merges()[::-1], pattern="gpt4", ignore_merges=True
    )
    more = first.replace(special_tokens=["<|x|>"])
    assert (more.merge_rule, bytepair.tokenizer.ignores_merges(more)) == ("merges", True)
    assert more.merges() == first.merges()
    assert more.encode(TEXT) == first.encode(TEXT)


def test_special_tokens_may_be_added_at_ids_that_the_caller_chooses() -> None:
    tok = small(special_tokens=["<|bos|>"])
    more = tok.replace(special_tokens={"<|x|>": 300, "<|y|>": None})
    bos = tok.special_tokens["<|bos|>"]
    assert (more.special_tokens["<|bos|>"], more.special_tokens["<|x|>"]) == (bos, 300)
    assert more.special_tokens["<|y|>"] not in {bos, 300}
    assert more.encode("a<|x|>", special="all") == [97, 300]
    assert more.decode([97, 300]) == "a<|x|>"
    assert more.encode(TEXT) == tok.encode(TEXT)
    for taken in (0, bos):
        with pytest.raises((SpecialTokenError, VocabularyError)) as wrong:
            tok.replace(special_tokens={"<|x|>": taken})
        assert str(taken) in str(wrong.value)


@pytest.mark.parametrize("special", [None, "text", "all", ["<|bos|>"]])
def test_a_stream_treats_special_tokens_as_encode_does(special: Any) -> None:
    tok = small(special_tokens=["<|bos|>", "<|eos|>"])
    text = "hello<|bos|> hello<|eos|><|bos|"
    for pieces in (list(text), [text], [text[:7], text[7:20], text[20:]]):
        assert list(tok.encode_stream(pieces, special=special)) == tok.encode(text, special=special)
    with pytest.raises(SpecialTokenError) as wrong:
        list(tok.encode_stream(list(text), special="error"))
    assert wrong.value.option == "special"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["<|bos|>"], "'<|bos|>' is a special token already"),
        (["<|x|>", "<|x|>"], "'<|x|>' is a special token already"),
        (["he"], "'he' is an ordinary token (id"), ([""], "a name is empty"),
    ],
)  # fmt: skip
def test_names_that_are_taken_are_errors(names: list[str], message: str) -> None:
    with pytest.raises(SpecialTokenError) as wrong:
        small(special_tokens=["<|bos|>"]).replace(special_tokens=names)
    assert message in str(wrong.value)


@pytest.mark.filterwarnings("ignore:the text has no more pairs")
@pytest.mark.parametrize("vocab_size", [265, 270, 320, 100_000])
def test_the_number_of_ids_is_rounded_up(vocab_size: int) -> None:
    plain = bytepair.train(bytepair.count([TEXT]), vocab_size)
    tok = bytepair.train(
        bytepair.count([TEXT]), vocab_size, options=bytepair.TrainOptions(padded_to=64)
    )
    assert len(tok) % 64 == 0
    assert len(plain) <= len(tok) < len(plain) + 64
    assert tok.mergeable_ranks() == plain.mergeable_ranks()
    assert list(tok.special_tokens.items())[:9] == list(plain.special_tokens.items())


# ---------------------------------------------------------------------------- looking things up


def test_the_length_is_the_number_of_ids() -> None:
    assert len(small()) == small().vocab_size == 280
    empty = bytepair.Tokenizer.from_ranks({}, pattern="gpt2")
    assert len(empty) == 0
    assert empty  # a tokenizer is no container


def test_a_token_has_its_id_by_bytes_and_by_text() -> None:
    tok = small()
    assert tok.token_id("he") == tok.token_id(b"he") == tok.mergeable_ranks()[b"he"]
    with told(KeyError):
        tok.token_id("<|bos|>")
    with told(KeyError):
        tok.token_id("no such token")


def test_bos_and_eos_are_ids_or_none() -> None:
    tok = small(special_tokens=["<|bos|>", "<|eos|>"])
    assert (tok.bos_token_id, tok.eos_token_id) == (278, 279)
    bare = small(special_tokens=())
    assert bare.bos_token_id is None
    assert bare.eos_token_id is None


@given(st.text(), st.sampled_from(["nanochat", "gpt2", "gpt4", "gpt4o", r"\w+|\s+"]))
def test_text_is_split_without_a_tokenizer(text: str, pattern: str) -> None:
    tok = bytepair.Tokenizer.from_ranks({}, pattern=pattern)
    assert bytepair.pretokenize(text, pattern=pattern) == bytepair.pretokenize(text, tok)


def test_expensive_properties_are_methods() -> None:
    tok = small()
    for name in ("mergeable_ranks", "merges"):
        assert callable(getattr(tok, name))
    assert _core.merge_counts(tok).sum() == compression_curve(tok)[0] - compression_curve(tok)[-1]


@pytest.mark.parametrize(
    "call",
    [
        lambda tok: tok.encode(b"bytes"),
        lambda tok: tok.count(b"bytes"),
        lambda tok: tok.encode(["a"]),
        lambda tok: tok.encode(None),
        lambda _: bytepair.Tokenizer(),
        lambda tok: type(tok)("gpt2"),
    ],
)  # fmt: skip
def test_a_wrong_type_says_what_to_do(call: Callable[[Any], Any]) -> None:
    with told(TypeError):
        call(small())


def test_compat_modules_need_no_import_of_their_own() -> None:
    pytest.importorskip("tiktoken")
    code = "import bytepair; bytepair.compat.nanochat; bytepair.compat.rustbpe.Tokenizer"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------------------- chats


def test_conversations_are_cut_only_where_one_says_so() -> None:
    talk = [{"role": "user", "content": "a b " * 6000}, {"role": "assistant", "content": "c"}]
    tok = small()
    ids, _ = tok.render_conversation(talk)
    assert len(ids) > 10_000
    assert len(tok.render_batch([talk]).input_ids) == len(ids)
    assert len(tok.render_conversation(talk, 2048, on_untrained="keep")[0]) == 2048
    nanochat = bytepair.compat.nanochat.RustBPETokenizer(tok, "<|bos|>")
    assert len(nanochat.render_conversation({"messages": talk})[0]) == 2048


# ---------------------------------------------------------------------------- pictures


def test_one_function_shows_texts_and_ids() -> None:
    tok = small()
    ids = tok.encode("help me")
    assert tok.show("help me", color=False) == tok.show(ids, color=False)
    assert tok.show("help me", color=True) == tok.show(np.array(ids), color=True)
    numbered = tok.show(ids, with_ids=True, color=False)
    assert numbered.split("|")[0] == f"{tok.decode(ids[:1])}({ids[0]})"
    page = tok.show(ids, [1] * len(ids), format="html", with_ids=True)
    assert page._repr_html_() == str(page)  # type: ignore[attr-defined]
    assert f"<sub>{ids[0]}</sub>" in page
    with refused("format", "pdf"):
        tok.show(ids, format="pdf")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- weights of counts

WEIGHTS = st.fractions(Fraction(1, 9), 9, max_denominator=9)


@given(WEIGHTS, WEIGHTS)
def test_weights_are_exact_and_have_no_order(one: Fraction, two: Fraction) -> None:
    a, b = bytepair.count(["one two one"]), bytepair.count(["two three"])
    assert a.times(one).times(two) == a.times(two).times(one) == a.times(one * two)
    mixed = a.times(one) + b.times(two)
    other = b.times(two) + a.times(one)
    assert dict(mixed.items()) == dict(other.items())
    assert mixed.denominator == other.denominator
    exact = {word: n * one for word, n in a.items()}
    for word, n in b.items():
        exact[word] = exact.get(word, Fraction()) + n * two
    assert {word: Fraction(n, mixed.denominator) for word, n in mixed.items()} == exact


def test_a_mixture_is_trained_as_its_proportions_say(tmp_path: Path) -> None:
    a, b = bytepair.count([TEXT] * 3), bytepair.count(["other words, the others"] * 2)
    mixture, whole = a.times(2.5) + b, a.times(5) + b.times(2)
    assert (mixture.denominator, mixture.items()) == (2, whole.items())
    for least in (1, 3, 7):
        assert bytepair.train(
            mixture, 290, options=bytepair.TrainOptions(min_count=least)
        ).merges() == (
            bytepair.train(whole, 290, options=bytepair.TrainOptions(min_count=2 * least)).merges()
        )
    small = bytepair.train(mixture, 270, options=bytepair.TrainOptions(min_count=3))
    assert bytepair.training.resume(small, mixture, 280, min_count=3).merges() == (
        bytepair.train(mixture, 280, options=bytepair.TrainOptions(min_count=3)).merges()
    )
    assert bytepair.training.verify_merges(small, mixture, min_count=3)
    mixture.save(tmp_path / "counts.parquet")
    assert bytepair.training.load_counts(tmp_path / "counts.parquet") == mixture


def test_invalid_weights() -> None:
    counts = bytepair.count(["one"])
    for weight in (0, -1, -0.5, float("nan"), float("inf")):
        with told(CountsError):
            counts.times(weight)
    for weight in (1e-300, 1e300, 1 << 70):
        with told(CountOverflowError):
            counts.times(weight)
    assert counts.times(0.1).denominator == 10
    with pytest.raises(TypeError):
        counts * "2"  # type: ignore[operator]


# ---------------------------------------------------------------------------- threads


@pytest.mark.parametrize(
    ("set", "threads"),
    [
        ({"BYTEPAIR_NUM_THREADS": "3", "RAYON_NUM_THREADS": "2"}, 3),
        ({"RAYON_NUM_THREADS": "2"}, 2),
        ({"BYTEPAIR_NUM_THREADS": "no", "RAYON_NUM_THREADS": "2"}, 2),
        ({"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "2"}, 1),
        ({"TOKENIZERS_PARALLELISM": "false", "BYTEPAIR_NUM_THREADS": "2"}, 2),
        ({"TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": "2"}, 2),
    ],
)
def test_the_environment_says_the_number_of_threads(
    set: dict[str, str], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BYTEPAIR_NUM_THREADS", "RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.delenv(name, raising=False)
    assert _core.threads() >= 1
    for name, value in set.items():
        monkeypatch.setenv(name, value)
    assert _core.threads() == threads
    assert _core.threads(5) == 5


# ---------------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("words")
    (cwd / "a.txt").write_text(TEXT * 9)
    (cwd / "b.txt").write_text("other words, the others " * 9)
    bytepair.count(cwd / "a.txt").save(cwd / "a.parquet")
    small().save(cwd / "tokenizer")
    return cwd


def options_of(name: str) -> set[str]:
    entry = command.get_command(None, name)  # type: ignore[arg-type]
    assert entry is not None
    return {param.name or "" for param in entry.params}


def test_commands_have_the_words_of_python() -> None:
    training = {field.name for field in dataclasses.fields(bytepair.TrainOptions)}
    training -= {"initial_tokens", "max_token_bytes", "padded_to"}  # for programs
    training |= {"special_tokens", "no_special_tokens"}
    sharding = {field.name for field in dataclasses.fields(bytepair.shards.ShardOptions)}
    assert training | {"errors", "memory_limit", "max_document_bytes"} <= options_of("train")
    assert sharding | {"world_size", "rank", "threads"} <= options_of("shard")
    assert {"memory_limit", "weight", "world_size"} <= options_of("count")
    reading = {field.name for field in dataclasses.fields(bytepair.Reading)}
    assert reading | {"source", "pattern", "threads"} <= options_of("count")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_whatever_load_takes(name: str, tmp_path: Path) -> None:
    """No option or argument that names a tokenizer demands an existing path."""
    entry = command.get_command(None, name)  # type: ignore[arg-type]
    assert entry is not None
    for param in entry.params:
        if param.name in ("tokenizer", "tokenizers"):
            assert param.type.name == "text"


def test_training_takes_special_tokens_room_and_weights(folder: Path) -> None:
    words = ["train", "a.txt", "b.txt", "--vocab-size", "280"]
    run(*words, "--no-special-tokens", "--reserved", "1", "-o", "none", cwd=folder)
    tok = bytepair.load(folder / "none")
    assert (len(tok), next(iter(tok.special_tokens))) == (280, "<|reserved_0|>")
    run(*words, "--special-token", "<|a|>", "--reserved", "1", "-o", "one", cwd=folder)
    assert list(bytepair.load(folder / "one").special_tokens) == ["<|a|>", "<|reserved_0|>"]
    run(*words, "--special-token", "<|a|>", "--no-special-tokens", "-o", "both", cwd=folder, code=2)
    a, b = (bytepair.count(folder / name) for name in ("a.txt", "b.txt"))
    mixed = bytepair.train(a.times(2.5) + b, 280)
    for source in ("a.txt", "a.parquet"):
        weight = ("--weight", f"{source}=2.5", "-o", f"mixed-{source}")
        run("train", source, "b.txt", "--vocab-size", "280", *weight, cwd=folder)
        assert bytepair.load(folder / f"mixed-{source}") == mixed
    run("count", "a.txt", "b.txt", "--weight", "b.txt=3", "-o", "c.parquet", cwd=folder)
    assert bytepair.training.load_counts(folder / "c.parquet") == a + b.times(3)
    for wrong in ("c.txt=2", "a.txt", "a.txt=0", "a.txt=-1", "a.txt=x"):
        run("count", "a.txt", "--weight", wrong, cwd=folder, code=2)


if __name__ == "__main__":
    SIGNATURES.write_text("".join(f"{line}\n" for line in signatures()), encoding="utf-8")
