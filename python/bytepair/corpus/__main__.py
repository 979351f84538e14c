"""`python -m bytepair.corpus`: the same as `bytepair download`."""

import sys

import bytepair.cli

sys.argv.insert(1, "download")
bytepair.cli.main()
