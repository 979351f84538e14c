"""The exceptions and warnings. Each exception is a `BytepairError` and of a built-in class as well.

A message names the broken rule, the value and the place; a hint says what to do. Together they have
at most 1,000 characters, since a file may contain a name of a million.
"""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, Self

__all__ = [
    "ArgumentError", "BytepairError", "BytepairWarning", "ConversationError", "CorpusError",
    "CountOverflowError", "CountsError", "DownloadError", "ExhaustedWarning", "FileFormatError",
    "FormatError", "InUseError", "LossError", "NotAFileError", "NotAFolderError",
    "NotFetchedError", "NotFoundError", "OutOfMemoryError", "OverwriteError", "PatternError",
    "PlanError", "PortError", "ShardError", "SkippedWarning", "SpecialTokenError", "SpillError",
    "SplitError", "UnknownIdError", "UnsupportedError", "VocabularyError",
]  # fmt: skip


#: The folder of the package, as it stands in the names of files of code.
_PACKAGE: Final = __file__.removesuffix("errors.py")


def shortened(text: str) -> str:
    """A text of at most 1,000 characters: the middle of a longer one is left out.

    The place stands at the start of a message and the hint at its end. `Error` of the Rust crate
    does the same.

    Example:
        >>> from bytepair.errors import shortened
        >>> len(shortened("a" * 2_000))
        1000
    """
    return text if len(text) <= 1_000 else f"{text[:600]}...{text[-397:]}"


class Described:
    """What exceptions and warnings of this package have in common."""

    args: tuple[Any, ...]

    def __init__(
        self,
        message: Any,
        *phrases: Any,
        option: str | None = None,
        value: Any = None,
        hint: str = "",
    ) -> None:
        super().__init__()  # `OSError` would read two arguments as a number and a reason
        self.args = (message,)
        self.message: str = message
        self.option, self.value, self.hint = option, value, hint
        _read_phrases(self, (message, *phrases))

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

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The parts of the message."""
        if self._old_phrases:
            return self._old_phrases
        return (self.message, _Rest(self.option, self.value, self.hint))

    @property
    def ways_out(self) -> tuple[WayOut, ...]:
        """What to do about it."""
        return tuple(one for one in self.phrases if isinstance(one, WayOut) and str(one))

    @property
    def problem(self) -> str:
        """What is wrong, without the ways out."""
        return shortened(self.message)


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

    def __init__(self, place: str, reason: str, *phrases: Any, **options: Any) -> None:
        super().__init__(reason, *phrases, **options)
        self.args = (place, reason)
        self.place = place
        if self._old_phrases:
            self._old_phrases = (f"{place}:", *self._old_phrases)
        self.message = f"{place}: {self.message}"

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

    def __init__(self, format: str, lost: list[str], *ways_out: Any, hint: str = "") -> None:
        hints = [*map(str, ways_out), hint, "pass lossy=True to write it without these"]
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
        self, path: os.PathLike[str], what: str = "exists and has different content"
    ) -> None:
        super().__init__(
            f"{path} {what}",
            option="overwrite",
            value=False,
            hint="pass overwrite=True to replace it, or choose another path",
        )
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


class ExhaustedWarning(BytepairWarning):
    """Training stopped early because the text has no more pairs to merge."""


class SkippedWarning(BytepairWarning):
    """Invalid documents were skipped, because `errors="skip"` was passed."""


# ------------------------------------------------- phrases, which raise sites still pass


class _Value(Enum):
    """What an `Option` has in place of a value."""

    NONE = "the message names the option alone"
    ANY = "the reader chooses the value"


#: The value of an `Option` that the reader chooses.
ANY: Final = _Value.ANY


@dataclass(frozen=True)
class Option:
    """An option that a message names.

    Attributes:
        name: the name of the argument.
        value: the value to pass; `ANY` if the reader chooses it; by default only the option is
            named.
        python: how Python words it, where it is not an argument of the failed call.

    Example:
        >>> from bytepair.errors import ANY, Option
        >>> str(Option("errors", "replace")), str(Option("pattern", ANY)), str(Option("vocab_size"))
        ('errors="replace"', 'pattern=', 'vocab_size')
    """

    name: str
    value: Any = _Value.NONE
    python: str | None = None

    def __str__(self) -> str:
        """The option as an argument of Python."""
        if self.python is not None or self.value is _Value.NONE:
            return self.python or self.name
        if self.value is ANY:
            return f"{self.name}="
        is_simple = isinstance(self.value, str) and self.value.isprintable()
        value = f'"{self.value}"' if is_simple and '"' not in self.value else repr(self.value)
        return f"{self.name}={value}"


@dataclass(frozen=True)
class WayOut:
    """One thing to do about an error.

    Attributes:
        phrases: text, and the option that it names, if it names one.

    Example:
        >>> from bytepair.errors import WayOut
        >>> way_out = WayOut.passing("errors", "skip", "to leave the document out")
        >>> str(way_out), way_out.option.name, way_out.option.value
        ('pass errors="skip" to leave the document out', 'errors', 'skip')
        >>> print(WayOut("repair it").option)
        None
    """

    phrases: tuple[str | Option, ...]

    def __init__(self, *phrases: str | Option) -> None:
        object.__setattr__(self, "phrases", phrases)

    @classmethod
    def passing(cls, option: str, value: object = ANY, *more: str | Option) -> WayOut:
        """To pass an option with a value, and for what."""
        return cls("pass", Option(option, value), *more)

    @classmethod
    def of_parts(cls, action: str, option: str | None, value: object, purpose: str) -> WayOut:
        """The way out that has these `parts`.

        Example:
            >>> from bytepair.errors import WayOut
            >>> print(WayOut.of_parts("raise", "max_document_bytes", None, ""))
            raise max_document_bytes
        """
        if value is None:  # one that the reader chooses; `raise` alone says how
            value = ANY if action.endswith("pass") else _Value.NONE
        named = [] if option is None else [Option(option, value)]
        return cls(action, *named, *([purpose] if purpose else []))

    @property
    def parts(self) -> tuple[str, str | None, Any, str]:
        """What to do, the option and its value, and for what: values that JSON can hold.

        Example:
            >>> from bytepair.errors import WayOut
            >>> WayOut.passing("errors", "skip", "to leave the document out").parts
            ('pass', 'errors', 'skip', 'to leave the document out')
        """
        texts = [phrase for phrase in self.phrases if isinstance(phrase, str)]
        option = self.option
        if option is None:
            return _joined(texts), None, None, ""
        value = None if isinstance(option.value, _Value) else option.value
        return texts[0], option.name, value, _joined(texts[1:])

    @property
    def option(self) -> Option | None:
        """The first option that it names."""
        return next((phrase for phrase in self.phrases if isinstance(phrase, Option)), None)

    def __str__(self) -> str:
        """The thing to do, in the words of Python."""
        return _joined([str(phrase) for phrase in self.phrases])


#: A part of a message.
Phrase = str | Option | WayOut

#: Words an option, or returns None where there is no such option.
Wording = Callable[[Option], str | None]


class Words(NamedTuple):
    """A message in the words of a caller.

    Attributes:
        problem: what is wrong.
        advice: what to do about it; may be empty.
    """

    problem: str
    advice: str


def words(phrases: Sequence[Phrase], wording: Wording = str) -> Words:
    """What is wrong, and what to do about it, in the words of a caller.

    Args:
        phrases: what is wrong, then the ways out.
        wording: words an option; a way out that needs an option which it does not know is left out.

    Example:
        >>> from bytepair.errors import WayOut, words
        >>> ways_out = [WayOut.passing("errors", value) for value in ("replace", "skip")]
        >>> words(["it is not UTF-8", WayOut("repair it"), *ways_out]).advice
        'repair it, or pass errors="replace", or errors="skip"'
    """
    reasons = [phrase for phrase in phrases if not isinstance(phrase, WayOut)]
    problem = _joined(
        [one if isinstance(one, str) else wording(one) or one.name for one in reasons]
    )
    ways_out = list(_worded([one for one in phrases if isinstance(one, WayOut)], wording))
    advice = ""
    for number, way_out in enumerate(ways_out):
        again = number and ways_out[number - 1].startswith("pass ")  # the word stands once
        advice += (
            f"{', or ' if number else ''}{way_out.removeprefix('pass ') if again else way_out}"
        )
    return Words(problem, advice)


def message(phrases: Sequence[Phrase], wording: Wording = str) -> str:
    """A message in the words of a caller, of at most 1,000 characters.

    The middle of a longer one is left out, since the place stands at the start and the way out at
    the end. `Error` of the Rust crate does the same.

    Args:
        phrases: what is wrong, then the ways out.
        wording: words an option; a way out that needs an option which it does not know is left out.

    Example:
        >>> from bytepair.errors import WayOut, message
        >>> ways_out = [WayOut.passing("errors", value) for value in ("replace", "skip")]
        >>> message(["it is not UTF-8", WayOut("repair it"), *ways_out])
        'it is not UTF-8; repair it, or pass errors="replace", or errors="skip"'
        >>> message(["it is not UTF-8", WayOut("repair it"), *ways_out], lambda option: None)
        'it is not UTF-8; repair it'
    """
    problem, advice = words(phrases, wording)
    return shortened(f"{problem}; {advice}" if advice else problem)


def _worded(ways_out: Sequence[WayOut], wording: Wording) -> Iterator[str]:
    """The ways out whose options the caller has."""
    for way_out in ways_out:
        words = [one if isinstance(one, str) else wording(one) for one in way_out.phrases]
        complete = [word for word in words if word is not None]
        if len(complete) == len(words) and any(complete):
            yield _joined(complete)


def _joined(words: Sequence[str]) -> str:
    """Words with spaces between them, except around punctuation."""
    text = ""
    for word in words:
        is_close = not text or not word or word[0] in ",;:.)" or text[-1] in "(" or word[0] == "\n"
        text += word if is_close else f" {word}"
    return text


def _of_core(phrase: tuple[Any, ...]) -> str | Option | WayOut:
    """A phrase that the Rust core passes as a tuple: the name of an argument, or a way out."""
    if len(phrase) == 1:
        (name,) = phrase
        return Option(name) if name.isidentifier() else name
    return WayOut.of_parts(*phrase)


def phrases_of(error: BaseException) -> tuple[Phrase, ...]:
    """The parts of the message of any exception, for an error that repeats it.

    Example:
        >>> from bytepair.errors import ArgumentError, WayOut, phrases_of
        >>> phrases_of(ValueError("it is empty"))
        ('it is empty',)
        >>> len(phrases_of(ArgumentError("it is empty", WayOut("pass a text"))))
        2
    """
    return error.phrases if isinstance(error, Described) else (str(error),)


#: The old name of the base class.
Worded = Described


class _Rest(WayOut):
    """The attributes of an error without phrases, for an error that repeats it."""

    def __init__(self, name: str | None, value: Any, hint: str) -> None:
        super().__init__(hint)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "passed", value)


def _read_phrases(error: Any, phrases: tuple[Any, ...]) -> None:
    """Set the attributes of an error to what phrases say."""
    phrases = tuple(_of_core(one) if isinstance(one, tuple) else one for one in phrases)
    error._old_phrases = ()
    if len(phrases) == 1 and isinstance(phrases[0], str):
        return
    error._old_phrases = phrases
    error.message, hint = words(phrases)
    error.hint = error.hint or hint
    for one in phrases:
        option = one.option if isinstance(one, WayOut) else one
        if error.option is not None:
            return
        if isinstance(one, _Rest):
            error.option, error.value = vars(one)["name"], vars(one)["passed"]
        elif isinstance(option, Option) and option.name.isidentifier():
            error.option = option.name
