"""Writes token shards from a corpus, verifies them, and reads them in a training run.

Without shards, `TextBatches` and `ConversationBatches` encode and pack while the run reads.

>>> import bytepair, tempfile
>>> tok = bytepair.train(bytepair.sample.paths(), 1000)
>>> with tempfile.TemporaryDirectory() as folder:
...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder)
>>> made.format, made.dtype.name, made.documents
('bytepair', 'uint16', 61)
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.extras import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair.shards.encode import TOKENS_PER_SHARD, ShardOptions
    from bytepair.shards.layout import LAYOUTS
    from bytepair.shards.manifest import Manifest, Shard, ShardPart
    from bytepair.shards.read import Batches, Blend, BlendedBatches, Dataset, Report, verify
    from bytepair.shards.texts import (
        ConversationBatches,
        ConversationOptions,
        TextBatches,
        TextOptions,
    )
    from bytepair.shards.writer import write

_lazy(__name__, ["layout", "manifest", "encode", "read", "texts", "writer"])

__all__ = [
    "LAYOUTS", "TOKENS_PER_SHARD", "Batches", "Blend", "BlendedBatches", "ConversationBatches",
    "ConversationOptions", "Dataset", "Manifest", "Report", "Shard", "ShardOptions", "ShardPart",
    "TextBatches", "TextOptions", "verify", "write",
]  # fmt: skip
