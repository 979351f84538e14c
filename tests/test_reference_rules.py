"""The text rules in plain Python, compared with the library `tokenizers`."""

from __future__ import annotations

import random
from typing import Any

import pytest

import json_documents
import reference_rules
from against_tokenizers import attempt, theirs


def right_results(document: dict[str, Any], text: str) -> dict[str, Any]:
    """What `tokenizers` gives; results that it panics on are left out."""
    whole, text_only = theirs(document), theirs(document, special=False)
    plain = theirs({**document, "post_processor": None})
    encoding = attempt(lambda: plain.encode(text))
    if encoding is None:
        return {}
    results = {
        "all": list(zip(encoding.ids, encoding.offsets, strict=True)),
        "around": attempt(lambda: whole.encode(text).ids),
        "decode": attempt(lambda: whole.decode(encoding.ids, skip_special_tokens=False)),
        "skip": attempt(lambda: whole.decode(encoding.ids, skip_special_tokens=True)),
        "text": attempt(lambda: text_only.encode(text, add_special_tokens=False).ids),
    }
    return {name: result for name, result in results.items() if result is not None}


def own_result(document: dict[str, Any], text: str, right: dict[str, Any], name: str) -> Any:
    """What the reference gives; None where a character has no token, which `tokenizers` drops."""
    ids = [id for id, _ in right["all"]]
    try:
        match name:
            case "all":
                return reference_rules.encode(text, document, "all")
            case "text":
                return [id for id, _ in reference_rules.encode(text, document)]
    except ValueError as error:
        if "no token covers" not in str(error):
            raise
        return None
    if name == "around":
        return reference_rules.around(ids, document["post_processor"])
    return reference_rules.decode(ids, document, name == "skip")


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_the_reference_gives_the_results_of_tokenizers(first: int) -> None:
    for seed in range(first, first + 50):
        rng = random.Random(seed)
        document = json_documents.document(rng)
        if "UnicodeScripts" in str(document["pre_tokenizer"]):
            continue  # the scripts of Unicode are a table of the core
        for _ in range(8):
            text = json_documents.text(rng, document)
            right = right_results(document, text)
            for name, result in right.items():
                own = own_result(document, text, right, name)
                if name == "all" and own and not json_documents.has_spans(document):
                    own, result = [id for id, _ in own], [id for id, _ in result]
                assert own is None or own == result, (seed, name, text)
