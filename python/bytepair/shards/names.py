"""The words that options of shards may be; the command line and the types take them from here."""

from __future__ import annotations

from typing import Literal, TypeAlias

#: The formats of shards; `bytepair.shards.layout` has the layout of each.
ShardFormat: TypeAlias = Literal["bytepair", "llmc", "nanogpt", "megatron", "arrow"]

#: What a shard is for.
ShardSplit: TypeAlias = Literal["train", "val"]

#: How rows are filled: with whole documents, each row beginning with one, or with all ids in order.
Packing: TypeAlias = Literal["best-fit", "stream"]
