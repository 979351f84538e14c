"""The table of roles, flags and templates: what files say of a tokenizer besides its ids.

Each entry is a note in the native file, and has its place in the files of Hugging Face and in GGUF.
Readers and writers of these formats go through the table. An entry that a format has no place for
is a loss (`bytepair.properties.metadata`).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

#: What an entry is: a token with a role; a flag; the chat template; the other chat templates, by
#: name; the tokens at which generation stops; what is put around a text.
MetadataKind: TypeAlias = Literal["token", "flag", "template", "templates", "stops", "around"]

#: The name of the native file in a folder.
NATIVE: Final = "tokenizer.bytepair"

CONFIG: Final = "tokenizer_config.json"
MAP: Final = "special_tokens_map.json"
LEGACY: Final = "added_tokens.json"
TEMPLATE: Final = "chat_template.jinja"
TEMPLATES: Final = "additional_chat_templates"
GENERATION: Final = "generation_config.json"


class MetadataEntry(NamedTuple):
    """One entry of the table.

    Attributes:
        note: the key of its note. A token or a flag has this name in `huggingface` as well.
        kind: what it is.
        huggingface: the file of Hugging Face that has it.
        gguf: its key in GGUF; None if the flags express it, or it is a loss.
        role: the name of a role in `Tokenizer.roles`; other roles have none.
        others: other formats that have it.
    """

    note: str
    kind: MetadataKind
    huggingface: str
    gguf: str | None
    role: str | None = None
    others: frozenset[str] = frozenset()


def _token(name: str, key: str, role: str | None = None, others: str = "") -> MetadataEntry:
    gguf = f"tokenizer.ggml.{key}_token_id"
    return MetadataEntry(f"{name}_token", "token", CONFIG, gguf, role, frozenset(others.split()))


def _flag(name: str, key: str) -> MetadataEntry:
    return MetadataEntry(name, "flag", CONFIG, key)


ENTRIES: Final[tuple[MetadataEntry, ...]] = (
    _token("bos", "bos", "bos", "qwen3"),
    _token("eos", "eos", "eos", "qwen3"),
    _token("pad", "padding", "pad"),
    _token("eot", "eot", "end_of_turn"),
    _token("eom", "eom"),
    _token("unk", "unknown"),
    _token("sep", "seperator"),  # llama.cpp's spelling  # codespell:ignore seperator
    _token("cls", "cls"),
    _token("mask", "mask"),
    *(_token(f"fim_{part}", f"fim_{part}") for part in ("pre", "suf", "mid", "pad", "rep", "sep")),
    _flag("add_bos_token", "tokenizer.ggml.add_bos_token"),
    _flag("add_eos_token", "tokenizer.ggml.add_eos_token"),
    _flag("add_sep_token", "tokenizer.ggml.add_sep_token"),
    # llama.cpp has no keys for these: the first follows from the rule that splits texts, the second
    # is an argument for classes of transformers that build their own pre-tokenizer.
    _flag("clean_up_tokenization_spaces", "bytepair.clean_up_tokenization_spaces"),
    _flag("add_prefix_space", "bytepair.add_prefix_space"),
    MetadataEntry("chat_template", "template", TEMPLATE, "tokenizer.chat_template"),
    MetadataEntry("chat_templates", "templates", TEMPLATES, "tokenizer.chat_template."),
    MetadataEntry("stop_tokens", "stops", GENERATION, "tokenizer.ggml.eos_token_ids"),
    MetadataEntry("huggingface.post_processor", "around", "tokenizer.json", None),
)

TOKENS: Final = tuple(entry for entry in ENTRIES if entry.kind == "token")
FLAGS: Final = tuple(entry for entry in ENTRIES if entry.kind == "flag")

#: The field beside `eos_token` with the token that ends a text, where `eos_token` is the one that
#: ends a turn, since programs stop at `eos_token`. A file that has it does not state the role eos.
END_OF_TEXT: Final = "eod_token"
