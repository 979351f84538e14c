"""Counts and shards with many processes: job arrays, or a Ray cluster.

The results equal those of one process: `count` returns the counts of `bytepair.count`, and `shard`
writes the files of `bytepair.shards.write`, byte for byte. All processes see the same folders.

The files: `tasks` (pieces of work, their marks, and who runs them: ranks, or Ray) and `jobs` (what
is done with them).
"""

from bytepair.distributed.jobs import count, shard
from bytepair.distributed.tasks import place

__all__ = ["count", "place", "shard"]
