"""`python -m bytepair` is the command `bytepair`, and both begin here.

Most of the start is importing; Ctrl-C ends that as it ends the command.
"""

import sys


def main() -> None:
    """Import the command and run it."""
    try:
        from bytepair.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("bytepair: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
