"""Names that other libraries give to what a tokenizer does, and what does it here.

A missing attribute in, an `AttributeError` out that says which call to use. There are no aliases:
one thing has one name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

_VOCABULARY = "mergeable_ranks() for the ordinary tokens and special_tokens for the others"
_BY_ID = "token_bytes(id)"
_BY_TOKEN = "token_id(token), or special_tokens[name]"
_TEXT = "encode(text)"
_ADD = "with_special_tokens(names), which returns another tokenizer"
_TEMPLATE = "render_conversation(messages), or render_for_completion(messages) for a prompt"
_LOAD = "bytepair.load(path_or_name)"
_TRAIN = "bytepair.train(texts, vocab_size)"
_PAD = "encode_batch(texts, pad_to=...)"

#: What to use in place of a name of tiktoken, tokenizers, transformers, SentencePiece or nanochat.
HABITS: Final = {
    # tiktoken
    "n_vocab": "vocab_size",
    "max_token_value": "vocab_size - 1",
    "eot_token": "eos_token_id",
    "special_tokens_set": "special_tokens",
    "encode_ordinary": _TEXT,
    "encode_ordinary_batch": "encode_batch(texts)",
    "encode_with_unstable": "cover(text)",
    "encode_single_token": _BY_TOKEN,
    "decode_single_token_bytes": _BY_ID,
    "decode_tokens_bytes": "tokens(ids)",
    "decode_with_offsets": "encode_with_offsets(text)",
    "decode_bytes_batch": "decode_bytes(ids) of each list",
    "token_byte_values": "mergeable_ranks()",
    "is_special_token": "id in special_token_ids",
    # tokenizers
    "get_vocab": _VOCABULARY,
    "get_vocab_size": "vocab_size",
    "id_to_token": _BY_ID,
    "token_to_id": _BY_TOKEN,
    "from_pretrained": _LOAD,
    "from_file": _LOAD,
    "from_str": _LOAD,
    "enable_padding": _PAD,
    "enable_truncation": "truncate_text(text, max_tokens)",
    "add_tokens": _ADD,
    "add_special_tokens": _ADD,
    "train": _TRAIN,
    "train_from_iterator": _TRAIN,
    "train_new_from_iterator": _TRAIN,
    # transformers
    "tokenize": "tokens(encode(text))",
    "convert_ids_to_tokens": _BY_ID,
    "convert_tokens_to_ids": _BY_TOKEN,
    "convert_tokens_to_string": "decode(ids)",
    "encode_plus": _TEXT,
    "batch_encode_plus": "encode_batch(texts)",
    "batch_decode": "decode_batch(batch)",
    "pad": _PAD,
    "apply_chat_template": _TEMPLATE,
    "get_chat_template": "chat_template",
    "all_special_ids": "special_token_ids",
    "all_special_tokens": "special_tokens",
    "special_tokens_map": "roles",
    "save_pretrained": 'export(folder, "huggingface")',
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
    # nanochat
    "encode_special": "special_tokens[name]",
    "get_bos_token_id": "bos_token_id",
    "get_special_tokens": "special_tokens",
    "get_mergeable_ranks": "mergeable_ranks()",
    "get_pattern": "pattern",
    "visualize_tokenization": "show(text)",
}


def missing(name: str) -> AttributeError:
    """The error for an attribute that a tokenizer does not have.

    Example:
        >>> print(missing("n_vocab"))
        a Tokenizer has no attribute 'n_vocab'; use vocab_size
        >>> print(missing("colour"))
        a Tokenizer has no attribute 'colour'
    """
    hint = f"; use {HABITS[name]}" if name in HABITS else ""
    return AttributeError(f"a Tokenizer has no attribute {name!r}{hint}")


class NamesOthers(type):
    """The class of the class `Tokenizer`, for names that are looked up on the class."""

    if not TYPE_CHECKING:  # so that type checkers know all attributes

        def __getattr__(cls, name: str) -> Any:
            raise missing(name)
