"""SIGTERM and SIGHUP, which schedulers and closed terminals send, act as Ctrl-C.

Only the command installs handlers, in the main thread; the library never does.
"""

import signal


def treat_as_interrupts() -> None:
    """Let SIGTERM and SIGHUP do what SIGINT does; an ignored signal (`nohup`) stays ignored."""
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
