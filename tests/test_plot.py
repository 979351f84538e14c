"""The pictures are well-formed, and have every value at its place."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bytepair import plot

NS = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for part in root.iter():
        for name in ("x", "x1", "x2", "cx"):
            assert -1 <= float(part.attrib.get(name, 0)) <= width + 1
        for name in ("y", "y1", "y2", "cy"):
            assert -1 <= float(part.attrib.get(name, 0)) <= height + 1
    return root


def words(root: ET.Element) -> list[str]:
    return [part.text or "" for part in root.iter(f"{NS}text")]


def test_bars_are_as_long_as_their_numbers() -> None:
    root = parsed(
        plot.bars({"a<b": 1, "two": 2, "four": 4}, title="T & T", unit="u", strong=["two"])
    )
    widths = [float(rect.attrib["width"]) for rect in root.iter(f"{NS}rect")]
    assert widths[2] == pytest.approx(2 * widths[1], abs=0.2)
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)
    assert {"a<b", "two", "four", "1", "2", "4", "u"} <= set(words(root))
    assert root.attrib["aria-label"] == "T & T"
    colors = [rect.attrib["fill"] for rect in root.iter(f"{NS}rect")]
    assert colors[0] == colors[2] != colors[1]


def test_dots_stand_where_their_numbers_are() -> None:
    root = parsed(plot.dots({"x": {"p": 0, "q": 10}, "y": {"p": 5, "q": 5}}, title="t", unit="u"))
    places = {}
    for circle in root.iter(f"{NS}circle"):
        title = circle.find(f"{NS}title")
        if title is not None:
            places[title.text] = float(circle.attrib["cx"])
    assert places["x, p: 0"] < places["y, p: 5"] == places["y, q: 5"] < places["x, q: 10"]
    middle = (places["x, p: 0"] + places["x, q: 10"]) / 2
    assert places["y, p: 5"] == pytest.approx(middle, abs=0.2)


def test_lines_go_up_where_numbers_do() -> None:
    x = np.arange(1, 5001)
    svg = plot.lines(
        {"a": (x, x), "b": ([1, 5000], [1, 1])}, title="t", x="x", y="y", log_x=True, log_y=True,
        marks={"here": (100, 100)},
    )  # fmt: skip
    root = parsed(svg)
    first, second = root.iter(f"{NS}polyline")
    points = [tuple(map(float, p.split(","))) for p in first.attrib["points"].split()]
    assert 100 < len(points) <= 200
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in itertools.pairwise(points))
    assert len(second.attrib["points"].split()) == 2
    assert "here" in words(root)


def test_scales_have_round_ticks() -> None:
    assert plot.Scale(0, 4.7, 0, 1).ticks() == [0, 1, 2, 3, 4]
    assert plot.Scale(0, 0.3, 0, 1).ticks() == [0, 0.1, 0.2, 0.3]
    assert plot.Scale(300, 5000, 0, 1, log=True).ticks() == [512, 1024, 2048, 4096]
    assert plot.Scale(1, 1e6, 0, 1, log=True).ticks(4)[0] == 1
    assert plot.Scale(3, 3, 0, 100)(3) == 50


@pytest.mark.parametrize("rows", [{}, {"only": 0.0}])
def test_nothing_to_show_is_shown(rows: dict[str, float]) -> None:
    parsed(plot.bars(rows, title="none"))
    parsed(plot.dots({name: {"a": value} for name, value in rows.items()}, title="none"))


def test_a_picture_carries_its_title() -> None:
    title = "How often each token of a vocabulary occurs, by its place in order of frequency"
    for svg in (
        plot.bars({"a": 1}, title=title), plot.dots({"a": {"b": 1}}, title=title),
        plot.lines({"a": ([1, 2], [1, 2])}, title=title),
    ):  # fmt: skip
        shown = words(parsed(svg._repr_html_()))
        assert " ".join(shown[:2]) == title
        assert max(map(len, shown[:2])) < 65


@pytest.mark.parametrize(
    "label", ["a text with a name that is much too long for a picture", "漢" * 40]
)
def test_labels_that_do_not_fit_are_shortened(label: str) -> None:
    for svg in (plot.bars({label: 1}, title="t"), plot.dots({label: {label: 1}}, title="t")):
        root = parsed(svg)
        short = [word for word in words(root) if "…" in word]
        assert short
        assert all(word[0] == label[0] and word[-1] == label[-1] for word in short)
        titles = [part.text for part in root.iter(f"{NS}title")]
        assert label in titles  # whole when the mouse is over it


def test_pictures_load_nothing() -> None:
    svg = plot.bars({"<script>alert(1)</script>": 1}, title='"><script>')
    assert "<script" not in svg
    assert not re.search(r"(?:href|src|url)\s*[=(]", svg)
    assert svg._repr_html_() == str(svg)
