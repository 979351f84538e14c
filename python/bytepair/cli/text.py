"""`bytepair encode` and `bytepair decode`: text to ids, and back."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import BadValue
from bytepair.corpus.column import REPAIR, Column, Errors, Skip, SkipLog, TextBatch, strings
from bytepair.corpus.files import LFS, Files, is_plain_text, kind_of
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import ResolvedSource, Texts, resolve_files
from bytepair.errors import CorpusError, NotFoundError

PIECE_BYTES: Final = 1 << 20


@option.command(
    "echo 'Hello world' | bytepair encode",
    "bytepair encode book.txt -t my-tokenizer > ids.txt",
    "bytepair encode --lines < questions.txt",
    "bytepair encode --count corpus/ -t cl100k_base",
)
@click.argument("files", nargs=-1)
@option.tokenizer
@option.column
@option.errors
@option.max_document_bytes
@option.quiet
@click.option("--text", help="Encode this text instead of files.")
@click.option("--lines", is_flag=True, help="Each line is a document, without its end.")
@option.choice(
    "--special",
    ["text", "all", "none", "error"],
    "Special tokens in the text: text, ids or an error.",
)
@click.option("--prepend", help="Begin each document with this special token.")
@click.option("--append", help="End each document with this special token.")
@click.option("--json", "as_json", is_flag=True, help="Write the ids of each document as JSON.")
@click.option("--count", is_flag=True, help="Write the number of ids in all, in place of the ids.")
@click.option("--count-each", is_flag=True, help="Write the number of ids of each document.")
def encode(
    files: tuple[str, ...],
    tokenizer: str,
    pattern: str | None,
    text: str | None,
    lines: bool,
    as_json: bool,
    count: bool,
    count_each: bool,
    **how: Any,
) -> None:
    """Encode text: write one line of ids per document, while the text is still being read.

    FILES: text files (one document each), or jsonl, parquet, .arrow or a list in .json (one per
    row), each may be compressed as .gz or .zst; also folders, globs and URLs of these. Without
    FILES, or for -, text is read from standard input. With --errors skip, each document is
    read completely before encoding.
    """
    option.one_of("files", "text")
    option.one_of("count", "count_each", "as_json")
    reading, skips, total = option.taken(bytepair.Reading, how), SkipLog(), 0
    with _naming_tokenizer(files), closing(_sources(files, text, reading, skips)) as sources:
        tok = bytepair.load(tokenizer, pattern=pattern)
        for parts in _encoded(sources, tok, how, lines, count or count_each):
            if count or count_each:
                number = sum(map(len, parts))
                total += number
                if count_each:
                    sys.stdout.write(f"{number}\n")
            else:
                _write(parts, *(("[", ", ", "]") if as_json else ("", " ", "")))
    if count:
        sys.stdout.write(f"{total}\n")
    skips.warn()


@contextmanager
def _naming_tokenizer(files: Sequence[str]) -> Iterator[None]:
    """Say how a tokenizer is named if one may have been passed as a file of text."""
    try:
        yield
    except (CorpusError, NotFoundError) as error:
        is_text = len(files) < 2 and error.option == "errors"
        if not is_text and not option.names_on_command_line("tokenizer"):
            hint = "name a tokenizer with -t, as in bytepair encode -t my-tokenizer book.txt"
            error.hint = "; ".join(filter(None, (error.hint, hint)))
        raise


def _write(parts: Iterable[Sequence[int]], begin: str, between: str, end: str) -> None:
    """Write the ids of a document on a line, part by part as they arrive."""
    sys.stdout.write(begin)
    before = ""
    for ids in filter(None, parts):
        sys.stdout.write(before + between.join(map(str, ids)))
        before = between
    sys.stdout.write(f"{end}\n")


def _encoded(
    sources: Iterable[Iterator[str] | TextBatch],
    tok: bytepair.Tokenizer,
    how: dict[str, Any],
    lines: bool,
    only_counts: bool,
) -> Iterator[Iterable[Sequence[int]]]:
    """The ids of each document, in parts; for counts, ranges of their number."""
    for source in sources:
        batches: Iterable[TextBatch]
        if isinstance(source, list | Column):
            if lines:
                raise BadValue("--lines is for text; a table has one document per row")
            batches = [source]
        elif lines:
            batches = read_batches(Texts(_lines(source)))
        else:
            yield _streamed(tok, source, how)
            continue
        for batch in batches:
            texts = strings(batch)
            if only_counts:
                numbers = bytepair.tokenizer.count_batch(tok, texts, **how).tolist()
                yield from ([range(number)] for number in numbers)
            else:
                yield from ([ids] for ids in tok.encode_batch(texts, **how))


def _streamed(
    tok: bytepair.Tokenizer, pieces: Iterator[str], how: dict[str, Any]
) -> Iterator[list[int]]:
    """The ids of one text; a short one is encoded at once, without loading numpy."""
    first = list(islice(pieces, 2))
    if len(first) < 2:
        yield tok.encode("".join(first), **how)
        return
    yield tok.encode("", prepend=how["prepend"])
    ids = tok.encode_stream(chain(first, pieces), special=how["special"])
    while part := list(islice(ids, 4096)):
        yield part
    yield tok.encode("", append=how["append"])


def _sources(
    names: tuple[str, ...], text: str | None, reading: bytepair.Reading, skips: SkipLog
) -> Generator[Iterator[str] | TextBatch]:
    """The inputs: each text that is not skipped as an iterator of pieces; tables in batches."""

    def read(source: ResolvedSource) -> Iterator[TextBatch]:
        return read_batches(source, reading, on_skip=skips.add)

    if text is not None:
        if texts := list(read(Texts([text]))):
            yield iter(strings(texts[0]))
        return
    for name in names or ("-",):
        if name == "-":
            yield from _stream(sys.stdin.buffer, "standard input", reading, skips)
            continue
        for file in resolve_files(name, "all").files:
            batches = read(Files([file]))
            if file.cloud is None and is_plain_text(file.path):
                with Path(file.path).open("rb") as opened:
                    yield from _stream(opened, file.name, reading, skips)
            elif kind_of(file.path) != "text":
                yield from batches
            elif whole := [text for batch in batches for text in strings(batch)]:
                yield iter(whole)


def _stream(
    file: BinaryIO, name: str, reading: bytepair.Reading, skips: SkipLog
) -> Iterator[Iterator[str]]:
    """The pieces of a text while it is read; with `skip`, it must be read to its end first."""
    if reading.errors != "skip":
        yield _pieces(file, name, reading.errors)
        return
    try:
        yield iter(list(_pieces(file, name, "strict")))
    except CorpusError as error:
        skips.add(Skip(name, 0, 1, error.message))


def _pieces(file: BinaryIO, name: str, errors: Errors) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    done = 0
    while True:
        block = file.read(PIECE_BYTES)
        pending = len(decoder.getstate()[0])
        if not done and block.startswith(LFS):
            raise CorpusError(
                f"{name}: it is a pointer of Git LFS, not the file itself",
                hint="fetch the file with `git lfs pull`",
            )
        try:
            piece = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            at = done - pending + error.start
            text = f"{name} is not UTF-8 at byte {at}"
            raise CorpusError(text, option="errors", hint=REPAIR) from None
        if not block:
            return
        done += len(block)
        yield piece


def _lines(pieces: Iterable[str]) -> Iterator[str]:
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


@option.command(
    "bytepair decode 72 101 108 108 111", "echo 'Hello world' | bytepair encode | bytepair decode"
)
@click.argument("ids", nargs=-1)
@option.tokenizer
@click.option("--lines", is_flag=True, help="Each line is a document, ended by a newline.")
def decode(ids: tuple[str, ...], tokenizer: str, pattern: str | None, lines: bool) -> None:
    """Decode ids (separated by spaces, commas or brackets) to the bytes of their text.

    IDS: the ids. Without IDS, they are read from standard input.
    """
    tok = bytepair.load(tokenizer, pattern=pattern)
    text = " ".join(ids) if ids else sys.stdin.buffer.read().decode(errors="replace")
    for line in text.splitlines() if lines else [text]:
        sys.stdout.buffer.write(tok.decode_bytes(_numbers(line)))
        if lines:
            sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _numbers(text: str) -> list[int]:
    words = [word for word in re.split(r"[\s,\[\]]+", text) if word]
    wrong = next((word for word in words if not re.fullmatch(r"-?[0-9]+", word)), None)
    if wrong is not None:
        raise bytepair.errors.UnknownIdError(
            f"{wrong!r} is not an id; ids are integers",
            hint="read a file of ids from standard input, as in `bytepair decode < FILE`",
        )
    return [int(word) for word in words]
