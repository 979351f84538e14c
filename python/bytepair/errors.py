"""The exceptions and warnings. Each exception is a `BytepairError` and a built-in exception.

A message names the broken rule, the value and the place; a hint says what to do. Together they have
at most 1,000 characters, since a file may contain a name of a million.
"""

from __future__ import annotations

import copy
import os
import re
import sys
import warnings
from typing import Any, Final, Self

__all__ = [
    "ArgumentError", "BytepairError", "BytepairWarning", "ConversationError", "CorpusError",
    "CountOverflowError", "CountsError", "DownloadError", "ExhaustedWarning", "FileFormatError",
    "FormatError", "InUseError", "LossError", "NotAFileError", "NotAFolderError",
    "NotFetchedError", "NotFoundError", "OutOfMemoryError", "OverwriteError", "PatternError",
    "PortError", "ShardError", "SkippedWarning", "SpecialTokenError", "SpillError",
    "SplitError", "UnknownIdError", "UnsupportedError", "VocabularyError",
]  # fmt: skip


#: The folder of the package, as it stands in the names of files of code.
_PACKAGE: Final = __file__.removesuffix("errors.py")


#: Characters that a terminal obeys: in a name, they would retitle it or turn the text around.
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    r"""A text whose control characters are escaped, but for tabs and line breaks.

    Example:
        >>> print(visible("a\x1b[31m.txt"))
        a\x1b[31m.txt
    """
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(text: str) -> str:
    """A visible text of at most 1,000 characters: the middle of a longer one is left out.

    The place stands at the start of a message and the hint at its end. `Error` of the Rust crate
    does the same.

    Example:
        >>> from bytepair.errors import shortened
        >>> len(shortened("a" * 2_000))
        1000
    """
    text = visible(text)
    return text if len(text) <= 1_000 else f"{text[:600]}...{text[-397:]}"


class Described:
    """What exceptions and warnings of this package have in common."""

    args: tuple[Any, ...]

    def __init__(
        self,
        message: str,
        option: str | None = None,
        value: Any = None,
        hint: str = "",
    ) -> None:
        super().__init__()  # `OSError` would read two arguments as a number and a reason
        self.args = (message,)
        self.message, self.option, self.value, self.hint = message, option, value, hint

    def __str__(self) -> str:
        """The message and the hint, in at most 1,000 characters."""
        return shortened(f"{self.message}; {self.hint}" if self.hint else self.message)

    def at(self, place: str) -> Self:
        """A copy of the error whose message begins with a place.

        Example:
            >>> from bytepair.errors import CorpusError
            >>> print(CorpusError("it is not UTF-8", hint="repair it").at("row 3"))
            row 3: it is not UTF-8; repair it
        """
        other = copy.copy(self)
        other.message = f"{place}: {self.message}"
        return other


class BytepairError(Described, Exception):
    """The base class of all exceptions of this package.

    Attributes:
        message: the broken rule, the value and the place.
        option: the name of the argument concerned, if it is one.
        value: what was passed for it.
        hint: what to do, in the words of Python; may be empty.

    Example:
        >>> import bytepair
        >>> from bytepair.errors import BytepairError
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> try:
        ...     tok.encode("<|bos|>", special="error")
        ... except BytepairError as error:
        ...     print(error.option, "|", error.hint[:24])
        special | pass special="text" to e
    """


class BytepairWarning(Described, UserWarning):
    """A warning of this package; its attributes are those of `BytepairError`."""


def warn(warning: Warning | str) -> None:
    """Issue a warning that points at the line outside of this package that led to it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


class PatternError(BytepairError, ValueError):
    """A split pattern is not a valid regular expression."""


class SplitError(BytepairError, ValueError):
    """A split pattern fails on a text, or the vocabulary has no token for one of its bytes."""


class VocabularyError(BytepairError, ValueError):
    """A vocabulary, its merges, its special tokens or its size are invalid."""


class SpecialTokenError(BytepairError, ValueError):
    """A special token is unknown, or occurs in a text where it is forbidden."""


class UnknownIdError(BytepairError, ValueError):
    """An id is not in the vocabulary."""


class FileFormatError(BytepairError, ValueError):
    """A tokenizer file is damaged, truncated, or of another format or version."""


class FormatError(FileFormatError):
    """A file of another tokenizer library is not valid in its format.

    Attributes:
        place: the place in the file: a path such as `model.vocab`, an offset such as `byte 12`, or
            a line.
    """

    def __init__(
        self,
        place: str,
        reason: str,
        option: str | None = None,
        value: Any = None,
        hint: str = "",
    ) -> None:
        super().__init__(f"{place}: {reason}", option, value, hint)
        self.args = (place, reason)
        self.place = place

    @property
    def reason(self) -> str:
        """The broken rule, the value that breaks it, and the hint."""
        return str(self).removeprefix(f"{self.place}: ")

    def at(self, place: str) -> Self:
        """A copy of the error whose place is within another one, such as a file."""
        other = super().at(place)
        other.place = f"{place}: {self.place}"
        return other


class UnsupportedError(FormatError):
    """A file uses a feature that cannot be reproduced exactly, so the file is not loaded."""


class LossError(BytepairError, ValueError):
    """A format cannot represent all of a tokenizer, and `lossy=True` was not passed.

    Attributes:
        format: the name of the format.
        lost: what would be lost, one sentence each.
    """

    def __init__(self, format: str, lost: list[str], hint: str = "") -> None:
        hints = [hint, "pass lossy=True to write it without these"]
        super().__init__(
            f"the format {format} cannot represent all of this tokenizer: {'; '.join(lost)}",
            option="lossy",
            value=False,
            hint=", or ".join(filter(None, hints)),
        )
        self.args = (format, lost)
        self.format, self.lost = format, lost


class NotFoundError(BytepairError, FileNotFoundError):
    """A file or folder does not exist, or a folder has no such file."""


class NotAFileError(BytepairError, IsADirectoryError):
    """The path of a file to write is that of a folder."""


class NotAFolderError(BytepairError, NotADirectoryError):
    """The path of a folder is that of a file, or has the name of one."""


class OutOfMemoryError(BytepairError, MemoryError):
    """Memory could not be allocated."""


class SpillError(BytepairError, OSError):
    """Counts that exceed the memory limit cannot be written to the disk, or read from it."""


class PortError(BytepairError, OSError):
    """A server cannot listen on its port."""


class OverwriteError(BytepairError, FileExistsError):
    """A file that exists would be replaced.

    Attributes:
        path: the existing file.
    """

    def __init__(
        self,
        path: os.PathLike[str],
        what: str = "exists and has different content",
        hint: str = "pass overwrite=True to replace it, or choose another path",
    ) -> None:
        super().__init__(f"{path} {what}", option="overwrite", value=False, hint=hint)
        self.args = (path,)
        self.path = path


class ConversationError(BytepairError, ValueError):
    """A conversation is invalid for its template, or has no tokens to train on."""


class CorpusError(BytepairError, ValueError):
    """A source of text cannot be read."""


class ArgumentError(BytepairError, ValueError, TypeError):
    """An argument has an invalid value or type."""


class CountsError(BytepairError, ValueError):
    """A table of counts is invalid, or was counted with a different split pattern."""


class ShardError(BytepairError, ValueError):
    """Token shards are damaged, in use by another run, or written with another tokenizer."""


class InUseError(ShardError):
    """Another run is using the folder or the checkpoint."""


class DownloadError(BytepairError, OSError):
    """A download failed, or the file has the wrong size or hash."""


class NotFetchedError(DownloadError):
    """A published vocabulary is not on this machine and could not be downloaded."""


class CountOverflowError(BytepairError, OverflowError):
    """A count exceeds 64 bits."""


class ExhaustedWarning(BytepairWarning):
    """Training stopped early because the text has no more pairs to merge."""


class SkippedWarning(BytepairWarning):
    """Invalid documents were skipped, because `errors="skip"` was passed."""
