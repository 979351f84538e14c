"""An evaluation in, tables to read out: one value that becomes colours, Markdown or HTML.

A cell is text with a tone: "good", "bad" or none. JSON is not made from tables; it holds the
numbers themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from bytepair._internal.drawing import readable
from bytepair.evaluate.compression import Compression
from bytepair.evaluate.evaluation import Evaluation
from bytepair.evaluate.vocabulary import RENYI_ORDER

Tone = Literal["", "good", "bad"]


class Cell(NamedTuple):
    """What stands in one place of a table."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Table:
    """Rows under a head, with a title and a note.

    Attributes:
        title: what it shows.
        note: how to read it.
        head: the names of the columns; the first column is text, the others are numbers.
        rows: the cells.
    """

    title: str
    note: str
    head: list[str]
    rows: list[list[Cell]]


def tables(found: Evaluation) -> list[Table]:
    """Lay out an evaluation as tables.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> [table.title for table in tables(bytepair.evaluate.measure(tok, against=[]))]
        ['Compression', 'Languages', 'Use', 'Vocabulary', 'Numbers', 'Sizes']
    """
    made = [*_compression(found), _languages(found), _use(found), _vocabulary(found)]
    return [*made, _numbers(found), *([_sizes(found)] if found.sweep else [])]


def _compression(found: Evaluation) -> list[Table]:
    ours, *rivals = found.tokenizers
    if rivals:
        return [_comparison(found, ours, rival) for rival in rivals]
    head = ["text", "bytes", "tokens", "bytes per token"]
    rows = [
        [Cell(one.text), Cell(f"{one.bytes:,}"), *_counted(one, ours)] for one in found.compression
    ]
    return [Table("Compression", "", head, rows)]


def _comparison(found: Evaluation, ours: str, theirs: str) -> Table:
    head = [
        "text",
        "bytes",
        f"{theirs}: tokens",
        "bytes per token",
        f"{ours}: tokens",
        "bytes per token",
    ]
    rows = []
    for one in found.compression:
        saved = one.difference(ours, theirs)
        tone: Tone = "good" if saved > 0 else "bad" if saved < 0 else ""
        better = {"good": ours, "bad": theirs, "": "equal"}[tone]
        row = [Cell(one.text), Cell(f"{one.bytes:,}"), *_counted(one, theirs), *_counted(one, ours)]
        rows.append([*row, Cell(f"{saved:+.1%}", tone), Cell(better, tone)])
    note = f"Saved is the share of {theirs}'s tokens that {ours} does without."
    return Table(f"Compression, against {theirs}", note, [*head, "saved", "better"], rows)


def _counted(one: Compression, who: str) -> list[Cell]:
    return [Cell(f"{one.tokens[who]:,}"), Cell(f"{one.ratio(who):.2f}")]


def _languages(found: Evaluation) -> Table:
    rows = []
    for one in (found.languages[0], *reversed(found.languages[-10:])):
        fertility = "–" if one.fertility is None else f"{one.fertility:.2f}"
        numbers = [f"{one.tokens:,}", f"{one.bytes_per_token:.2f}", fertility]
        others = [f"{found.parity[who][one.code]:.2f}" for who in found.tokenizers]
        rows.append([Cell(one.name), *map(Cell, [*numbers, *others])])
    parities = [one.parity for one in found.languages]
    note = (
        f"English and the ten that cost most, of {len(parities)}. Parity is tokens relative to "
        f"English for the same content; its mean is {sum(parities) / len(parities):.2f}."
    )
    head = ["language", "tokens", "bytes per token", "tokens per word"]
    return Table("Languages", note, [*head, *(f"parity, {who}" for who in found.tokenizers)], rows)


def _use(found: Evaluation) -> Table:
    one, ordinary = found.use, found.vocabulary.size - found.vocabulary.special
    unused = len(one.unused) / max(ordinary, 1)
    rows = {
        "bytes": f"{one.bytes:,}",
        "tokens": f"{one.tokens:,}",
        "bytes per token": f"{one.bytes / max(one.tokens, 1):.2f}",
        "tokens of the vocabulary that never occur": f"{len(one.unused):,} ({unused:.1%})",
        "tokens that are a single byte": f"{one.single_bytes:.1%}",
        "tokens that are a byte of a longer character": f"{one.broken_bytes:.1%}",
        f"Rényi efficiency, order {RENYI_ORDER}": f"{one.renyi:.3f}",
    }
    return _pairs("Use", f"On {found.corpus}.", rows)


def _vocabulary(found: Evaluation) -> Table:
    one, tok = found.vocabulary, found.tokenizer
    mean = sum(n * count for n, count in one.lengths.items()) / max(sum(one.lengths.values()), 1)

    def shown(ids: Sequence[int], most: int = 6) -> str:
        return "  ".join(mark(tok.token_bytes(id)) for id in ids[:most])

    groups = "; ".join(shown(ids) for ids in one.duplicates[:3])
    rows = {
        "ids": f"{one.size:,}, {one.special} of them special",
        "bytes of a token": f"{mean:.2f} on average, {max(one.lengths, default=0)} at most",
        "longest": shown(one.longest, 5),
        "unreachable by merges": f"{len(one.unreachable):,}  {shown(one.unreachable)}".strip(),
        "not whole characters": f"{len(one.unwhole):,}  {shown(one.unwhole)}".strip(),
        "near-duplicates (case, leading space)": f"{one.extra:,} in {len(one.duplicates):,} groups",
        "largest groups": groups or "none",
        "tokens of digits": ", ".join(f"{n} of {size}" for size, n in one.digits.items()) or "none",
    }
    return _pairs("Vocabulary", "A leading or other space is shown as ·.", rows)


def _numbers(found: Evaluation) -> Table:
    names = list(found.tokenizers)
    rows = []
    for number in found.vocabulary.numbers:
        splits = (
            "|".join(mark(tok.token_bytes(i)) for i in tok.encode(number))
            for tok in found.tokenizers.values()
        )
        rows.append([Cell(number), *map(Cell, splits)])
    return Table("Numbers", "How digits are split.", ["number", *names], rows)


def _sizes(found: Evaluation) -> Table:
    sweep = found.sweep
    assert sweep is not None
    shown = {int(sweep.sizes[-1]) >> n for n in range(8)} | {sweep.knee}
    rows = []
    for size in sorted(s for s in shown if s >= sweep.sizes[0]):
        heldout = sweep.heldout.get(size)
        texts = [f"{sweep.at(size):.3f}", "–" if heldout is None else f"{heldout:.3f}"]
        label = f"{size:,}" + (" (knee)" if size == sweep.knee else "")
        rows.append([Cell(label), *map(Cell, [*texts, f"{size * sweep.width / 1e6:,.1f} M"])])
    head = ["ids", "bytes per token, training", f"bytes per token, {found.corpus}", "embedding"]
    if not sweep.heldout:
        head, rows = [*head[:2], head[3]], [[row[0], row[1], row[3]] for row in rows]
    note = f"From one training. The embedding is {sweep.width} numbers for each id."
    return Table("Sizes", note, head, rows)


def _pairs(title: str, note: str, rows: dict[str, str]) -> Table:
    cells = [[Cell(key), Cell(value)] for key, value in rows.items()]
    return Table(title, note, ["", "value"], cells)


def mark(token: bytes) -> str:
    """Show a token with its spaces visible."""
    return readable(token).replace(" ", "·")


# ---------------------------------------------------------------------------- to read


def to_markdown(found: Evaluation) -> str:
    """Write an evaluation as Markdown."""
    parts = [f"# {found.name}: {found.tokenizer!r}"]
    parts += [f"Left out: {reason}." for reason in found.missing.values()]
    for table in tables(found):
        lines = [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
        lines.append("| " + " | ".join(_escape(text) for text in table.head) + " |")
        lines.append("| --- |" + " ---: |" * (len(table.head) - 1))
        lines += ["| " + " | ".join(_escape(c.text) for c in row) + " |" for row in table.rows]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _escape(text: str) -> str:
    """Keep what a token holds from being read as Markdown, or as HTML in it."""
    for character in "\\`*_[]|~":
        text = text.replace(character, "\\" + character)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "␊")


def to_json(found: Evaluation) -> str:
    """Write every number of an evaluation as JSON; the bytes of tokens as `readable` shows them."""
    tok, one, used = found.tokenizer, found.vocabulary, found.use

    def named(ids: Sequence[int]) -> list[dict[str, Any]]:
        return [{"id": id, "token": readable(tok.token_bytes(id))} for id in ids]

    value = {
        "name": found.name,
        "fingerprint": tok.fingerprint,
        "missing": found.missing,
        "compression": [
            {"text": c.text, "bytes": c.bytes, "tokens": c.tokens} for c in found.compression
        ],
        "languages": [
            vars(language)
            | {"bytes_per_token": language.bytes_per_token, "fertility": language.fertility}
            for language in found.languages
        ],
        "parity": found.parity,
        "vocabulary": {
            "size": one.size,
            "special": one.special,
            "lengths": one.lengths,
            "longest": named(one.longest),
            "unreachable": named(one.unreachable),
            "not_whole_characters": named(one.unwhole),
            "near_duplicates": [named(ids) for ids in one.duplicates],
            "numbers": {n: [readable(t) for t in split] for n, split in one.numbers.items()},
            "digits": one.digits,
        },
        "use": {
            "corpus": found.corpus,
            "bytes": used.bytes,
            "tokens": used.tokens,
            "unused": named(used.unused),
            "single_bytes": used.single_bytes,
            "broken_bytes": used.broken_bytes,
            "renyi_efficiency": used.renyi,
        },
        "sweep": _sweep_numbers(found),
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _sweep_numbers(found: Evaluation) -> dict[str, Any] | None:
    sweep = found.sweep
    if sweep is None:
        return None
    return {
        "knee": sweep.knee,
        "width": sweep.width,
        "text_bytes": sweep.text_bytes,
        "smallest": int(sweep.sizes[0]),
        "tokens": sweep.tokens.tolist(),
        "heldout_bytes_per_token": sweep.heldout,
    }
