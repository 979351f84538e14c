"""Counting and sharding by many processes: job arrays, or a Ray cluster.

The results are those of one process: `count` gives the counts of `bytepair.count`, `shard` byte for
byte the files of `bytepair.shards.write`. All processes see the same folders.

The files: `tasks` (pieces of work, their marks, and who runs them: ranks, or Ray), `counting` and
`sharding` (what is done with them).
"""

from bytepair.distributed.counting import count
from bytepair.distributed.sharding import shard
from bytepair.distributed.tasks import place

__all__ = ["count", "place", "shard"]
