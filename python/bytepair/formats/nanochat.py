"""nanochat's folder: `tokenizer.pkl`, a pickle of a `tiktoken.Encoding`, and `token_bytes.pt`.

A pickle can run arbitrary code when loaded by `pickle`. Here it is read only if the caller allows
it, by a restricted unpickler that accepts only this class, or the one of
`bytepair.compat.tiktoken`; even these are not executed, but replaced by a class that stores its
arguments. `token_bytes.pt` is a tensor with the number of bytes of each id, 0 for special tokens;
it is written without torch and not needed for reading.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair.errors import FormatError
from bytepair.files.safe import id_of, read_file, typed
from bytepair.formats import published, tiktoken
from bytepair.formats.parts import LoadOptions, build
from bytepair.properties.tokens import token_lengths

PICKLE_NAME: Final = "tokenizer.pkl"
TOKEN_BYTES_NAME: Final = "token_bytes.pt"


class _Values:
    """Replaces the class of an encoding while a pickle is read, and stores its values."""

    def __setstate__(self, values: Any) -> None:
        self.values = values


#: The opcodes in the pickle of an encoding: strings, bytes, numbers and dicts.
_OPCODES: Final = frozenset((
    "PROTO", "FRAME", "GLOBAL", "STACK_GLOBAL", "SHORT_BINUNICODE", "BINUNICODE", "SHORT_BINBYTES",
    "BINBYTES", "BININT", "BININT1", "BININT2", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET",
    "LONG_BINGET", "MARK", "EMPTY_TUPLE", "EMPTY_DICT", "SETITEM", "SETITEMS", "NEWOBJ", "BUILD",
    "STOP",
))  # fmt: skip


class _Unpickler(pickle.Unpickler):
    """Reads a pickle that may refer only to tiktoken's Encoding or ours, without executing them."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in tiktoken.ENCODING_CLASSES:
            return _Values
        raise pickle.UnpicklingError(
            f"it refers to {module}.{name}; only tiktoken.core.Encoding and "
            "bytepair.compat.tiktoken.Encoding are allowed"
        )


def _values(data: bytes) -> Any:
    """The values in a pickle: the name of a published encoding, or those of one."""
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"it has the opcode {opcode.name}")
        if opcode.name == "LONG_BINPUT" and (argument or 0) > len(data):
            raise pickle.UnpicklingError(f"it uses {argument} memo entries")
    return _Unpickler(io.BytesIO(data)).load().values


def read(path: Path, options: LoadOptions) -> _core.Model:
    """Read the folder, or the pickle itself, if the caller allows that."""
    if not options.allow_pickle:
        raise FormatError(
            PICKLE_NAME,
            "a pickle may contain code, so it is read only on request",
            option="allow_pickle",
            value=False,
            hint="pass allow_pickle=True to read it (no code in it is executed), and save the "
            "tokenizer in another format",
        )
    data = read_file(path / PICKLE_NAME if path.is_dir() else path)
    try:
        values = _values(data)
    except Exception as error:  # a damaged pickle may raise anything
        raise FormatError(PICKLE_NAME, f"it is not the pickle of an encoding: {error}") from None
    if isinstance(values, str):
        return published.of_name(typed(values, str, PICKLE_NAME))
    if not isinstance(values, dict) or not isinstance(values.get("pat_str"), str):
        raise FormatError(PICKLE_NAME, "it is not the pickle of an encoding: it has no pattern")
    pattern = typed(values["pat_str"], str, f"{PICKLE_NAME}: pat_str")
    ranks: Any = values.get("mergeable_ranks")
    special = values.get("special_tokens", {})
    for mapping, kind in ((ranks, bytes), (special, str)):
        for key, id in typed(mapping, dict, PICKLE_NAME).items():
            id_of(id, f"{PICKLE_NAME}: {typed(key, kind, PICKLE_NAME)!r}")
    return build(ranks, pattern, special)


def files(tokenizer: _core.Tokenizer, path: Path) -> dict[Path, bytes]:
    """The two files of a folder."""
    return {
        path / TOKEN_BYTES_NAME: tensor_file(token_lengths(tokenizer)),
        path / PICKLE_NAME: pickled(tokenizer),
    }


def pickled(tokenizer: _core.Tokenizer) -> bytes:
    """The pickle of a `tiktoken.Encoding`, without importing tiktoken."""
    values = {"name": "rustbpe", **tiktoken.values(tokenizer)}
    state = pickle.dumps(values, 3).removeprefix(b"\x80\x03").removesuffix(b".")
    # Create an object of the class, and set its state.
    return b"\x80\x03ctiktoken.core\nEncoding\n)\x81" + state + b"b."


def tensor_file(numbers: NDArray[np.int32]) -> bytes:
    """A file that `torch.load` reads as a one-dimensional tensor of int32.

    It is a zip archive of the numbers and a pickle that describes them.
    """

    def of(word: bytes) -> bytes:
        return b"X" + struct.pack("<I", len(word)) + word

    number = b"J" + struct.pack("<i", len(numbers))
    storage = b"(" + of(b"storage") + b"ctorch\nIntStorage\n" + of(b"0") + of(b"cpu") + number
    described = b"".join([
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((",
        storage[1:], b"tQ",           # the storage, by reference
        b"K\x00", number, b"\x85",    # the offset, the shape
        b"K\x01\x85", b"\x89",        # the stride; no gradient
        b"ccollections\nOrderedDict\n)R", b"tR.",
    ])  # fmt: skip
    files = {
        "data.pkl": described,
        "byteorder": b"little",
        "data/0": numbers.astype("<i4").tobytes(),
        "version": b"3\n",
    }
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(f"token_bytes/{name}"), data)
    return sink.getvalue()
