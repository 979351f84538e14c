"""`python -m bytepair` is the command `bytepair`, and both begin here.

Most of the start is importing; Ctrl-C ends that as it ends the command. What is imported stays, so
to look for garbage in it, above all when everything ends, would be a tenth of a second for nothing.
So are the threads of OpenBLAS, which numpy starts and which wait by spinning: no command multiplies
matrices.
"""

import atexit
import gc
import os
import sys

#: The garbage collector runs when there are this many more objects than after its last run.
OBJECTS = 100_000

#: glibc gives blocks of some megabytes back to the system when they are freed, until it has seen a
#: larger one freed; this is the largest that it learns from ("dynamic mmap threshold", mallopt(3)).
#: Readers ask for such blocks again and again, and each would be cleared and mapped anew.
KEPT_BYTES = (32 << 20) - (64 << 10)


def main() -> None:
    """Import the command and run it."""
    gc.set_threshold(OBJECTS)
    atexit.register(gc.freeze)
    bytes(KEPT_BYTES)  # zeros that nobody touches cost nothing
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from bytepair.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("bytepair: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
