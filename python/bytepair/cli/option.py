"""Options that several subcommands share, and checks of them and of paths before the work begins.

A named source is `NAME=PATH`; sources of the same name form one group. Without a name, each file is
a group named by its file name up to the first dot: `texts/*.txt` forms one group per language if
the files are `en.txt`, `de.txt` and so on. An output is replaced only with `--force`.
"""

from __future__ import annotations

import functools
import inspect
import logging
import operator
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args

import click

import bytepair
from bytepair.cli.messages import BadValue, Misuse, in_words
from bytepair.corpus.column import Errors
from bytepair.corpus.files import Split
from bytepair.errors import BytepairError
from bytepair.files import outputs


def files(names: Sequence[str]) -> bytepair.corpus.Paths:
    """The files named on the command line; a dash is standard input, read as text."""
    return bytepair.corpus.Paths([_standard_input() if name == "-" else name for name in names])


def _standard_input() -> Path:
    """Copy standard input to a temporary file, which exists until the command ends.

    Several threads can then read it in parallel.
    """
    path = click.get_current_context().with_resource(outputs.scratch()) / "standard-input.txt"
    with path.open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def positive(text: str, name: str) -> Fraction:
    """Parse the value of an option: a decimal number or fraction above 0, such as 2.5 or 1/3."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+|/[1-9][0-9]*)?", text) or not Fraction(text):
        raise BadValue(f"{text!r} is not a number above 0", param_hint=name)
    return Fraction(text)


def weighted(
    names: Sequence[str], weights: Sequence[str], count: Callable[[str], bytepair.Counts]
) -> bytepair.Counts:
    """The sum of the counts of all sources, each multiplied by its weight."""
    weight_of = dict.fromkeys(names, Fraction(1))
    for text in weights:
        name, _, value = text.rpartition("=")
        if name not in weight_of:
            raise BadValue(f"{name!r} is not one of the SOURCE arguments", param_hint="--weight")
        weight_of[name] = positive(value, "--weight")
    parts = [count(name).times(weight) for name, weight in weight_of.items()]
    return functools.reduce(operator.add, parts)


def groups_of(sources: Sequence[str]) -> dict[str, Any]:
    """The groups named by sources: each is a list of files, or counts."""
    if not sources:
        raise Misuse("name the sources, as NAME=PATH")
    return {name: _source(named) for name, named in named_paths(sources).items()}


def named_paths(sources: Sequence[str], unnamed: str | None = None) -> dict[str, list[str]]:
    """The paths of each group; those without a name are of one group, or each file is of its own.

    Example:
        >>> named_paths(["code=src", "code=lib", "books"], "other")
        {'code': ['src', 'lib'], 'other': ['books']}
    """
    paths: dict[str, list[str]] = {}
    for source in sources:
        name, is_named, path = source.partition("=")
        if is_named and not Path(source).exists():
            paths.setdefault(name, []).append(path)
        elif unnamed is not None:
            paths.setdefault(unnamed, []).append(source)
        else:
            for file in bytepair.corpus.list_files(source):
                paths.setdefault(re.split(r"[/\\]", file)[-1].partition(".")[0], []).append(file)
    return paths


def _source(paths: list[str]) -> Any:
    if len(paths) == 1 and bytepair.Counts.is_counts_file(paths[0]):
        return bytepair.training.load_counts(paths[0])
    return files(paths)


def numbers_of(text: str, name: str) -> dict[str, Fraction]:
    """Parse the value of an option such as `english=0.6,code=0.4`."""
    numbers: dict[str, Fraction] = {}
    for part in text.split(","):
        group, _, value = part.strip().rpartition("=")
        if not group or group in numbers:
            raise BadValue(f"{part!r} is not NAME=NUMBER, or repeats a name", param_hint=name)
        numbers[group] = positive(value, name)
    return numbers


class Output(click.Path):
    """A path to write to; it is checked before the work begins.

    Args:
        is_own: whether an existing file is of the kind that the command writes, so that it is
            replaced without `--force`; None for folders, whose files the work itself protects.
    """

    def __init__(self, is_own: Callable[[Path], bool] | None = None) -> None:
        super().__init__(path_type=Path)
        self.is_own = is_own


OUTPUT_FILE: Final = Output(lambda _: False)
COUNTS_FILE: Final = Output(bytepair.Counts.is_counts_file)
FOLDER: Final = Output()


#: The parameters that are not names of files to read.
_NOT_READ: Final = ("pattern", "column", "superword_pattern", "text")


def _inputs(ctx: click.Context) -> Iterator[Path]:
    for param in ctx.command.params:
        values = ctx.params.get(param.name or "")
        if isinstance(param.type, Output) or param.name in _NOT_READ:
            continue
        for value in values if isinstance(values, tuple) else (values,):
            if isinstance(value, str | Path) and str(value) not in ("", "-"):
                yield from _files_named(str(value))


def _files_named(name: str) -> Iterator[Path]:
    """The files of a name, a folder or a glob; also after `NAME=`."""
    for one in {name, name.partition("=")[2]} - {""}:
        path = Path(one)
        if "://" in one:
            continue
        if path.is_dir():
            yield from (file for file in path.iterdir() if file.name.endswith(outputs.OF_FILES))
        if path.is_file():
            yield path
        elif path.is_dir() or any(sign in one for sign in "*?["):
            with suppress(BytepairError, OSError, ValueError):
                yield from map(Path, bytepair.corpus.list_files(one))


def check_outputs(ctx: click.Context) -> None:
    """Refuse outputs that cannot be written, or are files of others that are not replaced."""
    for param in ctx.command.params:
        path = ctx.params.get(param.name or "")
        if path is None or not isinstance(param.type, Output):
            continue
        is_own = param.type.is_own
        try:
            if is_own is None:
                outputs.check_output_folder(path)
            else:
                overwrite = ctx.params.get("overwrite") or is_own(path)
                outputs.check_output(path, inputs=_inputs(ctx), overwrite=overwrite)
        except (BytepairError, OSError) as error:
            raise BadValue(*in_words(error), param=param, ctx=ctx) from None


PATH: Final = click.Path(path_type=Path)
_TIES: Final = get_args(inspect.get_annotations(bytepair.train, eval_str=True)["ties"])

#: The formats that are written.
WRITTEN: Final = ", ".join(bytepair.compat.FORMATS)


Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Taken = TypeVar("Taken")

_SIZES: Final = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}


def number(text: str | float) -> int:
    """Option type: an integer from 1 to 2^63 - 1, with an optional suffix K, M, B (or G) or T."""
    match = re.fullmatch(
        r"((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)\.?[0-9]*(?:e[0-9]{1,2})?)([KMBGT]?)",
        str(text).strip(),
        re.I,
    )
    value = Fraction(match[1].replace(",", "")) * _SIZES[match[2].upper()] if match else Fraction(0)
    if not 1 <= value < 1 << 63 or value.denominator != 1:
        raise BadValue(
            f"{str(text)!r} is not an integer from 1 to 2^63, such as 561M, 1.5B or 100000"
        )
    return int(value)


def size(text: str | int) -> int:
    """Option type: any integer, or one with a suffix, such as 64k for 64,000."""
    return int(text) if re.fullmatch(r"-?[0-9]+", str(text)) else number(text)


size.__name__ = "number"


def taken(kind: Callable[..., Taken], options: dict[str, Any]) -> Taken:
    """Remove the options that are fields of a dataclass; return the value that they make."""
    names = [field.name for field in fields(cast("Any", kind)) if field.name in options]
    return kind(**{name: options.pop(name) for name in names})


def command(*examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """Decorator: make a function a subcommand; its help ends with these examples."""

    def decorate(function: Callable[..., None]) -> click.Command:
        params: list[click.Parameter] = getattr(function, "__click_params__", [])
        writes = any(getattr(param.type, "is_own", None) for param in params)
        if writes and not any(param.name == "overwrite" for param in params):
            function = click.option("--force", "overwrite", is_flag=True, help="Replace a file.")(
                function
            )
        return click.command(
            cls=_Command,
            short_help=(inspect.getdoc(function) or "").partition("\n")[0],
            epilog="\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples),
            context_settings={"show_default": True},  # the others are those of the group
        )(function)

    return decorate


class _Command(click.Command):
    """A command that checks its output files before it begins, and shows options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the titles of their groups."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "title", "Options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Check the output files, and run the command."""
        check_outputs(ctx)
        if "overwrite" not in inspect.signature(self.callback or print).parameters:
            ctx.params.pop("overwrite", None)
        return super().invoke(ctx)


def names_on_command_line(*names: str) -> list[str]:
    """The options among these that are on the command line, as users write them."""
    context = click.get_current_context()
    source = click.core.ParameterSource.COMMANDLINE
    return [
        max(param.opts, key=len)
        if param.param_type_name == "option"
        else param.make_metavar(context)
        for param in context.command.params
        if param.name in names and context.get_parameter_source(param.name) is source
    ]


def refuse(reason: str, *names: str, hint: str = "") -> None:
    """Raise a usage error if one of these options is given, because it would be ignored."""
    if options := names_on_command_line(*names):
        raise Misuse(f"{', '.join(options)} would be ignored: {reason}", hint)


def check_checkpoint(checkpoint: Path | None, source: Sequence[str], *others: str) -> None:
    """Raise a usage error if a count could not be resumed, or one of the other options is given."""
    if checkpoint is None:
        return
    if "-" in source:
        raise Misuse("--checkpoint needs files: standard input cannot be read again")
    refuse(
        "a checkpoint is for one count",
        *others,
        hint="count each source with bytepair count --checkpoint, and train on the counts",
    )


def one_of(*names: str) -> None:
    """Raise a usage error if two of these options are given, because they contradict each other."""
    if len(options := names_on_command_line(*names)) > 1:
        raise Misuse(f"{' and '.join(options)} contradict each other", "give one of them")


def ending(path: Path | None, *suffixes: str) -> None:
    """Raise a usage error unless an output file has one of these suffixes."""
    if path is not None and path.suffix not in suffixes:
        raise Misuse(f"{path} must end in {' or '.join(suffixes)}", "rename the file")


def together(
    *options: Callable[[Any], Any], title: str = "Options"
) -> Callable[[Decorated], Decorated]:
    """Combine several options into one decorator, in this order; the help shows them together."""

    def decorate(function: Decorated) -> Decorated:
        before = len(vars(function).get("__click_params__", []))
        for option in reversed(options):
            function = option(function)
        for param in vars(function)["__click_params__"][before:]:
            param.title = title
        return function

    return decorate


def choice(flag: str, words: Sequence[str], help: str) -> Callable[[Decorated], Decorated]:
    """An option with one of a few words, the first of which is the default."""
    return click.option(flag, type=click.Choice(words), default=words[0], help=help)


sources = click.argument("source", nargs=-1, required=True)
out_folder = click.option("--out", "-o", type=FOLDER, required=True, help="The output folder.")
PATTERN_HELP: Final = (
    f"The split pattern: a regular expression, or one of {', '.join(bytepair.PATTERNS)}."
)
pattern = click.option("--pattern", default="nanochat", help=PATTERN_HELP)
column = click.option("--column", default="text", help="The column or JSON field of the text.")
max_document_bytes = click.option(
    "--max-document-bytes", type=number, default="128M", help="The largest document, in bytes."
)
threads = click.option(
    "--threads",
    type=number,
    help="The maximum number of threads.  [default: BYTEPAIR_NUM_THREADS, or all processors]",
)
max_chars = click.option("--max-chars", type=number, help="Stop after so many characters.")
doc_cap = click.option("--doc-cap", type=number, help="Read so many characters of a document.")
errors = choice(
    "--errors", get_args(Errors), "At invalid text: stop, put U+FFFD, or skip the document."
)
split = click.option(
    "--split",
    type=click.Choice(get_args(Split)),
    help="What to read of a data set with splits.  [default: train; all of others]",
)


def _be_quiet(_: click.Context, __: click.Parameter, is_quiet: bool) -> None:
    if is_quiet:
        logging.getLogger("bytepair").setLevel(logging.WARNING)


quiet = click.option(
    "--quiet", "-q", is_flag=True, expose_value=False, callback=_be_quiet, help="Report nothing."
)
pattern_of_file = click.option("--pattern", help="The split pattern, if the file lacks one.")
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
TOKENIZER_HELP: Final = "A folder, a file, or a published name such as gpt2."
tokenizer = together(
    click.option("--tokenizer", "-t", default="tokenizer", help=TOKENIZER_HELP), pattern_of_file
)
merging = together(
    choice("--ties", _TIES, "Which of the pairs with equal counts is merged."),
    click.option("--min-count", type=number, default=1, help="The least count of a pair."),
)
checkpoint = click.option(
    "--checkpoint", type=COUNTS_FILE, help="Save the counts so far to this file; resume from it."
)
memory_limit = click.option(
    "--memory-limit",
    type=number,
    help="Memory of counts in bytes; the rest is on disk.  [default: half of the machine's]",
)
weight = click.option(
    "--weight", multiple=True, metavar="SOURCE=NUMBER", help="Multiply the counts of a source."
)
#: The options that are fields of `Reading`.
reading = together(
    max_chars, doc_cap, column, errors, split, max_document_bytes, memory_limit, checkpoint,
    title="Reading",
)  # fmt: skip
many_processes = together(
    click.option(
        "--rank",
        type=click.IntRange(min=0),
        help="Process the share of this rank.  [default: that of a job array]",
    ),
    click.option("--world-size", type=number, help="The number of ranks that share the work."),
    click.option("--ray", is_flag=True, help="Run on a Ray cluster."),
    title="Many processes",
)
roles = together(
    click.option("--bos-token", help="The special token that begins a text."),
    click.option("--eos-token", help="The special token that ends a text."),
    click.option("--pad-token", help="The special token that pads rows."),
    click.option("--eot-token", help="The special token that ends a turn of a conversation."),
    click.option(
        "--chat-template",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A file with the chat template (Jinja).",
    ),
    title="Roles",
)


#: The role that each of these options gives a token.
ROLES: Final = {
    "bos_token": "bos", "eos_token": "eos", "pad_token": "pad", "eot_token": "end_of_turn",
}  # fmt: skip


force = click.option("--force", "overwrite", is_flag=True, help="Overwrite an existing tokenizer.")


def ranks_of(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of many processes; those that are given, as arguments of Python."""
    values = {name: options.pop(name) for name in ("rank", "world_size", "ray")}
    is_given = values["ray"] or values["rank"] is not None or values["world_size"] is not None
    return values if is_given else {}


def with_roles(tokenizer: bytepair.Tokenizer, options: Mapping[str, Any]) -> bytepair.Tokenizer:
    """The tokenizer with the roles and the chat template given by options."""
    names = {role: options[name] for name, role in ROLES.items() if options[name] is not None}
    tokenizer = tokenizer.replace(roles=names) if names else tokenizer
    file: Path | None = options["chat_template"]
    return tokenizer if file is None else tokenizer.replace(chat_template=read_text(file))


def read_text(file: Path) -> str:
    """The text of a file named by an option."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadValue(f"{file} is not UTF-8 at byte {error.start}") from None


def colored() -> bool:
    """Whether to use colours on standard output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
