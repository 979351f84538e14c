"""GPT-2's pair of files: `vocab.json` with the ids, `merges.txt` with the merges in order.

Both map bytes to printable characters: a space is `Ġ`, a line break `Ċ`. The tokenizer splits by
GPT-2's pattern and merges listed pairs. The files do not mark special tokens; `<|endoftext|>` is
treated as special if no merge produces it.
"""

from __future__ import annotations

from pathlib import Path

from bytepair import _core
from bytepair._core import to_bytes, to_characters
from bytepair.errors import FormatError, UnsupportedError
from bytepair.files.safe import id_of, parse_json, read_file, to_json, typed
from bytepair.formats.parts import LoadOptions, build
from bytepair.properties.tokens import EMPTY, empty_token

VOCABULARY = "vocab.json"
MERGES = "merges.txt"
_OTHER_NAMES = {VOCABULARY: "encoder.json", MERGES: "vocab.bpe"}
NAMES = {*_OTHER_NAMES, *_OTHER_NAMES.values()}
END_OF_TEXT = "<|endoftext|>"


def find(path: Path) -> tuple[Path, Path] | None:
    """The two files in a folder, by their current or original names."""
    vocabulary, merges = (
        next((path / name for name in names if (path / name).is_file()), None)
        for names in _OTHER_NAMES.items()
    )
    return (vocabulary, merges) if vocabulary and merges else None


def read(path: Path, options: LoadOptions) -> _core.Model:
    """Read the pair of files in a folder, or the given file and its counterpart."""
    files = find(path if path.is_dir() else path.parent)
    if files is None:
        raise FormatError(str(path), f"{VOCABULARY} and {MERGES} are not both there")
    ids = typed(parse_json(read_file(files[0]), VOCABULARY), dict, VOCABULARY)
    ids = {name: id_of(id, f"{VOCABULARY}[{name!r}]") for name, id in ids.items()}
    empty = ids.pop("", None)
    merges = parse_merges(read_file(files[1]))
    special = _special(ids, merges, options)
    ordinary = {name: id for name, id in ids.items() if name not in special}
    tokens = read_vocabulary(ordinary, VOCABULARY, options)
    pattern = options.pattern or _core.PATTERNS["gpt2"]
    checked = check_merges(merges, tokens, MERGES)
    notes = {} if empty is None else {EMPTY: str(empty)}
    return build(tokens, pattern, special, checked, notes=notes, may_be_ranks=True)


def _special(
    ids: dict[str, int], merges: list[tuple[bytes, bytes]], options: LoadOptions
) -> dict[str, int]:
    """The special tokens: those passed by the caller, or else GPT-2's."""
    if options.special_tokens is not None:
        for name, id in options.special_tokens.items():
            if ids.get(name, id) != id:
                raise FormatError(
                    f"{VOCABULARY}[{name!r}]",
                    f"its id is {ids[name]}, not {id} as in special_tokens",
                    option="special_tokens",
                )
        return dict(options.special_tokens)
    is_merged = END_OF_TEXT.encode() in {left + right for left, right in merges}
    return {} if is_merged or END_OF_TEXT not in ids else {END_OF_TEXT: ids[END_OF_TEXT]}


def read_vocabulary(ids: dict[str, int], place: str, options: LoadOptions) -> dict[bytes, int]:
    """Convert tokens from characters to bytes.

    A token with a character that does not represent a byte can never occur, so it may be skipped;
    its id is then unused.
    """
    tokens: dict[bytes, int] = {}
    for name, id in ids.items():
        try:
            token = to_bytes(name)
        except UnicodeEncodeError:
            reason = "the token contains an unpaired surrogate"
            raise FormatError(f"{place}[{name!r}]", reason) from None
        if token:
            tokens[token] = id
        elif not options.lossy:
            raise UnsupportedError(
                f"{place}[{name!r}]",
                "the characters of the token do not represent bytes, so this is not a byte-level "
                "token",
                option="lossy",
                value=False,
                hint="pass lossy=True to skip it",
            )
    return tokens


def parse_merges(data: bytes) -> list[tuple[bytes, bytes]]:
    r"""The pairs of the bytes of `merges.txt`.

    Example:
        >>> parse_merges("#version: 0.2\nĠ t\nh e\n".encode())
        [(b' ', b't'), (b'h', b'e')]
    """
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"{MERGES}, byte {error.start}", "the file is not UTF-8") from None
    numbered = enumerate((line.removesuffix("\r") for line in lines), 1)
    return [
        read_pair(line.split(" "), f"{MERGES}, line {number}")
        for number, line in numbered
        if line and not line.startswith("#version")
    ]


def read_pair(parts: list[str], place: str) -> tuple[bytes, bytes]:
    """Convert two tokens from characters to bytes."""
    if len(parts) != 2:
        raise FormatError(place, f"a merge must have two tokens, not {len(parts)}")
    left, right = to_bytes(parts[0]), to_bytes(parts[1])
    if not left or not right:
        raise FormatError(
            place, "a character of the merge does not represent a byte, or a part is empty"
        )
    return left, right


def check_merges(
    merges: list[tuple[bytes, bytes]], tokens: dict[bytes, int], place: str
) -> list[tuple[bytes, bytes]]:
    """Check that parts and results are tokens; of duplicate pairs, the last one is used."""
    for number, (left, right) in enumerate(merges):
        for token in (left, right, left + right):
            if token not in tokens:
                raise FormatError(f"{place}[{number}]", f"{token!r} is not in the vocabulary")
    return list(dict.fromkeys(reversed(merges)))[::-1]


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What the two files lose beside the values that the table of formats has."""
    if any(left.startswith(b"#version") for left, _ in tokenizer.merges()):
        return ["merges that begin with #version, which readers treat as a comment"]
    return []


def files(tokenizer: _core.Tokenizer, path: Path) -> dict[Path, bytes]:
    """The two files of a folder; ranks become one merge per token."""
    ids = {to_characters(token): id for token, id in tokenizer.mergeable_ranks().items()}
    if (empty := empty_token(tokenizer)) is not None:
        ids[""] = empty
    lines = ["#version: 0.2", *merge_lines(tokenizer), ""]
    return {
        path / VOCABULARY: to_json(tokenizer.special_tokens | ids, indent=None),
        path / MERGES: "\n".join(lines).encode(),
    }


def merge_lines(tokenizer: _core.Tokenizer) -> list[str]:
    """The lines of merges: two tokens as characters, separated by a space."""
    return [f"{to_characters(left)} {to_characters(right)}" for left, right in tokenizer.merges()]


def lookalikes(tokenizer: _core.Tokenizer) -> list[str]:
    """The special tokens whose name equals an ordinary token, written as characters."""
    ranks = tokenizer.mergeable_ranks()
    special = tokenizer.special_tokens.items()
    return [name for name, id in special if ranks.get(to_bytes(name) or b"", id) != id]
