"""Roles, flags, chat templates, stop tokens: each is written by a format, or reported as lost."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bytepair
from bytepair.compat import export_losses, to_huggingface, to_transformers
from bytepair.errors import FormatError, LossError, OverwriteError
from bytepair.files.safe import Cursor
from bytepair.formats import gguf
from bytepair.properties import metadata, roles
from bytepair.properties.roles import ENTRIES, FLAGS, TOKENS
from bytepair.tokenizer.vocabulary import with_roles_of
from formats import TARGETS, json_of, load, load_options, small
from messages import told

NAMES = ["<s>", "</s>", "<pad>", "<turn>", "<unk>", "<other>"]
SPECIAL = {name: 259 + n for n, name in enumerate(NAMES)}
NANOCHAT = bytepair.train(["hello hello help"], 269, pattern="gpt2")


def plain(**changes: Any) -> bytepair.Tokenizer:
    return small(special_tokens=SPECIAL, **changes)


def template(begin: list[str], end: list[str]) -> dict[str, Any]:
    """A post-processor that puts tokens around a text."""
    parts = [{"SpecialToken": {"id": name, "type_id": 0}} for name in begin]
    parts += [{"Sequence": {"id": "A", "type_id": 0}}]
    parts += [{"SpecialToken": {"id": name, "type_id": 0}} for name in end]
    return {
        "type": "TemplateProcessing",
        "single": parts,
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            name: {"id": name, "ids": [SPECIAL[name]], "tokens": [name]} for name in {*begin, *end}
        },
    }


def folder(path: Path, processor: Any = None, **config: Any) -> Path:
    """A folder of Hugging Face's files, with a post-processor and fields of the configuration."""
    path.mkdir(parents=True, exist_ok=True)
    document = json_of(plain()) | {"post_processor": processor}
    (path / "tokenizer.json").write_text(json.dumps(document))
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


def gguf_values(path: Path) -> dict[str, Any]:
    """The keys and values of a GGUF file."""
    return gguf._values(Cursor(path.read_bytes()))


# ---------------------------------------------------------------------------- each entry

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
names = st.sampled_from(NAMES)
VALUES: dict[str, st.SearchStrategy[str]] = {
    **{entry.note: names for entry in TOKENS},
    **{entry.note: st.sampled_from(["true", "false"]) for entry in FLAGS},
    "chat_template": texts,
    "chat_templates": st.dictionaries(
        st.one_of(st.from_regex("[a-z_]{1,8}", fullmatch=True), texts).filter("default".__ne__),
        texts,
        max_size=3,
    ).map(json.dumps),
    "stop_tokens": st.lists(names, min_size=1, max_size=4, unique=True).map(json.dumps),
    metadata.POST_PROCESSOR: st.builds(
        template, st.lists(names, max_size=2), st.lists(names, max_size=2)
    ).map(json.dumps),
}
REMOVED = ["bos_token", "eos_token", "pad_token", "chat_template"]
notes = st.fixed_dictionaries({}, optional=VALUES).flatmap(
    lambda stated: st.lists(st.sampled_from(REMOVED), max_size=2).map(
        lambda removed: stated | dict.fromkeys(removed, "")
    )
)


#: What a line of `export_losses` says of each kind of entry.
SAID = {
    "token": "role", "flag": "flag", "template": "chat template", "templates": "chat template",
    "stops": "generation stops", "around": "post-processor",
}  # fmt: skip


def test_every_entry_of_the_table_is_tested() -> None:
    assert VALUES.keys() == {entry.note for entry in ENTRIES}
    assert {entry.kind for entry in ENTRIES} == SAID.keys()


@pytest.mark.parametrize("target", [*TARGETS, "alone"])
@pytest.mark.parametrize("special", [SPECIAL, NANOCHAT.special_tokens], ids=["plain", "nanochat"])
def test_every_entry_is_equal_or_reported(
    target: str, special: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The target "alone" is a `tokenizer.json` without the other files of its folder."""
    files = {**TARGETS, "huggingface": "hf", "alone": "tokenizer.json"}
    format = "huggingface" if target == "alone" else target
    base = plain() if special is SPECIAL else NANOCHAT

    @settings(
        max_examples=int(os.environ.get("METADATA_EXAMPLES", 25)),
        suppress_health_check=list(HealthCheck),
    )
    @given(notes)
    def check(stated: dict[str, str]) -> None:
        if special is not SPECIAL:
            table = dict(zip(NAMES, special, strict=False))
            stated = {
                note: table.get(value, value)
                for note, value in stated.items()
                if note not in {metadata.POST_PROCESSOR, "stop_tokens"}
            }
        processor = json.loads(stated.get(metadata.POST_PROCESSOR, "null"))
        before = load(json_of(base) | {"post_processor": processor}).replace(notes=stated)
        path = tmp_path_factory.mktemp("x") / files[target]
        losses = export_losses(before, path if target == "alone" else format)
        try:
            before.export(path, format, lossy=True)
        except LossError as error:
            assert format == "qwen3", error  # noqa: PT017 - they need a token
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a flag that differs from the post-processor
            after = bytepair.load(path, format, **load_options(before, format))
        here, there = metadata.values(before), metadata.values(after)
        for entry in ENTRIES:
            if here.get(entry.note) != there.get(entry.note):
                assert SAID[entry.kind] in " ".join(losses), (
                    entry.note, here.get(entry.note), there.get(entry.note), losses, stated,
                )  # fmt: skip

    check()


# ---------------------------------------------------------------------------- BOS and EOS


@pytest.mark.parametrize(
    ("begin", "end"), [([], []), (["<s>"], []), ([], ["</s>"]), (["<s>"], ["</s>"])]
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_a_post_processor_adds_becomes_flags_in_gguf(
    begin: list[str], end: list[str], alone: bool, tmp_path: Path
) -> None:
    path = folder(tmp_path / "hf", template(begin, end))
    tok = bytepair.load(path / "tokenizer.json" if alone else path)
    assert export_losses(tok, "gguf") == []
    values = gguf_values(tok.export(tmp_path / "x.gguf"))
    assert values["tokenizer.ggml.add_bos_token"] is bool(begin)
    assert values["tokenizer.ggml.add_eos_token"] is bool(end)
    assert values["tokenizer.ggml.bos_token_id"] == SPECIAL["<s>"]
    assert values["tokenizer.ggml.eos_token_id"] == SPECIAL["</s>"]


@pytest.mark.parametrize(
    "processor",
    [
        {"type": "RobertaProcessing", "cls": ["<s>", 259], "sep": ["</s>", 260],
         "trim_offsets": True, "add_prefix_space": False},
        {"type": "Sequence", "processors": [
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
            template(["<s>"], ["</s>"])]},
    ],
    ids=["roberta", "sequence"],
)  # fmt: skip
def test_other_post_processors_that_add_bos_and_eos(
    processor: dict[str, Any], tmp_path: Path
) -> None:
    tok = bytepair.load(folder(tmp_path / "hf", processor))
    values = gguf_values(tok.export(tmp_path / "x.gguf"))
    assert values["tokenizer.ggml.add_bos_token"] is values["tokenizer.ggml.add_eos_token"] is True
    tok.export(tmp_path / "again", "huggingface")
    assert (
        json.loads((tmp_path / "again/tokenizer.json").read_text())["post_processor"] == processor
    )


def test_the_tokens_of_a_post_processor_have_the_roles(tmp_path: Path) -> None:
    tok = bytepair.load(folder(tmp_path / "hf", template(["<other>"], ["<turn>"])))
    assert (tok.roles["bos"], tok.roles["eos"]) == ("<other>", "<turn>")
    values = gguf_values(tok.export(tmp_path / "x.gguf"))
    assert values["tokenizer.ggml.bos_token_id"] == SPECIAL["<other>"]
    stated = folder(tmp_path / "stated", template(["<other>"], []), bos_token="<s>")
    tok = bytepair.load(stated)
    assert tok.roles["bos"] == "<s>"
    assert export_losses(tok, "gguf") == [
        "what the post-processor puts around texts: llama.cpp adds BOS and EOS at most"
    ]


def test_two_tokens_before_a_text_are_a_loss_and_stay(tmp_path: Path) -> None:
    processor = template(["<other>", "<s>"], [])
    tok = bytepair.load(folder(tmp_path / "hf", processor))
    assert any("post-processor" in lost for lost in export_losses(tok, "gguf"))
    assert any("post-processor" in lost for lost in export_losses(tok, "nanochat"))
    assert export_losses(tok, "huggingface") == []
    again = bytepair.load(tok.export(tmp_path / "again", "huggingface"))
    assert to_huggingface(again).encode("he").ids == [264, 259, 256]


def test_a_flag_that_differs_from_the_post_processor(tmp_path: Path) -> None:
    path = folder(tmp_path / "hf", template(["<s>"], []), add_bos_token=False)
    assert metadata.flags(bytepair.load(path))["add_bos_token"]
    tok = bytepair.load(folder(tmp_path / "two", None, add_bos_token=True, add_eos_token=False))
    assert (tok.notes["add_bos_token"], tok.notes["add_eos_token"]) == ("true", "false")
    tok.export(tmp_path / "out", "huggingface")
    config = json.loads((tmp_path / "out/tokenizer_config.json").read_text())
    assert (config["add_bos_token"], config["add_eos_token"]) == (True, False)
    with told(FormatError):
        bytepair.load(folder(tmp_path / "three", None, add_bos_token="yes"))


@pytest.mark.parametrize("flags", [(True, False), (False, True), (True, True), (False, False)])
def test_the_flags_of_gguf_reach_hugging_face(flags: tuple[bool, bool], tmp_path: Path) -> None:
    package = pytest.importorskip("gguf")
    plain().export(tmp_path / "plain.gguf")
    writer = package.GGUFWriter(tmp_path / "x.gguf", "llama")
    reader = package.GGUFReader(tmp_path / "plain.gguf")
    own = ("bytepair.", "tokenizer.ggml.add_bos", "tokenizer.ggml.add_eos", "GGUF.", "general.")
    for field in reader.fields.values():
        if field.name.startswith(own):
            continue
        if field.types[0] == package.GGUFValueType.ARRAY:
            writer.add_array(field.name, field.contents())
        else:
            writer.add_key_value(field.name, field.contents(), field.types[0])
    writer.add_add_bos_token(flags[0])
    writer.add_add_eos_token(flags[1])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    tok = bytepair.load(tmp_path / "x.gguf")
    check_hugging_face(tok, flags, tmp_path / "hf")
    values = gguf_values(tok.export(tmp_path / "again.gguf"))
    assert values["tokenizer.ggml.add_bos_token"] is flags[0]
    assert values["tokenizer.ggml.add_eos_token"] is flags[1]
    check_hugging_face(bytepair.load(tmp_path / "again.gguf"), flags, tmp_path / "two")


def check_hugging_face(tok: bytepair.Tokenizer, flags: tuple[bool, bool], path: Path) -> None:
    """The configuration states the flags, and `tokenizers` and `transformers` do what they say."""
    tok.export(path, "huggingface")
    config = json.loads((path / "tokenizer_config.json").read_text())
    assert (config["add_bos_token"], config["add_eos_token"]) == flags
    expected = [259] * flags[0] + tok.encode("hell") + [260] * flags[1]
    assert to_huggingface(tok).encode("hell").ids == expected
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    assert theirs("hell")["input_ids"] == expected
    theirs.save_pretrained(path / "again")
    for back in (bytepair.load(path / "again"), bytepair.load(theirs)):
        assert to_huggingface(back).encode("hell").ids == expected


def test_flags_that_llama_cpp_takes_from_the_rule(tmp_path: Path) -> None:
    path = plain(pattern="llama3").export(tmp_path / "x.gguf", lossy=True)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"ggml.add_bos_token", b"ggml.xxx_bos_token"))
    tok = bytepair.load(path)
    assert tok.notes["add_bos_token"] == "true"
    path.write_bytes(data)
    assert bytepair.load(path).notes["add_bos_token"] == "false"


def test_flags_without_a_token_are_reported() -> None:
    tok = small(special_tokens={"<x>": 259}).replace(notes={"add_bos_token": "true"})
    for format in ("gguf", "huggingface"):
        assert any("flag add_bos_token" in lost for lost in export_losses(tok, format))
    with told(FormatError):
        export_losses(tok.replace(notes={"add_bos_token": "maybe"}), "gguf")


# ---------------------------------------------------------------------------- chat templates

TEMPLATES = {"default": "{{ messages[0].content }}", "tool_use": "tools", "rag": "rag é"}
LISTED = [{"name": name, "template": text} for name, text in TEMPLATES.items()]


@pytest.mark.parametrize("layout", ["list", "object", "files"])
def test_named_templates_are_read_and_written(layout: str, tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "list": {"chat_template": LISTED},
        "object": {"chat_template": TEMPLATES},
    }
    path = folder(tmp_path / "hf", **config.get(layout, {}))
    if layout == "files":
        (path / "additional_chat_templates").mkdir()
        (path / "chat_template.jinja").write_text(TEMPLATES["default"])
        for name in ("tool_use", "rag"):
            file = path / f"additional_chat_templates/{name}.jinja"
            file.write_text(TEMPLATES[name], encoding="utf-8")
    tok = bytepair.load(path)
    assert tok.chat_templates.get("default") == TEMPLATES["default"]
    assert tok.chat_templates == TEMPLATES
    tok.export(tmp_path / "out", "huggingface")
    files = {file.relative_to(tmp_path / "out").as_posix() for file in
             (tmp_path / "out").rglob("*.jinja")}  # fmt: skip
    assert not files  # which would hide the list
    tok.save(tmp_path / "native")
    for back in (
        tmp_path / "out", tmp_path / "native", tok.export(tmp_path / "x.gguf")
    ):  # fmt: skip
        assert bytepair.load(back).chat_templates == TEMPLATES
    values = gguf_values(tmp_path / "x.gguf")
    assert values["tokenizer.chat_template"] == TEMPLATES["default"]
    assert values["tokenizer.chat_template.tool_use"] == "tools"
    assert sorted(values["tokenizer.chat_templates"]) == ["rag", "tool_use"]


@pytest.mark.parametrize("folder_of", ["list", "out"])
def test_transformers_reads_and_writes_the_same_templates(folder_of: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    path = folder(tmp_path / "list", chat_template=LISTED)
    bytepair.load(path).export(tmp_path / "out", "huggingface")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / folder_of)
    assert theirs.chat_template == TEMPLATES
    theirs.save_pretrained(tmp_path / "again")
    theirs.save_pretrained(tmp_path / "old", save_jinja_files=False)
    for back in (tmp_path / "again", tmp_path / "old", theirs):
        assert bytepair.load(back).chat_templates == TEMPLATES


def test_templates_of_a_nanochat_vocabulary_are_not_replaced(tmp_path: Path) -> None:
    NANOCHAT.export(tmp_path / "hf", "huggingface")
    config = tmp_path / "hf/tokenizer_config.json"
    (tmp_path / "hf/chat_template.jinja").unlink()
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": LISTED[1:]}))
    tok = bytepair.load(tmp_path / "hf")
    assert (tok.chat_templates.get("default"), tok.chat_templates) == (
        None,
        dict([*TEMPLATES.items()][1:]),
    )
    for format in ("huggingface", "gguf"):
        path = tok.export(tmp_path / f"with-{format}", format)
        assert bytepair.load(path).chat_templates == tok.chat_templates
    without = NANOCHAT.replace(chat_template="")
    for format in ("huggingface", "gguf"):
        path = without.export(tmp_path / f"without-{format}", format)
        assert bytepair.load(path).chat_templates.get("default") is None
    assert NANOCHAT.replace(chat_template={"y": "x"}).chat_templates.keys() == {"default", "y"}


@pytest.mark.parametrize("name", ["../x", "a/b", "a b", ".x", "x" * 300, "é", "A\0"])
def test_names_that_are_no_names_of_files(name: str, tmp_path: Path) -> None:
    tok = plain().replace(chat_template="d").replace(chat_template={name: "t"})
    tok.export(tmp_path / "out/hf", "huggingface")
    assert {path.name for path in tmp_path.rglob("*")} == {
        "out", "hf", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "generation_config.json",
    }  # fmt: skip
    assert bytepair.load(tmp_path / "out/hf").chat_templates == {"default": "d", name: "t"}
    assert any(repr(name) in lost for lost in export_losses(tok, "gguf"))


@pytest.mark.parametrize(
    "field",
    [
        3,
        [3],
        [{"name": "a"}],
        [{"template": "a"}],
        LISTED * 2,
    ],
)
def test_damaged_templates(field: Any, tmp_path: Path) -> None:
    with told(FormatError):
        bytepair.load(folder(tmp_path, chat_template=field))
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates/x.jinja").write_bytes(b"a\xff")
    with told(FormatError):
        bytepair.load(tmp_path)


@pytest.mark.parametrize("overwrite", [False, True])
def test_templates_behind_a_link_stay(overwrite: bool, tmp_path: Path) -> None:
    other, folder = tmp_path / "other", tmp_path / "hf"
    other.mkdir()
    folder.mkdir()
    (other / "mine.jinja").write_text("mine")
    (folder / "additional_chat_templates").symlink_to(other)
    with told(OSError):
        small().export(folder, "huggingface", overwrite=overwrite)
    assert (other / "mine.jinja").read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["additional_chat_templates"]


def test_templates_of_others_are_removed_only_on_request(tmp_path: Path) -> None:
    folder = small().export(tmp_path, "huggingface")
    (folder / "chat_template.jinja").write_text("mine")
    with told(OverwriteError):
        small().export(folder, "huggingface")
    assert (folder / "chat_template.jinja").read_text() == "mine"
    small().export(folder, "huggingface", overwrite=True)
    assert not (folder / "chat_template.jinja").exists()


def test_templates_that_a_tokenizer_lacks_do_not_stay_in_its_folder(tmp_path: Path) -> None:
    other = small(special_tokens={"<x>": 300})
    tok = plain().replace(chat_template="d").replace(chat_template={"tool_use": "t"})
    tok.export(tmp_path, "huggingface")
    with pytest.raises(OverwriteError):
        other.export(tmp_path, "huggingface")
    other.export(tmp_path, "huggingface", overwrite=True)
    assert bytepair.load(tmp_path).chat_templates == {}
    assert not list(tmp_path.rglob("*.jinja"))


# ---------------------------------------------------------------------------- where to stop


def test_a_nanochat_export_stops_at_the_end_of_a_turn(tmp_path: Path) -> None:
    bos, end = (NANOCHAT.special_tokens[name] for name in ("<|bos|>", "<|assistant_end|>"))
    NANOCHAT.export(tmp_path / "hf", "huggingface")
    fields = json.loads((tmp_path / "hf/generation_config.json").read_text())
    assert fields == {"bos_token_id": bos, "eos_token_id": [end, bos], "pad_token_id": bos}
    config = json.loads((tmp_path / "hf/tokenizer_config.json").read_text())
    assert (config["eos_token"], config["eot_token"]) == ("<|assistant_end|>",) * 2
    values = gguf_values(NANOCHAT.export(tmp_path / "x.gguf"))
    stops = {values[f"tokenizer.ggml.{role}_token_id"] for role in ("eos", "eot", "eom")}
    assert stops == {bos, end}
    assert values["tokenizer.ggml.eos_token_id"] == values["tokenizer.ggml.eot_token_id"] == end
    for path in (tmp_path / "hf", tmp_path / "x.gguf"):
        back = bytepair.load(path)
        assert (back.roles, metadata.values(back)) == (NANOCHAT.roles, metadata.values(NANOCHAT))
    assert NANOCHAT.roles["eos"] == "<|bos|>"


def test_transformers_stops_at_the_end_of_a_turn(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    NANOCHAT.export(tmp_path, "huggingface")
    ends = [NANOCHAT.special_tokens[name] for name in ("<|assistant_end|>", "<|bos|>")]
    assert transformers.GenerationConfig.from_pretrained(tmp_path).eos_token_id == ends
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.eos_token == "<|assistant_end|>"
    theirs.save_pretrained(tmp_path / "again")
    for back in (bytepair.load(theirs), bytepair.load(tmp_path / "again")):
        assert (back.roles, back.chat_templates.get("default")) == (
            NANOCHAT.roles,
            NANOCHAT.chat_templates.get("default"),
        )


def test_eos_that_is_stated_stays(tmp_path: Path) -> None:
    tok = NANOCHAT.replace(roles={"eos": "<|bos|>"})
    tok.export(tmp_path, "huggingface")
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["eos_token"] == "<|bos|>"
    fields = json.loads((tmp_path / "generation_config.json").read_text())
    assert len(fields["eos_token_id"]) == 2
    assert bytepair.load(tmp_path).notes["eos_token"] == "<|bos|>"


def test_the_generation_config_of_a_folder_is_kept(tmp_path: Path) -> None:
    path = folder(tmp_path / "hf", template(["<s>"], []), eos_token="</s>")
    generation = {"eos_token_id": [260, 262, 257], "temperature": 0.6, "pad_token_id": 261,
                  "suppress_tokens": [3]}  # fmt: skip
    (path / "generation_config.json").write_text(json.dumps(generation))
    tok = bytepair.load(path)
    assert json.loads(tok.notes["stop_tokens"]) == ["</s>", "<turn>", 257]
    tok.export(tmp_path / "out", "huggingface")
    written = json.loads((tmp_path / "out/generation_config.json").read_text())
    assert written == {"eos_token_id": generation["eos_token_id"]}
    (tmp_path / "out/generation_config.json").write_text(json.dumps(generation))
    tok.export(tmp_path / "out", "huggingface")
    assert json.loads((tmp_path / "out/generation_config.json").read_text()) == generation
    (lost,) = export_losses(tok, "gguf")
    assert "llama.cpp would not stop at 'll'" in lost
    values = gguf_values(tok.export(tmp_path / "x.gguf", lossy=True))
    assert values["tokenizer.ggml.eos_token_ids"] == [260, 262, 257]
    assert values["tokenizer.ggml.eom_token_id"] == 262
    assert any("generation stops" in lost for lost in export_losses(tok, "tiktoken"))
    assert "stop_tokens" in tok.notes
    assert not roles.stops_of(tok.replace(roles={"eos": "<turn>"}).notes)


def test_what_doubles_a_text_is_refused() -> None:
    one = template([], [])
    processor = {"type": "Sequence", "processors": [{**one, "single": one["single"] * 2}] * 60}
    with told(FormatError):
        load(json_of(plain()) | {"post_processor": processor})


def test_flags_beside_a_post_processor_change_nothing(tmp_path: Path) -> None:
    tok = load(json_of(plain()) | {"post_processor": template(["<s>"], [])})
    tok = tok.replace(notes={"bos_token": "<s>", "add_bos_token": "false"})
    again = bytepair.load(tok.export(tmp_path, "huggingface"))
    assert bytepair.tokenizer.text_rules(again).around == ([259], [])


def test_damaged_notes_of_native_files_are_errors_of_bytepair() -> None:
    tok = plain().replace(notes={"stop_tokens": f"[{1 << 70}]"})
    with told(FormatError):
        export_losses(tok, "gguf")
    tok = plain().replace(notes={metadata.POST_PROCESSOR: '{"type": "x", "cls": [1], "sep": []}'})
    assert not bytepair.prune(tok, 263).tokenizer.notes[metadata.POST_PROCESSOR]
    tok = plain().replace(notes={metadata.POST_PROCESSOR: '{"type": "ByteLevel", "processors": 5}'})
    for convert in (to_huggingface, to_transformers):
        with told(FormatError):
            convert(tok)


def test_a_folder_without_eos_takes_it_from_the_generation_config(tmp_path: Path) -> None:
    special = {"<a>": 259, "<b>": 260}
    small(special_tokens=special).export(tmp_path, "huggingface")
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 260}')
    assert bytepair.load(tmp_path).roles == {"eos": "<b>"}
    for damaged in ('{"eos_token_id": "<b>"}', '{"eos_token_id": [true]}', "[]", "{"):
        (tmp_path / "generation_config.json").write_text(damaged)
        with told(FormatError):
            bytepair.load(tmp_path)


def test_the_generation_config_of_a_model_keeps_its_fields(tmp_path: Path) -> None:
    file = tmp_path / "generation_config.json"
    ends = [NANOCHAT.special_tokens[name] for name in ("<|assistant_end|>", "<|bos|>")]
    file.write_text('{"temperature": 0.6}')
    with told(OverwriteError):
        NANOCHAT.export(tmp_path, "huggingface")
    NANOCHAT.export(tmp_path, "huggingface", overwrite=True)
    fields = json.loads(file.read_text())
    assert (fields["temperature"], fields["eos_token_id"]) == (0.6, ends)
    before = file.stat().st_mtime_ns
    NANOCHAT.export(tmp_path, "huggingface")
    assert file.stat().st_mtime_ns == before


# ---------------------------------------------------------------------------- other ids


def test_entries_outlive_other_ids(tmp_path: Path) -> None:
    tok = bytepair.train(["hello hello help"], 264, special_tokens=["<s>", "</s>", "<x>"])
    special = tok.special_tokens
    path = tok.export(tmp_path / "hf", "huggingface")
    document = json.loads((path / "tokenizer.json").read_text())
    processor = template(["<s>"], ["</s>"])
    for name, token in processor["special_tokens"].items():
        token["ids"] = [special[name]]
    (path / "tokenizer.json").write_text(json.dumps(document | {"post_processor": processor}))
    (path / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [special["</s>"], special["<x>"]]})
    )
    tok = bytepair.load(path).replace(chat_template={"tool_use": "t"})
    entries = {**metadata.values(tok), "stop_tokens": ["</s>", "<x>"]}
    others = [bytepair.prune(tok, 260).tokenizer, bytepair.extend(tok, ["world world"], 2)]
    grown = bytepair.train(["hello hello help"], 262, special_tokens=["<s>", "</s>", "<x>"])
    others.append(with_roles_of(grown, tok))
    for other in others:
        assert metadata.values(other) == entries
        ids = to_huggingface(other).encode("hel").ids
        assert ids == [other.special_tokens["<s>"], *other.encode("hel"),
                       other.special_tokens["</s>"]]  # fmt: skip
        generation = tmp_path / f"{other.vocab_size}-{other.fingerprint}"
        other.export(generation, "huggingface")
        fields = json.loads((generation / "generation_config.json").read_text())
        assert fields["eos_token_id"] == [other.special_tokens[n] for n in ("</s>", "<x>")]
