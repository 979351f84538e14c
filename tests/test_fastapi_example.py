"""The example of a web service answers what the tokenizer does; it needs FastAPI and httpx."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import bytepair

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/fastapi_app.py"


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    pytest.importorskip("fastapi")
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_counts_truncates_and_streams(names: dict[str, Any]) -> None:
    pytest.importorskip("httpx")
    testing = pytest.importorskip("fastapi.testclient")
    client, tok = testing.TestClient(names["app"]), names["tok"]
    for text in ("To be, or not to be: né 😀", "", "long text " * 3000):
        assert client.post("/count", json={"text": text}).json() == {
            "tokens": len(tok.encode(text))
        }
        answer = client.post("/truncate", json={"text": text, "max_tokens": 4})
        assert answer.json() == {"text": bytepair.tokenizer.truncate_text(tok, text, 4)}
        assert client.post("/stream", json={"text": text}).text == text
    talk = [{"role": role, "content": "Hi."} for role in ("user", "assistant", "user")]
    last = {"ids": tok.render_for_completion(talk[2:])}
    limits = {"messages": talk, "max_tokens": len(last["ids"]) + 3}
    assert client.post("/prompt", json=limits).json() == last
    assert client.post("/prompt", json=limits | {"max_tokens": 1}).status_code == 422
    answer = client.post("/stream", json={"text": "Six.\nUser: And?", "stop": ["\nUser:"]})
    assert answer.text == "Six."
    assert client.post("/truncate", json={"text": "a", "max_tokens": -1}).status_code == 422
    too_long = "a" * (names["MAX_CHARS"] + 1)
    assert client.post("/count", json={"text": too_long}).status_code == 422
