"""The npm package: the same ids as Python, in node; and its manifest.

`make wasm` builds it. Without it, or without node, these tests are skipped.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

import bytepair
from bytepair.explore.answers import ten_scripts
from pieces import LINES
from texts import CLASSES, SPACES, unsplittable

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "rust" / "wasm"
PACKAGE = ROOT / "target" / "wasm" / "bytepair"


def utf16(text: str, offset: int) -> int:
    """An offset in characters as an offset in a string of JavaScript."""
    return len(text[:offset].encode("utf-16-le")) // 2


def case(tok: bytepair.Tokenizer, text: str) -> dict[str, object]:
    ids, _, spans = tok.encode_offsets(text)
    offsets = [utf16(text, place) for span in spans.tolist() for place in span]
    special = tok.encode(text, special="all")
    return {"text": text, "ids": ids, "special": special, "offsets": offsets}


def chat_case(tok: bytepair.Tokenizer) -> dict[str, object]:
    """A conversation in segments, with the ids and the mask of Python."""
    parts = [("<|bos|>", False), ("<|user_start|>", False), ("Say <|bos|>, né", False),
             ("<|user_end|>", False), ("<|assistant_start|>", False), ("It is 😀", True),
             (" <|bos|>", True), ("<|assistant_end|>", True)]  # fmt: skip
    tokens = [name in tok.special_tokens for name, _ in parts]
    origins = ["control" if is_token else "untrusted" for is_token in tokens]
    pairs = [(text, origin) for (text, _), origin in zip(parts, origins, strict=True)]
    ids = bytepair.chat.encode_segments(tok, pairs, join=True)  # type: ignore[arg-type]
    start = ids.index(tok.special_tokens["<|assistant_start|>"]) + 1
    segments = [
        {"token" if is_token else "text": text, "trained": trained}
        for (text, trained), is_token in zip(parts, tokens, strict=True)
    ]
    return {"segments": segments, "ids": ids, "mask": [int(at >= start) for at in range(len(ids))]}


def with_template(path: Path, tok: bytepair.Tokenizer) -> Path:
    """A `tokenizer.json` whose post-processor puts special tokens around a text."""
    document = json.loads(path.read_text("utf-8"))
    begin, end = "<|bos|>", "<|assistant_end|>"
    pieces = [{"SpecialToken": {"id": name, "type_id": 0}} for name in (begin, end)]
    texts = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [pieces[0], texts[0], pieces[1]],
        "pair": [pieces[0], *texts, pieces[1]],
        "special_tokens": {
            name: {"id": name, "ids": [tok.special_tokens[name]], "tokens": [name]}
            for name in (begin, end)
        },
    }
    file = path.with_name("around.json")
    file.write_text(json.dumps(document))
    return file


def test_node_gives_the_same_ids(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    if not (PACKAGE / "node.js").exists():
        pytest.skip("needs the npm package: make wasm")
    if (node := shutil.which("node")) is None:
        pytest.skip("needs node")
    trained.save(tmp_path / "native")
    trained.export(tmp_path / "tokenizer.json")
    trained.export(tmp_path / "ranks.tiktoken", lossy=True)
    around = with_template(tmp_path / "tokenizer.json", trained)
    bos, end = (trained.special_tokens[name] for name in ("<|bos|>", "<|assistant_end|>"))
    assert bytepair.load(around).encode("Hello", add_special_tokens=True)[0] == bos
    texts = [
        "",
        "Hello, hello <|bos|>",
        ten_scripts(),
        *LINES,
        *bytepair.evaluate.samples().values(),
    ]
    draw = random.Random(1)
    texts += ["".join(draw.choices([*CLASSES, *SPACES], k=60)) for _ in range(300)]
    texts += [unsplittable("letters", 5000)]
    special = ["<|bos|>"]
    words = ["low lower lowest", "naïve 🙂 slow"]
    own = bytepair.train(words, 270, special_tokens=special, pattern="gpt4")
    cases = {
        "native": str(next((tmp_path / "native").glob("*.bytepair"))),
        "json": str(tmp_path / "tokenizer.json"),
        "ranks": str(tmp_path / "ranks.tiktoken"),
        "table": str(ROOT / "tests/data/tokenizer_json.json"),
        "pattern": trained.pattern,
        "special": trained.special_tokens,
        "fingerprint": trained.fingerprint,
        "size": trained.vocab_size,
        "texts": [case(trained, text) for text in texts],
        "around": {
            "file": str(around), "text": "Hello", "ids": [bos, *trained.encode("Hello"), end],
        },
        "chat": chat_case(trained),
        "trained": {
            "texts": words, "size": 270, "specialTokens": special, "pattern": "gpt4",
            "fingerprint": own.fingerprint,
        },
    }  # fmt: skip
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    words = [node, str(ROOT / "tests/npm.mjs"), str(PACKAGE), str(tmp_path / "cases.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr


def test_the_example_streams_a_chat(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    if not (PACKAGE / "node.js").exists():
        pytest.skip("needs the npm package: make wasm")
    if (node := shutil.which("node")) is None:
        pytest.skip("needs node")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "bytepair").symlink_to(PACKAGE)
    shutil.copy(ROOT / "examples/javascript/chat.mjs", tmp_path)
    trained.export(tmp_path / "tokenizer.json")
    said = ["many words " * 40, "an <|user_end|> answer", "Say 😀!"]
    words = [node, "chat.mjs", "tokenizer.json", *said]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Say 😀!"), done.stderr
    assert done.stderr.endswith("without the first 2 messages\n")


def test_the_types_are_those_of_the_calls(tmp_path: Path) -> None:
    if not (PACKAGE / "index.d.ts").exists():
        pytest.skip("needs the npm package: make wasm")
    if (tsc := shutil.which("tsc")) is None:
        pytest.skip("needs tsc, the compiler of TypeScript")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "bytepair").symlink_to(PACKAGE)
    shutil.copy(ROOT / "tests" / "npm_types.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom"]
    for resolution in (["nodenext", "nodenext"], ["es2022", "node"]):
        module = ["--module", resolution[0], "--moduleResolution", resolution[1]]
        words = [tsc, *options, *module, "npm_types.ts"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")


def test_the_package_is_small() -> None:
    if not PACKAGE.exists():
        pytest.skip("needs the npm package: make wasm")
    files = [file.read_bytes() for file in PACKAGE.iterdir()]
    assert sum(len(zlib.compress(data, 9)) for data in files) < 1_000_000


def test_the_manifests_have_one_version() -> None:
    manifest = json.loads((SOURCES / "npm" / "package.json").read_text())
    assert manifest["version"] == bytepair.__version__
    for file in ("Cargo.toml", "pack/Cargo.toml"):
        versions = re.findall(r'^version = "(.*)"', (SOURCES / file).read_text(), re.M)
        assert versions == [bytepair.__version__]
    bindgen = [
        re.search(r'^wasm-bindgen(?:-cli-support)? = "=([\d.]+)"', text, re.M)
        for text in ((SOURCES / name).read_text() for name in ("Cargo.toml", "pack/Cargo.toml"))
    ]
    assert len({match[1] for match in bindgen if match}) == 1


def test_the_module_has_the_crates_of_the_workspace() -> None:
    """The version of regex-syntax, for one, decides about Unicode, and so about ids."""

    def versions(path: Path) -> dict[str, set[str]]:
        crates: dict[str, set[str]] = {}
        for name, version in re.findall(
            r'name = "(.*)"\nversion = "(.*)"\nsource', path.read_text()
        ):
            crates.setdefault(name, set()).add(version)
        return crates

    workspace, module = versions(ROOT / "Cargo.lock"), versions(SOURCES / "Cargo.lock")
    for name in ("regex-syntax", "fancy-regex", "unicode-normalization", "serde_json", "base64"):
        assert workspace[name] & module[name], name


def test_building_it_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("wasm_build", ROOT / "packaging" / "wasm.py")
    assert spec
    assert spec.loader
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    monkeypatch.setattr(build.shutil, "which", lambda *_: None)
    assert build.main() == 1
    needs = capsys.readouterr().err
    assert "rustup target add wasm32-unknown-unknown" in needs
    assert "apt-get install rustc-web cargo-web rust-web-src lld-19" in needs
