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
from bytepair.errors import ArgumentError, LossError, UnsupportedError
from bytepair.files.outputs import check_output_folder, check_replaced, write_files, write_whole
from bytepair.formats import NATIVE, gpt2, huggingface, registry, tiktoken
from bytepair.formats.huggingface import companions
from bytepair.formats.parts import LoadOptions, Losses, WrittenFormat
from bytepair.formats.registry import DROPS, FORMATS, Format, format_of
from bytepair.properties import metadata
from bytepair.properties.tokens import leaves_out, uncovered, unmade

_WRITTEN: Final = get_args(WrittenFormat)
_NAMES: Final = ", ".join(_WRITTEN)


def save(tokenizer: _core.Tokenizer, folder: Path, *, tables: bool, overwrite: bool) -> Path:
    """Write the native file into a folder; see `Tokenizer.save`."""
    check_output_folder(folder, "pass a folder, or write the file with export")
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
    format = format or of_path(path)
    if format == "bytepair":
        if path.name.endswith(".bytepair"):
            return _write(tokenizer, path, overwrite=overwrite)
        return save(tokenizer, path, tables=True, overwrite=overwrite)
    if format not in _WRITTEN:
        raise ArgumentError(f"there is no format {format!r} to write; there are {_NAMES}")
    if reason := _lost_units(tokenizer, format):
        hint = "write huggingface (tokenizer.json) or bytepair"
        raise UnsupportedError(format, reason, hint=hint)
    lost = losses(tokenizer, format, path)
    if lost and not lossy:
        raise LossError(format, lost, hint=lost.hint)
    files, read = (FORMATS[format].function(name) for name in ("files", "read"))
    files = files(tokenizer, path)
    if path not in files:
        check_output_folder(path)
    is_folder = format == "huggingface" and path.is_dir()
    removed = companions.stale(tokenizer, path) if is_folder else []
    if not overwrite:
        options = LoadOptions(tokenizer.pattern, tokenizer.special_tokens, True, True)
        check_replaced(tokenizer, files, lambda: read(path, options), removed=removed)
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
    reason, can = _lost_units(tokenizer, "nanochat"), FORMATS["nanochat"]
    compared = (_lost_rules, _lost_added, _lost_merges)
    lost = [reason] if reason else [loss for lost in compared for loss in lost(tokenizer, can)]
    if lost:
        raise ArgumentError(f"a tiktoken.Encoding cannot hold of this tokenizer: {'; '.join(lost)}")
    return tiktoken.values(tokenizer)


def _lost_units(tokenizer: _core.Tokenizer, format: str) -> str | None:
    """Why a tokenizer that merges no bytes cannot be written in a format at all, if so."""
    rules, units = _core.text_rules(tokenizer), registry.BYTES
    if rules.has_symbols or rules.decodes_names:
        units = registry.NAMES
    elif tokenizer.merge_rule == "characters":
        units = registry.CHARACTERS
    held = FORMATS[format].units
    return (
        None if units in held else f"this tokenizer merges {units}, and {format} merges {held[0]}"
    )


def _lost_rules(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    rules, pattern = _core.text_rules(tokenizer), tokenizer.pattern
    if rules.normalizer and "normalizer" not in can.holds and tokenizer.merge_rule != "characters":
        steps = ", ".join(rules.normalizer)
        yield f"the normalization to {steps}: {can.reader} encodes texts as they are"
    if can.split == "none":
        yield "the split pattern"
    if can.split == "gpt2" and pattern != _core.PATTERNS["gpt2"]:
        yield "the split pattern: readers use GPT-2's"
    if can.split in ("regex", "none") and not isinstance(pattern, str):
        steps = ", ".join([] if pattern else rules.pre_tokenizer) or "several patterns"
        yield f"the splitting by {steps}: {can.reader} splits by one regular expression"
    elif can.reader == "tiktoken" and leaves_out(pattern):
        yield "the ids of text that the split pattern does not match: tiktoken leaves it out"
    if rules.user_defined and can.units == (registry.BYTES,):
        yield "that user-defined tokens are found before merging"


def _lost_added(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    """The added tokens that a file does not have, and their flags."""
    names, tokens = list(tokenizer.special_tokens), _core.added_tokens(tokenizer)
    if can.added == "none" and names:
        yield "the special tokens"
    if can.added == "end" and (others := [name for name in names if name != gpt2.END_OF_TEXT]):
        yield f"the special tokens {', '.join(map(repr, others))}"
    for flag, sentence in _FLAGS.items():
        is_set = (not t.special if flag == "ordinary" else getattr(t, flag) for t in tokens)
        if flag not in can.holds and any(is_set):
            yield sentence


def _lost_merges(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    if tokenizer.merge_rule == "merges" and "merges" not in can.holds:
        yield f"the list of merges: {can.reader} merges by rank, so texts get other ids"
    if "pretokens" not in can.holds and (
        _core.ignores_merges(tokenizer) or (tokenizer.merge_rule == "ranks" and unmade(tokenizer))
    ):
        yield "pretokens that are tokens: readers merge them instead of using the token"


def _lost_bytes(tokenizer: _core.Tokenizer, can: Format) -> Iterator[str]:
    """The bytes and names that a reader treats in another way."""
    if can.characters and (twins := gpt2.lookalikes(tokenizer)):
        yield f"special tokens equal to ordinary tokens, such as {twins[0]!r}"
    drops = _core.text_rules(tokenizer).drops_uncovered
    if can.uncovered is None or (drops and can.uncovered == DROPS):
        return
    if missing := uncovered(tokenizer):
        shown = ", ".join(f"{byte:#04x}" for byte in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        kept = "the omission of" if drops else "the error for"
        what = f"{kept} bytes that no token covers"
        yield f"{what} ({shown}{more}): {can.reader} {can.uncovered}"
