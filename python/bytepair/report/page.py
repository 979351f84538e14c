"""The page, section by section: a few words, a picture, a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

import numpy as np

from bytepair import plot
from bytepair._core import UNICODE_VERSION
from bytepair._internal.drawing import Markup, draw_all
from bytepair.errors import ConversationError
from bytepair.evaluate import Cell, Evaluation, Sweep, Table, samples, summary, tables
from bytepair.evaluate.table import language_row, needed
from bytepair.files.safe import write_whole
from bytepair.properties.rules import pattern_text
from bytepair.tokenizer import Tokenizer

#: About how many bytes of each sample text the page shows first.
_SAMPLE_BYTES = 180
#: A conversation, up to the start of the next answer.
_TALK: Final = (
    {"role": "user", "content": "What is a token?"},
    {"role": "assistant", "content": "A piece of text that a model reads as one number."},
    {"role": "user", "content": "And what is a pretoken?"},
)
#: The maximum number of tokens in a list.
_MOST_TOKENS = 40
#: The content security policy: nothing is loaded, no script runs; the styles are in the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def save(evaluation: Evaluation, path: str | os.PathLike[str]) -> Path:
    """Write the page, whole or not at all.

    Args:
        evaluation: the result of `bytepair.evaluate.measure`.
        path: the file.

    Returns:
        The path.
    """
    write_whole(Path(path), to_html(evaluation).encode())
    return Path(path)


def to_html(evaluation: Evaluation) -> str:
    """Make the page of an evaluation.

    Args:
        evaluation: the result of `bytepair.evaluate.measure`.
    """
    style = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    by_title = {table.title: table for table in tables(evaluation)}
    sections = [
        _compression(evaluation),
        _languages(evaluation, by_title["Languages"]),
        _use(evaluation, by_title["Use"]),
        _vocabulary(evaluation, by_title["Vocabulary"]),
        _numbers(evaluation),
        *([_sizes(evaluation, by_title["Sizes"])] if evaluation.sweep else []),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(evaluation.name)} · bytepair report</title>\n<style>\n{style}</style>\n"
        f"</head>\n<body>\n{_head(evaluation)}\n<main>\n{''.join(sections)}</main>\n"
        f"{_foot(evaluation)}\n</body>\n</html>\n"
    )


def _head(evaluation: Evaluation) -> str:
    tok, usage, overall = evaluation.tokenizer, evaluation.use, evaluation.overall
    parities = [one.parity for one in evaluation.languages]
    unused = len(usage.unused) / max(evaluation.vocabulary.size - evaluation.vocabulary.special, 1)
    cards = {
        "ids": f"{tok.vocab_size:,}",
        f"bytes per token, {overall.text}": f"{overall.ratio(evaluation.name):.2f}",
        "mean parity of 60 languages": f"{sum(parities) / len(parities):.2f}",
        f"of the vocabulary never used, {evaluation.corpus}": f"{unused:.1%}",
        f"Rényi efficiency, {evaluation.corpus}": f"{usage.renyi:.2f}",
    }
    items = "".join(
        f"<div><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>"
        for name, value in cards.items()
    )
    left_out = "".join(
        f"<p class=note>Left out: {escape(str(why))}.</p>" for why in evaluation.missing.values()
    )
    return (
        f"<header><p class=kicker>bytepair report</p><h1>{escape(evaluation.name)}</h1>"
        f"<p class=summary>{escape(summary(evaluation))}</p>{left_out}</header>"
        f"<section class=columns>{_overview(evaluation)}<dl class=cards>{items}</dl></section>"
        f"{_sample(evaluation)}"
    )


def _overview(evaluation: Evaluation) -> str:
    """One picture of all tokenizers: how large each is, and how well it compresses."""
    one, ours = evaluation.overall, evaluation.name
    points: dict[str, tuple[Sequence[float], Sequence[float]]] = {
        evaluation.label(who): ([tok.vocab_size], [one.ratio(who)])
        for who, tok in evaluation.tokenizers.items()
    }
    if evaluation.sweep and len(evaluation.sweep.heldout) > 1:
        smaller = evaluation.sweep.heldout
        points[f"{ours}, smaller sizes"] = (list(smaller), list(smaller.values()))
    picture = plot.lines(
        points,
        title=f"Size and compression of each tokenizer, on {one.text}",
        x="ids, on a logarithmic scale",
        y="bytes per token",
        log_x=True,
    )
    return f"<figure>{picture}</figure>"


def _sample(evaluation: Evaluation) -> str:
    """The beginning of each sample text, its tokens in colours."""
    rows = "".join(
        f"<dt>{escape(kind)}</dt><dd>{_coloured(evaluation.tokenizer, _beginning(text))}</dd>"
        for kind, text in samples().items()
    )
    rows += _conversation(evaluation.tokenizer)
    return f"<section class=sample aria-label='Texts in tokens'><dl>{rows}</dl></section>"


def _conversation(tok: Tokenizer) -> str:
    """A conversation under the tokenizer's own chat template; nothing if it has none."""
    if "default" not in tok.chat_templates:
        return ""
    try:
        ids = tok.render_for_completion(_TALK)
    except (ConversationError, ImportError) as error:
        content = f"It is left out: {escape(str(error))}."
    else:
        content = _in_colours(tok, ids)
    return f"<dt>conversation</dt><dd>{content}</dd>"


def _beginning(text: str) -> str:
    """The first words of a text."""
    words = text.encode()[:_SAMPLE_BYTES].decode(errors="ignore")
    return words if words == text else words[: max(words.rfind(" "), words.rfind("\n"), 1)].rstrip()


def _coloured(tok: Tokenizer, text: str) -> str:
    return _in_colours(tok, tok.encode(text))


def _in_colours(tok: Tokenizer, ids: Sequence[int]) -> str:
    return "".join(
        token.html(classes=f"t c{n % 5}", title=f"id {id:,}") + "\n" * token.ends_line
        for n, (id, token) in enumerate(zip(ids, draw_all(tok, ids), strict=True))
    )


def _foot(evaluation: Evaluation) -> str:
    tok = evaluation.tokenizer
    return (
        f"<footer><p>Merge rule: {tok.merge_rule}. "
        f"Split pattern: <code>{escape(pattern_text(tok))}</code>, with the classes of Unicode "
        f"{escape(UNICODE_VERSION)}.</p>"
        f"<p>Fingerprint <code>{tok.fingerprint}</code></p></footer>"
    )


# ---------------------------------------------------------------------------- sections


def _compression(evaluation: Evaluation) -> str:
    rows = {
        one.text: {evaluation.label(who): one.ratio(who) for who in evaluation.tokenizers}
        for one in evaluation.compression
    }
    picture = plot.dots(
        rows, title="Bytes per token of each text under each tokenizer", unit="bytes per token"
    )
    words = "How many bytes of text a token stands for on average. More is better."
    return _section("Compression", words, picture, _table(_side_by_side(evaluation)))


def _side_by_side(evaluation: Evaluation) -> Table:
    """The tables of `tables`, one for each rival, as one."""
    ours, *rivals = evaluation.tokenizers
    head = ["text", "bytes", f"tokens, {evaluation.label(ours)}"]
    for rival in rivals:
        head += [f"tokens, {evaluation.label(rival)}", f"{ours} needs"]
    rows = []
    for one in evaluation.compression:
        row = [Cell(one.text), Cell(f"{one.bytes:,}"), Cell(f"{one.tokens[ours]:,}")]
        for rival in rivals:
            row += [Cell(f"{one.tokens[rival]:,}"), needed(one, ours, rival)]
        rows.append(row)
    return Table("Compression", "", head, rows)


def _languages(evaluation: Evaluation, table: Table) -> str:
    english, *others = evaluation.languages
    picture = plot.bars(
        {one.name: one.parity for one in (english, *reversed(others[-10:]))},
        title="Tokens relative to English: the ten languages that cost most",
        unit="parity",
        strong=[one.name for one in others[-10:]],
    )
    rows = [language_row(evaluation, one) for one in evaluation.languages]
    every = _table(Table("Languages", "", table.head, rows))
    folded = f"<details><summary>All {len(rows)} languages</summary>{every}</details>"
    words = (
        "The same text, the Universal Declaration of Human Rights, in each language. A language of "
        "parity 3 fills a model's context three times as fast as English does."
    )
    return _section("Languages", words, picture, _table(table), folded)


def _use(evaluation: Evaluation, table: Table) -> str:
    counts = np.sort(evaluation.use.counts[evaluation.use.counts > 0])[::-1]
    words = (
        f"How often tokens occur in {evaluation.corpus}: most frequent first; both axes are "
        "logarithmic."
    )
    picture = (
        ""
        if len(counts) < 2
        else plot.lines(
            {"use": (np.arange(1, len(counts) + 1), counts)},
            title="How often each token occurs, by its place in order of frequency",
            x="place of the token",
            y="times it occurs",
            log_x=True,
            log_y=True,
        )
    )
    return _section("Use", words, picture, _table(table))


def _vocabulary(evaluation: Evaluation, table: Table) -> str:
    one = evaluation.vocabulary
    tokens_by_length = {str(n): float(one.lengths.get(n, 0)) for n in range(1, 16)}
    tokens_by_length["16 or more"] = float(sum(count for n, count in one.lengths.items() if n > 15))
    picture = plot.bars(
        tokens_by_length, title="How many tokens have how many bytes", unit="tokens, by their bytes"
    )
    lists = {
        "The longest tokens": one.longest,
        "Tokens that are not whole characters": one.unwhole[:_MOST_TOKENS],
        "Tokens that no merges make": one.unreachable[:_MOST_TOKENS],
        "Unused words: neither they nor any longer token with them occur": useless(evaluation)[
            :_MOST_TOKENS
        ],
    }
    chips = "".join(
        f"<h3>{escape(title)}</h3>{_chips(evaluation, ids)}" for title, ids in lists.items() if ids
    )
    groups = "".join(f"<li>{_chips(evaluation, ids)}</li>" for ids in one.duplicates[:12])
    if groups:
        chips += f"<h3>Tokens that differ in case or a leading space</h3><ul>{groups}</ul>"
    words = (
        "What the ids stand for. A space is shown as ·, a byte that is not a whole character as "
        "its number."
    )
    return _section("Vocabulary", words, picture, _table(table), chips)


def useless(evaluation: Evaluation) -> list[int]:
    """Find the tokens that the corpus shows to be of no use, those that were learnt first in front.

    A token that never occurs may still be a step towards one that does; single bytes must be there;
    and anything that is not a whole text says nothing to a reader. All these are left out.

    Args:
        evaluation: the result of `bytepair.evaluate.measure`.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello hello", "zz zz"], vocab_size=270)
        >>> evaluation = bytepair.evaluate.measure(tok, against=[], texts={"mine": ["hello"]})
        >>> [tok.token_bytes(id) for id in useless(evaluation)]  # "el" is a step towards "hello"
        [b' hello']
    """
    tok, unused = evaluation.tokenizer, set(evaluation.use.unused)
    ranks = tok.mergeable_ranks()
    steps = {token for token, id in ranks.items() if id not in unused}
    for left, right in reversed(tok.merges()):  # the tokens that are built from a token come first
        if left + right in steps:
            steps |= {left, right}
    return [
        id
        for token, id in ranks.items()
        if len(token) > 1
        and token not in steps
        and token.decode("utf-8", "ignore").encode() == token
    ]


def _numbers(evaluation: Evaluation) -> str:
    rows = "".join(
        f"<tr><th scope=row>{escape(number)}</th>"
        + "".join(
            f"<td>{_tokens(tok, tok.encode(number))}</td>" for tok in evaluation.tokenizers.values()
        )
        + "</tr>"
        for number in evaluation.vocabulary.numbers
    )
    heads = "".join(
        f"<th scope=col>{escape(evaluation.label(who))}</th>" for who in evaluation.tokenizers
    )
    head = f"<thead><tr><th scope=col>number</th>{heads}</tr></thead>"
    table = f"<div class=scroll tabindex=0><table>{head}<tbody>{rows}</tbody></table></div>"
    return _section("Numbers", "How digits are split.", "", table)


def _sizes(evaluation: Evaluation, table: Table) -> str:
    assert evaluation.sweep is not None
    words = (
        "One training holds every smaller vocabulary. The knee is where the curve of the training "
        "text lies highest above the straight line between its ends. It is a hint: a longer curve "
        "has its knee elsewhere."
    )
    return _section(
        "Sizes", words, sizes_plot(evaluation.sweep, evaluation.overall.text), _table(table)
    )


def save_sizes_plot(sweep: Sweep, path: str | os.PathLike[str], corpus: str = "other text") -> Path:
    """Write the plot of `sizes_plot` to an SVG file, which appears complete or not at all.

    Args:
        sweep: The result of `bytepair.evaluate.sweep`.
        path: The output file; an existing file is replaced.
        corpus: The name of the held-out text.

    Returns:
        The path of the file.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_sizes_plot(bytepair.evaluate.sweep(tok), f"{folder}/sizes.svg").name
        'sizes.svg'
    """
    write_whole(Path(path), sizes_plot(sweep, corpus).encode())
    return Path(path)


def sizes_plot(sweep: Sweep, corpus: str = "other text") -> Markup:
    """Draw the bytes per token of every size, on the training text and on other text.

    Args:
        sweep: the result of `bytepair.evaluate.sweep`.
        corpus: the name of the held-out text.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> "knee" in sizes_plot(bytepair.evaluate.sweep(tok))
        True
    """
    series: dict[str, tuple[Sequence[float], Sequence[float]]] = {
        "training text": (sweep.sizes.tolist(), sweep.bytes_per_token.tolist())
    }
    if sweep.heldout:
        series[corpus] = (list(sweep.heldout), list(sweep.heldout.values()))
    if len(sweep.sizes) > 2:  # the knee is defined by this line, on these axes
        ends = [0, -1]
        line = sweep.sizes[ends].tolist(), sweep.bytes_per_token[ends].tolist()
        series["between the ends of the curve"] = line
    return plot.lines(
        series,
        title="Bytes per token at every size of the vocabulary",
        x="ids",
        y="bytes per token",
        marks={f"knee: {sweep.knee:,}": (sweep.knee, sweep.at(sweep.knee))},
    )


# ---------------------------------------------------------------------------- parts


def _section(title: str, words: str, picture: str, beside: str, below: str = "") -> str:
    figure = f"<figure>{picture}</figure>" if picture else ""
    return (
        f"<section><h2>{escape(title)}</h2><p>{escape(words)}</p>"
        f"<div class=columns>{figure}<div>{beside}</div></div>{below}</section>\n"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th scope=col>{_words(name)}</th>" for name in table.head)
    rows = "".join(
        "<tr>"
        + f"<th scope=row>{escape(row[0].text)}</th>"
        + "".join(f"<td class='{cell.tone}'>{escape(cell.text)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    note = f"<p class=below>{escape(table.note)}</p>" if table.note else ""
    kind, top = " class=numbers", f"<thead><tr>{head}</tr></thead>"
    if table.head[1:] == ["value"]:
        kind, top = "", ""
    return (
        f"<div class=scroll tabindex=0><table{kind}>{top}<tbody>{rows}</tbody></table></div>{note}"
    )


def _words(name: str) -> str:
    """A head of a column, which is broken between words only."""
    return " ".join(f"<span>{escape(word)}</span>" for word in name.split())


def _chips(evaluation: Evaluation, ids: Iterable[int]) -> str:
    return f"<p class=chips>{_tokens(evaluation.tokenizer, ids, ' ')}</p>"


def _tokens(tok: Tokenizer, ids: Iterable[int], between: str = "") -> str:
    return between.join(one.html(classes="chip", space="·") for one in draw_all(tok, ids))
