"""Token shards: written from a corpus, verified, and read by a training run.

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
    from bytepair.shards.job import TOKENS_PER_SHARD, ShardOptions
    from bytepair.shards.layout import LAYOUTS
    from bytepair.shards.manifest import Manifest, Shard, ShardPart
    from bytepair.shards.read import Batches, Dataset
    from bytepair.shards.texts import TextBatches, TextOptions
    from bytepair.shards.verification import Report, verify
    from bytepair.shards.writer import write

_lazy(
    __name__,
    {
        "Batches": "bytepair.shards.read",
        "Blend": "bytepair.shards.blend",
        "BlendedBatches": "bytepair.shards.blend",
        "ConversationBatches": "bytepair.shards.conversations",
        "ConversationOptions": "bytepair.shards.conversations",
        "Dataset": "bytepair.shards.read",
        "LAYOUTS": "bytepair.shards.layout",
        "Manifest": "bytepair.shards.manifest",
        "Report": "bytepair.shards.verification",
        "Shard": "bytepair.shards.manifest",
        "ShardOptions": "bytepair.shards.job",
        "ShardPart": "bytepair.shards.manifest",
        "TOKENS_PER_SHARD": "bytepair.shards.job",
        "TextBatches": "bytepair.shards.texts",
        "TextOptions": "bytepair.shards.texts",
        "verify": "bytepair.shards.verification",
        "write": "bytepair.shards.writer",
    },
)

__all__ = [
    "LAYOUTS",
    "TOKENS_PER_SHARD",
    "Batches",
    "Blend",
    "BlendedBatches",
    "ConversationBatches",
    "ConversationOptions",
    "Dataset",
    "Manifest",
    "Report",
    "Shard",
    "ShardOptions",
    "ShardPart",
    "TextBatches",
    "TextOptions",
    "verify",
    "write",
]
