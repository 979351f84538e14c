"""Text: where it comes from, and how it is read.

    >>> import bytepair
    >>> sum(batch.num_rows for batch in bytepair.read_documents(bytepair.sample.paths()))
    61

The files: `source` (what a source names), `documents` (what a file holds), `read` (batches of any
source), `column` (documents on their way to the core), `kinds` (what the ending of a file means),
`bounds` (how much a file may become), `arrow`, `read_ahead` (a thread that reads), `outputs` (may a
result be written?), `download` (published data sets).
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.lazy import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair.corpus import download
    from bytepair.corpus.documents import read_documents
    from bytepair.corpus.source import list_files

_lazy(
    __name__,
    {
        "download": "bytepair.corpus.download",
        "list_files": "bytepair.corpus.source",
        "read_documents": "bytepair.corpus.documents",
    },
)

__all__ = ["download", "list_files", "read_documents"]
