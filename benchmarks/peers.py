"""The encoders that are compared, each by its quickest public calls.

A loader takes where the vocabulary is, in each form, and gives the calls. Import and loading are
its own; who times them calls it within the time.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bytepair
import runs

#: Between the documents of a file.
SEPARATOR = "<|endoftext|>"
#: Patterns as in the published `tokenizer.json` of such a vocabulary. Some libraries are fast only
#: for exactly this pattern. It splits as the original does, except for blanks after a newline at
#: the end of a text.
PUBLISHED = {"gpt4": bytepair.PATTERNS["llama3"]}


@dataclass(frozen=True)
class Vocabulary:
    """Where a vocabulary is.

    Attributes:
        folder: `tokenizer.bytepair`, `tokenizer.json`, `published.json`, which is the same with
            the pattern as others have published it, and `model`, which `AutoTokenizer` reads.
        rank_file: its ranks; an empty text for that of the sample.
        pattern: the name of the split pattern.
        threads: how many threads may be used.
    """

    folder: Path
    rank_file: str
    pattern: str
    threads: int = 1

    def write(self) -> None:
        """Fill the folder."""
        ranks = runs.ranks(self.rank_file)
        tok = bytepair.Tokenizer.from_ranks(ranks, pattern=self.pattern)
        tok.save(self.folder)
        theirs = self.folder / "tokenizer.json"
        bytepair.compat.to_huggingface(tok).save(str(theirs))
        description = json.loads(theirs.read_text())
        if self.pattern in PUBLISHED:
            split, *_ = description["pre_tokenizer"]["pretokenizers"]
            split["pattern"]["Regex"] = PUBLISHED[self.pattern]
        (self.folder / "published.json").write_text(json.dumps(description))
        tok = tok.replace(special_tokens={SEPARATOR: len(ranks)})
        tok = tok.replace(roles={"eos": SEPARATOR, "pad": SEPARATOR})
        tok.export(self.folder / "model", format="huggingface")


@dataclass(frozen=True)
class Calls:
    """What a library can do. Lists and arrays are in whatever form it gives; `flat` reads them all.

    Attributes:
        lists: texts to lists of ids.
        one: a text to its ids.
        arrays: texts to ids without Python integers; None if there is no such call.
        file: a path of a file of documents to ids, the same.
        decode: a list of ids to text.
        decode_array: an array of ids to text or bytes, whichever is quicker.
    """

    lists: Callable[[list[str]], Any]
    one: Callable[[str], Any]
    arrays: Callable[[list[str]], Any] | None = None
    file: Callable[[str], Any] | None = None
    decode: Callable[[list[int]], str | bytes] | None = None
    decode_array: Callable[[Any], str | bytes] | None = None


def with_bytepair(v: Vocabulary) -> Calls:
    """From our own file, as a user would have it."""
    tok = bytepair.load(v.folder / "tokenizer.bytepair")
    return Calls(
        lists=lambda texts: tok.encode_batch(texts, threads=v.threads),
        one=tok.encode,
        arrays=lambda texts: tok.encode_batch_to_numpy(texts, threads=v.threads),
        file=lambda path: tok.encode_file(path, separator=SEPARATOR, threads=v.threads),
        decode=tok.decode,
        decode_array=tok.decode_bytes,
    )


def with_tiktoken(v: Vocabulary) -> Calls:
    import tiktoken

    pattern = bytepair.PATTERNS[v.pattern]
    tok = tiktoken.Encoding(
        "x", pat_str=pattern, mergeable_ranks=runs.ranks(v.rank_file), special_tokens={}
    )
    one = tok.encode_ordinary
    many = lambda texts: tok.encode_ordinary_batch(texts, num_threads=v.threads)  # noqa: E731
    return Calls(
        lists=many if v.threads > 1 else lambda texts: [one(text) for text in texts],
        one=one,
        arrays=lambda texts: [tok.encode_to_numpy(text, disallowed_special=()) for text in texts],
        decode=tok.decode,
        decode_array=tok.decode_bytes,
    )


def with_tokenizers(v: Vocabulary) -> Calls:
    """The same vocabulary as a list of merges; threads are set before the library starts any."""
    from tokenizers import Tokenizer

    tok = Tokenizer.from_file(str(v.folder / "tokenizer.json"))
    return Calls(
        lists=lambda texts: [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)],
        one=lambda text: tok.encode(text, add_special_tokens=False).ids,
        decode=lambda ids: tok.decode(ids, skip_special_tokens=False),
    )


def with_gigatoken(v: Vocabulary) -> Calls:
    import gigatoken

    name = {"gpt4": "gpt4", "gpt4o": "o200k", "gpt2": "gpt2", "qwen2": "qwen2"}[v.pattern]
    tok = gigatoken.Tokenizer.from_tiktoken(v.rank_file, name)
    many = v.threads > 1

    def source(path: str) -> Any:
        return gigatoken.TextFileSource([path], separator=SEPARATOR.encode())

    return Calls(
        lists=lambda texts: tok.encode_batch_list(texts, parallel=many),
        one=tok.encode,
        arrays=lambda texts: tok.encode_batch(texts, parallel=many),
        file=lambda path: tok.encode_files(source(path), parallel=many),
        decode=tok.decode,
        decode_array=tok.decode,
    )


def from_json(v: Vocabulary, module: str) -> Calls:
    """Fastokens and snaptokens have the same API."""
    tok = importlib.import_module(module).Tokenizer.from_file(str(v.folder / "published.json"))
    return Calls(
        lists=lambda texts: [encoding.ids for encoding in tok.encode_batch(texts)],
        one=lambda text: tok.encode(text).ids,
        arrays=tok.encode_batch_flat,
        decode=tok.decode,
    )


def with_tokie(v: Vocabulary) -> Calls:
    import tokie

    tok = tokie.Tokenizer.from_json(str(v.folder / "published.json"))
    return Calls(
        lists=lambda texts: [e.ids for e in tok.encode_batch(texts, add_special_tokens=False)],
        one=lambda text: tok.encode(text, False).ids,
        decode=tok.decode,
    )


def with_quicktok(v: Vocabulary) -> Calls:
    """It knows the published encodings by their names."""
    import quicktok

    tok = quicktok.get_encoding(Path(v.rank_file).stem)
    one = getattr(tok, "encode_ordinary", tok.encode)
    return Calls(
        lists=lambda texts: [one(text) for text in texts],
        one=one,
        arrays=lambda texts: tok.encode_batch(texts, v.threads),
        decode=tok.decode,
    )


def with_toktok(v: Vocabulary) -> Calls:
    """It knows the published encodings by their names."""
    import toktok

    tok = toktok._encoding(Path(v.rank_file).stem)
    return Calls(
        lists=lambda texts: [tok.encode_ordinary(text) for text in texts],
        one=tok.encode_ordinary,
        arrays=lambda texts: tok.encode_batch_to_numpy(texts, threads=v.threads),
        decode=tok.decode,
    )


def with_rs_bpe(v: Vocabulary) -> Calls:
    """It knows the published encodings by their names, without special tokens."""
    import rs_bpe

    tok = getattr(rs_bpe.openai, Path(v.rank_file).stem)()
    return Calls(
        lists=lambda texts: [tok.encode(text) for text in texts],
        one=tok.encode,
        decode=tok.decode,
    )


PEERS: dict[str, Callable[[Vocabulary], Calls]] = {
    "bytepair": with_bytepair,
    "tiktoken": with_tiktoken,
    "tokenizers": with_tokenizers,
    "gigatoken": with_gigatoken,
    "fastokens": lambda v: from_json(v, "fastokens"),
    "snaptokens": lambda v: from_json(v, "snaptokens"),
    "quicktok": with_quicktok,
    "toktok": with_toktok,
    "tokie": with_tokie,
    "rs_bpe": with_rs_bpe,
}


def auto_tokenizer(v: Vocabulary, patch: Callable[[], object] = lambda: None) -> Any:
    """What `AutoTokenizer` loads; `patch` makes it run on another library."""
    from transformers import AutoTokenizer

    with contextlib.redirect_stdout(sys.stderr):
        patch()
    return AutoTokenizer.from_pretrained(v.folder / "model")


def on_bytepair(v: Vocabulary) -> Any:
    from bytepair.compat import huggingface

    return auto_tokenizer(v, huggingface.use)


def on_fastokens(v: Vocabulary) -> Any:
    import fastokens

    return auto_tokenizer(v, fastokens.patch_transformers)


#: What `AutoTokenizer` runs on.
MODELS: dict[str, Callable[[Vocabulary], Any]] = {
    "bytepair": on_bytepair,
    "tokenizers": auto_tokenizer,
    "fastokens": on_fastokens,
}


def flat(result: Any) -> tuple[Any, Any]:
    """Ids and the number of ids of each text, whatever a library gives; not timed."""
    if isinstance(result, tuple):
        ids, ends = (
            np.frombuffer(part, kind) if isinstance(part, bytes) else np.asarray(part)
            for part, kind in zip(result, (np.uint32, np.uint64), strict=True)
        )
        return ids.astype(np.uint32), np.diff(ends.astype(np.int64))
    if type(result).__module__.startswith("awkward"):
        import awkward

        ids = np.asarray(awkward.flatten(result), np.uint32)
        return ids, np.asarray(awkward.num(result), np.int64)
    ids = np.concatenate([np.asarray(part, np.uint32) for part in result])
    return ids, np.array([len(part) for part in result], np.int64)
