"""Lists names that people know from other libraries, and what to use in bytepair instead.

There are no aliases: one thing has one name, and the error for another name says it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

from bytepair.errors import ArgumentError


def _by_name(names: dict[str, str]) -> dict[str, str]:
    """What to use for each of the names that stand beside it."""
    return {name: instead for instead, some in names.items() for name in some.split()}


#: What to use in place of a name of tiktoken, tokenizers, transformers, SentencePiece or nanochat,
#: and of what people type.
HABITS: Final = _by_name(
    {
        "vocab_size": "n_vocab get_vocab_size get_piece_size",
        "eos_token_id": "eot_token eos_id",
        "bos_token_id": "bos_id get_bos_token_id",
        "pad_token_id": "pad_id",
        "special_tokens": "special_tokens_set all_special_tokens get_special_tokens",
        "special_tokens[name]": "encode_special",
        "encode(text)": "encode_ordinary encode_plus encode_as_ids",
        "encode_batch(texts)": "encode_ordinary_batch batch_encode_plus",
        "encode_batch_to_numpy([text]).ids": "encode_to_numpy",
        "encode_offsets(text)": "decode_with_offsets encode_with_offsets",
        "count(text)": "count_tokens",
        "token_id(token), or special_tokens[name]": (
            "encode_single_token token_to_id convert_tokens_to_ids piece_to_id"
        ),
        "token_bytes(id)": (
            "decode_single_token_bytes id_to_token convert_ids_to_tokens id_to_piece"
        ),
        "token_bytes(id) of each id of encode(text)": "tokenize decode_tokens_bytes",
        "decode(ids)": "convert_tokens_to_string decode_ids",
        "decode_batch(batch)": "batch_decode",
        "mergeable_ranks()": "token_byte_values get_mergeable_ranks",
        "mergeable_ranks() and special_tokens": "get_vocab vocab",
        "render_conversation(messages), or render_for_completion(messages) for a prompt": (
            "apply_chat_template render render_prompt"
        ),
        'chat_templates["default"]': "get_chat_template chat_template",
        "roles": "special_tokens_map eos_token bos_token pad_token",
        "pattern": "get_pattern",
        "show(text)": "visualize_tokenization",
        'export(folder, "huggingface")': "save_pretrained push_to_hub",
        "replace(special_tokens=names), which returns another tokenizer": (
            "add_tokens add_special_tokens"
        ),
        "bytepair.tokenizer.truncate_text(tok, text, max_tokens)": (
            "enable_truncation model_max_length truncate_text"
        ),
        "bytepair.compat.pad(tok, tok.encode_batch(texts))": "enable_padding prepare_for_model pad",
        "bytepair.compat.to_huggingface(tok)": "to_huggingface",
        "bytepair.compat.to_tiktoken(tok)": "to_tiktoken",
        "bytepair.compat.to_transformers(tok)": "to_transformers",
        "bytepair.engines.cover(tok, text)": "encode_with_unstable",
        "bytepair.prune(tok, keep)": "prune",
        "bytepair.extend(tok, texts, extra)": "extend",
        "bytepair.pretokenize(text, tok)": "pretokenize",
        "bytepair.tokenizer.added_tokens(tok)": "added_tokens",
        "bytepair.evaluate.bits_per_byte": "bits_per_byte",
        "bytepair.evaluate.token_lengths(tok)": "token_lengths",
    }
)

#: What to use in place of a name that other libraries have at the top of their module.
MODULE_NAMES: Final = _by_name(
    {
        "bytepair.load(path_or_name)": "from_pretrained load AutoTokenizer",
        "bytepair.load(path)": "from_file from_str from_directory SentencePieceProcessor",
        "bytepair.load(name), or bytepair.compat.tiktoken.get_encoding": "get_encoding",
        "bytepair.compat.tiktoken.encoding_for_model": "encoding_for_model",
        "bytepair.Tokenizer, or bytepair.compat.tiktoken.Encoding": "Encoding",
        "bytepair.train(texts, vocab_size)": (
            "train train_from_iterator train_new_from_iterator BpeTrainer"
        ),
        "bytepair.tokenizer.truncate_text(tok, text, max_tokens)": "truncate",
        "encode of a Tokenizer: bytepair.load(name).encode(text)": "encode",
        "decode of a Tokenizer: bytepair.load(name).decode(ids)": "decode",
    }
)

#: What to use in place of a keyword of other libraries.
KEYWORDS: Final = _by_name(
    {
        'special="all" or special={"<|name|>"}': "allowed_special",
        'special="error", which refuses special tokens in text; the default encodes them as text': (
            "disallowed_special"
        ),
        'special="text", the default, or special="all"': "split_special_tokens",
        "threads=": "num_threads",
        'prepend="<|bos|>" and append=': "add_bos add_eos",
        "bytepair.tokenizer.truncate_text(tok, text, max_tokens), or slices of the lists": (
            "truncation max_length max_tokens"
        ),
        "bytepair.compat.pad(tok, encode_batch(texts))": "padding return_attention_mask",
        "encode_offsets(text)": "return_offsets_mapping",
        "encode_batch_to_numpy(texts)": "return_tensors",
    }
)


def unknown_keyword(method: str, names: Iterable[str]) -> ArgumentError:
    """The error for a keyword that a method of a tokenizer does not have."""
    name = next(iter(names))
    hint = f"use {KEYWORDS[name]}" if name in KEYWORDS else ""
    return ArgumentError(f"{method} has no argument {name!r}", option=name, hint=hint)


def missing(name: str) -> AttributeError:
    """The error for an attribute that a tokenizer does not have."""
    instead = HABITS.get(name) or MODULE_NAMES.get(name)
    hint = f"; use {instead}" if instead else ""
    return AttributeError(f"a Tokenizer has no attribute {name!r}{hint}")


class NotHere:
    """A name on the class `Tokenizer` for what stands elsewhere: getting it is an error."""

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __get__(self, instance: object, owner: object = None) -> NoReturn:
        """Refuse."""
        raise AttributeError(f"a Tokenizer has no such attribute; use {self._instead}")
