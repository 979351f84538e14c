"""The contrast of two colours, as WCAG 2 defines it: on terminals, in notebooks, in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_LEVELS = (0, 95, 135, 175, 215, 255)


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """The contrast ratio: from 1 (equal colours) to 21 (black on white)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: tuple[int, int, int]) -> float:
    linear = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in
              (value / 255 for value in color))  # fmt: skip
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def ansi_contrasts(text: str) -> Iterator[float]:
    """The contrast of each span that sets a foreground and a background of the 256 colours."""
    for ink, back in re.findall(r"38;5;(\d+);48;5;(\d+)m", text):
        yield contrast(_ansi(int(ink)), _ansi(int(back)))


def _ansi(number: int) -> tuple[int, int, int]:
    """A colour of the cube of 6 by 6 by 6 that begins at 16, which no theme changes."""
    assert 16 <= number < 232
    red, rest = divmod(number - 16, 36)
    return _LEVELS[red], _LEVELS[rest // 6], _LEVELS[rest % 6]


def styles_contrasts(page: str) -> Iterator[float]:
    """The contrast of each element whose style sets both a background and a colour."""
    for back, ink in re.findall(r"background:(#\w+);color:(#\w+)", page):
        yield contrast(_css(ink), _css(back))


def _css(text: str) -> tuple[int, int, int]:
    digits = text[1:] if len(text) == 7 else "".join(2 * c for c in text[1:])
    red, green, blue = bytes.fromhex(digits)
    return red, green, blue


def backgrounds(page: Any, selector: str) -> set[str]:
    colors = page.locator(selector).evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).backgroundColor)"
    )
    assert colors
    return set(colors)


#: The contrast of each text with its background, where it is below 4.5.
CONTRASTS = """() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const read = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
    const over = (top, under, all = 1) => { const a = top[3] * all;
        return [0, 1, 2].map((n) => top[n] * a + under[n] * (1 - a)).concat(1); };
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const page = dark ? [0, 0, 0, 1] : [255, 255, 255, 1];
    const behind = (e) => { const up = []; for (let n = e; n; n = n.parentElement) up.unshift(n);
        return up.reduce((under, n) => over(read(getComputedStyle(n).backgroundColor), under),
            page); };
    const faded = (e) => { let a = 1; for (let n = e; n; n = n.parentElement)
        a *= Number(getComputedStyle(n).opacity); return a; };
    const found = [];
    const check = (e, style, text) => {
        const back = behind(e);
        const ink = over(read(e.closest('svg') ? style.fill : style.color), back, faded(e));
        const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push([Number(ratio.toFixed(2)), text, e.outerHTML.slice(0, 120)]);
    };
    for (const e of document.body.querySelectorAll('*')) {
        if (!e.checkVisibility() || e.matches('script, noscript, option, title, .unseen')) continue;
        const own = [...e.childNodes].filter((n) => n.nodeType === 3 && n.data.trim());
        const style = getComputedStyle(e);
        if (own.length && parseFloat(style.fontSize) > 0) check(e, style, own[0].data);
        const takes = 'select, input:not([type=checkbox], [type=range]), textarea';
        if (e.matches(takes)) check(e, style, e.value);
        const front = getComputedStyle(e, '::before');
        if (!['none', 'normal', '""'].includes(front.content)) check(e, front, front.content);
    }
    return found; }"""
