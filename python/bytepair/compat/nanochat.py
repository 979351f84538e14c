"""A wrapper with the API of nanochat's tokenizer and loaders.

Import it with `from bytepair.compat import nanochat`. It has the names of `nanochat.tokenizer` and
`nanochat.dataloader` of 2025 and 2026, except `HuggingFaceTokenizer`, which nanochat has dropped in
favour of `RustBPETokenizer`. The loaders also accept nanochat's own `RustBPETokenizer`.

`save` writes, beside bytepair's own file, the `tokenizer.pkl` that nanochat reads. `from_directory`
reads bytepair's own file; a folder that has only `tokenizer.pkl` is read if `allow_pickle=True`,
and then only the four values of an encoding are read from it: no code in it can run.

Where nanochat has an assertion, a `ValueError` says what to do. The loaders yield its batches and
states, in tensors that the next batch does not overwrite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair._core import PATTERNS
from bytepair.chat import NANOCHAT
from bytepair.compat import tiktoken
from bytepair.corpus.source import Texts
from bytepair.errors import ConversationError, NotFoundError
from bytepair.files.outputs import write_whole
from bytepair.formats import nanochat
from bytepair.properties.tokens import token_lengths
from bytepair.shards import TextBatches, TextOptions
from bytepair.tokenizer import Tokenizer, load
from bytepair.training import NANOCHAT_SPECIAL_TOKENS, train

if TYPE_CHECKING:
    from bytepair.chat.segments import Conversation
    from bytepair.corpus.files import Split
    from bytepair.shards.texts import TextState

__all__ = [
    "SPECIAL_TOKENS", "SPLIT_PATTERN", "RustBPETokenizer",
    "get_base_dir", "get_token_bytes", "get_tokenizer", "list_parquet_files", "token_bytes",
    "tokenizing_distributed_data_loader", "tokenizing_distributed_data_loader_bos_bestfit",
    "tokenizing_distributed_data_loader_with_state",
    "tokenizing_distributed_data_loader_with_state_bos_bestfit",
]  # fmt: skip

SPECIAL_TOKENS: Final = list(NANOCHAT_SPECIAL_TOKENS)

SPLIT_PATTERN: Final = PATTERNS["nanochat"]

_GREEN, _RED, _GREY, _RESET = "\x1b[92m", "\x1b[91m", "\x1b[90m", "\x1b[0m"


class RustBPETokenizer:
    """nanochat's tokenizer, with bytepair inside.

    Attributes:
        enc: the tokenizer with the API of tiktoken.
        tokenizer: the tokenizer itself.
        bos_token_id: the id that begins documents.

    Example:
        >>> from bytepair.compat.nanochat import RustBPETokenizer
        >>> tokenizer = RustBPETokenizer.train_from_iterator(["hello hello"], 267)
        >>> tokenizer.decode(tokenizer.encode("hello", prepend="<|bos|>"))
        '<|bos|>hello'
    """

    def __init__(self, enc: tiktoken.Encoding | Tokenizer, bos_token: str) -> None:
        """Take a tokenizer or an encoding, and the name of the token before documents."""
        if isinstance(enc, Tokenizer):
            self.tokenizer, self.enc = enc, tiktoken.Encoding.from_tokenizer(enc, "rustbpe")
        else:
            self.tokenizer, self.enc = enc._tokenizer, enc
        self.bos_token_id = self.encode_special(bos_token)

    @classmethod
    def train_from_iterator(cls, text_iterator: Iterable[str], vocab_size: int) -> RustBPETokenizer:
        """Train on texts; `vocab_size` includes the special tokens."""
        texts = Texts(text_iterator)  # even if they look like paths
        tokenizer = train(texts, vocab_size, pattern=SPLIT_PATTERN, special_tokens=SPECIAL_TOKENS)
        return cls(tokenizer, "<|bos|>")

    @classmethod
    def from_directory(
        cls, tokenizer_dir: str | os.PathLike[str], *, allow_pickle: bool = False
    ) -> RustBPETokenizer:
        """Read a tokenizer from a folder, as `bytepair.load` does.

        With `allow_pickle`, `tokenizer.pkl` is read if bytepair's own file is missing.
        """
        return cls(load(Path(tokenizer_dir), allow_pickle=allow_pickle), "<|bos|>")

    @classmethod
    def from_pretrained(cls, tiktoken_name: str) -> RustBPETokenizer:
        """A published encoding; its documents begin with `<|endoftext|>`."""
        return cls(tiktoken.get_encoding(tiktoken_name), "<|endoftext|>")

    def get_vocab_size(self) -> int:
        """The number of ids, special tokens included."""
        return self.enc.n_vocab

    def get_special_tokens(self) -> set[str]:
        """The names of the special tokens."""
        return self.enc.special_tokens_set

    def id_to_token(self, id: int) -> str:
        """The text of one id."""
        return self.enc.decode([id])

    def encode_special(self, text: str) -> int:
        """The id of a token, special or not, by its exact text; a KeyError if there is none."""
        return self.enc.encode_single_token(text)

    def get_bos_token_id(self) -> int:
        """The id that begins documents."""
        return self.bos_token_id

    def decode_single_token_bytes(self, token_id: int) -> bytes:
        """The bytes of one id."""
        return self.enc.decode_single_token_bytes(token_id)

    def encode(
        self,
        text: Any,
        prepend: str | int | None = None,
        append: str | int | None = None,
        num_threads: int = 8,
    ) -> Any:
        """Encode a text into ids, or a list of texts into lists of ids; see `Tokenizer.encode`."""
        before, after = (
            self.encode_special(token) if isinstance(token, str) else token
            for token in (prepend, append)
        )
        if isinstance(text, str):
            return self.tokenizer.encode(text, prepend=before, append=after)
        return self.tokenizer.encode_batch(text, prepend=before, append=after, threads=num_threads)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `encode`."""
        return self.encode(*args, **kwargs)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids; bytes that are not UTF-8 become U+FFFD."""
        return self.enc.decode(ids)

    def save(self, tokenizer_dir: str | os.PathLike[str]) -> None:
        """Write `tokenizer.bytepair` and nanochat's `tokenizer.pkl`; replaces existing files."""
        path = self.tokenizer.save(tokenizer_dir, overwrite=True)
        write_whole(path.with_name(nanochat.PICKLE_NAME), nanochat.pickled(self.tokenizer))

    def render_conversation(
        self, conversation: Conversation, max_tokens: int = 2048
    ) -> tuple[list[int], list[int]]:
        """Render to ids and a mask; a conversation without a target is accepted.

        As in nanochat, other fields than `messages`, `role` and `content` are ignored.
        """
        plain = [
            {name: message[name] for name in ("role", "content") if name in message}
            for message in _messages(conversation)
        ]
        return self.tokenizer.render_conversation(
            plain, max_tokens, template=NANOCHAT, on_untrained="keep"
        )

    def render_for_completion(self, conversation: Conversation) -> list[int]:
        """Render all but the last message, the assistant's, and begin a new one."""
        messages = _messages(conversation)
        if messages[-1]["role"] != "assistant":
            raise ConversationError("the last message must be from the assistant")
        ids, _ = self.render_conversation({"messages": list(messages[:-1])})
        return [*ids, self.encode_special("<|assistant_start|>")]

    def visualize_tokenization(
        self, ids: Sequence[int], mask: Sequence[int], with_token_id: bool = False
    ) -> str:
        """Show ids on a terminal, green where the mask is 1 and red where it is 0.

        The text of tokens is not escaped, as in nanochat; `Tokenizer.show` escapes it.
        """
        tokens = []
        for id, trained in zip(ids, mask, strict=False):
            tokens.append(f"{_GREEN if trained == 1 else _RED}{self.decode([id])}{_RESET}")
            if with_token_id:
                tokens.append(f"{_GREY}({id}){_RESET}")
        return "|".join(tokens)


def _messages(conversation: Conversation) -> Any:
    return conversation["messages"] if isinstance(conversation, Mapping) else conversation


def get_base_dir() -> str:
    """The folder of nanochat: `NANOCHAT_BASE_DIR`, or else `~/.cache/nanochat`."""
    variable = os.environ.get("NANOCHAT_BASE_DIR")
    folder = Path(variable) if variable else Path.home() / ".cache" / "nanochat"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def get_tokenizer(*, allow_pickle: bool = False) -> RustBPETokenizer:
    """Read the tokenizer in nanochat's folder; see `RustBPETokenizer.from_directory`."""
    folder = Path(get_base_dir()) / "tokenizer"
    return RustBPETokenizer.from_directory(folder, allow_pickle=allow_pickle)


def token_bytes(tokenizer: RustBPETokenizer) -> list[int]:
    """The number of bytes of each id; 0 for special tokens and unused ids."""
    return list(map(int, token_lengths(tokenizer.tokenizer)))


def get_token_bytes(device: str = "cpu") -> Any:
    """The number of bytes of each id, as a torch tensor of int32.

    Read from `token_bytes.pt` if it exists, or else computed from the tokenizer.
    """
    import torch  # type: ignore[import-not-found, unused-ignore]

    path = Path(get_base_dir()) / "tokenizer" / nanochat.TOKEN_BYTES_NAME
    if path.exists():
        return torch.load(path, map_location=device, weights_only=True)
    return torch.tensor(token_bytes(get_tokenizer()), dtype=torch.int32, device=device)


def list_parquet_files(data_dir: str | None = None) -> list[str]:
    """The shards of text in a folder; None means `base_data_climbmix`, or else `base_data`."""
    folder = Path(data_dir) if data_dir is not None else Path(get_base_dir(), "base_data_climbmix")
    if data_dir is None and not folder.exists():
        folder = folder.with_name("base_data")
    return [str(path) for path in sorted(folder.glob("*.parquet"))]


def tokenizing_distributed_data_loader_with_state_bos_bestfit(
    tokenizer: RustBPETokenizer,
    B: int,  # noqa: N803 - it may be passed by name
    T: int,  # noqa: N803
    split: Split,
    tokenizer_threads: int = 4,
    tokenizer_batch_size: int = 128,
    device: Any = "cuda",
    resume_state_dict: TextState | None = None,
    buffer_size: int = 1000,
) -> Iterator[tuple[Any, Any, TextState]]:
    """The loader of 2026, which yields inputs, targets and the state; see `TextBatches`.

    It reads the rank from the variables of torchrun. With a `buffer_size` of 0 it concatenates
    documents, as the loader of 2025 did.
    """
    import numpy as np
    import torch

    files = [Path(name) for name in list_parquet_files()]
    if not files:
        command = f"bytepair download climbmix -n 170 -o {get_base_dir()}/base_data_climbmix"
        hint = f"download them: {command}"
        raise NotFoundError(f"{get_base_dir()} has no shards of text", hint=hint)
    how: Any = {"buffer": buffer_size} if buffer_size else {"packing": "stream"}
    bos = tokenizer.id_to_token(tokenizer.get_bos_token_id())
    batches = TextBatches(
        files, load(tokenizer.enc), B, T,
        TextOptions(split=split, bos=bos, group=tokenizer_batch_size, **how),
        state=resume_state_dict, threads=tokenizer_threads,
        rank=int(os.environ.get("RANK", 0)), world_size=int(os.environ.get("WORLD_SIZE", 1)),
    )  # fmt: skip
    for batch in batches:
        both = torch.from_numpy(np.stack(batch).astype(np.int64))
        both = both.pin_memory() if str(device).startswith("cuda") else both
        inputs, targets = both.to(device, non_blocking=True)
        assert batches.state is not None  # after a batch
        yield inputs, targets, batches.state


def tokenizing_distributed_data_loader_bos_bestfit(
    *args: Any, **kwargs: Any
) -> Iterator[tuple[Any, Any]]:
    """The same without the state."""
    batches = tokenizing_distributed_data_loader_with_state_bos_bestfit(*args, **kwargs)
    return (batch[:2] for batch in batches)


def tokenizing_distributed_data_loader_with_state(
    *args: Any, **kwargs: Any
) -> Iterator[tuple[Any, Any, TextState]]:
    """The loader of 2025: without `tokenizer`, which is `get_tokenizer()`, and `buffer_size`."""
    return tokenizing_distributed_data_loader_with_state_bos_bestfit(
        get_tokenizer(), *args, **{**kwargs, "buffer_size": 0}
    )


def tokenizing_distributed_data_loader(*args: Any, **kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """The same without the state."""
    batches = tokenizing_distributed_data_loader_with_state(*args, **kwargs)
    return (batch[:2] for batch in batches)
