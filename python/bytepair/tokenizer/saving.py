"""Methods of `Tokenizer` that write files: the native one, and those of other libraries."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bytepair import _core
from bytepair._internal.arguments import checked
from bytepair.errors import NotAFolderError, WayOut
from bytepair.files.outputs import check_output_folder
from bytepair.files.safe import write_whole
from bytepair.formats.losses import Losses
from bytepair.formats.names import FILE_NAME, WrittenFormat


class SavingMethods(_core.Tokenizer):
    """The methods of `Tokenizer` that write files."""

    __slots__ = ()

    @checked
    def save(
        self, folder: str | os.PathLike[str], *, tables: bool = True, overwrite: bool = False
    ) -> Path:
        """Save the tokenizer to a folder, which is created if needed.

        The file is written under a temporary name, synced and renamed: after a crash, the folder
        contains either the old or the new tokenizer, completely, and a process that has loaded the
        old one is not affected. The same tokenizer always gives the same file, and may be saved
        again.

        Args:
            folder: the folder for `tokenizer.bytepair`.
            tables: whether the file contains the lookup tables that `load` must otherwise build: it
                loads instantly, but is three to four times larger. Small vocabularies are saved
                without tables.
            overwrite: whether to replace a different tokenizer.

        Returns:
            The path of the file.

        Raises:
            OverwriteError: if the folder contains a tokenizer with another fingerprint, and
                `overwrite` is false.
            NotAFolderError: if this is a file, or has the name of one, such as `tokenizer.json`;
                `export` writes files.
            OSError: if the folder cannot be written.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello"], vocab_size=265)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.save(folder)
            ...     path.name, bytepair.load(folder) == tok
            ('tokenizer.bytepair', True)
        """
        path = Path(folder) / FILE_NAME
        try:
            check_output_folder(path.parent)
        except NotAFolderError as error:
            raise NotAFolderError(*error.phrases, WayOut("write the file with export")) from None
        is_new = not path.parent.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._write(path, tables=tables, overwrite=overwrite)
        except BaseException:
            if is_new:
                with suppress(OSError):  # it is not empty
                    path.parent.rmdir()
            raise
        return path

    def _write(self, path: Path, *, tables: bool = True, overwrite: bool) -> None:
        from bytepair.files import existing

        data = self.to_bytes(tables=tables)
        if not overwrite:
            existing.check(self, path, lambda new: new.write_bytes(data), _core.Model.map)
        write_whole(path, data)

    @checked
    def export(
        self,
        path: str | os.PathLike[str],
        format: WrittenFormat | str | None = None,
        *,
        lossy: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write the tokenizer in the format of another library.

        Files are written atomically. `bytepair.load` reads them.

        Args:
            path: the output file, or the output folder for formats with several files.
            format: the format: a name in the table of `docs/formats`, such as `huggingface` or
                `tiktoken`; None means to choose it by the file name.
            lossy: whether to write a format that cannot represent all of the tokenizer.
            overwrite: whether to replace files of a different tokenizer.

        Returns:
            The path.

        Raises:
            LossError: if something would be lost and `lossy` is false; the message lists it.
            OverwriteError: if a file of a different tokenizer would be replaced and `overwrite` is
                false.
            ValueError: if the format does not exist, or cannot be written.

        Example:
            >>> import bytepair, tempfile
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = tok.export(f"{folder}/tokenizer.json")
            ...     bytepair.load(path) == tok
            True
        """
        from bytepair.formats import registry

        target = Path(path)
        written_format = format or registry.of_path(target)
        if written_format != "bytepair":
            registry.write(self, target, written_format, lossy=lossy, overwrite=overwrite)
        elif target.name.endswith(".bytepair"):
            self._write(target, overwrite=overwrite)
        else:
            return self.save(target, overwrite=overwrite)
        return target

    @checked
    def export_losses(
        self, format: str | os.PathLike[str], path: str | os.PathLike[str] | None = None
    ) -> Losses:
        """List what would be lost by writing the tokenizer in a format.

        Args:
            format: a name in the table of `docs/formats`, such as `gguf`; or a path with a known
                file name, as in `export`.
            path: the file or folder to write, if `format` is a name: a `tokenizer.json` alone has
                no roles and no chat template, a folder has. None means a folder.

        Returns:
            A description of everything that the format cannot represent, or that programs which
            read it handle differently; empty if nothing is lost. Its attribute `ways_out` says how
            less is lost.

        Raises:
            ValueError: if the format does not exist.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> tok.export_losses("huggingface"), tok.export_losses("tiktoken")
            ([], ['the split pattern', 'the special tokens'])
        """
        from bytepair.formats import registry

        if isinstance(format, os.PathLike):
            format, path = registry.of_path(Path(format)), format
        return registry.losses(self, format, None if path is None else Path(path))
