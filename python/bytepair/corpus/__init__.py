"""Reads text from files, folders, data sets and memory.

    >>> import bytepair
    >>> sum(batch.num_rows for batch in bytepair.corpus.read_documents(bytepair.sample.paths()))
    61

The modules: `source` (what a source is, and `Reading`), `files` (the files that names refer to, how
they are read, which are for validation, and records of them), `read` (the documents of a file, read
ahead by a thread, batches of any source, or a sample of it), `column` (documents in memory, skipped
ones, and memory limits), `arrow` (Arrow columns), `rows` (rows of any fields, such as
conversations) and `download` (published data sets).
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.extras import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair.corpus import download
    from bytepair.corpus.download import download_dataset
    from bytepair.corpus.files import Paths, list_files
    from bytepair.corpus.read import read_documents
    from bytepair.corpus.source import Texts

_lazy(__name__, ["source", "files", "read", "download"])

__all__ = ["Paths", "Texts", "download", "download_dataset", "list_files", "read_documents"]
