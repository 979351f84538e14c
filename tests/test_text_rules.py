"""What a `tokenizer.json` does to a text, compared with the library `tokenizers`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers

import bytepair
import json_documents
from against_tokenizers import Pair, differences
from bytepair.errors import FormatError
from formats import load
from texts import CLASSES, unsplittable

#: Real files of published models.
PUBLISHED = [
    "chatglm", "claude-2", "clip", "falcon", "llama2", "mistral-7b-v0.3", "modernbert", "mpt",
    "phi-2", "phi-3-mini", "roberta-base", "whisper-large-v3",
]  # fmt: skip

#: Texts in which added tokens, spaces, digits and marks stand in unusual places.
HARD = [
    "",
    " ",
    "def f(x):\n        return x\n\t\tpass  # 1234567 ½²٣\r\n\r\n",
    "<s> </s><|endoftext|><|im_start|>[CLS] [SEP]<mask> <pad>  <unk>\u2581 \u2581a<0x0A>",
    "<!dummy-prefix!>a <!sop!>[gMASK]<n><|user|>",
    "e\u0301 \u1112\u1161\u11ab İıßﬁ ＡＢ don'T WE'LL «x» 12345,678.90 ~~ --",
    "中文字符，没有空格。 ไม่มีช่องว่าง नमस्ते 👩‍👩‍👧‍👦 🇩🇪",
    "".join(CLASSES) * 3,
    unsplittable("letters", 3000),
    unsplittable("spaces", 500),
    unsplittable("chinese", 3000),
]


#: Why random documents are refused.
REFUSED = ("stands for two tokens", "of other text than its name")


@pytest.mark.parametrize("first", range(0, 240, 30))
def test_random_documents_give_the_results_of_tokenizers(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 30):
        rng = random.Random(seed)
        document = json_documents.document(rng)
        texts = [json_documents.text(rng, document) for _ in range(6)]
        try:
            assert not list(differences(document, texts, tmp_path)), seed
        except FormatError as error:
            if not any(reason in str(error) for reason in REFUSED):
                raise


#: Names of tokens that no text and no merge becomes.
UNREACHABLE = [
    "a b", " x", "hello world", "\u2581hello\u2581qqq", "qqqqzz", "a\u2581b c", "<0x0a>",
    "中中", "",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["bytes", "fallback"])
@pytest.mark.parametrize("name", UNREACHABLE)
def test_tokens_that_nothing_reaches_are_kept(name: str, kind: str, tmp_path: Path) -> None:
    document = json_documents.document(random.Random(0))
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        document[part] = None
    document["added_tokens"] = []
    names = {
        "bytes": json_documents.characters(),
        "fallback": [f"<0x{byte:02X}>" for byte in range(256)] + ["a", "b", "\u2581", "ab"],
    }[kind]
    if kind == "bytes":
        document["pre_tokenizer"] = {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
        }  # fmt: skip
        document["decoder"] = document["pre_tokenizer"]
    document["model"].update(
        vocab={token: id for id, token in enumerate([*names, name])}, merges=[], unk_token=None,
        byte_fallback=kind == "fallback", continuing_subword_prefix=None, end_of_word_suffix=None,
        ignore_merges=False,
    )  # fmt: skip
    assert not list(differences(document, [*HARD, name, f"x{name}y"], tmp_path))
    assert Pair(document, tmp_path).own.vocab_size == len(names) + bool(name)


def with_added(names: list[str], content: str, id: int) -> json_documents.Document:
    """A document of characters, without rules around them, and one special token."""
    document = json_documents.document(random.Random(0))
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        document[part] = None
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document["added_tokens"] = [{"id": id, "content": content, **flags, "special": True}]
    document["model"].update(
        vocab={token: id for id, token in enumerate(names)}, merges=["a b"], unk_token="<unk>",
        fuse_unk=False, byte_fallback=False, continuing_subword_prefix=None,
        end_of_word_suffix=None, ignore_merges=False,
    )  # fmt: skip
    return document


@pytest.mark.parametrize("place", [0, 3])
def test_an_export_lists_the_unknown_token_in_its_vocabulary(place: int, tmp_path: Path) -> None:
    """Also where it is the token after the others, which `tokenizers` would number so anyway."""
    names = ["a", "b", "ab"]
    names.insert(place, "<unk>")
    pair = Pair(with_added(names, "<unk>", place), tmp_path)
    path = pair.own.export(tmp_path / "written.json", "huggingface")
    written = tokenizers.Tokenizer.from_file(str(path))
    assert written.encode("axab<unk>").ids == pair.own.encode("axab<unk>", special="all")


@pytest.mark.parametrize(("unknown", "lost"), [(3, False), (5, True)])
def test_text_is_not_merged_to_an_added_token_or_the_export_names_it(
    unknown: int, lost: bool, tmp_path: Path
) -> None:
    """An export lists a token behind a gap in its vocabulary, so that `tokenizers` merges to it."""
    document = with_added(["a", "b", "ab"], "<unk>", unknown)
    document["model"]["vocab"]["<unk>"] = unknown
    document["added_tokens"] += [document["added_tokens"][0] | {"id": 4, "content": "é"}]
    own = load(document)
    assert bool(bytepair.compat.export_losses(own, "huggingface")) == lost
    path = own.export(tmp_path / "written.json", "huggingface", lossy=True)
    written = tokenizers.Tokenizer.from_file(str(path))
    written.encode_special_tokens = True
    assert (written.encode("aéab").ids != own.encode("aéab")) == lost


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files_give_the_results_of_tokenizers(
    name: str, shared: Path, documents: Callable[[str], list[str]], tmp_path: Path
) -> None:
    content = (shared / "tokenizers" / f"{name}.tokenizer.json").read_text(encoding="utf-8")
    pair = Pair(json.loads(content), tmp_path)
    texts = [
        text[at : at + 1500]
        for folder in ("english", "multilingual", "code")
        for text in documents(folder)[::500]
        for at in (0, len(text) // 2)
    ]
    texts += [
        file.read_text(encoding="utf-8")[:800] for file in sorted((shared / "udhr").glob("*.txt"))
    ]
    for text in [*HARD, *texts]:
        assert not list(pair.differences(text)), name
