"""What a format cannot represent of a tokenizer, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bytepair.errors import WayOut


class Losses(list[str]):
    """The losses of writing a tokenizer in a format, one sentence each.

    Attributes:
        ways_out: how less is lost, as in `LossError`.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 258, special_tokens=["<a>"])
        >>> [str(way_out) for way_out in tok.export_losses("gguf").ways_out]
        ['give a special token this role with Tokenizer.replace(roles={"eos": ...})']
    """

    def __init__(self, losses: Iterable[str] = (), ways_out: Sequence[WayOut] = ()) -> None:
        super().__init__(losses)
        self.ways_out = tuple(ways_out)
