"""`python -m bytepair` is the command `bytepair`."""

from bytepair.cli import main

main()
