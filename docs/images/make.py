"""The drawings of the documentation, as SVG beside this file: `python docs/images/make.py`.

Each is made by the library from its sample texts. Colours are readable on light and on dark pages:
words outside of boxes are grey, and boxes have a background of their own under dark text.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import matplotlib

import bytepair
from bytepair import reference

FOLDER = Path(__file__).parent
COLORS = ("#a6cee3", "#b2df8a", "#fdd49e", "#cab2d6", "#fbb4ae", "#ffff99")
TRAINED, UNTRAINED, GREY = "#a1d99b", "#fcbba1", "#808080"
#: Plots write in this grey as well.
GREY_WORDS = dict.fromkeys(
    ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], GREY
) | {"svg.fonttype": "none", "svg.hashsalt": "bytepair"}
WIDTH, STEP = 680, 30


class Drawing:
    """Boxes and words in rows, from the top to the bottom."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[str] = []
        self.x, self.y = 0, 0

    def row(self, label: str = "") -> None:
        """Begin a row, with a label in grey before its boxes."""
        self.x, self.y = 110, self.y + STEP
        self.write(label, 4)

    def write(self, words: str, x: int) -> None:
        """Write words in grey at a place of the row."""
        if words:
            self.parts.append(
                f'<text x="{x}" y="{self.y}" fill="{GREY}" font-size="13">{escape(words)}</text>'
            )

    def box(self, words: str, color: str, note: str = "") -> None:
        """Draw words in a box, in the next row if this one is full; a note in grey follows it."""
        width = round(8.5 * len(words)) + 10
        if self.x + width > WIDTH:
            self.row()
        self.parts.append(
            f'<rect x="{self.x}" y="{self.y - 17}" width="{width}" height="24" rx="4" '
            f'fill="{color}"/><text x="{self.x + width / 2:g}" y="{self.y}" fill="#111" '
            f'text-anchor="middle" font-family="monospace" font-size="14">{escape(words)}</text>'
        )
        self.write(note, self.x + width + 5)
        self.x += width + 4 + (9 * len(note) + 8 if note else 0)

    def save(self, name: str) -> None:
        """Write the drawing as `name`.svg."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 4} {self.y + 16}" '
            f'role="img" font-family="sans-serif"><title>{escape(self.title)}</title>'
        )
        (FOLDER / f"{name}.svg").write_text("\n".join([head, *self.parts, "</svg>\n"]), "utf-8")


def visible(token: bytes | str) -> str:
    """Draw spaces as a mark, and line breaks too."""
    text = token.decode("utf-8", "replace") if isinstance(token, bytes) else token
    return text.replace(" ", "␣").replace("\n", "⏎")


def how_it_works() -> None:
    """From a text to its ids: pretokens, counts, merges, tokens."""
    text = "low lower low slow low"
    pretokens = [p.encode() for p in bytepair.pretokenize(text)]
    counts = {p: pretokens.count(p) for p in pretokens}
    color = dict(zip(counts, COLORS, strict=False))
    merges = reference.train(counts, 4)
    tokens = reference.vocabulary(merges)
    drawing = Drawing("A text becomes pretokens, counts, merges, tokens and ids")
    drawing.row("text")
    drawing.box(text, "#e5e5e5")
    drawing.row("pretokens")
    for pretoken in pretokens:
        drawing.box(visible(pretoken), color[pretoken])
    drawing.row("counts")
    for pretoken, count in counts.items():
        drawing.box(visible(pretoken), color[pretoken], f"× {count}")
    drawing.row("merges")
    for new, (left, right) in enumerate(merges, 256):
        drawing.box(f"{visible(tokens[left])} + {visible(tokens[right])}", "#e5e5e5", f"→ {new}")
    ranks = {token: rank for rank, token in enumerate(tokens)}
    encoded = [(p, id) for p in pretokens for id in reference.encode(p, ranks)]
    drawing.row("tokens")
    for pretoken, id in encoded:
        drawing.box(visible(tokens[id]), color[pretoken])
    drawing.row("ids")
    for pretoken, id in encoded:
        drawing.box(str(id), color[pretoken])
    drawing.save("how-it-works")


def conversation() -> None:
    """The tokens of a conversation, coloured by its mask."""
    tok = bytepair.train(bytepair.sample.paths(), vocab_size=4096)
    parts = [
        {"type": "python", "text": "12 * 12"},
        {"type": "python_output", "text": "144"},
        {"type": "text", "text": "It is 144."},
    ]
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 12 * 12?"},
        {"role": "assistant", "content": parts},
    ]
    drawing = Drawing("The tokens of a conversation: green ones are trained on, red ones are not")
    rows = {"<|bos|>": "user", "<|assistant_start|>": "assistant"}
    names = {id: name for name, id in tok.special_tokens.items()}
    for id, mask in zip(*tok.render_conversation(talk), strict=True):
        name = names.get(id)
        if name in rows:
            drawing.row(rows[name])
        words = name or visible(tok.token_bytes(id))
        drawing.box(words, TRAINED if mask else UNTRAINED)
    drawing.row("mask")
    drawing.box("1: trained on", TRAINED)
    drawing.box("0: not trained on", UNTRAINED)
    drawing.save("conversation-mask")


def sizes() -> None:
    """Bytes per token of every size, on the sample texts and on text that was not trained on."""
    tok = bytepair.train(bytepair.sample.paths(), vocab_size=4096)
    heldout = [bytepair.evaluate.samples()["news"]]
    with matplotlib.rc_context(GREY_WORDS):
        axes = bytepair.plot.sizes(bytepair.evaluate.sweep(tok, heldout), "news")
        axes.figure.savefig(FOLDER / "sizes.svg", metadata={"Date": None}, transparent=True)


if __name__ == "__main__":
    how_it_works()
    conversation()
    sizes()
