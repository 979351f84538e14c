"""Reads text from files, folders, data sets and memory.

    >>> import bytepair
    >>> sum(batch.num_rows for batch in bytepair.corpus.read_documents(bytepair.sample.paths()))
    61

The modules: `source` (what a source is, and `Reading`), `names` (the files that names refer to),
`files` (how these files are read, which are for validation, and records of them), `documents` (the
documents of a file, read ahead by a thread), `read` (batches of any source, or a sample of it),
`column` (documents in memory, and skipped ones), `arrow` (Arrow columns), `bounds` (memory limits)
and `download` (published data sets).
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.extras import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair.corpus import download
    from bytepair.corpus.documents import read_documents
    from bytepair.corpus.download import download_dataset
    from bytepair.corpus.names import Paths, list_files
    from bytepair.corpus.source import Texts

_lazy(
    __name__,
    {
        "documents": ("read_documents",),
        "download": ("download", "download_dataset"),
        "names": ("Paths", "list_files"),
        "source": ("Texts",),
    },
)

__all__ = ["Paths", "Texts", "download", "download_dataset", "list_files", "read_documents"]
