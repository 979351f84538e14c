"""Draw numbers with matplotlib (extra `plot`), as axes that a caller may change or save.

`bars` shows one number per row, `dots` several numbers per row, `lines` one quantity as a function
of another, and `sizes` a sweep. As in pandas and seaborn, each draws on the axes `ax`, or on new
ones, and returns them; `title` is that of the plot, and `unit` that of the numbers:

    bytepair.plot.sizes(sweep).figure.savefig("sizes.svg")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from bytepair.evaluate import Sweep

__all__ = ["bars", "dots", "lines", "sizes"]

#: The colour of highlighted rows and marks: the second one of matplotlib's cycle.
_STRONG: Final = "C1"

#: The size of new axes in inches: the width, the height, and that of a row.
_WIDTH, _HEIGHT, _ROW_HEIGHT = 6.0, 3.6, 0.28


def bars(
    rows: Mapping[str, float],
    *,
    title: str = "",
    unit: str = "",
    strong: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw a horizontal bar chart: one bar per label, those in `strong` highlighted.

    Example:
        >>> import bytepair
        >>> axes = bytepair.plot.bars({"one": 1, "two": 2}, title="Numbers", unit="words")
        >>> axes.get_title(), axes.get_xlabel()
        ('Numbers', 'words')
    """
    ax = _new(_ROW_HEIGHT * len(rows)) if ax is None else ax
    colors = [_STRONG if label in strong else "C0" for label in rows]
    drawn = ax.barh(range(len(rows)), list(rows.values()), color=colors)
    ax.bar_label(drawn, [_number(value) for value in rows.values()], padding=4)
    ax.margins(x=0.15)
    return _with_rows(ax, rows, title, unit)


def dots(
    rows: Mapping[str, Mapping[str, float]],
    *,
    title: str = "",
    unit: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a dot plot: one line per row, and one dot per series on it.

    `rows` has for each label the numbers by series; the first row determines the series.

    Example:
        >>> import bytepair
        >>> axes = bytepair.plot.dots({"news": {"ours": 4.1, "theirs": 4.4}})
        >>> [text.get_text() for text in axes.get_legend().get_texts()]
        ['ours', 'theirs']
    """
    ax = _new(_ROW_HEIGHT * len(rows)) if ax is None else ax
    series = list(next(iter(rows.values()), {}))
    for place, row in enumerate(rows.values()):
        ax.plot([min(row.values()), max(row.values())], [place, place], color="0.75", zorder=1)
    for name in series:
        ax.scatter([row[name] for row in rows.values()], range(len(rows)), label=name, zorder=2)
    if series:
        ax.legend()
    ax.set_xlim(left=0)
    return _with_rows(ax, rows, title, unit)


def lines(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    title: str = "",
    x: str = "",
    y: str = "",
    log_x: bool = False,
    marks: Mapping[str, tuple[float, float]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a line chart.

    `series` has for each name the x values and the y values; a series of one point is a dot. The
    axes have the labels `x` and `y`, and with `log_x` a logarithmic x axis. `marks` are points to
    highlight, by label.

    Example:
        >>> import bytepair
        >>> axes = bytepair.plot.lines({"squares": ([0, 1, 2], [0, 1, 4])}, title="Squares")
        >>> axes.lines[0].get_ydata().tolist()
        [0, 1, 4]
    """
    ax = _new(_HEIGHT) if ax is None else ax
    for name, (xs, ys) in series.items():
        (line,) = ax.plot(xs, ys, label=name)
        if len(np.asarray(xs)) == 1:
            line.set_marker("o")
    for words, place in (marks or {}).items():
        ax.plot(*place, "o", color=_STRONG)
        ax.annotate(words, place, xytext=(8, -14), textcoords="offset points")
    ax.set_title(title, wrap=True)
    ax.set(xlabel=x, ylabel=y)
    if log_x:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
    if len(series) > 1:
        ax.legend()
    return ax


def sizes(sweep: Sweep, corpus: str = "other text", *, ax: Axes | None = None) -> Axes:
    """Draw the bytes per token of every size, on the training text and on other text.

    `sweep` is the result of `bytepair.evaluate.sweep`, and `corpus` the name of its other text.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> axes = bytepair.plot.sizes(bytepair.evaluate.sweep(tok))
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('ids', 'bytes per token')
    """
    series: dict[str, tuple[ArrayLike, ArrayLike]] = {
        "training text": (sweep.sizes, sweep.bytes_per_token)
    }
    if sweep.heldout:
        series[corpus] = (list(sweep.heldout), list(sweep.heldout.values()))
    if len(sweep.sizes) > 2:  # the knee is defined by this line, on these axes
        ends = [0, -1]
        line = sweep.sizes[ends], sweep.bytes_per_token[ends]
        series["between the ends of the curve"] = line
    marks = {f"knee: {sweep.knee:,}": (sweep.knee, sweep.at(sweep.knee))}
    title = "Bytes per token at every size of the vocabulary"
    return lines(series, title=title, x="ids", y="bytes per token", marks=marks, ax=ax)


def _new(height: float) -> Axes:
    """New axes whose labels have room."""
    from bytepair._internal.extras import matplotlib_pyplot as pyplot

    figure, ax = pyplot.subplots(figsize=(_WIDTH, height + 1), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1)
    new: Axes = ax
    return new


def _with_rows(ax: Axes, rows: Mapping[str, object], title: str, unit: str) -> Axes:
    """Write the labels of rows, the first at the top, without reading `$` as mathematics."""
    ax.set_yticks(range(len(rows)), list(rows), parse_math=False)
    ax.invert_yaxis()
    ax.set_title(title, wrap=True)
    ax.set(xlabel=unit)
    return ax


def _number(value: float) -> str:
    """A number in at most four digits."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
