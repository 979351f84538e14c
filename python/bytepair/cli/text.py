"""`bytepair encode` and `bytepair decode`: text to ids, and back."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import BadValue
from bytepair.corpus.column import REPAIR, Errors, Skip, SkipLog, TextBatch, strings
from bytepair.corpus.files import LFS, Files, Input, is_plain_text, kind_of
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import ResolvedSource, Texts, resolve_files
from bytepair.errors import CorpusError

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
@click.option(
    "--lines", is_flag=True, help="Treat each line as a document, without its line ending."
)
@click.option(
    "--special",
    type=click.Choice(["text", "all", "none", "error"]),
    default="text",
    help="How to encode special tokens that occur in the text: as text, as their ids, or stop "
    "with an error. With none, no added token that is not special is found either.",
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
    tok = bytepair.load(tokenizer, pattern=pattern)
    inputs = _Inputs(option.taken(bytepair.Reading, how))
    encode_batch = _encoder(tok, how, only_counts=count or count_each)
    output = _Output(encode_batch, as_json=as_json, count=count, count_each=count_each)
    for pieces in inputs.sources(files, text):
        if lines and isinstance(pieces, Documents):
            raise BadValue("--lines is for text; a table has one document per row")
        if lines or isinstance(pieces, Documents):
            documents = pieces if isinstance(pieces, Documents) else inputs.lines(pieces)
            for batch in map(strings, documents.batches):
                output.add_batch(batch)
        else:
            output.add(_streamed(tok, pieces, how))
    output.end()
    inputs.skips.warn()


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


def _encoder(
    tok: bytepair.Tokenizer, how: dict[str, Any], *, only_counts: bool
) -> Callable[[Sequence[str]], Iterable[Sequence[int]]]:
    """A function that encodes batches; if only counts are needed, to ranges of this length."""
    if only_counts:
        return lambda texts: map(range, bytepair.tokenizer.count_batch(tok, texts, **how).tolist())
    return lambda texts: tok.encode_batch(texts, **how)


class _Output:
    """Writes the ids of each document on a line, while they arrive, or numbers of ids."""

    def __init__(
        self,
        encode_batch: Callable[[Sequence[str]], Iterable[Sequence[int]]],
        *,
        as_json: bool,
        count: bool,
        count_each: bool,
    ) -> None:
        self._encode_batch, self._count, self._count_each = encode_batch, count, count_each
        self._begin, self._between, self._end = ("[", ", ", "]") if as_json else ("", " ", "")
        self._total = 0

    def add_batch(self, texts: Sequence[str]) -> None:
        """Write the ids of some documents."""
        for ids in self._encode_batch(texts):
            self.add([ids])

    def add(self, parts: Iterable[Sequence[int]]) -> None:
        """Write the ids of a document, which come in parts."""
        if self._count or self._count_each:
            number = sum(map(len, parts))
            self._total += number
            if self._count_each:
                sys.stdout.write(f"{number}\n")
            return
        sys.stdout.write(self._begin)
        before = ""
        for ids in parts:
            if ids:
                sys.stdout.write(before + self._between.join(map(str, ids)))
                before = self._between
        sys.stdout.write(f"{self._end}\n")

    def end(self) -> None:
        """Write the number of all ids, if it is wanted."""
        if self._count:
            sys.stdout.write(f"{self._total}\n")


class Documents(NamedTuple):
    """The documents of a table (parquet or jsonl), in batches."""

    batches: Iterator[TextBatch]


class _Inputs:
    """Reads the inputs: each text as an iterator of pieces, each table as `Documents`."""

    def __init__(self, reading: bytepair.Reading) -> None:
        self._reading, self.skips = reading, SkipLog()

    def sources(
        self, names: tuple[str, ...], text: str | None
    ) -> Iterator[Iterator[str] | Documents]:
        """The text of an option, or the inputs that are named."""
        if text is not None:
            yield from self._whole(self.batches(Texts([text])))
            return
        for name in names or ("-",):
            if name == "-":
                yield from self._stream(sys.stdin.buffer, "standard input")
                continue
            for file in resolve_files(name, "all").files:
                yield from self._file(file)

    def batches(self, source: ResolvedSource) -> Iterator[TextBatch]:
        """The documents of a source."""
        return read_batches(source, self._reading, on_skip=self.skips.add)

    def lines(self, pieces: Iterable[str]) -> Documents:
        """The lines of a text as documents."""
        return Documents(self.batches(Texts(_lines(pieces))))

    def _file(self, file: Input) -> Iterator[Iterator[str] | Documents]:
        if file.cloud is None and is_plain_text(file.path):
            with Path(file.path).open("rb") as opened:
                yield from self._stream(opened, file.name)
        elif kind_of(file.path) == "text":
            yield from self._whole(self.batches(Files([file])))
        else:
            yield Documents(self.batches(Files([file])))

    def _whole(self, batches: Iterator[TextBatch]) -> Iterator[Iterator[str]]:
        """One text, or none if it is skipped."""
        texts = list(chain.from_iterable(map(strings, batches)))
        if texts:
            yield iter(texts)

    def _stream(self, file: BinaryIO, name: str) -> Iterator[Iterator[str]]:
        """The pieces of a text while it is read; with `skip`, it must be read to its end first."""
        if self._reading.errors != "skip":
            yield _pieces(file, name, self._reading.errors)
            return
        try:
            yield iter(list(_pieces(file, name, "strict")))
        except CorpusError as error:
            self.skips.add(Skip(name, 0, 1, error.message))


def _pieces(file: BinaryIO, name: str, errors: Errors) -> Iterator[str]:
    """Decode a UTF-8 file piece by piece."""
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


@option.command(
    "bytepair decode 72 101 108 108 111",
    "echo 'Hello world' | bytepair encode | bytepair decode",
)
@click.argument("ids", nargs=-1)
@option.tokenizer
@click.option(
    "--lines", is_flag=True, help="Treat each line as a document; end each text with a newline."
)
def decode(
    ids: tuple[str, ...],
    tokenizer: str,
    pattern: str | None,
    lines: bool,
) -> None:
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
