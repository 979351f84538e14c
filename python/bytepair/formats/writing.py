"""Writes a tokenizer as files of a format, and lists what the format cannot hold.

One function compares the values of a tokenizer with the table of formats (`registry`); what only
one engine does differently is a function of that format's module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, get_args

from bytepair import _core
from bytepair.errors import ArgumentError, LossError, NotAFolderError, UnsupportedError
from bytepair.files.outputs import check_output_folder, check_replaced, write_files, write_whole
from bytepair.formats import gpt2, huggingface, tiktoken
from bytepair.formats.huggingface import companions
from bytepair.formats.parts import LoadOptions, Losses, WrittenFormat
from bytepair.formats.registry import DROPS, FORMATS, Format, Units, format_of
from bytepair.properties import metadata
from bytepair.properties.entries import NATIVE
from bytepair.properties.tokens import form, leaves_out, uncovered, unmade

_WRITTEN: Final = get_args(WrittenFormat)
_NAMES: Final = ", ".join(_WRITTEN)


def save(tokenizer: _core.Tokenizer, folder: Path, *, tables: bool, overwrite: bool) -> Path:
    """Write the native file into a folder; see `Tokenizer.save`."""
    try:
        check_output_folder(folder)
    except NotAFolderError as error:
        hint = ", or ".join(filter(None, [error.hint, "write the file with export"]))
        raise NotAFolderError(error.message, hint=hint) from None
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _write(tokenizer, folder / NATIVE, tables=tables, overwrite=overwrite)
    except BaseException:
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def _write(tokenizer: _core.Tokenizer, path: Path, *, tables: bool = True, overwrite: bool) -> Path:
    data = tokenizer.to_bytes(tables=tables)
    if not overwrite:
        check_replaced(tokenizer, {path: data}, lambda: _core.Model.map(path))
    write_whole(path, data)
    return path


def export(
    tokenizer: _core.Tokenizer, path: Path, format: str | None, *, lossy: bool, overwrite: bool
) -> Path:
    """Write the tokenizer in any format; see `Tokenizer.export`."""
    written_format = format or of_path(path)
    if written_format != "bytepair":
        return _write_other(tokenizer, path, written_format, lossy=lossy, overwrite=overwrite)
    if not path.name.endswith(".bytepair"):
        return save(tokenizer, path, tables=True, overwrite=overwrite)
    return _write(tokenizer, path, overwrite=overwrite)


def _write_other(
    tokenizer: _core.Tokenizer, path: Path, format: str, *, lossy: bool, overwrite: bool
) -> Path:
    if format not in FORMATS:
        raise ArgumentError(f"there is no format {format!r}; these are written: {_NAMES}")
    if format not in _WRITTEN:
        raise ArgumentError(f"the format {format} is only read; these are written: {_NAMES}")
    if reason := _lost_units(tokenizer, format):
        raise UnsupportedError(
            format, f"{reason}", hint="write huggingface (tokenizer.json) or bytepair"
        )
    lost = losses(tokenizer, format, path)
    if lost and not lossy:
        raise LossError(format, lost, hint=lost.hint)
    entry = FORMATS[format]
    files = entry.function("files")(tokenizer, path)
    if path not in files:
        check_output_folder(path)
    removed: list[Path] = []
    if format == "huggingface" and path.is_dir():
        removed = companions.stale(tokenizer, path)
    if not overwrite:
        options = LoadOptions(
            tokenizer.pattern, tokenizer.special_tokens, allow_pickle=True, lossy=True
        )
        read = entry.function("read")
        check_replaced(tokenizer, files, lambda: read(path, options).model(), removed=removed)
    write_files(path, files, removed=removed)
    return path


def of_path(path: Path) -> str:
    """The format according to the name of a file; an error if there is none."""
    if path.name.endswith(".bytepair"):
        return "bytepair"
    for name, format in FORMATS.items():
        if path.name.endswith(format.suffixes):
            return name
    raise ArgumentError(
        f"the name {path.name!r} does not say which format to write",
        option="format",
        hint=f"pass format=, one of {_NAMES}",
    )


# ---------------------------------------------------------------------------- losses

_FLAGS: Final = {
    "lstrip": "that added tokens strip white space before them (lstrip)",
    "rstrip": "that added tokens strip white space after them (rstrip)",
    "single_word": "that added tokens are found only as words (single_word)",
    "normalized": "that added tokens are found in normalized texts (normalized)",
    "ordinary": "that added tokens which are not special are found in every text",
}


def losses(tokenizer: _core.Tokenizer, format: str, path: Path | None = None) -> Losses:
    """What a format cannot represent of a tokenizer; see `bytepair.compat.export_losses`.

    A path with the name of one file has no place for what the format writes into other files.
    """
    if format == "bytepair":
        return Losses()
    can = format_of(format)
    if reason := _lost_units(tokenizer, format):
        return Losses([reason])
    lost = [f"everything: {format} is only read here"] if format not in _WRITTEN else []
    if format != "gguf":  # its own function compares, since it fills roles that are missing
        lost += metadata.losses(tokenizer, format)
    if format == "huggingface" and path is not None and huggingface.is_alone(path):
        lost += metadata.lost_alone(tokenizer)
    lost += [*_lost_rules(tokenizer, can), *_lost_added(tokenizer, can)]
    lost += [*_lost_merges(tokenizer, can), *_lost_bytes(tokenizer, can)]
    own, hints = can.function("losses"), can.function("hints")
    lost += own(tokenizer) if own else []
    return Losses(dict.fromkeys(lost), ", or ".join(hints(tokenizer) if lost and hints else []))


def encoding_values(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The arguments of a `tiktoken.Encoding` with the same ids; an error if there are none."""
    reason = _lost_units(tokenizer, "nanochat")
    lost = [reason] if reason else [
        *_lost_rules(tokenizer, FORMATS["nanochat"]),
        *_lost_added(tokenizer, FORMATS["nanochat"]),
        *_lost_merges(tokenizer, FORMATS["nanochat"]),
    ]  # fmt: skip
    if lost:
        raise ArgumentError(f"a tiktoken.Encoding cannot hold of this tokenizer: {'; '.join(lost)}")
    return tiktoken.values(tokenizer)


def _lost_units(tokenizer: _core.Tokenizer, format: str) -> str | None:
    """Why a tokenizer that merges no bytes cannot be written in a format at all, if so."""
    units: Units = "bytes"
    if _core.text_rules(tokenizer).has_symbols or _core.text_rules(tokenizer).decodes_names:
        units = "names"
    elif tokenizer.merge_rule == "characters":
        units = "characters"
    held = FORMATS[format].units
    if units in held:
        return None
    what = {
        "bytes": "bytes",
        "characters": "characters, with byte fallback",
        "names": "symbols with names",
    }
    return f"this tokenizer merges {what[units]}, and {format} merges {what[held[0]]}"


def _lost_rules(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    """What happens to a text before it is merged."""
    rules, pattern = _core.text_rules(tokenizer), tokenizer.pattern
    if rules.normalizer and not can.normalizer and tokenizer.merge_rule != "characters":
        yield f"the normalization to {form(rules)}: {can.reader} encodes texts as they are"
    if can.split == "none":
        yield "the split pattern"
    if can.split == "gpt2" and pattern != _core.PATTERNS["gpt2"]:
        yield "the split pattern: readers use GPT-2's"
    if can.split in ("regex", "none") and not isinstance(pattern, str):
        steps = ", ".join(rules.pre_tokenizer) or "several patterns"
        yield f"the splitting by {steps}: {can.reader} splits by one regular expression"
    elif can.reader == "tiktoken" and leaves_out(pattern):
        yield "the ids of text that the split pattern does not match: tiktoken leaves it out"
    if rules.user_defined and can.units == ("bytes",):
        yield "that user-defined tokens are found before merging"


def _lost_added(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    """The added tokens that a file does not have, and their flags."""
    names = list(tokenizer.special_tokens)
    if can.added == "none" and names:
        yield "the special tokens"
    if can.added == "end" and (others := [name for name in names if name != gpt2.END_OF_TEXT]):
        yield f"the special tokens {', '.join(map(repr, others))}"
    for flag, sentence in _FLAGS.items():
        has = any(
            not token.special if flag == "ordinary" else getattr(token, flag)
            for token in _core.added_tokens(tokenizer)
        )
        if has and flag not in can.flags:
            yield sentence


def _lost_merges(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    """What a file does not have of the merges."""
    if tokenizer.merge_rule == "merges" and not can.merges:
        yield f"the list of merges: {can.reader} merges by rank, so texts get other ids"
    if not can.whole_pretokens and (
        _core.ignores_merges(tokenizer) or (tokenizer.merge_rule == "ranks" and unmade(tokenizer))
    ):
        yield "pretokens that are tokens: readers merge them instead of using the token"


def _lost_bytes(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    """The bytes and names that a reader treats in another way."""
    is_named = can.characters and tokenizer.merge_rule != "characters"
    if is_named and (twins := gpt2.lookalikes(tokenizer)):
        yield f"special tokens equal to ordinary tokens, such as {twins[0]!r}"
    drops = _core.text_rules(tokenizer).drops_uncovered
    differs = can.uncovered is not None and not (drops and can.uncovered == DROPS)
    if differs and (missing := uncovered(tokenizer)):
        shown = ", ".join(f"{byte:#04x}" for byte in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        kept = "the omission of" if drops else "the error for"
        what = f"{kept} bytes that no token covers"
        yield f"{what} ({shown}{more}): {can.reader} {can.uncovered}"
