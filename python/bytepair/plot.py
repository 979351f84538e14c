"""Three kinds of plots as SVG, without a plotting library.

`bars` shows one number per row, `dots` several numbers per row, `lines` one quantity as a function
of another. The SVG has no scripts and no external resources, includes its title, and uses the
text colour of the page for labels and axes. It is 420 units wide, so that it is readable on a
phone; a label that is too long is shortened in the middle, and complete in the tooltip.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bytepair._internal.drawing import Markup

if TYPE_CHECKING:
    from bytepair.evaluate import Sweep

__all__ = ["bars", "dots", "lines", "sizes"]

#: The colours of series: distinguishable on light and dark pages, and by most colour-blind people.
COLORS: Final = ("#3f7ee8", "#e07b39", "#2f9e7a", "#b65fb0", "#a58a1f", "#6c6fd3")

WIDTH_PIXELS: Final = 420
_ROW_PIXELS: Final = 18
#: The right margin: half the width of the last number on an axis.
_RIGHT_PIXELS: Final = 26
#: The font sizes of labels and titles.
_LABEL_PIXELS: Final = 12
_TITLE_PIXELS: Final = 13


@dataclass(frozen=True)
class Scale:
    """Maps a range of numbers to a range of coordinates.

    Attributes:
        low: the number at `start`.
        high: the number at `end`.
        start: the first coordinate.
        end: the last coordinate.
        log: whether the scale is logarithmic.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of a number."""
        low, high, value = ((math.log(x) if self.log else x) for x in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers in the range: powers of two or ten, or steps of 1, 2 or 5."""
        if self.log:
            base = 10 if self.high / self.low > 1000 else 2
            powers = range(
                math.ceil(math.log(self.low, base) - 1e-9),
                math.floor(math.log(self.high, base) + 1e-9) + 1,
            )
            every = max(1, math.ceil(len(powers) / most))
            return [float(base**n) for n in powers][::every]
        rough = (self.high - self.low) / most or 1.0
        power = 10 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(n * step, 10) for n in range(first, last + 1)]


def bars(
    rows: Mapping[str, float], *, title: str, unit: str = "", strong: Sequence[str] = ()
) -> Markup:
    """Draw a horizontal bar chart.

    Args:
        rows: the number of each row, by label.
        title: the title of the plot.
        unit: the unit of the numbers.
        strong: the labels of highlighted rows.

    Example:
        >>> picture = bars({"one": 1, "two": 2}, title="Numbers")
        >>> picture.startswith("<svg"), picture.count("<rect")
        (True, 2)
    """
    left = _label_width(rows)
    scale = Scale(0, max([*rows.values(), 1e-9]), left, WIDTH_PIXELS - 52)
    parts = []
    for number, (label, value) in enumerate(rows.items()):
        y = 8 + number * _ROW_PIXELS
        width = round(max(scale(value) - left, 0.5), 1)
        color = COLORS[1] if label in strong else COLORS[0]
        parts.append(_text(left - 8, y + 11, label, "end", room=left - 10))
        parts.append(
            f'<rect x="{left}" y="{y}" width="{width}" height="13" rx="2" fill="{color}"/>'
        )
        parts.append(_text(left + width + 5, y + 11, _number(value), "start", faint=True))
    height = 14 + len(rows) * _ROW_PIXELS
    if unit:
        parts.append(_text(left, height + 8, unit, "start", faint=True))
        height += 16
    return _svg(parts, height, title)


def dots(rows: Mapping[str, Mapping[str, float]], *, title: str, unit: str = "") -> Markup:
    """Draw a dot plot: one line per row, and one dot per series on it.

    Args:
        rows: for each row label, the numbers by series; the first row determines the series.
        title: the title of the plot.
        unit: the unit of the numbers.

    Example:
        >>> picture = dots({"news": {"ours": 4.1, "theirs": 4.4}}, title="Bytes per token")
        >>> picture.count("<circle")
        4
    """
    kinds = list(next(iter(rows.values()), {}))
    left, top = _label_width(rows), 12 + 16 * len(kinds)
    values = [value for row in rows.values() for value in row.values()]
    scale = Scale(0, max([*values, 1e-9]), left, WIDTH_PIXELS - _RIGHT_PIXELS)
    bottom = top + 8 + len(rows) * (_ROW_PIXELS + 4)
    parts = _legend(kinds, left)
    for tick in scale.ticks():
        x = scale(tick)
        parts.append(_line(x, top, x, bottom))
        parts.append(_text(x, bottom + 14, _number(tick), "middle", faint=True))
    for number, (label, row) in enumerate(rows.items()):
        y = top + 16 + number * (_ROW_PIXELS + 4)
        ends = [scale(value) for value in row.values()]
        parts.append(_text(left - 8, y + 4, label, "end", room=left - 10))
        parts.append(_line(min(ends), y, max(ends), y, strong=True))
        for kind, value in reversed(list(row.items())):
            place = kinds.index(kind)
            color, shift = COLORS[place % len(COLORS)], 3 * place - 1.5 * (len(kinds) - 1)
            parts.append(
                f'<circle cx="{scale(value)}" cy="{y + shift}" r="4.5" fill="{color}">'
                f"<title>{html.escape(f'{label}, {kind}: {_number(value)}')}</title></circle>"
            )
    if unit:
        parts.append(_text(WIDTH_PIXELS - _RIGHT_PIXELS, bottom + 30, unit, "end", faint=True))
    return _svg(parts, bottom + (36 if unit else 20), title)


def lines(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    title: str,
    x: str = "",
    y: str = "",
    log_x: bool = False,
    log_y: bool = False,
    marks: Mapping[str, tuple[float, float]] | None = None,
) -> Markup:
    """Draw a line chart.

    Args:
        series: for each name, the x values in increasing order and the y values; long series are
            thinned to visible points, and a series of one point is a dot.
        title: the title of the plot.
        x: the label of the x axis.
        y: the label of the y axis.
        log_x: whether the x axis is logarithmic.
        log_y: whether the y axis is logarithmic.
        marks: points to highlight, by label.

    Example:
        >>> picture = lines({"squares": ([0, 1, 2], [0, 1, 4])}, title="Squares")
        >>> picture.count("<polyline")
        1
    """
    data = {
        n: _thinned(np.asarray(a, float), np.asarray(b, float), log_x)
        for n, (a, b) in series.items()
    }
    xs = np.concatenate([a for a, _ in data.values()])
    ys = np.concatenate([b for _, b in data.values()])
    top, bottom, left = 12 + 16 * (len(data) if len(data) > 1 else 0) + (16 if y else 0), 270, 54
    across = Scale(float(xs.min()), float(xs.max()), left, WIDTH_PIXELS - _RIGHT_PIXELS, log_x)
    floor = float(ys.min()) if log_y else min(0.0, float(ys.min()))
    up = Scale(floor, float(ys.max()), bottom, top, log_y)
    parts = _legend(list(data), left) if len(data) > 1 else []
    parts += _axes(across, up)
    if y:
        parts.append(_text(4, top - 10, y, "start", faint=True))
    if x:
        parts.append(_text(WIDTH_PIXELS - _RIGHT_PIXELS, bottom + 32, x, "end", faint=True))
    for number, (a, b) in enumerate(data.values()):
        points = " ".join(f"{across(i)},{up(j)}" for i, j in zip(a, b, strict=True))
        color = COLORS[number % len(COLORS)]
        parts.append(
            f'<circle cx="{across(a[0])}" cy="{up(b[0])}" r="5" fill="{color}"/>'
            if len(a) == 1
            else f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2" '
            'stroke-linejoin="round"/>'
        )
    for words, (i, j) in (marks or {}).items():
        place, side = across(i), "end" if across(i) > WIDTH_PIXELS / 2 else "start"
        parts.append(f'<circle cx="{place}" cy="{up(j)}" r="5" fill="{COLORS[1]}"/>')
        shift = -10 if side == "end" else 10
        parts.append(_text(place + shift, up(j) + (16 if side == "start" else -8), words, side))
    return _svg(parts, bottom + (38 if x else 22), title)


def sizes(sweep: Sweep, corpus: str = "other text") -> Markup:
    """Draw the bytes per token of every size, on the training text and on other text.

    Args:
        sweep: the result of `bytepair.evaluate.sweep`.
        corpus: the name of the held-out text.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> "knee" in sizes(bytepair.evaluate.sweep(tok))
        True
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
    return lines(
        series,
        title="Bytes per token at every size of the vocabulary",
        x="ids",
        y="bytes per token",
        marks={f"knee: {sweep.knee:,}": (sweep.knee, sweep.at(sweep.knee))},
    )


# ---------------------------------------------------------------------------- parts


def _axes(across: Scale, up: Scale) -> list[str]:
    parts = []
    for tick in up.ticks():
        parts.append(_line(across.start, up(tick), across.end, up(tick)))
        parts.append(_text(across.start - 6, up(tick) + 4, _number(tick), "end", faint=True))
    for tick in across.ticks():
        parts.append(_line(across(tick), up.start, across(tick), up.start + 4, strong=True))
        parts.append(_text(across(tick), up.start + 16, _number(tick), "middle", faint=True))
    parts.append(_line(across.start, up.start, across.end, up.start, strong=True))
    return parts


def _thinned(
    x: NDArray[np.float64], y: NDArray[np.float64], log: bool, most: int = 200
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Keep the points that are apart on the scale, and both ends."""
    if len(x) <= most:
        return x, y
    grid = np.geomspace(x[0], x[-1], most) if log else np.linspace(x[0], x[-1], most)
    indexes = np.unique(np.clip(np.searchsorted(x, grid - 1e-9), 0, len(x) - 1))
    return x[indexes], y[indexes]


def _legend(kinds: Sequence[str], left: float) -> list[str]:
    parts = []
    for number, kind in enumerate(kinds):
        y, color = 10 + 16 * number, COLORS[number % len(COLORS)]
        parts.append(f'<circle cx="{left + 5}" cy="{y}" r="5" fill="{color}"/>')
        parts.append(_text(left + 16, y + 4, kind, "start", room=WIDTH_PIXELS - left - 18))
    return parts


def _label_width(rows: Mapping[str, object]) -> int:
    return min(190, 16 + max((math.ceil(_wide(label)) for label in rows), default=0))


def _wide(text: str, letters: int = _LABEL_PIXELS) -> float:
    """Estimate the width of a text: that in DejaVu Sans, which is wider than most fonts."""
    shares = (
        0.0 if unicodedata.combining(c)
        else 1.0 if unicodedata.east_asian_width(c) in "WF"
        else 0.98 if c in "mwMW@%"
        else 0.76 if c.isupper()
        else 0.39 if c in " .,:;'|!()[]ijltf"
        else 0.635
        for c in text
    )  # fmt: skip
    return letters * sum(shares)


def _fitted(text: str, room: float) -> str:
    """Shorten a text in the middle if it is too wide."""
    for length in range(len(text), 0, -1):
        shown = (
            text if length == len(text) else f"{text[: (length + 1) // 2]}…{text[-(length // 2) :]}"
        )
        if _wide(shown) <= room:
            return shown
    return "…"


def _text(
    x: float, y: float, text: str, anchor: str, *, faint: bool = False, room: float = math.inf
) -> str:
    look = ' opacity="0.75"' if faint else ""
    place = f'x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}"'
    shown = _fitted(text, room)
    whole = "" if shown == text else f"<title>{html.escape(text)}</title>"
    return f'<text {place} fill="currentColor"{look}>{html.escape(shown)}{whole}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, *, strong: bool = False) -> str:
    places = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
    return f'<line {places} stroke="currentColor" opacity="{0.45 if strong else 0.13}"/>'


def _number(value: float) -> str:
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1e5:
        return f"{value / 1e3:.3g}k"
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"


def _lines(title: str) -> list[str]:
    """Wrap a title into lines."""
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _wide(longer, _TITLE_PIXELS + 1) > WIDTH_PIXELS - 8:  # bold text is wider
            lines.append(word)
        else:
            lines[-1] = longer
    return [line for line in lines if line]


def _svg(parts: Sequence[str], height: float, title: str) -> Markup:
    words, lines = html.escape(title), _lines(title)
    top = 18 * len(lines) + (4 if lines else 0)
    head = "".join(
        f'<text x="4" y="{14 + 18 * number}" font-size="{_TITLE_PIXELS}" font-weight="600" '
        f'fill="currentColor">{html.escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {WIDTH_PIXELS} {round(height) + top}" '
        f'width="{WIDTH_PIXELS}" role="img" aria-label="{words}" font-size="{_LABEL_PIXELS}" '
        'font-family="system-ui, sans-serif" style="max-width:100%;height:auto">'
        f'<title>{words}</title>{head}<g transform="translate(0 {top})">{"".join(parts)}</g></svg>'
    )
