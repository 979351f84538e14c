"""The entry point of the command `bytepair` and of `python -m bytepair`.

Startup time is mostly imports. Imported modules are never garbage, so the garbage collector is
kept from scanning them during startup and at exit, which would take 0.1 s. The threads of OpenBLAS
are switched off: numpy starts them, they wait by spinning, and no command multiplies matrices.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import gc
import os
import signal
import sys
import time

#: The threshold of the garbage collector, in allocations since its last run.
GC_OBJECTS = 100_000

#: glibc returns freed blocks of some megabytes to the system, until a larger block has been freed
#: ("dynamic mmap threshold", mallopt(3)); this is the largest size that raises the threshold.
#: Readers allocate such blocks repeatedly, and each would be mapped and zeroed again.
KEPT_BYTES = (32 << 20) - (64 << 10)

#: The time for a finalizer or a callback to return before a lost interrupt is repeated, in seconds.
RETURN_SECONDS = 0.01


def repeat_lost_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise Ctrl-C again if Python discards it, else report the exception as Python does.

    Python discards what a finalizer or a callback of a weak reference raises (the import system has
    such callbacks), also a `KeyboardInterrupt` that happens to come there.
    """
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    with contextlib.suppress(RuntimeError):  # no thread starts while the interpreter shuts down
        _thread.start_new_thread(_interrupt_soon, (_thread.get_ident(),))


def _interrupt_soon(main_thread: int) -> None:
    time.sleep(RETURN_SECONDS)
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:  # the signal also wakes the thread from a system call
        is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.pthread_kill(main_thread, signal.SIGINT if is_heard else signal.SIGTERM)


def treat_as_interrupts() -> None:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt`, also where SIGINT is ignored.

    Schedulers and closed terminals send them. A shell ignores SIGINT in the jobs that a script
    starts with `&`. A SIGHUP that is ignored (`nohup`) stays ignored.
    """
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def main() -> None:
    """Import the command and run it."""
    treat_as_interrupts()
    sys.unraisablehook = repeat_lost_interrupt
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
