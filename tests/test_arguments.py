"""Wrong arguments anywhere in the public face raise an error of bytepair that names the argument.

Each public function and method is called with a wrong value in place of each of its arguments. What
is valid for all others comes from one table, since a parameter has the same name everywhere.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import bytepair
from bytepair import chat
from bytepair.errors import ArgumentError, BytepairError, SpecialTokenError

TEXT = "the hello of the theme, hello there; other others hope" * 3
TOK = bytepair.train(bytepair.sample.paths(), 290)
COUNTS = bytepair.count([TEXT])
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
PAIR = {"prompt": "hi", "chosen": "yo", "rejected": "hi"}


class Odd:
    """Something that is nothing."""

    def __repr__(self) -> str:
        return "Odd()"


#: Values that are wrong for nearly every argument. Where one is valid, nothing is raised.
WRONG: list[Any] = [
    Odd(), -1, 2**64, 2.5, float("nan"), "300", "\ud83d", b"x", True, [b"x"], ["\ud83d"],
    [Odd()], [None], {"a": 1}, {1: Odd()}, {"x"}, (1, 2, 3), None, Path("nowhere"), np.int64(-1),
    lambda: 1, iter([1]),
]  # fmt: skip

#: Parameters with a default that is not valid by itself.
NEEDED = {"source", "extra", "out"}


def specific(folder: Path) -> dict[str, dict[str, Any]]:
    """Valid values of parameters that mean something else in one function."""
    texts = {"a": ["the hello"], "b": ["others hope"]}
    evaluation = bytepair.evaluate.measure(TOK, against=(), texts=texts)
    saved, rows = folder / "counts.parquet", folder / "rows.parquet"
    COUNTS.save(saved)
    pyarrow.parquet.write_table(pyarrow.table({"text": [TEXT] * 20}), rows)
    shards = bytepair.shards.write(values(folder)["source"], TOK, folder / "written").shards
    return {
        "load": {"source": TOK.save(folder / "saved")},
        "load_counts": {"path": saved},
        "encode_file": {"path": folder / "text.txt"},
        "Tokenizer.export": {"path": folder / "new", "format": "huggingface", "overwrite": True},
        "prune": {"drop": [270]},
        "render_turn": {"ids": []},
        "token_id": {"token": b"a"},
        "JinjaTemplate": {"source": "{{ messages }}"},
        "is_counts_file": {"path": saved},
        "list_files": {"names": [folder / "text.txt"]},
        "distributed.count": {"rank": 0, "world_size": 1},
        "distributed.shard": {"rank": 0, "world_size": 1},
        "compress": {"texts": {"x": TEXT}},
        "measure_parallel": {"texts": texts, "against": ()},
        "measure": {"against": (), "texts": texts},
        "renyi_efficiency": {"counts": [3, 2, 1]},
        "save_token_bytes": {"path": folder / "new.npy"},
        "Dataset": {"folder": folder / "written"},
        "shards.verify": {"folder": folder / "written"},
        "Manifest.load": {"folder": folder / "written"},
        "TextBatches": {"files": [rows], "split": None},
        "Blend": {"datasets": {"a": folder / "written"}, "weights": {"a": 1}},
        "TextBatches.torch_stream": {"files": [rows], "length": 4},
        "from_json": {"values": shards[0].to_json()} if hasattr(shards[0], "to_json") else {},
        "report.save": {"found": evaluation, "path": folder / "report.html"},
        "": {"found": evaluation},
    }


#: Functions that are not called: they serve, download, or are not bytepair's own.
SKIPPED = {
    "download_dataset": "it needs a network",
    "add_note": "of Python", "with_traceback": "of Python",
}  # fmt: skip
#: Functions that look something up, and raise an error as a dict does.
LOOKUPS = {"token_id", "ratio", "difference", "in_words", "label", "gini"}
#: Classes whose methods are called by bytepair alone, or are Python's.
SKIPPED_CLASSES = {
    "AddedToken",  # a value of the core, whose arguments PyO3 checks
    "AsyncTokenizer",  # its coroutines pass their arguments on
    "Server",
    "Answers",
    "Cell",
    "Template",
    "Superwords",
    "TrainOptions",
    "Shard",
    "Manifest",
}
#: Classes that users construct; the others are results.
CONSTRUCTED = {
    "TrainOptions", "Parity", "Superwords", "JinjaTemplate", "Template", "Role", "Part", "Special",
    "Tools", "Builtin", "Parser", "Dataset", "TextBatches", "ConversationBatches", "ShardOptions",
    "Blend",
}  # fmt: skip


def owners(folder: Path) -> dict[str, Any]:
    """An object of each public class, whose methods are called."""
    shards = bytepair.shards.write(values(folder)["source"], TOK, folder / "shards")
    jinja = chat.JinjaTemplate("{{ messages[0].content }}<|bos|>", mask="none")
    texts = {"a": ["the hello"], "b": ["others hope"]}
    return {
        "Tokenizer": TOK,
        "Counts": COUNTS,
        "Pruned": TOK.prune(drop=[270]),
        "JinjaTemplate": jinja,
        "Parser": chat.Parser(TOK),
        "RenderedBatch": TOK.render_batch([TALK]),
        "PreferenceBatch": TOK.render_preferences([PAIR]),
        "Dataset": bytepair.shards.Dataset(folder / "shards"),
        "Blend": bytepair.shards.Blend({"a": folder / "shards"}, {"a": 1}),
        "TextBatches": bytepair.shards.TextBatches,
        "Manifest": shards,
        "Shard": shards.shards[0],
        "Comparison": bytepair.evaluate.compare(TOK, TOK, texts=[TEXT]),
        "Compression": bytepair.evaluate.compress({"ours": TOK}, {"x": TEXT})[0],
        "Evaluation": bytepair.evaluate.measure(TOK, against=(), texts=texts),
        "ParallelText": bytepair.evaluate.measure_parallel(TOK, texts, against=()),
        "Sweep": bytepair.evaluate.sweep(TOK, [TEXT]),
    }


def values(folder: Path) -> dict[str, Any]:
    """A valid value of each parameter that must be passed, by its name."""
    source = folder / "text.txt"
    source.write_text(TEXT * 20)
    return {
        "text": "hello", "texts": ["hello", "there"], "ids": [104, 105], "id": 104,
        "batch": [[104]],
        "source": source, "sources": {"a": [TEXT], "b": [TEXT]}, "tokenizer": TOK,
        "array": pyarrow.array(["hello"]),
        "path": folder / "new.json", "folder": folder / "new", "out": folder / "out",
        "segments": [("x", "untrusted")], "format": "huggingface", "data": TOK.to_bytes(),
        "tokens": {bytes([i]): i for i in range(256)}, "merges": [], "pattern": "gpt2",
        "mergeable_ranks": {bytes([i]): i for i in range(256)}, "conversation": TALK,
        "conversations": [TALK], "pairs": [PAIR], "messages": TALK[:1],
        "old": TOK, "text_or_ids": "hello",
        "token": b"the", "max_tokens": 3, "template": None, "notes": {"a": "b"}, "names": ["<|x|>"],
        "vocab_size": 280, "pretoken": b"hello", "counts": COUNTS, "parts": {"a": COUNTS},
        "shares": {"a": 1.0}, "weight": 2, "one": TOK, "two": TOK, "extra": 3, "rank": 0,
        "world_size": 1, "ours": "ours", "theirs": "ours", "name": "ours", "who": "ours",
        "language": "a", "size": 270, "losses": np.ones(3), "targets": np.array([104] * 3),
        "token_bytes": np.ones(290, np.int64), "tokenizers": {"ours": TOK}, "numbers": [1.0, 2.0],
        "batch_size": 1, "length": 4, "shard": 0, "begin": (),
        "roles": {"assistant": chat.Role(())},
        "prompted": "assistant", "open": (), "close": (), "note": "x", "offer": chat.Part(),
        "tool": chat.Part(), "call": chat.Part(), "files": [source],
        "parents": {}, "sweep": bytepair.evaluate.sweep(TOK, [TEXT]), "values": {},
    }  # fmt: skip


def public() -> Iterator[tuple[str, str, str, Any]]:
    """The module, the class, the name and the value of each public function and method.

    `reference` is left out: it is the algorithm for people to read, and checks nothing.
    """
    names = [name for name in bytepair.__all__ if name != "reference"]
    homes = [bytepair, *(getattr(bytepair, name) for name in names)]
    for home in filter(inspect.ismodule, homes):
        for name in getattr(home, "__all__", []):
            value = getattr(home, name)
            if not inspect.isclass(value):
                yield home.__name__, "", name, value
                continue
            if name in CONSTRUCTED:
                yield home.__name__, "", name, value
            for member, method in inspect.getmembers(value, callable):
                # A result that unpacks has the methods of Python's tuples.
                if method is getattr(tuple, member, None):
                    continue
                if not member.startswith("_") and not inspect.isclass(method):
                    yield home.__name__, name, member, method


#: All public functions and methods, by their names.
FACE = {
    ".".join(filter(None, (module, owner, name))): (owner, value)
    for module, owner, name, value in public()
    if callable(value) and owner not in SKIPPED_CLASSES and name not in SKIPPED
}


def parameters(function: Any) -> list[inspect.Parameter]:
    try:
        items = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p for p in items if p.name != "self" and p.kind not in kinds]


def refusals(
    call: Callable[..., Any], base: dict[str, Any], positional: set[str], name: str
) -> Iterator[str]:
    """What goes wrong if a wrong value is passed for one argument."""
    for value in WRONG:
        if name == "progress" and callable(value):
            continue  # what it raises is its own
        arguments = {**base, name: value}
        before = [arguments.pop(key) for key in list(arguments) if key in positional]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = call(*before, **arguments)
                if inspect.isgenerator(result):
                    next(result, None)
        except (BytepairError, OSError, ImportError, MemoryError):
            continue
        except (KeyError, IndexError) as error:
            if call.__name__ not in LOOKUPS:
                yield f"{name}={value!r}: {type(error).__name__}: {error}"
        except BaseException as error:
            yield f"{name}={value!r}: {type(error).__name__}: {error}"


def face_of(name: str, folder: Path) -> tuple[Any, dict[str, Any], set[str]]:
    """A function or a method of an object, valid arguments, and which must be positional."""
    owner, function = FACE[name]
    if owner:
        function = getattr(owners(folder)[owner], name.rpartition(".")[2])
    items, valid = parameters(function), values(folder)
    own: dict[str, Any] = {}
    for end, some in specific(folder).items():
        own |= some if name.endswith(end) else {}
    base = {
        p.name: own.get(p.name, valid.get(p.name))
        for p in items
        if p.default is p.empty or p.name in NEEDED or p.name in own
    }
    return function, base, {p.name for p in items if p.kind is p.POSITIONAL_ONLY}


@pytest.mark.parametrize("name", [name for name in FACE if parameters(FACE[name][1])])
def test_a_wrong_argument_is_an_error_that_names_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function, base, positional = face_of(name, tmp_path)
    names = [p.name for p in parameters(function)]
    wrong = [line for key in names for line in refusals(function, base, positional, key)]
    assert not wrong, "\n".join(wrong)


#: Calls with one wrong argument, and what the error says.
NAMED: list[tuple[Callable[[], Any], str]] = [
    (lambda: bytepair.train([TEXT], "300"), "vocab_size is '300'; it must be an integer"),  # type: ignore[arg-type]
    (lambda: bytepair.train([TEXT], 300.0), "vocab_size is 300.0; it must be an integer"),  # type: ignore[arg-type]
    (lambda: bytepair.train([TEXT], 300, threads=-1), "threads is -1; it must be .* at least 1"),
    (lambda: TOK.encode_batch(["a"], threads=-1), "threads is -1; it must be .* at least 1"),
    (lambda: TOK.encode_to_numpy("a", threads=2.5), "threads is 2.5; it must be an integer"),  # type: ignore[arg-type]
    (lambda: bytepair.train([TEXT], 300, special_tokens=[b"x"]), r"special_tokens is \[b'x'\]"),  # type: ignore[list-item]
    (
        lambda: bytepair.train([TEXT], 300, special_tokens=["\ud83d"]),
        r"special_tokens is \['\\ud83d'\]; it must be a list of str",
    ),
    (lambda: TOK.decode("1 2"), "ids is '1 2'; it must be a list"),  # type: ignore[arg-type]
    (lambda: TOK.decode(7), "ids is 7; it must be a list"),  # type: ignore[arg-type]
    (lambda: TOK.decode([2.5]), "an id is 2.5; it must be an integer"),  # type: ignore[list-item]
    (lambda: TOK.decode([1], errors="x"), "errors is 'x'; it must be"),
    (lambda: bytepair.count([TEXT], errors="x"), "errors is 'x'; it must be"),  # type: ignore[arg-type]
    (lambda: TOK.encode_file("a.txt", errors="x"), "errors is 'x'; it must be"),  # type: ignore[arg-type]
    (lambda: bytepair.resume("t.json", [TEXT]), "tokenizer is 't.json'.*bytepair.load"),  # type: ignore[arg-type]
    (lambda: bytepair.evaluate.inspect("tok"), "tokenizer is 'tok'; it must be a Tokenizer"),  # type: ignore[arg-type]
    (lambda: TOK.encode("a", special=3), "special is 3; it must be"),  # type: ignore[arg-type]
    (lambda: TOK.truncate_text("a", -1), "max_tokens is -1; it must be .* at least 0"),
    (lambda: TOK.truncate_text("a", 1, keep="all"), "keep is 'all'; it must be \"start\""),  # type: ignore[arg-type]
    (lambda: TOK.render_batch([TALK])[0:1], r"conversation or row is slice\(0, 1, None\)"),  # type: ignore[index]
]


@pytest.mark.parametrize(("call", "message"), NAMED, ids=[message[:20] for _, message in NAMED])
def test_an_error_names_the_argument_the_value_and_what_is_allowed(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_dataset_has_no_slices(tmp_path: Path) -> None:
    dataset = owners(tmp_path)["Dataset"]
    assert len(dataset[np.int64(0)]) == len(dataset[0])
    with pytest.raises(ArgumentError, match=r"a document is slice\(0, 2, None\); it must"):
        dataset[0:2]


def test_integers_of_numpy_are_integers(tmp_path: Path) -> None:
    expected = bytepair.count([TEXT], doc_cap=5)
    assert bytepair.count([TEXT], doc_cap=np.int32(5)) == expected  # type: ignore[arg-type]
    assert bytepair.train([TEXT], np.uint16(260), special_tokens=[]).vocab_size == 260  # type: ignore[arg-type]
    bytepair.shards.write(values(tmp_path)["source"], TOK, tmp_path / "a", doc_cap=np.int64(9))  # type: ignore[arg-type]


def test_a_special_token_is_not_an_ordinary_one() -> None:
    def unread() -> Iterator[str]:
        yield "hello"
        raise AssertionError("the text is read before the options are checked")

    broken: list[tuple[dict[str, Any], str]] = [
        ({"special_tokens": ["a"]}, r"'a' is an ordinary token \(the byte 97\)"),
        ({"special_tokens": ["<|x|>", "\n"]}, r"'\\n' is an ordinary token"),
        ({"special_tokens": ["ab"], "initial_tokens": ["ab"]}, r"'ab' .* \(an initial token\)"),
    ]
    for options, message in broken:
        with pytest.raises(SpecialTokenError, match=message):
            bytepair.train(texts=unread(), vocab_size=300, **options)
    with pytest.warns(UserWarning, match="'the' became an ordinary token") as record:
        bytepair.train(["the the the"], vocab_size=259, special_tokens=["the"])
    assert record[0].filename == __file__
