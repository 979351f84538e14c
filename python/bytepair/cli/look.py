"""`bytepair inspect`, `compare`, `verify`, `explore` and `evaluate`.

The exit code of `compare` and `verify` says whether they found a difference or an error.
"""

from __future__ import annotations

import json
import shutil
import sys
import webbrowser
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import Failure, Misuse, in_words, tell
from bytepair.cli.option import OUTPUT_FILE
from bytepair.corpus.files import Files, announce, files_matching, of_split, splits_of
from bytepair.errors import visible
from bytepair.files.outputs import write_whole

#: How many first, last and longest tokens are listed.
TOKENS_SHOWN: Final = 12


@option.command(
    "bytepair inspect my-tokenizer",
    "bytepair inspect --text 'Hello world'",
    "bytepair inspect gpt2.tiktoken --pattern gpt2",
)
@click.argument("tokenizer", default="tokenizer")
@option.pattern_of_file
@click.option("--text", help="Show the tokens of this text instead.")
def inspect(tokenizer: str, pattern: str | None, text: str | None) -> None:
    """Show the properties of a tokenizer, and its first, last and longest tokens.

    TOKENIZER: a folder, a file or a published name such as gpt2; by default the folder
    "tokenizer".
    """
    tok = bytepair.load(tokenizer, pattern=pattern)
    if text is not None:
        click.echo(tok.show(text, color=option.colored()))
        return
    merged = [token for token in tok.mergeable_ranks() if len(token) > 1]
    longest = sorted(merged, key=len, reverse=True)
    rows = {
        "ids": f"{tok.vocab_size:,}",
        "merges": f"{len(merged):,}",
        "rule": tok.merge_rule,
        **_rules(tok),
        "unicode": bytepair.tokenizer.UNICODE_VERSION,
        "fingerprint": tok.fingerprint,
        "special": " ".join(f"{_named(n)}={i}" for n, i in tok.special_tokens.items()) or "none",
        "roles": " ".join(f"{role}={_named(n)}" for role, n in tok.roles.items()) or "none",
        "first": _shown(merged[:TOKENS_SHOWN]),
        "last": _shown(merged[-TOKENS_SHOWN:]),
        "longest": _shown(longest[:TOKENS_SHOWN]),
        "notes": " ".join(f"{n}={value}" for n, value in tok.notes.items() if len(value) < 80),
    }
    for name, value in rows.items():
        click.echo(f"{name:>11}  {visible(value)}")


def _rules(tok: bytepair.Tokenizer) -> dict[str, str]:
    pattern, rules = tok.pattern, bytepair.tokenizer.text_rules(tok)
    names = [name for name, regex in bytepair.PATTERNS.items() if regex == pattern]
    steps = (pattern,) if isinstance(pattern, str) else pattern or tuple(rules.pre_tokenizer)
    missing = " ".join(f"0x{byte:02X}" for byte in bytepair.tokenizer.uncovered(tok))
    fate = "left out of the ids" if rules.drops_uncovered else "an error in a text"
    is_lossless = bytepair.tokenizer.is_lossless(tok)
    return {
        "pattern": f"{', '.join(names) or 'custom'}: {', then '.join(steps) or 'none'}",
        "normalizer": ", ".join(rules.normalizer) or "none",
        "uncovered": f"{missing}: {fate}" if missing else "none: every byte has a token",
        "lossless": "yes" if is_lossless else "no: not every text is decoded to itself",
    }


def _named(special: str) -> str:
    return bytepair.tokenizer.readable(special.encode())


def _shown(tokens: list[bytes]) -> str:
    return " ".join(bytepair.tokenizer.readable(token).replace(" ", "·") for token in tokens)


@option.command(
    "bytepair compare my-tokenizer exported/tokenizer.json corpus/",
    "bytepair compare gpt2 my-tokenizer",
    "bytepair compare my-tokenizer pruned --by tokens --json 'shards/*.parquet'",
)
@click.argument("one")
@click.argument("two")
@click.argument("source", nargs=-1)
@option.choice("--by", ["ids", "tokens"], "Compare ids or the bytes of tokens.")
@click.option("--pattern", help="The split pattern of ONE, if its file lacks one.")
@option.max_chars
@option.column
@option.errors
@option.max_document_bytes
@option.quiet
@option.as_json
def compare(
    one: str, two: str, source: tuple[str, ...], pattern: str | None, as_json: bool, by: Any,
    **reading: Any,
) -> None:  # fmt: skip
    """Find where two tokenizers first differ: the text, the byte and the tokens.

    ONE, TWO: a folder, a file or a published name such as gpt2. SOURCE: files, folders or globs of
    text; without SOURCE, the included texts in sixty languages.

    Exit code 0 if all texts are encoded equally, 1 if some differ, 2 if they cannot be compared.
    """
    if not source:
        option.refuse("it needs SOURCE", "max_chars", "column", "errors", "max_document_bytes")
    names = [Path(name).name or name for name in (one, two)]
    if names[0] == names[1]:
        names = [one, two] if one != two else ["one", "two"]
    comparison = bytepair.evaluate.compare(
        bytepair.load(one, pattern=pattern), two, option.files(source) if source else None,
        by=by, names=(names[0], names[1]), reading=bytepair.Reading(**reading),
    )  # fmt: skip
    click.echo(comparison.to_json() if as_json else visible(str(comparison)), nl=not as_json)
    sys.exit(0 if comparison else 1)


@option.command(
    "bytepair verify my-tokenizer",
    "bytepair verify my-tokenizer counts.parquet",
    "bytepair verify shards/",
)
@click.argument("path")
@click.argument("counts", type=option.PATH, required=False)
@option.pattern_of_file
@option.merging
@click.option("--superword-counts", type=option.PATH, help="Counts with the pattern of superwords.")
def verify(
    path: str,
    counts: Path | None,
    pattern: str | None,
    ties: Any,
    min_count: int,
    superword_counts: Path | None,
) -> None:
    """Verify a tokenizer file, every merge of its training, or token shards.

    PATH: a tokenizer (a folder, a file or a published name), or a folder of shards. COUNTS: the
    counts that the tokenizer was trained on.

    For a tokenizer file, all tables are rebuilt and compared, so that a file from an untrusted
    source can be used safely. With COUNTS, each merge must have the highest count at its step. For
    shards, everything recorded in the manifest is checked. Exit code 0 if all checks pass, 1 if one
    fails.
    """
    verdict: object
    if counts is not None:
        tok = bytepair.load(path, pattern=pattern, check=True)
        read = bytepair.training.load_counts
        others = None if superword_counts is None else read(superword_counts)
        verdict = bytepair.training.verify_merges(
            tok, read(counts), ties=ties, min_count=min_count, superword_counts=others
        )
    elif Path(path, "manifest.json").exists() or next(Path(path).glob("*[0-9].bin"), None):
        option.refuse(f"{path} contains shards", "ties", "min_count", "pattern", "superword_counts")
        verdict = bytepair.shards.verify(path)
    else:
        option.refuse("it needs COUNTS", "ties", "min_count", "superword_counts")
        tok = bytepair.load(path, pattern=pattern, check=True)
        click.echo(f"verified, all tables are correct: {tok!r}")
        return
    click.echo(str(verdict))
    sys.exit(0 if verdict else 1)


#: The text of a page with all views for which none is given.
PROMPT = "Hello, world! How is this split? 안녕하세요, 你好，مرحبا 👋🏽"


@option.command(
    "bytepair explore my-tokenizer --open",
    "bytepair explore my-tokenizer gpt2 cl100k_base",
    "bytepair explore my-tokenizer gpt2 --export page.html --text 'A text to send'",
)
@click.argument("tokenizers", nargs=-1)
@click.option("--host", default="127.0.0.1", help="The address; only loopback is private.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, help="The port; 0 for any.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option("--export", type=OUTPUT_FILE, help="Write a page for one text that works offline.")
@click.option("--all-views", is_flag=True, help="With --export: all views, for any text.")
@click.option("--text", help="With --export: the text, instead of standard input.")
@option.choice("--special", ["text", "all"], "With --export: as text or ids.")
def explore(
    tokenizers: tuple[str, ...],
    host: str,
    port: int,
    open_page: bool,
    export: Path | None,
    all_views: bool,
    text: str | None,
    special: str,
) -> None:
    """Explore tokens in the browser: splits, merges, chats, the vocabulary, costs.

    The page connects to this machine only; stop the server with Ctrl-C. With --export, one
    self-contained HTML file for one text is written instead.

    TOKENIZERS: the tokenizers to compare: folders, files or published names such as gpt2. Without
    TOKENIZERS, the page shows the folder "tokenizer" and, if they are on this machine, GPT-2, GPT-4
    and GPT-4o.
    """
    if export is None:
        option.refuse("these options need --export", "text", "special", "all_views")
    else:
        option.refuse("--export starts no server", "host", "port")
    if not tokenizers:
        tokenizers = tuple(bytepair.explore.on_this_machine())
        if Path("tokenizer").exists() or not tokenizers:
            tokenizers = ("tokenizer", *tokenizers)
    loaded, missing = _opened(tokenizers)
    if export is not None:
        if text is None and all_views and sys.stdin.isatty():
            text = PROMPT
        try:
            text = sys.stdin.buffer.read().decode() if text is None else text
        except UnicodeDecodeError as error:
            problem = f"standard input is not UTF-8 at byte {error.start}"
            raise Failure(problem, "convert it, for example with iconv") from None
        page = bytepair.explore.to_html(loaded, text, special=special == "all", all_views=all_views)
        write_whole(export, page.encode())
        click.echo(f"{export.stat().st_size / 1e3:,.0f} kB: {export}")
        if open_page:
            webbrowser.open(export.resolve().as_uri())
        return

    server = bytepair.explore.Server(loaded, host, port, missing)
    click.echo(f"{server.url}\nPress Ctrl-C to stop.")
    if open_page:
        webbrowser.open(server.url)
    server.serve_forever()


def _opened(names: Sequence[str]) -> tuple[dict[str, bytepair.Tokenizer], list[str]]:
    """Load the tokenizers by name; skip those that cannot be downloaded, unless all fail."""
    tokenizers: dict[str, bytepair.Tokenizer] = {}
    missing = []
    for name in names:
        published = bytepair.explore.PUBLISHED.get(name, name)
        short = Path(name).resolve().name if Path(name).exists() else published
        try:
            tokenizers[name if short in tokenizers else short] = bytepair.load(name)
        except bytepair.errors.NotFetchedError as error:
            missing.append(error)
    if missing and not tokenizers:
        raise missing[0]
    reasons = [in_words(error) for error in missing]
    for reason in reasons:
        tell("warning", *reason)
    return tokenizers, ["; ".join(reason) for reason in reasons]


@option.command(
    "bytepair evaluate my-tokenizer",
    "bytepair evaluate my-tokenizer --val 'shards/val*.parquet' --markdown > figures.md",
    "bytepair evaluate my-tokenizer --against other-tokenizer --json",
    "bytepair evaluate my-tokenizer --parallel 'flores/*.txt' --base en",
)
@click.argument("tokenizer", default="tokenizer")
@option.pattern_of_file
@click.option(
    "--against",
    multiple=True,
    help="A tokenizer to compare with, or none.  [default: gpt2, cl100k_base, o200k_base]",
)
@click.option("--train", multiple=True, metavar="[NAME=]PATH", help="Training text.")
@click.option("--val", multiple=True, metavar="[NAME=]PATH", help="Validation text.")
@click.option("--max-chars", type=option.number, default="10M", help="Sample so much of a text.")
@option.column
@option.errors
@option.max_document_bytes
@option.quiet
@click.option("--markdown", is_flag=True, help="Write Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Write all figures as JSON.")
@click.option("--sizes", type=OUTPUT_FILE, help="Write each vocabulary size: .csv.")
@click.option("--token-bytes", type=OUTPUT_FILE, help="Write the bytes of each id: .npy or .pt.")
@click.option("--parallel", multiple=True, metavar="NAME=PATH", help="The same text by language.")
@click.option("--base", help="With --parallel: the reference language.")
def evaluate(
    tokenizer: str,
    pattern: str | None,
    against: tuple[str, ...],
    train: tuple[str, ...],
    val: tuple[str, ...],
    markdown: bool,
    as_json: bool,
    sizes: Path | None,
    token_bytes: Path | None,
    parallel: tuple[str, ...],
    base: str | None,
    **reading: Any,
) -> None:
    """Compare tokenizers: compression by text and language, token usage, vocabulary, sizes.

    TOKENIZER: a folder, a file or a published name such as gpt2; by default the folder
    "tokenizer".
    """
    option.one_of("markdown", "as_json")
    if parallel:
        others = "train", "val", "max_chars", "sizes", "max_document_bytes"
        option.refuse("--parallel reads its own text", *others)
    else:
        option.refuse("it needs --parallel", "base")
        if not train and not val:
            nothing = "there is neither --train nor --val to read"
            option.refuse(nothing, "max_chars", "column", "errors")
    option.ending(sizes, ".csv")
    option.ending(token_bytes, ".npy", ".pt")
    tok = bytepair.load(tokenizer, pattern=pattern)
    if token_bytes:
        bytepair.evaluate.save_token_bytes(tok, token_bytes, overwrite=True)
    who = _names(tokenizer, against)
    if parallel:
        _parallel(tok, who, parallel, base, markdown=markdown, as_json=as_json, **reading)
        return
    texts = {
        name: bytepair.evaluate.documents(_files_of(some, split), **reading)
        for kind, sources, split in (("train", train, "train"), ("validation", val, "val"))
        for name, some in option.named_paths(sources, kind).items()
    }
    evaluation = bytepair.evaluate.measure(tok, **who, texts=texts)
    _tell_missing(evaluation.missing)
    if sizes:  # without a training history, `sweep` raises with the reason
        (evaluation.sweep or bytepair.evaluate.sweep(tok)).save(sizes, overwrite=True)
    if as_json:
        click.echo(bytepair.evaluate.to_json(evaluation), nl=False)
    elif markdown:
        click.echo(bytepair.evaluate.to_markdown(evaluation), nl=False)
    else:
        _print(lambda width: bytepair.evaluate.to_terminal(evaluation, width))


def _parallel(
    tok: bytepair.Tokenizer, who: dict[str, Any], parallel: Sequence[str], base: str | None, *,
    markdown: bool, as_json: bool, column: str, errors: Any, **_: Any,
) -> None:  # fmt: skip
    from bytepair.evaluate.evaluation import rivals_of

    tokenizers, missing = rivals_of(tok, **who)
    _tell_missing(missing)
    texts = bytepair.evaluate.parallel(option.groups_of(parallel), column=column, errors=errors)
    costs = bytepair.evaluate.compress(tokenizers, texts)
    table = bytepair.evaluate.parity(costs, base)
    if as_json:
        click.echo(json.dumps([vars(one) for one in costs], ensure_ascii=False, indent=2))
    elif markdown:
        click.echo(table.to_markdown())
    else:
        _print(table.to_terminal)


def _tell_missing(names: Collection[str]) -> None:
    if names:
        tell(
            "warning",
            f"left out, neither on this machine nor in reach of the network: {', '.join(names)}",
            "bytepair inspect NAME says which file is missing",
        )


def _files_of(names: Sequence[str], split: Any) -> Files:
    """The files of a split where the data set has it, else all that are named."""
    files = files_matching(names)
    splits = splits_of(files.files)
    has_split = any(splits) and split in {one or "train" for one in splits}
    files = of_split(files, split if has_split else "all")
    announce(files)
    return files


def _names(tokenizer: str, against: Sequence[str]) -> dict[str, Any]:
    if "none" in against and set(against) != {"none"}:
        raise Misuse("--against none contradicts the other --against", "give one of them")
    name = Path(tokenizer).resolve().name if Path(tokenizer).exists() else tokenizer
    rivals = [name for name in against or bytepair.evaluate.USUAL_RIVALS if name != "none"]
    return {"name": f"{name} (ours)" if name in against else name, "against": rivals}


def _print(parts: Callable[[int], list[Any]]) -> None:
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # the command ends as all others do, not with exit code 1

    # A table truncated to 80 columns would lose figures.
    width = max(shutil.get_terminal_size().columns, 80) if sys.stdout.isatty() else 200
    console = Output(width=width)
    for part in parts(console.width):
        console.print(part, crop=False)
