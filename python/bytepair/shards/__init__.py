"""Token shards: written from a corpus, verified, and read by a training run.

Without shards, `TextBatches` and `ConversationBatches` encode and pack while the run reads.

>>> import bytepair, tempfile
>>> tok = bytepair.train(bytepair.sample.paths(), 1000)
>>> with tempfile.TemporaryDirectory() as folder:
...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder, bos=True)
>>> made.format, made.dtype.name, made.documents
('bytepair', 'uint16', 61)
"""

from bytepair.shards.blend import Blend, BlendedBatches
from bytepair.shards.conversations import ConversationBatches
from bytepair.shards.job import TOKENS_PER_SHARD, ShardOptions
from bytepair.shards.layout import LAYOUTS
from bytepair.shards.manifest import Manifest, Shard, ShardPart
from bytepair.shards.read import Batches, Dataset
from bytepair.shards.texts import TextBatches
from bytepair.shards.verification import Report, verify
from bytepair.shards.writer import write

__all__ = [
    "LAYOUTS",
    "TOKENS_PER_SHARD",
    "Batches",
    "Blend",
    "BlendedBatches",
    "ConversationBatches",
    "Dataset",
    "Manifest",
    "Report",
    "Shard",
    "ShardOptions",
    "ShardPart",
    "TextBatches",
    "verify",
    "write",
]
