"""The exceptions and warnings. Each exception is a `BytepairError` and of a built-in class as well.

Each message names the broken rule, the value, the place and the remedy. It has at most 1,000
characters, since a file may contain a name of a million.
"""

from __future__ import annotations

import os

__all__ = [
    "ArgumentError", "BytepairError", "ConversationError", "CorpusError", "CountOverflowError",
    "CountsError", "DownloadError", "ExhaustedWarning", "FileFormatError", "FormatError",
    "InUseError", "LossError", "NotFetchedError", "OverwriteError", "PatternError", "PlanError",
    "ShardError", "SkippedWarning", "SpecialTokenError", "SplitError", "UnknownIdError",
    "UnsupportedError", "VocabularyError",
]  # fmt: skip


class BytepairError(Exception):
    """The base class of all exceptions of this package."""

    def __str__(self) -> str:
        """The message; the middle of a long one is left out.

        The place stands at the start of a message and the way out at the end. `Error` of the Rust
        crate does the same.
        """
        text = self._message()
        return text if len(text) <= 1_000 else f"{text[:600]}...{text[-397:]}"

    def _message(self) -> str:
        return super().__str__()


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
        reason: the broken rule and the value that breaks it.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def _message(self) -> str:
        return f"{self.place}: {self.reason}"


class UnsupportedError(FormatError):
    """A file uses a feature that cannot be reproduced exactly, so the file is not loaded."""


class LossError(BytepairError, ValueError):
    """A format cannot represent all of a tokenizer, and `lossy=True` was not passed.

    Attributes:
        format: the name of the format.
        lost: what would be lost, one sentence each.
    """

    def __init__(self, format: str, lost: list[str]) -> None:
        super().__init__(format, lost)
        self.format, self.lost = format, lost

    def _message(self) -> str:
        return (
            f"the format {self.format} cannot represent all of this tokenizer: "
            f"{'; '.join(self.lost)}. Pass lossy=True to write it without these"
        )


class OverwriteError(BytepairError, FileExistsError):
    """A tokenizer would overwrite a file with different content.

    Attributes:
        path: the existing file.
    """

    def __init__(self, path: os.PathLike[str]) -> None:
        super().__init__(path)
        self.path = path

    def _message(self) -> str:
        return (
            f"{self.path} exists and has different content; pass overwrite=True to replace it, or "
            "choose another path"
        )


class ConversationError(BytepairError, ValueError):
    """A conversation is invalid for its template, or has no tokens to train on."""


class CorpusError(BytepairError, ValueError):
    """A source of text cannot be read."""


class ArgumentError(BytepairError, ValueError, TypeError):
    """An argument has an invalid value or type."""


class CountsError(BytepairError, ValueError):
    """A table of counts is invalid, or was counted with a different split pattern."""


class PlanError(BytepairError, ValueError):
    """A number of a plan is missing or invalid."""


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


class ExhaustedWarning(UserWarning):
    """Training stopped early because the text has no more pairs to merge."""


class SkippedWarning(UserWarning):
    """Invalid documents were skipped, because `errors="skip"` was passed."""
