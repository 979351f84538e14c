"""Run a command while the free memory of the machine is fragmented, as after weeks of other work.

    python benchmarks/fragment.py -- python benchmarks/encode.py CODE --output slowest ...

It fills most of the free memory with pages of 4 kB and gives every other one back. What is then
free has hardly two neighbouring pages, so a huge page costs the kernel milliseconds: it must move
other pages first. The number of waits for that (`compact_stall` in `/proc/vmstat`) is printed.
Linux only; nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import mmap
import re
import subprocess
import sys
from pathlib import Path

PAGE = mmap.PAGESIZE
NOHUGEPAGE = getattr(mmap, "MADV_NOHUGEPAGE", 15)
#: What stays free for the command, in bytes.
SPARE = 3 << 30


def available() -> int:
    """The memory that can be allocated without swapping, in bytes."""
    found = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found[1]) << 10 if found else 0


def stalls() -> int:
    """How often somebody has waited for memory to be moved."""
    found = re.search(r"compact_stall (\d+)", Path("/proc/vmstat").read_text())
    return int(found[1]) if found else 0


def fragment(size: int) -> mmap.mmap:
    """Take this much memory in small pages, and give every other page back."""
    memory = mmap.mmap(-1, size)
    memory.madvise(NOHUGEPAGE)
    for at in range(0, size, PAGE):
        memory[at] = 1
    for at in range(0, size, 2 * PAGE):
        memory.madvise(mmap.MADV_DONTNEED, at, PAGE)
    return memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spare", type=int, default=SPARE, help="bytes that stay as they are")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    memory = fragment(max(available() - args.spare, 0) // PAGE * PAGE)
    before = stalls()
    done = subprocess.run(args.command, check=False)
    print(f"{len(memory) >> 20:,} MiB fragmented; {stalls() - before:,} waits for compaction")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
