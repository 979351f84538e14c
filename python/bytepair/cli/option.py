"""What the subcommands have in common: their form, and the options that several of them have.

An option is written once, with its name, its type and its help; a command says what differs.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import click

import bytepair
from bytepair.corpus.outputs import check_output_file, check_output_folder

PATH: Final = click.Path(path_type=Path)
TIES: Final = click.Choice(["rustbpe", "hf", "first-seen", "bytes-max"])

#: What asks for help.
HELP: Final = {"help_option_names": ["-h", "--help"]}


class Output(click.Path):
    """A path that will be written to when the work is done, and so is checked before it."""

    def __init__(self, check: Callable[[Path], None]) -> None:
        super().__init__(path_type=Path)
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, if it can be written to."""
        found = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            self._check(found)
        except OSError as error:
            self.fail(str(error), param, ctx)
        return found


OUTPUT_FILE: Final = Output(check_output_file)
FOLDER: Final = Output(check_output_folder)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_SIZES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}


def number(text: str | int) -> int:
    """The type of an option: a whole number from 1 to 2^63; it may end with K, M, B (or G) or T."""
    found = re.fullmatch(
        r"([0-9][0-9_,]*\.?[0-9]*(?:e[0-9]{1,2})?)([KMBGT]?)", str(text).strip(), re.I
    )
    value = round(float(found[1].replace(",", "")) * _SIZES[found[2].upper()]) if found else 0
    if not 1 <= value < 1 << 63:
        raise click.BadParameter(
            f"{str(text)!r} is no number from 1 to 2^63, such as 561M, 1.5B or 100000"
        )
    return value


def size(text: str | int) -> int:
    """The type of an option: any whole number, or one with an ending, such as 64k for 64,000."""
    return int(text) if re.fullmatch(r"-?[0-9]+", str(text)) else number(text)


size.__name__ = "number"


def command(*examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """A subcommand, whose help ends with examples."""

    def made(function: Callable[..., None]) -> click.Command:
        return click.command(
            short_help=(inspect.getdoc(function) or "").partition("\n")[0],
            epilog="\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples),
            context_settings={"show_default": True, "max_content_width": 100, **HELP},
        )(function)

    return made


def path(
    *names: str, default: str | None = None, type: click.Path = PATH, help: str
) -> Callable[[Decorated], Decorated]:
    """An option that is a path; one without a default has to be given."""
    given = {"required": True} if default is None else {"default": default}
    return click.option(*names, type=type, help=help, **given)


def given(*names: str) -> list[str]:
    """Those of the options that stand on the command line, as people write them."""
    context = click.get_current_context()
    source = click.core.ParameterSource.COMMANDLINE
    return [
        max(param.opts, key=len)
        if param.param_type_name == "option"
        else param.make_metavar(context)
        for param in context.command.params
        if param.name in names and context.get_parameter_source(param.name) is source
    ]


def refuse(reason: str, *names: str) -> None:
    """Wrong usage if one of these options is given, since it would be ignored."""
    if found := given(*names):
        raise click.UsageError(f"{', '.join(found)} would be ignored: {reason}")


def one_of(*names: str) -> None:
    """Wrong usage if two of these options are given, since they contradict each other."""
    if len(found := given(*names)) > 1:
        raise click.UsageError(f"{' and '.join(found)} contradict each other; give one of them")


def ending(path: Path | None, *known: str) -> None:
    """Wrong usage if a file to write has none of these endings, which say what to write."""
    if path is not None and path.suffix not in known:
        raise click.UsageError(f"{path} ends neither in {' nor in '.join(known)}; name such a file")


def together(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Several options as one, in this order."""

    def made(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return made


sources = click.argument("source", nargs=-1, required=True)
out_folder = path("--out", "-o", type=FOLDER, help="The folder to write.")
PATTERN_HELP: Final = f"A regular expression, or one of {', '.join(bytepair.PATTERNS)}."
pattern = click.option("--pattern", default="nanochat", help=PATTERN_HELP)
column = click.option("--column", default="text", help="The column or field with the text.")
max_document_bytes = click.option(
    "--max-document-bytes",
    type=number,
    default="128M",
    help="A longer document cannot be read; memory grows with it.",
)
threads = click.option("--threads", type=number, help="Threads.  [default: all]")
max_chars = click.option("--max-chars", type=number, help="Stop reading after so many characters.")
doc_cap = click.option("--doc-cap", type=number, help="Read so many characters of each document.")
errors = click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    help="What to do where text is not UTF-8.",
)
pattern_of_file = click.option(
    "--pattern", help="The split pattern, where the file of the tokenizer does not hold one."
)
tokenizer = together(
    path("--tokenizer", "-t", default="tokenizer", help="The tokenizer folder or file."),
    pattern_of_file,
)
shard_format = click.option(
    "--format",
    type=click.Choice(["bytepair", "llmc", "nanogpt", "megatron", "arrow"]),
    default="bytepair",
    help="Who shall read the shards.",
)
tokens_per_shard = click.option(
    "--tokens-per-shard", type=number, default="100M", help="The most tokens of a shard."
)
rank = click.option(
    "--rank",
    type=click.IntRange(min=0),
    help="Do the share of this rank.  [default: the job array's]",
)
world = click.option("--world", type=number, help="How many ranks share the work.")
roles = together(
    click.option("--bos-token", help="The special token that begins a text."),
    click.option("--eos-token", help="The special token that ends a text."),
    click.option("--pad-token", help="The special token that fills rows."),
    click.option("--eot-token", help="The special token that ends a turn of a conversation."),
    click.option(
        "--chat-template",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A file with the chat template, in Jinja.",
    ),
)
#: The role that each of these options gives a token.
ROLES: Final = {
    "bos_token": "bos", "eos_token": "eos", "pad_token": "pad", "eot_token": "end_of_turn",
}  # fmt: skip
force = click.option("--force", is_flag=True, help="Replace another tokenizer that is there.")
ray = click.option("--ray", is_flag=True, help="Let a Ray cluster do the work.")


def files(names: tuple[str, ...]) -> list[str | Path]:
    """The files that a command line names; a dash is standard input, as a text."""
    return [_standard_input() if name == "-" else name for name in names]


def _standard_input() -> Path:
    """A file with what standard input gives, which stays until the command ends.

    Files are read by several threads, and in pieces where the pattern allows it.
    """
    folder = click.get_current_context().with_resource(TemporaryDirectory(prefix="bytepair-"))
    path = Path(folder, "standard-input.txt")
    with path.open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def with_roles(tokenizer: bytepair.Tokenizer, options: Mapping[str, Any]) -> bytepair.Tokenizer:
    """The tokenizer with the roles and the chat template that options give."""
    wanted = {role: options[name] for name, role in ROLES.items() if options[name] is not None}
    tokenizer = tokenizer.with_roles(**wanted) if wanted else tokenizer
    file: Path | None = options["chat_template"]
    return tokenizer if file is None else tokenizer.with_chat_template(read_text(file))


def read_text(file: Path) -> str:
    """The text of a file that an option names."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{file}, byte {error.start}: it is not UTF-8") from None


def colored() -> bool:
    """Whether what is written to standard output may have colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
