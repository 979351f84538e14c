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
    from bytepair.shards.blend import Blend, BlendedBatches
    from bytepair.shards.conversations import ConversationBatches, ConversationOptions
    from bytepair.shards.encode import TOKENS_PER_SHARD, ShardOptions
    from bytepair.shards.layout import LAYOUTS
    from bytepair.shards.manifest import Manifest, Shard, ShardPart
    from bytepair.shards.read import Batches, Dataset, Report, verify
    from bytepair.shards.texts import TextBatches, TextOptions
    from bytepair.shards.writer import write

_lazy(
    __name__,
    {
        "blend": ("Blend", "BlendedBatches"),
        "conversations": ("ConversationBatches", "ConversationOptions"),
        "encode": ("ShardOptions", "TOKENS_PER_SHARD"),
        "layout": ("LAYOUTS",),
        "manifest": ("Manifest", "Shard", "ShardPart"),
        "read": ("Batches", "Dataset", "Report", "verify"),
        "texts": ("TextBatches", "TextOptions"),
        "writer": ("write",),
    },
)

__all__ = [
    "LAYOUTS", "TOKENS_PER_SHARD", "Batches", "Blend", "BlendedBatches", "ConversationBatches",
    "ConversationOptions", "Dataset", "Manifest", "Report", "Shard", "ShardOptions", "ShardPart",
    "TextBatches", "TextOptions", "verify", "write",
]  # fmt: skip
