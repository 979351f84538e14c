"""Rows of Alpaca and of ShareGPT are the conversations that LLaMA-Factory makes of them.

Its converters are run alone: the rest of the package needs much that they do not (`absent`).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from absent import stand_in
from bytepair import chat
from bytepair.chat import ChatOptions

FOUND = importlib.util.find_spec("llamafactory")
TOK = bytepair.train(
    bytepair.sample.paths()[:1], 400, special_tokens=["<|im_start|>", "<|im_end|>"]
)
#: What LLaMA-Factory calls the fields and the roles by default, and ours.
FIELDS = {
    "alpaca": {"prompt": "instruction", "query": "input", "response": "output"},
    "sharegpt": {
        "messages": "conversations", "role_tag": "from", "content_tag": "value",
        "user_tag": "human", "assistant_tag": "gpt", "observation_tag": "observation",
        "function_tag": "function_call", "system_tag": "system",
    },
}  # fmt: skip
TEXTS = st.text(alphabet="ab é\n", min_size=1, max_size=5)


class Attributes(SimpleNamespace):
    """The description of a data set; what is not set is None."""

    def __getattr__(self, name: str) -> None:
        return None


@pytest.fixture(scope="module")
def converters() -> Iterator[Any]:
    if FOUND is None or FOUND.origin is None:
        pytest.skip("needs the package llamafactory")
    pytest.importorskip("datasets")
    folder = Path(FOUND.origin).parent
    with pytest.MonkeyPatch.context() as patch:
        for name, path in (("llamafactory", folder), ("llamafactory.data", folder / "data")):
            package = types.ModuleType(name)
            package.__path__ = [str(path)]  # without its `__init__`
            patch.setitem(sys.modules, name, package)
        for name in ("llamafactory.extras", "llamafactory.extras.logging"):
            patch.setitem(sys.modules, name, stand_in(name))
        yield importlib.import_module("llamafactory.data.converter")
    for name in ("data_utils", "converter"):
        del sys.modules[f"llamafactory.data.{name}"]


def compared(converter: Any, kind: Any, row: dict[str, Any]) -> None:
    """Render a row here, and what LLaMA-Factory makes of it."""
    attributes = Attributes(**FIELDS[kind], **{name: name for name in row if name in OPTIONAL})
    result = converter(attributes, Attributes())(row)
    talk = [{"role": "system", "content": result["_system"]}] if result["_system"] else []
    talk += [*result["_prompt"], *result["_response"]]
    theirs = TOK.render_conversation(talk, template=chat.CHATML)
    assert (
        TOK.render_conversation(row, template=chat.CHATML, options=ChatOptions(rows=kind)) == theirs
    )


#: Fields that a row may have.
OPTIONAL = ("system", "history")


@given(st.data())
def test_rows_of_alpaca(converters: Any, data: st.DataObject) -> None:
    row: dict[str, Any] = {"instruction": data.draw(TEXTS), "output": data.draw(TEXTS)}
    row["input"] = data.draw(st.just("") | TEXTS)
    row["system"] = data.draw(st.just("") | TEXTS)
    row["history"] = data.draw(st.lists(st.tuples(TEXTS, TEXTS).map(list), max_size=2))
    compared(converters.AlpacaDatasetConverter, "alpaca", row)


@given(st.data())
def test_rows_of_sharegpt(converters: Any, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
    turns = [
        {"from": name, "value": text}
        for pair in pairs
        for name, text in zip(("human", "gpt"), pair, strict=True)
    ]
    row: dict[str, Any] = {"conversations": turns}
    if system := data.draw(st.just("") | TEXTS):
        if data.draw(st.booleans()):
            row["system"] = system
        else:
            turns.insert(0, {"from": "system", "value": system})
    compared(converters.SharegptDatasetConverter, "sharegpt", row)
