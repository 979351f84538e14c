"""Writes an evaluation as tables for a terminal, as Markdown or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bytepair._internal.drawing import readable
from bytepair.errors import CorpusError, visible
from bytepair.evaluate.evaluation import Compression, Evaluation, gini
from bytepair.evaluate.vocabulary import RENYI_ORDER
from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class Table:
    """Rows under a head, with a title and a note.

    Attributes:
        title: what it shows.
        note: how to read it.
        head: the names of the columns.
        rows: the cells.
        is_text: whether all columns are text; else all but the first are numbers.
    """

    title: str
    note: str
    head: list[str]
    rows: list[list[str]]
    is_text: bool = False

    def to_markdown(self) -> str:
        """The table in Markdown, under its title."""
        lines = [f"## {self.title}", "", *([self.note, ""] if self.note else [])]
        lines.append("| " + " | ".join(map(_escape, self.head)) + " |")
        lines.append("| --- |" + " ---: |" * (len(self.head) - 1))
        lines += ["| " + " | ".join(map(_escape, row)) + " |" for row in self.rows]
        return "\n".join(lines)

    _repr_markdown_ = to_markdown  # for notebooks

    def to_terminal(self, width: int = 200) -> list[Any]:
        """The table as the package `rich` prints it; where it is too wide, its head is folded."""
        from rich.cells import cell_len
        from rich.table import Table as RichTable
        from rich.text import Text

        rows = self.rows if self.head[1:] == ["value"] else [self.head, *self.rows]
        columns = [*zip(*rows, strict=True)]
        is_wide = sum(max(map(cell_len, column)) + 2 for column in columns) > width
        grid = RichTable.grid(padding=(0, 2, 0, 0))
        for number, (head, *cells) in enumerate(columns):
            least = max(map(cell_len, (*head.split(), *cells)), default=0)
            grid.add_column(
                justify="right" if number and not self.is_text else "left", overflow="fold",
                vertical="bottom", width=least if is_wide and not self.is_text else None,
            )  # fmt: skip
        for row in rows:
            grid.add_row(*(Text(visible(cell)) for cell in row))
        note = [Text(self.note, style="dim")] if self.note else []
        return [Text(f"\n{self.title}\n", style="bold"), grid, *note]


def tables(evaluation: Evaluation) -> list[Table]:
    """Lay out an evaluation as tables.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> [table.title for table in tables(bytepair.evaluate.measure(tok, against=[]))]
        ['Compression', 'Languages', 'Use', 'Vocabulary', 'Numbers', 'Sizes']
    """
    parts = [_compression(evaluation), _languages(evaluation), _use(evaluation)]
    parts += [_vocabulary(evaluation), _numbers(evaluation)]
    return [*parts, *([_sizes(evaluation)] if evaluation.sweep else [])]


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
        share = one.tokens[ours] / one.tokens[theirs] - 1 if one.tokens[theirs] else 0
        much = f"{abs(share):.1%} {'more' if share > 0 else 'fewer'}" if share else "as many"
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


def _compression(evaluation: Evaluation) -> Table:
    who = [*evaluation.tokenizers]
    rows = [
        [one.text, f"{one.bytes:,}", *(f"{one.tokens[w]:,} ({one.ratio(w):.2f})" for w in who)]
        for one in evaluation.compression
    ]
    head = ["text", "bytes", *map(evaluation.label, who)]
    return Table("Compression", "Tokens of each text (and bytes per token).", head, rows)


def _languages(evaluation: Evaluation) -> Table:
    parities = [one.parity for one in evaluation.languages]
    note = (
        f"English and the ten that cost most, of {len(parities)}. Parity is tokens relative to "
        f"English for the same content; its mean is {sum(parities) / len(parities):.2f}."
    )
    head = ["language", "tokens", "bytes per token", "tokens per word"]
    head += [f"parity, {who}" for who in evaluation.tokenizers]
    rows = []
    for one in (evaluation.languages[0], *reversed(evaluation.languages[-10:])):
        fertility = "–" if one.fertility is None else f"{one.fertility:.2f}"
        row = [one.name, f"{one.tokens:,}", f"{one.bytes_per_token:.2f}", fertility]
        row += [f"{evaluation.parity[who][one.code]:.2f}" for who in evaluation.tokenizers]
        rows.append(row)
    return Table("Languages", note, head, rows)


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
    extra = sum(len(group) - 1 for group in one.duplicates)
    rows = {
        "ids": f"{one.size:,}, {one.special} of them special",
        "bytes of a token": f"{mean:.2f} on average, {max(one.lengths, default=0)} at most",
        "longest": shown(one.longest, 5),
        "unreachable by merges": f"{len(one.unreachable):,}  {shown(one.unreachable)}".strip(),
        "split by the pattern": f"{len(one.split):,}  {shown(one.split)}".strip(),
        "not whole characters": f"{len(one.unwhole):,}  {shown(one.unwhole)}".strip(),
        "near-duplicates (case, leading space)": f"{extra:,} in {len(one.duplicates):,} groups",
        "largest groups": groups or "none",
        "tokens of digits": ", ".join(f"{n} of {size}" for size, n in one.digits.items()) or "none",
    }
    return _pairs("Vocabulary", "A leading or other space is shown as ·.", rows)


def _numbers(evaluation: Evaluation) -> Table:
    def split(tok: Tokenizer, number: str) -> str:
        return "|".join(mark(tok.token_bytes(id)) for id in tok.encode(number))

    rows = [
        [number, *(split(tok, number) for tok in evaluation.tokenizers.values())]
        for number in evaluation.vocabulary.numbers
    ]
    head = ["number", *map(evaluation.label, evaluation.tokenizers)]
    return Table("Numbers", "How digits are split.", head, rows, is_text=True)


def _sizes(evaluation: Evaluation) -> Table:
    sweep = evaluation.sweep
    assert sweep is not None
    sizes = {int(sweep.sizes[-1]) >> n for n in range(8)} | {sweep.knee}
    rows = []
    for size in sorted(s for s in sizes if s >= sweep.sizes[0]):
        heldout = sweep.heldout.get(size)
        texts = [f"{sweep.at(size):.3f}", "–" if heldout is None else f"{heldout:.3f}"]
        label = f"{size:,}" + (" (knee)" if size == sweep.knee else "")
        rows.append([label, *texts, f"{size * sweep.width / 1e6:,.1f} M"])
    text = evaluation.overall.text
    head = ["ids", "bytes per token, training", f"bytes per token, {text}", "embedding"]
    if not sweep.heldout:
        head, rows = [*head[:2], head[3]], [[row[0], row[1], row[3]] for row in rows]
    note = f"From one training. The embedding is {sweep.width} numbers for each id."
    return Table("Sizes", note, head, rows)


def parity(costs: Sequence[Compression], base: str | None = None) -> Table:
    """Lay out what a parallel text costs, by language, as `compress` counts it.

    Beside the tokens of each language stands their ratio to the language with the fewest, and to
    `base`; the note has the Gini coefficients.

    Example:
        >>> costs = [Compression("en", 5, {"ours": 2}), Compression("de", 9, {"ours": 8})]
        >>> parity(costs, "en").rows
        [['en', '5', '2', '1.00', '1.00'], ['de', '9', '8', '4.00', '4.00']]
    """
    by_name = {one.text: one.tokens for one in costs}
    who = [*costs[0].tokens]
    if base not in {None, *by_name}:
        raise CorpusError(f"there is no language {base!r} in the text; it has {', '.join(by_name)}")
    to = {one: [min(tokens[one] for tokens in by_name.values())] for one in who}
    head = ["language", "bytes"]
    for one in who:
        to[one] += [by_name[base][one]] if base else []
        head += [f"{one}: tokens", "to the best", *([f"to {base}"] if base else [])]
    rows = []
    for cost in sorted(costs, key=lambda cost: (cost.tokens[who[0]], cost.text)):
        row = [cost.text, f"{cost.bytes:,}"]
        for one, tokens in cost.tokens.items():
            row += [f"{tokens:,}", *(f"{tokens / max(other, 1):.2f}" for other in to[one])]
        rows.append(row)
    ginis = (f"{one} {gini(tokens[one] for tokens in by_name.values()):.3f}" for one in who)
    note = "Gini coefficient of the tokens (0 if all languages have equally many): "
    return Table("Parity", f"{note}{', '.join(ginis)}.", head, rows)


def _pairs(title: str, note: str, rows: dict[str, str]) -> Table:
    cells = [[key, value] for key, value in rows.items()]
    return Table(title, note, ["", "value"], cells, is_text=True)


def mark(token: bytes) -> str:
    """Show a token with its spaces visible."""
    return readable(token).replace(" ", "·")


def to_markdown(evaluation: Evaluation) -> str:
    """Write an evaluation as Markdown."""
    parts = [f"# {evaluation.name}: {evaluation.tokenizer!r}", summary(evaluation)]
    parts += [f"Left out: {reason}." for reason in evaluation.missing.values()]
    return "\n\n".join([*parts, *(table.to_markdown() for table in tables(evaluation))]) + "\n"


def _escape(text: str) -> str:
    """Escape the text of a token for Markdown and for HTML in it."""
    for character in "\\`*_[]|~":
        text = text.replace(character, "\\" + character)
    return visible(text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "↵"))


def to_json(evaluation: Evaluation) -> str:
    """Write every number as JSON, by the names of attributes; tokens as `readable` shows them."""
    tok, vocabulary, sweep = evaluation.tokenizer, evaluation.vocabulary, evaluation.sweep

    def tokens_of(ids: Sequence[int]) -> list[dict[str, Any]]:
        return [{"id": id, "token": readable(tok.token_bytes(id))} for id in ids]

    lists = ("longest", "unreachable", "split", "unwhole")
    use = {name: value for name, value in vars(evaluation.use).items() if name != "counts"}
    numbers = {n: [readable(token) for token in split] for n, split in vocabulary.numbers.items()}
    value = {
        "name": evaluation.name,
        "fingerprint": tok.fingerprint,
        "missing": {name: str(why) for name, why in evaluation.missing.items()},
        "sizes": {who: one.vocab_size for who, one in evaluation.tokenizers.items()},
        "compression": [vars(one) for one in evaluation.compression],
        "languages": [
            vars(one) | {"bytes_per_token": one.bytes_per_token, "fertility": one.fertility}
            for one in evaluation.languages
        ],
        "parity": evaluation.parity,
        "vocabulary": vars(vocabulary)
        | {name: tokens_of(getattr(vocabulary, name)) for name in lists}
        | {"duplicates": [*map(tokens_of, vocabulary.duplicates)], "numbers": numbers},
        "use": use | {"corpus": evaluation.corpus, "unused": tokens_of(evaluation.use.unused)},
        "sweep": sweep
        and vars(sweep)
        | {"knee": sweep.knee, "sizes": [int(sweep.sizes[0]), int(sweep.sizes[-1])]},
    }
    text = json.dumps(value, ensure_ascii=False, indent=2, default=lambda array: array.tolist())
    return f"{text}\n"


def to_terminal(evaluation: Evaluation, width: int = 200) -> list[Any]:
    """Make an evaluation what a console of the package `rich` prints in this many columns."""
    from rich.text import Text

    parts: list[Any] = [Text(repr(evaluation.tokenizer), style="bold"), summary(evaluation)]
    if evaluation.missing:
        parts.append(Text(f"left out: {', '.join(evaluation.missing)}", style="dim"))
    return [*parts, *(part for table in tables(evaluation) for part in table.to_terminal(width))]
