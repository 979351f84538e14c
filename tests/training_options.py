"""Options of training and reading as a test lists them, put into the values that functions take."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import bytepair

READING: Final = {one.name for one in fields(bytepair.Reading)}
TRAINING: Final = {one.name for one in fields(bytepair.TrainOptions)}


def keywords(**options: Any) -> dict[str, Any]:
    """Keywords of `train` and `count`."""
    words = {name: options[name] for name in options if name not in READING | TRAINING}
    if reading := {name: options[name] for name in options if name in READING}:
        words["reading"] = bytepair.Reading(**reading)
    if training := {name: options[name] for name in options if name in TRAINING}:
        words["options"] = bytepair.TrainOptions(**training)
    return words
