"""An evaluation as tables: for a terminal, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from bytepair._internal.drawing import html_table, readable
from bytepair.evaluate.evaluation import Evaluation, Language
from bytepair.evaluate.texts import Compression, ParallelText
from bytepair.evaluate.vocabulary import RENYI_ORDER
from bytepair.tokenizer import Tokenizer

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as RichTable

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

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        return html_table(self.head, [[cell.text for cell in row] for row in self.rows])


def tables(result: Evaluation | ParallelText) -> list[Table]:
    """Lay out an evaluation, or what a parallel text costs, as tables.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> [table.title for table in tables(bytepair.evaluate.measure(tok, against=[]))]
        ['Compression', 'Languages', 'Use', 'Vocabulary', 'Numbers', 'Sizes']
    """
    if isinstance(result, ParallelText):
        return [_parallel(result)]
    parts = [*_compression(result), _languages(result), _use(result), _vocabulary(result)]
    return [*parts, _numbers(result), *([_sizes(result)] if result.sweep else [])]


def summary(evaluation: Evaluation) -> str:
    """Say in one sentence how a tokenizer compares with the others.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["low lower lowest"], 272)
        >>> rival = bytepair.train(["hello"], vocab_size=265)
        >>> texts = {"mine": ["lower low"]}
        >>> print(summary(bytepair.evaluate.measure(tok, against={"bytes": rival}, texts=texts)))
        ours (272 ids) needs 55.6% fewer tokens for mine than bytes (265 ids).
    """
    ours, *rivals = evaluation.tokenizers
    one = evaluation.overall
    clauses: list[str] = []
    for theirs in rivals:
        much = one.in_words(ours, theirs)
        what = "" if clauses else f" tokens for {one.text}"
        clauses.append(
            f"{much}{what} {'as' if much == 'as many' else 'than'} {evaluation.label(theirs)}"
        )
    if not clauses:
        return (
            f"In {one.text}, a token of {evaluation.label(ours)} has {one.ratio(ours):.2f} bytes."
        )
    *others, last = clauses
    clause_list = f"{', '.join(others)} and {last}" if others else last
    return f"{evaluation.label(ours)} needs {clause_list}."


def _compression(evaluation: Evaluation) -> list[Table]:
    ours, *rivals = evaluation.tokenizers
    if rivals:
        return [_comparison(evaluation, ours, rival) for rival in rivals]
    head = ["text", "bytes", "tokens", "bytes per token"]
    rows = [
        [Cell(one.text), Cell(f"{one.bytes:,}"), *_counted(one, ours)]
        for one in evaluation.compression
    ]
    return [Table("Compression", "", head, rows)]


def _comparison(evaluation: Evaluation, ours: str, theirs: str) -> Table:
    head = [
        "text",
        "bytes",
        f"{evaluation.label(theirs)}: tokens",
        "bytes per token",
        f"{evaluation.label(ours)}: tokens",
        "bytes per token",
        f"{ours} needs",
    ]
    rows = []
    for one in evaluation.compression:
        row = [Cell(one.text), Cell(f"{one.bytes:,}"), *_counted(one, theirs), *_counted(one, ours)]
        rows.append([*row, needed(one, ours, theirs)])
    return Table(f"Compression, against {theirs}", "", head, rows)


def needed(one: Compression, ours: str, theirs: str) -> Cell:
    """How many more or fewer tokens ours needs than theirs."""
    more = one.difference(ours, theirs)
    return Cell(one.in_words(ours, theirs), "good" if more < 0 else "bad" if more > 0 else "")


def _counted(one: Compression, who: str) -> list[Cell]:
    return [Cell(f"{one.tokens[who]:,}"), Cell(f"{one.ratio(who):.2f}")]


def _languages(evaluation: Evaluation) -> Table:
    parities = [one.parity for one in evaluation.languages]
    note = (
        f"English and the ten that cost most, of {len(parities)}. Parity is tokens relative to "
        f"English for the same content; its mean is {sum(parities) / len(parities):.2f}."
    )
    head = ["language", "tokens", "bytes per token", "tokens per word"]
    head += [f"parity, {evaluation.label(who)}" for who in evaluation.tokenizers]
    first_and_last = (evaluation.languages[0], *reversed(evaluation.languages[-10:]))
    return Table("Languages", note, head, [language_row(evaluation, one) for one in first_and_last])


def language_row(evaluation: Evaluation, one: Language) -> list[Cell]:
    """The figures of one language."""
    fertility = "–" if one.fertility is None else f"{one.fertility:.2f}"
    numbers = [f"{one.tokens:,}", f"{one.bytes_per_token:.2f}", fertility]
    parities = [f"{evaluation.parity[who][one.code]:.2f}" for who in evaluation.tokenizers]
    return [Cell(text) for text in (one.name, *numbers, *parities)]


def _use(evaluation: Evaluation) -> Table:
    one, ordinary = evaluation.use, evaluation.vocabulary.size - evaluation.vocabulary.special
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
    return _pairs("Use", f"On {evaluation.corpus}.", rows)


def _vocabulary(evaluation: Evaluation) -> Table:
    one, tok = evaluation.vocabulary, evaluation.tokenizer
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


def _numbers(evaluation: Evaluation) -> Table:
    def split(tok: Tokenizer, number: str) -> Cell:
        return Cell("|".join(mark(tok.token_bytes(id)) for id in tok.encode(number)))

    rows = [
        [Cell(number), *(split(tok, number) for tok in evaluation.tokenizers.values())]
        for number in evaluation.vocabulary.numbers
    ]
    head = ["number", *map(evaluation.label, evaluation.tokenizers)]
    return Table("Numbers", "How digits are split.", head, rows)


def _sizes(evaluation: Evaluation) -> Table:
    sweep = evaluation.sweep
    assert sweep is not None
    sizes = {int(sweep.sizes[-1]) >> n for n in range(8)} | {sweep.knee}
    rows = []
    for size in sorted(s for s in sizes if s >= sweep.sizes[0]):
        heldout = sweep.heldout.get(size)
        texts = [f"{sweep.at(size):.3f}", "–" if heldout is None else f"{heldout:.3f}"]
        label = f"{size:,}" + (" (knee)" if size == sweep.knee else "")
        rows.append([Cell(label), *map(Cell, [*texts, f"{size * sweep.width / 1e6:,.1f} M"])])
    text = evaluation.overall.text
    head = ["ids", "bytes per token, training", f"bytes per token, {text}", "embedding"]
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


# ---------------------------------------------------------------------------- parts


def _parallel(result: ParallelText) -> Table:
    """The table of languages, sorted by the tokens of the first tokenizer."""
    head, to = ["language", "bytes"], [None, *([result.base] if result.base else [])]
    for who in result.tokens:
        head += [f"{result.label(who)}: tokens", *(f"to {other or 'the best'}" for other in to)]
    rows = []
    for name in sorted(result.bytes, key=lambda name: (result.tokens[result.name][name], name)):
        row = [Cell(name), Cell(f"{result.bytes[name]:,}")]
        for who, tokens in result.tokens.items():
            row.append(Cell(f"{tokens[name]:,}"))
            row += [Cell(f"{result.ratio(who, name, other):.2f}") for other in to]
        rows.append(row)
    coefficients = ", ".join(f"{who} {result.gini(who):.3f}" for who in result.tokens)
    note = (
        f"{result.lines:,} lines that say the same in each language. Gini coefficient of the "
        f"tokens (0 if all languages have equally many): {coefficients}."
    )
    return Table("Parity", note, head, rows)


def to_markdown(result: Evaluation | ParallelText) -> str:
    """Write an evaluation, or what a parallel text costs, as Markdown."""
    parts = [f"# {result.name}: {result.tokenizer!r}"]
    if isinstance(result, Evaluation):
        parts.append(summary(result))
    parts += [f"Left out: {reason}." for reason in result.missing.values()]
    for table in tables(result):
        lines = [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
        lines.append("| " + " | ".join(_escape(text) for text in table.head) + " |")
        lines.append("| --- |" + " ---: |" * (len(table.head) - 1))
        lines += ["| " + " | ".join(_escape(c.text) for c in row) + " |" for row in table.rows]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _parallel_json(result: ParallelText) -> str:
    value = {
        "name": result.name,
        "fingerprint": result.tokenizer.fingerprint,
        "missing": {name: str(why) for name, why in result.missing.items()},
        "lines": result.lines,
        "bytes": result.bytes,
        "tokens": result.tokens,
        "gini": {who: result.gini(who) for who in result.tokens},
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _escape(text: str) -> str:
    """Escape the text of a token for Markdown and for HTML in it."""
    for character in "\\`*_[]|~":
        text = text.replace(character, "\\" + character)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "↵")


def to_json(result: Evaluation | ParallelText) -> str:
    """Write every number of an evaluation as JSON; the bytes of tokens as `readable` shows them."""
    if isinstance(result, ParallelText):
        return _parallel_json(result)
    tok, one, usage, sweep = result.tokenizer, result.vocabulary, result.use, result.sweep

    def tokens_of(ids: Sequence[int]) -> list[dict[str, Any]]:
        return [{"id": id, "token": readable(tok.token_bytes(id))} for id in ids]

    value = {
        "name": result.name,
        "fingerprint": tok.fingerprint,
        "missing": {name: str(why) for name, why in result.missing.items()},
        "sizes": {who: tokenizer.vocab_size for who, tokenizer in result.tokenizers.items()},
        "compression": [vars(one) for one in result.compression],
        "languages": [
            vars(language)
            | {"bytes_per_token": language.bytes_per_token, "fertility": language.fertility}
            for language in result.languages
        ],
        "parity": result.parity,
        "vocabulary": {
            "size": one.size,
            "special": one.special,
            "lengths": one.lengths,
            "longest": tokens_of(one.longest),
            "unreachable": tokens_of(one.unreachable),
            "not_whole_characters": tokens_of(one.unwhole),
            "near_duplicates": [tokens_of(ids) for ids in one.duplicates],
            "numbers": {n: [readable(t) for t in split] for n, split in one.numbers.items()},
            "digits": one.digits,
        },
        "use": {
            "corpus": result.corpus,
            "bytes": usage.bytes,
            "tokens": usage.tokens,
            "unused": tokens_of(usage.unused),
            "single_bytes": usage.single_bytes,
            "broken_bytes": usage.broken_bytes,
            "renyi_efficiency": usage.renyi,
        },
        "sweep": None
        if sweep is None
        else {
            "knee": sweep.knee,
            "width": sweep.width,
            "text_bytes": sweep.text_bytes,
            "smallest": int(sweep.sizes[0]),
            "tokens": sweep.tokens.tolist(),
            "heldout_bytes_per_token": sweep.heldout,
        },
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


_TONES: Final = {"good": "green", "bad": "red", "": ""}

#: Longer words may be folded; numbers never are.
UNFOLDED_CHARS: Final = 16
#: The number of spaces between two columns.
GAP_SPACES: Final = 2


def to_terminal(result: Evaluation | ParallelText) -> list[Any]:
    """Make an evaluation something that a console of the package `rich` prints in colours."""
    from rich.text import Text

    parts: list[Any] = [Text(repr(result.tokenizer), style="bold")]
    if isinstance(result, Evaluation):
        parts.append(Text(summary(result)))
    if result.missing:
        parts.append(Text(f"left out: {', '.join(result.missing)}", style="dim"))
    return [*parts, *(Fitted(table) for table in tables(result))]


class Fitted:
    """A table of `rich`, or one of two columns for each row if the console is too narrow for it."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """The title, the table, the note."""
        from rich.text import Text

        head, rows = [Cell(name) for name in self._table.head], self._table.rows
        yield Text(f"\n{self._table.title}\n", style="bold")
        widths = _widths([head, *rows], options.max_width)
        if self._table.head[1:] == ["value"]:
            yield self._grid(rows)
        elif widths is not None:
            yield self._grid([head, *rows], widths)
        else:
            for row in rows:
                yield self._grid(list(zip(head, row, strict=True)))
                yield ""
        if self._table.note:
            yield Text(self._table.note, style="dim")

    def _grid(self, rows: Sequence[Sequence[Cell]], widths: list[int] | None = None) -> RichTable:
        """Rows as a table of `rich`; numbers are not folded."""
        from rich.table import Table as RichTable
        from rich.text import Text

        words = self._table.title in {"Use", "Vocabulary", "Numbers"}
        grid = RichTable(box=None, padding=(0, GAP_SPACES, 0, 0), pad_edge=False, show_header=False)
        for number, least in enumerate(_least(rows)):
            grid.add_column(
                justify="left" if words or not number else "right", overflow="fold",
                min_width=least, width=widths[number] if widths else None, vertical="bottom",
            )  # fmt: skip
        for row in rows:
            grid.add_row(*(Text(cell.text, style=_TONES[cell.tone]) for cell in row))
        return grid


def _least(rows: Sequence[Sequence[Cell]]) -> list[int]:
    """The width that each column has at least."""
    from rich.cells import cell_len

    columns = (
        [word for cell in column for word in cell.text.split()]
        for column in zip(*rows, strict=True)
    )
    return [min(max(map(cell_len, words), default=0), UNFOLDED_CHARS) for words in columns]


def _widths(rows: Sequence[Sequence[Cell]], most: int) -> list[int] | None:
    """The width of each column; free space goes to the narrowest. None if they do not fit."""
    from rich.cells import cell_len

    widths = _least(rows)
    natural = [max(cell_len(cell.text) for cell in column) for column in zip(*rows, strict=True)]
    free = most - sum(widths) - GAP_SPACES * (len(widths) - 1)
    for _ in range(free):
        if lacking := [n for n, width in enumerate(natural) if widths[n] < width]:
            widths[min(lacking, key=widths.__getitem__)] += 1
    return widths if free >= 0 else None
