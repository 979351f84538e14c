"""Names that other libraries and people have for what bytepair does, and what to use here.

There are no aliases: one thing has one name, and the error for another name says it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

from bytepair.errors import ArgumentError

_VOCABULARY = "mergeable_ranks() for the ordinary tokens and special_tokens for the others"
_BY_ID = "token_bytes(id)"
_BY_TOKEN = "token_id(token), or special_tokens[name]"
_TEXT = "encode(text)"
_ADD = "replace(special_tokens=names), which returns another tokenizer"
_TEMPLATE = "render_conversation(messages), or render_for_completion(messages) for a prompt"
_TRUNCATE = "bytepair.tokenizer.truncate_text(tok, text, max_tokens)"
_PAD = "bytepair.compat.pad(tok, tok.encode_batch(texts))"

#: What to use in place of a name of tiktoken, tokenizers, transformers, SentencePiece or nanochat.
HABITS: Final = {
    # tiktoken
    "n_vocab": "vocab_size",
    "max_token_value": "vocab_size - 1",
    "eot_token": "eos_token_id",
    "special_tokens_set": "special_tokens",
    "encode_ordinary": _TEXT,
    "encode_ordinary_batch": "encode_batch(texts)",
    "encode_with_unstable": "bytepair.engines.cover(tok, text)",
    "encode_single_token": _BY_TOKEN,
    "decode_single_token_bytes": _BY_ID,
    "decode_tokens_bytes": "token_bytes(id) of each id",
    "decode_with_offsets": "encode_offsets(text)",
    "decode_bytes_batch": "decode_bytes(ids) of each list",
    "token_byte_values": "mergeable_ranks()",
    "is_special_token": "id in special_tokens.values()",
    # tokenizers
    "get_vocab": _VOCABULARY,
    "get_vocab_size": "vocab_size",
    "id_to_token": _BY_ID,
    "token_to_id": _BY_TOKEN,
    "enable_padding": _PAD,
    "enable_truncation": _TRUNCATE,
    "add_tokens": _ADD,
    "add_special_tokens": _ADD,
    "num_special_tokens_to_add": 'count("", prepend=..., append=...)',
    # transformers
    "tokenize": "token_bytes(id) of each id of encode(text)",
    "convert_ids_to_tokens": _BY_ID,
    "convert_tokens_to_ids": _BY_TOKEN,
    "convert_tokens_to_string": "decode(ids)",
    "encode_plus": _TEXT,
    "batch_encode_plus": "encode_batch(texts)",
    "batch_decode": "decode_batch(batch)",
    "apply_chat_template": _TEMPLATE,
    "get_chat_template": 'chat_templates["default"]',
    "all_special_ids": "special_tokens.values()",
    "all_special_tokens": "special_tokens",
    "special_tokens_map": "roles",
    "save_pretrained": 'export(folder, "huggingface")',
    "push_to_hub": 'export(folder, "huggingface")',
    "eos_token": 'roles["eos"]',
    "bos_token": 'roles["bos"]',
    "pad_token": 'roles["pad"]',
    "model_max_length": _TRUNCATE,
    "prepare_for_model": _PAD,
    "vocab": _VOCABULARY,
    # SentencePiece
    "encode_as_ids": _TEXT,
    "EncodeAsIds": _TEXT,
    "decode_ids": "decode(ids)",
    "DecodeIds": "decode(ids)",
    "id_to_piece": _BY_ID,
    "IdToPiece": _BY_ID,
    "piece_to_id": _BY_TOKEN,
    "PieceToId": _BY_TOKEN,
    "get_piece_size": "vocab_size",
    "GetPieceSize": "vocab_size",
    "bos_id": "bos_token_id",
    "eos_id": "eos_token_id",
    "pad_id": "pad_token_id",
    # what people type
    "render": _TEMPLATE,
    "render_prompt": "render_for_completion(messages)",
    "count_tokens": "count(text)",
    "truncate": _TRUNCATE + ", or replace(vocab_size=...)",
    "truncate_text": _TRUNCATE,
    "encode_with_offsets": "encode_offsets(text)",
    "bits_per_byte": "bytepair.evaluate.bits_per_byte(losses, targets, token_bytes)",
    "token_lengths": "bytepair.evaluate.token_lengths(tok)",
    "chat_template": 'chat_templates["default"]',
    "pad": _PAD,
    "to_huggingface": "bytepair.compat.to_huggingface(tok)",
    "to_tiktoken": "bytepair.compat.to_tiktoken(tok)",
    "to_transformers": "bytepair.compat.to_transformers(tok)",
    "prune": "bytepair.prune(tok, keep)",
    "extend": "bytepair.extend(tok, texts, extra)",
    "encode_to_numpy": "encode_batch_to_numpy([text]).ids",
    "pretokenize": "bytepair.pretokenize(text, tok)",
    "added_tokens": "bytepair.tokenizer.added_tokens(tok)",
    # nanochat
    "encode_special": "special_tokens[name]",
    "get_bos_token_id": "bos_token_id",
    "get_special_tokens": "special_tokens",
    "get_mergeable_ranks": "mergeable_ranks()",
    "get_pattern": "pattern",
    "visualize_tokenization": "show(text)",
}


#: What to use in place of a name that other libraries have at the top of their module.
MODULE_NAMES: Final = {
    "from_pretrained": "bytepair.load(path_or_name)",
    "from_file": "bytepair.load(path)",
    "from_str": "bytepair.load(path)",
    "from_directory": "bytepair.load(folder)",
    "get_encoding": "bytepair.load(name), or bytepair.compat.tiktoken.get_encoding",
    "encoding_for_model": "bytepair.compat.tiktoken.encoding_for_model",
    "Encoding": "bytepair.Tokenizer, or bytepair.compat.tiktoken.Encoding",
    "AutoTokenizer": "bytepair.load(name)",
    "SentencePieceProcessor": "bytepair.load(path)",
    "train": "bytepair.train(texts, vocab_size)",
    "load": "bytepair.load(path_or_name)",
    "train_from_iterator": "bytepair.train(texts, vocab_size)",
    "train_new_from_iterator": "bytepair.train(texts, vocab_size)",
    "BpeTrainer": "bytepair.train(texts, vocab_size)",
    "truncate": _TRUNCATE + ", or Tokenizer.replace(vocab_size=)",
    "encode": "encode of a Tokenizer: bytepair.load(name).encode(text)",
    "decode": "decode of a Tokenizer: bytepair.load(name).decode(ids)",
    "token_lengths": "bytepair.evaluate.token_lengths(tok)",
    "bits_per_byte": "bytepair.evaluate.bits_per_byte",
    "compare": "bytepair.evaluate.compare",
    "cover": "bytepair.engines.cover",
    "Dataset": "bytepair.shards.Dataset",
    "token_healing": "bytepair.engines.cover(tok, text)",
    "AsyncTokenizer": "asyncio.to_thread(tok.encode, text)",
}

_MARKED = 'prepend="<|bos|>" and append=, or encode_batch(texts, prepend=..., append=...)'
_ROWS = _TRUNCATE + ", or slices of the lists"

#: What to use in place of a keyword of other libraries.
KEYWORDS: Final = {
    # tiktoken
    "allowed_special": 'special="all" or special={"<|name|>"}',
    "disallowed_special": 'special="error", which refuses special tokens in text; the default '
    "encodes them as text",
    "num_threads": "threads=",
    # transformers
    "split_special_tokens": 'special="text", the default, or special="all"',
    "truncation": _ROWS,
    "max_length": _ROWS,
    "padding": "pad(encode_batch(texts))",
    "return_attention_mask": "pad(encode_batch(texts)), which gives one",
    "max_tokens": _ROWS,
    "pad_to": "pad(encode_batch(texts), width)",
    "return_offsets_mapping": "encode_offsets(text)",
    "return_tensors": 'pad(encode_batch(texts), tensors="pt"), or encode_batch_to_numpy(texts)',
    "return_length": "bytepair.tokenizer.count_batch(tok, texts)",
    "is_split_into_words": 'encode("".join(words))',
    "clean_up_tokenization_spaces": "nothing: the text is not changed",
    "spaces_between_special_tokens": "nothing: no spaces are added",
    # SentencePiece
    "add_bos": _MARKED,
    "add_eos": _MARKED,
    "out_type": "encode for ids, and token_bytes(id) for pieces",
}


def unknown_keyword(method: str, names: Iterable[str]) -> ArgumentError:
    """The error for a keyword that a method of a tokenizer does not have.

    Example:
        >>> print(unknown_keyword("encode", ["allowed_special"]))
        encode has no argument 'allowed_special'; use special="all" or special={"<|name|>"}
        >>> print(unknown_keyword("encode", ["colour"]))
        encode has no argument 'colour'
    """
    name = next(iter(names))
    hint = f"use {KEYWORDS[name]}" if name in KEYWORDS else ""
    return ArgumentError(f"{method} has no argument {name!r}", option=name, hint=hint)


def missing(name: str) -> AttributeError:
    """The error for an attribute that a tokenizer does not have.

    Example:
        >>> print(missing("n_vocab"))
        a Tokenizer has no attribute 'n_vocab'; use vocab_size
        >>> print(missing("colour"))
        a Tokenizer has no attribute 'colour'
    """
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
