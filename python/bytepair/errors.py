"""What can go wrong, as exceptions: each is a `BytepairError`, and one of Python's own kinds, too.

Each message names the rule, the value, the place and the way out.
"""

from __future__ import annotations

import os


class BytepairError(Exception):
    """The base of all errors of this package."""


class PatternError(BytepairError, ValueError):
    """A split pattern is not a regular expression that can be compiled."""


class SplitError(BytepairError, ValueError):
    """A split pattern gives up on a text, or no token covers one of its bytes."""


class VocabularyError(BytepairError, ValueError):
    """A vocabulary, its merges, its special tokens or its size break a rule."""


class SpecialTokenError(BytepairError, ValueError):
    """A special token is unknown, or occurs in a text where it is forbidden."""


class UnknownIdError(BytepairError, ValueError):
    """An id stands for no token."""


class FileFormatError(BytepairError, ValueError):
    """A tokenizer file is damaged, cut off, or of another kind or version."""


class FormatError(FileFormatError):
    """A file of a foreign format breaks a rule of it.

    Attributes:
        place: where: a path such as `model.vocab`, an offset such as `byte 12`, or a line.
        reason: which rule is broken, and by what.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class UnsupportedError(FormatError):
    """A file asks for something that cannot be done exactly, so it is not done at all."""


class LossError(BytepairError, ValueError):
    """A format cannot hold all of a tokenizer, and nobody said that it need not.

    Attributes:
        lost: what would be lost, one sentence each.
    """

    def __init__(self, format: str, lost: list[str]) -> None:
        super().__init__(format, lost)
        self.format, self.lost = format, lost

    def __str__(self) -> str:
        return (
            f"the format {self.format} cannot hold all of this tokenizer: {'; '.join(self.lost)}. "
            "Pass lossy=True to write it all the same"
        )


class OverwriteError(BytepairError, FileExistsError):
    """A file of another tokenizer is where one is to be written, and would be lost.

    Attributes:
        path: the file that is there.
    """

    def __init__(self, path: os.PathLike[str]) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"{self.path} holds something else than this tokenizer, which would be lost; pass "
            "overwrite=True to replace it, or choose another place"
        )


class ConversationError(BytepairError, ValueError):
    """A conversation breaks a rule of its template, or has nothing to train on."""


class CorpusError(BytepairError, ValueError):
    """A source of text cannot be read as asked."""


class ArgumentError(BytepairError, ValueError):
    """An argument has a value that it cannot have."""


class CountsError(BytepairError, ValueError):
    """A table of counts breaks a rule, or its pattern is not that of another."""


class PlanError(BytepairError, ValueError):
    """A plan lacks a number, or has one that cannot be."""


class ShardError(BytepairError, ValueError):
    """Token shards are damaged, in use by another run, or made by another tokenizer."""


class InUseError(ShardError):
    """Another run works on the folder."""


class DownloadError(BytepairError, OSError):
    """A file cannot be had from the network, or is not what was promised."""


class NotFetchedError(DownloadError):
    """A published vocabulary is not on this machine, and could not be fetched."""


class CountOverflowError(BytepairError, OverflowError):
    """A corpus has more pretokens than 64 bits can count."""
