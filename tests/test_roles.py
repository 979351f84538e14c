"""The roles of special tokens and the chat template: in the API, the commands and every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.errors import LossError, SpecialTokenError
from formats import small
from messages import told
from test_cli import run

NAMES = ["<start>", "<end>", "<fill>", "<turn>"]
ROLES = {"bos": "<start>", "eos": "<end>", "pad": "<fill>", "end_of_turn": "<turn>"}
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}\n"


def plain() -> bytepair.Tokenizer:
    """A tokenizer whose special tokens have no roles by their names."""
    return small(special_tokens={name: 259 + n for n, name in enumerate(NAMES)})


def test_roles_are_said_and_taken_back() -> None:
    tok = plain()
    assert tok.roles == {}
    assert tok.chat_templates.get("default") is None
    named = tok.replace(roles=ROLES).replace(chat_template=TEMPLATE)
    assert (named.roles, named.chat_templates.get("default")) == (ROLES, TEMPLATE)
    assert named == tok
    assert named.fingerprint == tok.fingerprint
    assert tok.replace(roles={"eos": "<end>"}).replace(roles={"bos": "<start>"}).roles == {
        "bos": "<start>", "eos": "<end>"
    }  # fmt: skip
    fewer = named.replace(roles={"pad": None}).replace(chat_template="")
    assert "pad" not in fewer.roles
    assert fewer.chat_templates.get("default") is None


def test_what_is_no_role_is_an_error() -> None:
    with told(SpecialTokenError):
        plain().replace(roles={"eos": "he"})
    with told(TypeError):
        plain().replace(roles={"end": "<end>"})
    with told(TypeError):
        plain().replace(chat_template=b"x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (
            bytepair.training.NANOCHAT_SPECIAL_TOKENS,
            ("<|bos|>", "<|bos|>", "<|bos|>", "<|assistant_end|>"),
        ),
        (["<|endoftext|>"], ("<|endoftext|>", "<|endoftext|>", None, None)),
        (
            ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>"],
            ("<|endoftext|>", "<|endoftext|>", None, None),
        ),
        (
            ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            (None, "<|endoftext|>", "<|endoftext|>", "<|im_end|>"),
        ),
        (
            ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"],
            ("<|begin_of_text|>", "<|end_of_text|>", None, "<|eot_id|>"),
        ),
        (
            ["<|startoftext|>", "<|endoftext|>", "<|return|>", "<|end|>"],
            ("<|startoftext|>", "<|endoftext|>", "<|endoftext|>", "<|return|>"),
        ),
        (["<|bos|>", "<|eos|>", "<|pad|>"], ("<|bos|>", "<|eos|>", "<|pad|>", None)),
        (["<|bos|>"], ("<|bos|>", "<|bos|>", None, None)),
        (["<|tool|>"], (None, None, None, None)),
        ([], (None, None, None, None)),
    ],
)
def test_vocabularies_that_know_their_roles(
    names: list[str], roles: tuple[str | None, ...]
) -> None:
    tok = small(special_tokens={name: 259 + n for n, name in enumerate(names)})
    expected = dict(zip(ROLES, roles, strict=True))
    assert tok.roles == {role: name for role, name in expected.items() if name}
    assert tok.replace(roles=dict.fromkeys(ROLES)).roles == {}


def test_roles_outlive_pickling_saving_and_growing(tmp_path: Path) -> None:
    tok = bytepair.train(["hello hello help"], 264, special_tokens=NAMES)
    tok = tok.replace(roles=ROLES).replace(chat_template=TEMPLATE)
    tok.save(tmp_path)
    for other in (
        bytepair.load(tmp_path),
        bytepair.Tokenizer.from_bytes(tok.to_bytes()),
        tok.replace(vocab_size=262),
        bytepair.training.resume(tok, bytepair.count(["hello hello help"]), 265),
        bytepair.extend(tok, ["world world"], 2),
    ):
        assert (other.roles, other.chat_templates.get("default")) == (ROLES, TEMPLATE)


@pytest.mark.parametrize("format", ["gguf", "huggingface"])
def test_roles_are_written_and_read(format: str, tmp_path: Path) -> None:
    tok = plain().replace(roles=ROLES).replace(chat_template=TEMPLATE)
    back = bytepair.load(tok.export(tmp_path / "out", format), format)
    assert (back, back.roles, back.chat_templates.get("default")) == (tok, ROLES, TEMPLATE)
    nanochat = bytepair.train(["hi hi"], 267, pattern="gpt2")
    back = bytepair.load(nanochat.export(tmp_path / "two", format), format)
    assert back.roles == nanochat.roles
    qwen = small(special_tokens={"<|endoftext|>": 259, "<|im_end|>": 260})
    back = bytepair.load(qwen.export(tmp_path / "three", format), format)
    assert back.roles == qwen.roles
    assert "bos" not in back.roles


def test_the_files_of_hugging_face(tmp_path: Path) -> None:
    plain().replace(roles=ROLES).replace(chat_template=TEMPLATE).export(tmp_path, "huggingface")
    tokens = {"bos_token": "<start>", "eos_token": "<end>", "pad_token": "<fill>",
              "eot_token": "<turn>"}  # fmt: skip
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        values = json.loads((tmp_path / name).read_text())
        assert {role: values[role] for role in tokens} == tokens
    assert (tmp_path / "chat_template.jinja").read_text() == TEMPLATE
    (tmp_path / "tokenizer_config.json").unlink()
    assert bytepair.load(tmp_path).roles == ROLES
    (tmp_path / "special_tokens_map.json").write_text(
        '{"eos_token": {"content": "<end>"}, "pad_token": null, "bos_token": "<none>"}'
    )
    tok = bytepair.load(tmp_path)
    assert tok.roles == {"bos": "<none>", "eos": "<end>"}
    assert tok.special_tokens["<none>"] == plain().vocab_size


def test_transformers_knows_the_roles(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    plain().replace(roles=ROLES).replace(chat_template=TEMPLATE).export(tmp_path, "huggingface")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert (theirs.bos_token, theirs.eos_token, theirs.pad_token) == ("<start>", "<end>", "<fill>")
    assert theirs.eot_token == "<turn>"
    talk = [{"role": "user", "content": "hell"}]
    assert theirs.apply_chat_template(talk, tokenize=False) == "<start>hell"
    theirs.save_pretrained(tmp_path / "again")
    for back in (bytepair.load(tmp_path / "again"), bytepair.load(theirs)):
        assert (back.roles, back.chat_templates.get("default")) == (ROLES, TEMPLATE)


def test_nanochat_knows_its_chat_template(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    tok = bytepair.train(bytepair.sample.paths()[:1], 2000)
    assert tok.chat_templates.get("default")
    template = bytepair.chat.JinjaTemplate(tok.chat_templates["default"])
    parts = [
        {"type": "text", "text": "I look: "},
        {"type": "python", "text": "1 + 1"},
        {"type": "python_output", "text": "2"},
        {"type": "text", "text": "Two. <|user_end|>"},
    ]
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief. <|bos|>"},
        {"role": "user", "content": "What is\none and one?<|assistant_start|>"},
        {"role": "assistant", "content": parts},
        {"role": "user", "content": "Thanks"},
        {"role": "assistant", "content": " Good bye "},
    ]
    for messages in (talk, talk[1:], talk[3:]):
        ours = tok.render_conversation(messages)
        assert tok.render_conversation(messages, template=template) == ours
        prompt = tok.render_for_completion(messages)
        assert tok.render_for_completion(messages, template=template) == prompt
    with told(bytepair.errors.ConversationError):
        tok.render_conversation(talk[2:], template=template)
    for format in ("gguf", "huggingface"):
        back = bytepair.load(tok.export(tmp_path / format, format, lossy=True), format)
        assert back.chat_templates.get("default") == tok.chat_templates.get("default")
    assert tok.replace(chat_template="").chat_templates.get("default") is None
    assert plain().chat_templates.get("default") is None


# ---------------------------------------------------------------------------- engines


def gguf_ids(path: Path) -> dict[str, int]:
    """The ids of roles in a GGUF file, and the number that means none."""
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(path)
    keys = {role: f"tokenizer.ggml.{role}_token_id" for role in ("bos", "eos", "eot", "padding")}
    fields = {role: reader.get_field(key) for role, key in keys.items()}
    return {role: int(field.contents()) for role, field in fields.items() if field}


@pytest.mark.parametrize(
    ("roles", "ids"),
    [
        (ROLES, {"bos": 259, "eos": 260, "padding": 261, "eot": 262}),
        ({"eos": "<end>"}, {"bos": 260, "eos": 260}),
        ({"end_of_turn": "<turn>"}, {"bos": 262, "eos": 262, "eot": 262}),
        ({"bos": "<start>"}, {"bos": 259, "eos": 259}),
        ({}, {}),
    ],
)
def test_llama_cpp_is_told_what_ends_a_text(
    roles: dict[str, Any], ids: dict[str, int], tmp_path: Path
) -> None:
    tok = plain().replace(roles=roles)
    assert gguf_ids(tok.export(tmp_path / "x.gguf", lossy=True)) == ids
    assert bytepair.load(tmp_path / "x.gguf").roles == roles
    assert bool(bytepair.compat.export_losses(tok, "gguf")) is not bool(ids)


def test_missing_roles_are_reported(tmp_path: Path) -> None:
    for format in [
        "gguf",
        "qwen3",
    ]:
        with told(LossError) as refused:
            plain().export(tmp_path / format, format)
        assert "Tokenizer.replace(roles=" in refused.value.hint
        named = plain().replace(roles={"bos": "<start>", "eos": "<end>"})
        assert "no token has" in " ".join(bytepair.compat.export_losses(plain(), format))
        assert "no token has" not in " ".join(bytepair.compat.export_losses(named, format))
        assert named.export(tmp_path / format, format, lossy=True).exists()


def test_the_command_gives_roles(tmp_path: Path) -> None:
    plain().save(tmp_path / "tok")
    (tmp_path / "chat.jinja").write_text(TEMPLATE)
    words = ["convert", "tok", "x.gguf"]
    assert b"--eos-token" in run(*words, cwd=tmp_path, code=1).stderr
    told = run(*words, "--lossy", cwd=tmp_path)
    assert b"not kept in x.gguf: the token that ends a text" in told.stderr
    (tmp_path / "x.gguf").unlink()
    flags = ["--bos-token", "<start>", "--eos-token", "<end>", "--pad-token", "<fill>",
             "--eot-token", "<turn>", "--chat-template", "chat.jinja"]  # fmt: skip
    assert run(*words, *flags, cwd=tmp_path).stderr == b""
    tok = bytepair.load(tmp_path / "x.gguf")
    assert (tok.roles, tok.chat_templates.get("default")) == (ROLES, TEMPLATE)
    run(*words, "--eos-token", "<no>", cwd=tmp_path, code=1)
    (tmp_path / "chat.jinja").write_bytes(b"\xff")
    output = run(*words, "--chat-template", "chat.jinja", cwd=tmp_path, code=2).stderr
    assert b"is not UTF-8 at byte 0" in output


def test_training_gives_roles(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello hello")
    words = ["train", "text", "--vocab-size", "262", "--out", "tok"]
    words += [word for name in NAMES for word in ("--special-token", name)]
    run(*words, "--eos-token", "<end>", cwd=tmp_path)
    assert bytepair.load(tmp_path / "tok").roles == {"eos": "<end>"}
    refused = run(*words, "--eos-token", "<no>", "--force", cwd=tmp_path, code=1)
    assert b"'<no>' cannot be the eos token" in refused.stderr
