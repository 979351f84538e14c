"""`bytepair encode`: encode text to ids."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import click

import bytepair
from bytepair.cli import option
from bytepair.corpus.column import TextBatch, strings
from bytepair.corpus.kinds import is_plain_text, kind_of
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import resolve
from bytepair.reference import seed_at

PIECE_BYTES: Final = 1 << 20


@option.command(
    "echo 'Hello world' | bytepair encode",
    "bytepair encode book.txt -t my-tokenizer > ids.txt",
    "bytepair encode --lines < questions.txt",
)
@click.argument("files", nargs=-1, type=option.PATH)
@option.tokenizer
@option.column
@option.max_document_bytes
@click.option("--text", help="Encode this text instead of files.")
@click.option(
    "--lines", is_flag=True, help="Treat each line as a document, without its line ending."
)
@click.option(
    "--special",
    type=click.Choice(["text", "all", "error"]),
    default="text",
    help="How to encode special tokens that occur in the text: as text, as their ids, or stop "
    "with an error.",
)
@click.option("--prepend", help="Begin each document with this special token.")
@click.option("--append", help="End each document with this special token.")
@option.dropout
@click.option("--json", "as_json", is_flag=True, help="Write the ids of each document as JSON.")
def encode(
    files: tuple[Path, ...],
    tokenizer: str,
    pattern: str | None,
    column: str,
    max_document_bytes: int,
    text: str | None,
    lines: bool,
    special: Literal["text", "all", "error"],
    prepend: str | None,
    append: str | None,
    dropout: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Encode text: write one line of ids per document, while the text is still being read.

    FILES: text files (one document each), or parquet or jsonl (one document per row); each may be
    compressed as .gz or .zst. Without FILES, or for -, text is read from standard input. With
    --special all or error, and with --dropout, each document is read completely before encoding.
    """
    option.one_of("files", "text")
    option.both_or_none("dropout", "seed")
    tok = bytepair.load(tokenizer, pattern=pattern)
    how = {"special": special, "prepend": prepend, "append": append}
    encode_batch = _encoder(tok, how, dropout, seed)
    for pieces in _sources(files, text, column, max_document_bytes):
        if isinstance(pieces, Documents) or lines:
            if isinstance(pieces, Documents) and lines:
                raise click.BadParameter("--lines is for text; a table has one document per row")
            if not isinstance(pieces, Documents):
                pieces = Documents(read_batches(resolve(texts=_lines(pieces))))
            for batch in map(strings, pieces.batches):
                for ids in encode_batch(batch):
                    _write([ids], as_json)
        elif special == "text" and dropout is None:
            before, after = tok.encode("", prepend=prepend), tok.encode("", append=append)
            arrays = tok.encode_iterable_to_numpy(pieces)
            _write(chain([before], (ids.tolist() for ids in arrays), [after]), as_json)
        else:
            _write(encode_batch(["".join(pieces)]), as_json)


def _encoder(
    tok: bytepair.Tokenizer, how: dict[str, Any], dropout: float | None, seed: int | None
) -> Callable[[Sequence[str]], Iterable[list[int]]]:
    """A function that encodes batches of documents; dropout is seeded by document index."""
    if dropout is None or seed is None:
        return lambda texts: tok.encode_batch(texts, **how)
    done = 0

    def encode_batch(texts: Sequence[str]) -> Iterator[list[int]]:
        nonlocal done
        batch_seed = seed_at(seed, done)
        done += len(texts)
        ids, offsets = tok.encode_batch_to_numpy(texts, dropout=dropout, seed=batch_seed, **how)
        return (ids[begin:end].tolist() for begin, end in pairwise(offsets.tolist()))

    return encode_batch


def _write(parts: Iterable[list[int]], as_json: bool) -> None:
    """Write the ids of one document incrementally."""
    begin, between, end = ("[", ", ", "]") if as_json else ("", " ", "")
    sys.stdout.write(begin)
    before = ""
    for ids in parts:
        if ids:
            sys.stdout.write(before + between.join(map(str, ids)))
            before = between
    sys.stdout.write(f"{end}\n")


class Documents(NamedTuple):
    """The documents of a table (parquet or jsonl), in batches."""

    batches: Iterator[TextBatch]


def _sources(
    files: tuple[Path, ...], text: str | None, column: str, max_document_bytes: int
) -> Iterator[Iterator[str] | Documents]:
    """The inputs: each text as an iterator of pieces, each table as `Documents`."""
    if text is not None:
        yield iter([text])
        return
    for path in files or [Path("-")]:
        if str(path) == "-":
            yield _pieces(sys.stdin.buffer, "standard input")
        elif is_plain_text(path):
            with path.open("rb") as file:
                yield _pieces(file, str(path))
        else:
            source = resolve(files=[path])
            found = read_batches(source, column=column, max_document_bytes=max_document_bytes)
            is_text = kind_of(path) == "text"
            yield chain.from_iterable(map(strings, found)) if is_text else Documents(found)


def _pieces(file: BinaryIO, name: str) -> Iterator[str]:
    """Decode a UTF-8 file piece by piece."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    done = 0
    while True:
        block = file.read(PIECE_BYTES)
        kept = len(decoder.getstate()[0])
        try:
            piece = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            at = done - kept + error.start
            raise bytepair.errors.CorpusError(
                f"{name} is not UTF-8 at byte {at}; convert it, for example with iconv"
            ) from None
        if not block:
            return
        done += len(block)
        yield piece


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text, without their line endings (LF or CRLF)."""
    rest: list[str] = []
    for piece in pieces:
        first, *others = piece.split("\n")
        rest.append(first)
        if others:
            yield "".join(rest).removesuffix("\r")
            yield from (line.removesuffix("\r") for line in others[:-1])
            rest = [others[-1]]
    if last := "".join(rest):
        yield last
