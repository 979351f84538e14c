"""Write a tokenizer: the native file into a folder, or the files of another library."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bytepair import _core
from bytepair.errors import NotAFolderError
from bytepair.files.outputs import check_output_folder, check_replaced, write_whole
from bytepair.formats import registry
from bytepair.formats.parts import FILE_NAME


def save(tokenizer: _core.Tokenizer, folder: Path, *, tables: bool, overwrite: bool) -> Path:
    """Write the native file into a folder; see `Tokenizer.save`."""
    try:
        check_output_folder(folder)
    except NotAFolderError as error:
        hint = ", or ".join(filter(None, [error.hint, "write the file with export"]))
        raise NotAFolderError(error.message, hint=hint) from None
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE_NAME
    try:
        _write(tokenizer, path, tables=tables, overwrite=overwrite)
    except BaseException:
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise
    return path


def _write(tokenizer: _core.Tokenizer, path: Path, *, tables: bool = True, overwrite: bool) -> None:
    """Write the native file."""
    data = tokenizer.to_bytes(tables=tables)
    if not overwrite:
        check_replaced(tokenizer, {path: data}, lambda: _core.Model.map(path))
    write_whole(path, data)


def export(
    tokenizer: _core.Tokenizer, path: Path, format: str | None, *, lossy: bool, overwrite: bool
) -> Path:
    """Write the tokenizer in any format; see `Tokenizer.export`."""
    written_format = format or registry.of_path(path)
    if written_format != "bytepair":
        return registry.write(tokenizer, path, written_format, lossy=lossy, overwrite=overwrite)
    if not path.name.endswith(".bytepair"):
        return save(tokenizer, path, tables=True, overwrite=overwrite)
    _write(tokenizer, path, overwrite=overwrite)
    return path
