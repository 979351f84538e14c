"""What the subcommands have in common: their form, and the options that several of them have.

An option is written once, with its name, its type and its help; a command says what differs.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import click

import bytepair
from bytepair.corpus.outputs import check_output_file, check_output_folder

PATH: Final = click.Path(path_type=Path)
TIES: Final = click.Choice(["rustbpe", "hf", "first-seen", "bytes-max", "characters-max"])

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


def both_or_none(first: str, second: str) -> None:
    """Wrong usage if one of two options is given without the other."""
    if len(found := given(first, second)) == 1:
        other = second if found == given(first) else first
        raise click.UsageError(f"{found[0]} needs --{other.replace('_', '-')}; give both")


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
max_chars = click.option("--max-chars", type=number, help="Stop after this many characters.")
doc_cap = click.option(
    "--doc-cap", type=number, help="Read at most this many characters of each document."
)
errors = click.option(
    "--errors",
    type=click.Choice(["strict", "replace", "skip"]),
    default="strict",
    help="What to do with a document that cannot be read: fail, read U+FFFD, or leave it out.",
)
pattern_of_file = click.option(
    "--pattern", help="The split pattern, where the file of the tokenizer does not hold one."
)
TOKENIZER_HELP: Final = "A folder, a file, or a published name such as gpt2."
tokenizer = together(
    click.option("--tokenizer", "-t", default="tokenizer", help=TOKENIZER_HELP),
    pattern_of_file,
)
vocab_size = click.option(
    "--vocab-size", type=size, default=65536, help="The number of ids, special tokens included."
)
merging = together(
    click.option(
        "--ties",
        type=TIES,
        default="rustbpe",
        help="Which of equal pairs is merged first. hf gives Hugging Face's merges, not its ids.",
    ),
    click.option(
        "--min-count", type=number, default=1, help="Merge only pairs that occur this often."
    ),
)
training = together(
    click.option(
        "--special-token",
        multiple=True,
        help="A special token; may be repeated.  [default: nanochat's nine]",
    ),
    click.option("--no-special-tokens", is_flag=True, help="Train without special tokens."),
    click.option(
        "--reserved",
        type=click.IntRange(min=0),
        default=0,
        help="Keep this many ids free for later special tokens.",
    ),
    click.option(
        "--padded-to", type=number, default=1, help="Round the ids up to a multiple of this."
    ),
    click.option(
        "--initial-token",
        multiple=True,
        help="A word that is always a token; may be repeated.",
    ),
    merging,
    click.option("--max-token-bytes", type=number, help="The longest token, in bytes."),
)
memory_limit = click.option(
    "--memory-limit",
    type=number,
    help="Memory for counting, in bytes; the rest is spilled to disk.  [default: half of it]",
)
weight = click.option(
    "--weight",
    multiple=True,
    metavar="SOURCE=NUMBER",
    help="Count this source with this weight, such as code.parquet=2.5; may be repeated.",
)
dropout = together(
    click.option(
        "--dropout",
        type=click.FloatRange(0, 1),
        help="Skip each merge with this probability (BPE-dropout), such as 0.1; needs --seed.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, (1 << 64) - 1),
        help="What the random numbers of --dropout begin with; another one in each epoch.",
    ),
)
rank = click.option(
    "--rank",
    type=click.IntRange(min=0),
    help="Process the share of this rank.  [default: the job array's]",
)
world_size = click.option("--world-size", type=number, help="How many ranks share the work.")
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


def sharding(*, bos: bool) -> Callable[[Decorated], Decorated]:
    """What the shards are; `shard_options` takes it."""
    return together(
        click.option(
            "--format",
            type=click.Choice(["bytepair", "llmc", "nanogpt", "megatron", "arrow"]),
            default="bytepair",
            help="Who shall read the shards.",
        ),
        click.option(
            "--tokens-per-shard",
            type=number,
            default="100M",
            help="The maximum of tokens in a shard.",
        ),
        click.option(
            "--bos/--no-bos", default=bos, help="Begin each document with the usual special token."
        ),
        click.option("--bos-token", help="Begin each document with this special token."),
        click.option("--eos", is_flag=True, help="End each document with the usual special token."),
        click.option("--eos-token", help="End each document with this special token."),
        column,
        max_document_bytes,
        click.option(
            "--errors",
            type=click.Choice(["strict", "skip"]),
            default="strict",
            help="What cannot be read ends the run, or is left out and recorded.",
        ),
        dropout,
    )


#: The role that each of these options gives a token.
ROLES: Final = {
    "bos_token": "bos", "eos_token": "eos", "pad_token": "pad", "eot_token": "end_of_turn",
}  # fmt: skip
force = click.option(
    "--force", "overwrite", is_flag=True, help="Replace another tokenizer that is there."
)
ray = click.option("--ray", is_flag=True, help="Run on a Ray cluster.")


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


def train_options(options: dict[str, Any]) -> bytepair.TrainOptions:
    """What training does, taken out of the options of a command."""
    one_of("special_token", "no_special_tokens")
    names = ("vocab_size", "reserved", "padded_to", "ties", "min_count", "max_token_bytes")
    special = options.pop("special_token") or "nanochat"
    return bytepair.TrainOptions(
        special_tokens=() if options.pop("no_special_tokens") else special,
        initial_tokens=options.pop("initial_token"),
        **{name: options.pop(name) for name in names},
    )


def shard_options(options: dict[str, Any], **more: Any) -> bytepair.shards.ShardOptions:
    """What the shards are, taken out of the options of a command."""
    for role in ("bos", "eos"):
        one_of(role, f"{role}_token")
        usual, named = options.pop(role), options.pop(f"{role}_token")
        more[role] = named or usual
    both_or_none("dropout", "seed")
    names = (
        "format", "tokens_per_shard", "column", "max_document_bytes", "errors", "dropout", "seed",
    )  # fmt: skip
    return bytepair.shards.ShardOptions(**{name: options.pop(name) for name in names}, **more)


def positive(text: str, name: str) -> Fraction:
    """A number above 0 that an option holds: a decimal number, or a fraction such as 1/3."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+|/[1-9][0-9]*)?", text) or not Fraction(text):
        raise click.BadParameter(f"{text!r} is no number above 0", param_hint=name)
    return Fraction(text)


def weighted(
    names: Sequence[str], weights: Sequence[str], count: Callable[[str], bytepair.Counts]
) -> bytepair.Counts:
    """The counts of sources, each by itself and times its weight, added up."""
    known = dict.fromkeys(names, Fraction(1))
    for said in weights:
        name, _, value = said.rpartition("=")
        if name not in known:
            raise click.BadParameter(f"{name!r} is no SOURCE", param_hint="--weight")
        known[name] = positive(value, "--weight")
    parts = [count(name).times(weight) for name, weight in known.items()]
    return functools.reduce(operator.add, parts)


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
