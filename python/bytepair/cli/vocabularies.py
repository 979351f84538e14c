"""`bytepair vocabularies`: the published vocabularies on this machine."""

from __future__ import annotations

import click

import bytepair
from bytepair.cli import option


@option.command("bytepair vocabularies")
def vocabularies() -> None:
    """List the published vocabularies that can be loaded here by name, without a network.

    Then the folders that were searched: the cache of tiktoken, packages that bring rank files, and
    the cache of the Hugging Face Hub. The names are for -t and for bytepair.load.
    """
    click.echo(str(bytepair.list_vocabularies()))
