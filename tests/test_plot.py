"""The pictures have every value at its place, and draw on the axes that they are given."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bytepair import plot

mpl = pytest.importorskip("matplotlib")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402


@pytest.fixture(autouse=True)
def without_windows() -> Iterator[None]:
    """Pictures are drawn into memory, and closed."""
    mpl.use("agg")
    yield
    pyplot.close("all")


def words(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_bars_are_as_long_as_their_numbers() -> None:
    axes = plot.bars({"a<b": 1, "two": 2, "four": 4}, title="T & T", unit="u", strong=["two"])
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_width() for bar in bars] == [1, 2, 4]
    assert words(axes) == ["a<b", "two", "four"]
    assert {text.get_text() for text in axes.texts} == {"1", "2", "4"}
    assert (axes.get_title(), axes.get_xlabel()) == ("T & T", "u")
    colors = [to_rgb(bar.get_facecolor()) for bar in bars]
    assert colors[0] == colors[2] != colors[1]
    top, bottom = (axes.transData.transform((0, place))[1] for place in (0, 2))
    assert top > bottom  # the first row


def test_dots_stand_where_their_numbers_are() -> None:
    axes = plot.dots({"x": {"p": 0, "q": 10}, "y": {"p": 5, "q": 5}}, title="t", unit="u")
    p, q = (np.asarray(dots.get_offsets()).tolist() for dots in axes.collections)
    assert (p, q) == ([[0, 0], [5, 1]], [[10, 0], [5, 1]])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["p", "q"]


def test_lines_go_up_where_numbers_do() -> None:
    x = np.arange(1, 5001)
    axes = plot.lines(
        {"a": (x, x), "b": ([1, 5000], [1, 1]), "dot": ([7], [7])}, title="t", x="x", y="y",
        log_x=True, marks={"here": (100, 100)},
    )  # fmt: skip
    first, second, dot, mark = axes.lines
    assert np.array_equal(np.asarray(first.get_ydata()), x)
    assert len(np.asarray(second.get_ydata())) == 2
    assert (dot.get_marker(), mark.get_marker()) == ("o", "o")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert "here" in {text.get_text() for text in axes.texts}


def test_a_line_stands_on_zero() -> None:
    assert plot.lines({"a": ([1, 2], [3, 4])}).get_ylim()[0] == 0
    assert plot.lines({"a": ([1, 2], [-3, 4])}).get_ylim()[0] < -3


@pytest.mark.parametrize("rows", [{}, {"only": 0.0}])
def test_nothing_to_show_is_shown(rows: dict[str, float]) -> None:
    plot.bars(rows, title="none")
    pyplot.gcf().draw_without_rendering()
    plot.dots({name: {"a": value} for name, value in rows.items()}, title="none")
    pyplot.gcf().draw_without_rendering()


def test_a_plot_draws_on_given_axes() -> None:
    _, (above, below) = pyplot.subplots(2)
    assert plot.bars({"a": 1}, ax=above) is above
    assert plot.dots({"a": {"b": 1}}, ax=below) is below
    assert plot.lines({"a": ([1], [1])}, ax=below) is below
    assert len(pyplot.get_fignums()) == 1


def test_a_label_is_no_formula() -> None:
    axes = plot.bars({"$x$ and $y": 1.0})
    pyplot.gcf().draw_without_rendering()
    assert words(axes) == ["$x$ and $y"]
