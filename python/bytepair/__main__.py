"""The entry point of the command `bytepair` and of `python -m bytepair`.

Startup time is mostly imports. Imported modules are never garbage, so the garbage collector is
kept from scanning them during startup and at exit, which would take 0.1 s. The threads of OpenBLAS
are switched off: numpy starts them, they wait by spinning, and no command multiplies matrices.
"""

import atexit
import gc
import os
import sys

#: The threshold of the garbage collector, in allocations since its last run.
GC_OBJECTS = 100_000

#: glibc returns freed blocks of some megabytes to the system, until a larger block has been freed
#: ("dynamic mmap threshold", mallopt(3)); this is the largest size that raises the threshold.
#: Readers allocate such blocks repeatedly, and each would be mapped and zeroed again.
KEPT_BYTES = (32 << 20) - (64 << 10)


def main() -> None:
    """Import the command and run it."""
    gc.set_threshold(GC_OBJECTS)
    atexit.register(gc.freeze)
    bytes(KEPT_BYTES)  # untouched zero pages cost nothing
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from bytepair.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("bytepair: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
