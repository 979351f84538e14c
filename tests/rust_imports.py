"""Reads Rust sources as text: the imports between their files, and the types they define.

An arrow goes from a file to the file that defines what it names: through re-exports, and not for
`mod`, which only says that a file exists. Tests do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]

_PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
_TYPE = re.compile(
    r"^(?: *(?:pub(?:\([^)]*\))? )?(?:struct|enum|union|trait)|(?:pub(?:\([^)]*\))? )?type) (\w+)",
    re.M,
)
_USE = re.compile(r"^\s*(?P<public>pub(?:\([^)]*\))? )?use (?P<tree>[^;]+);", re.M)


def arrows(source: Path) -> dict[Path, set[Path]]:
    """For each file of a crate the files that it takes names from."""
    files = {_module(file, source): file for file in source.rglob("*.rs") if file.stem != "tests"}
    texts = {module: _without_tests(file.read_text("utf-8")) for module, file in files.items()}
    exports = {module: dict(_exports(module, text, files)) for module, text in texts.items()}

    def defined_in(path: Module) -> Path | None:
        for cut in range(len(path), 0, -1):
            if path[:cut] in files:
                name = path[cut] if cut < len(path) else ""
                onward = exports[path[:cut]].get(name)
                return defined_in((*onward, *path[cut + 1 :])) if onward else files[path[:cut]]
        onward = exports[()].get(path[0]) if path else None
        return defined_in((*onward, *path[1:])) if onward else None

    graph = {}
    for module, text in texts.items():
        targets = {defined_in(path) for path, _ in _paths(module, text, files)}
        graph[files[module]] = {target for target in targets if target} - {files[module]}
    return graph


def types(source: Path) -> dict[str, list[Path]]:
    """For each type name of a crate, tests included, the files that define it.

    Associated types do not count: an indented `type` belongs to a trait.
    """
    places: dict[str, list[Path]] = {}
    for file in sorted(source.rglob("*.rs")):
        for name in _TYPE.findall(file.read_text("utf-8")):
            places.setdefault(name, []).append(file)
    return places


def circles(arrows: dict[Path, set[Path]]) -> list[list[Path]]:
    """The groups of files that import each other in a loop."""
    reach = {file: _reachable(file, arrows) for file in arrows}
    groups = {
        tuple(sorted(other for other in reach[file] if file in reach.get(other, ())))
        for file in arrows
        if file in reach[file]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(start: Path, arrows: dict[Path, set[Path]]) -> set[Path]:
    seen: set[Path] = set()
    waiting = list(arrows[start])
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting.extend(arrows.get(file, ()))
    return seen


def _module(file: Path, source: Path) -> Module:
    parts = file.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib"} else parts


def _without_tests(text: str) -> str:
    """The code without its test module and its comments; modules inside belong to their file."""
    text = re.sub(r"#\[cfg\(test\)\]\s*mod \w+ \{.*?^\}", "", text, flags=re.S | re.M)
    text = re.sub(r"//.*", "", text)
    inside = re.compile(r"^(?:pub(?:\([^)]*\))? )?mod \w+ \{.*?^\}", re.S | re.M)
    return inside.sub(lambda match: re.sub(r"(?<!::)\bsuper::", "self::", match[0]), text)


def _exports(module: Module, text: str, files: dict[Module, Path]) -> Iterator[tuple[str, Module]]:
    """The names that a file re-exports, and where they come from."""
    for path, public in _paths(module, text, files):
        if public and path[:-1] in files:
            yield path[-1], path


def _paths(module: Module, text: str, files: dict[Module, Path]) -> Iterator[tuple[Module, bool]]:
    """The paths of the crate that a file names, and whether it re-exports them."""
    for use in _USE.finditer(text):
        for path in _leaves(use["tree"].replace("\n", " ")):
            if resolved := _resolve(path, module, files):
                yield resolved, bool(use["public"])
    for match in _PATH.finditer(_USE.sub("", text)):
        if resolved := _resolve(tuple(match[0].split("::")), module, files):
            yield resolved, False


def _leaves(tree: str) -> Iterator[Module]:
    """The paths of a `use` tree: `a::{b, c::d}` has `a::b` and `a::c::d`."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        name = head.split(" as ")[0].strip()
        if name:
            yield tuple(part for part in name.split("::") if part not in {"", "*", "self"})
        return
    prefix = tuple(part for part in head.strip().split("::") if part)
    depth, start = 0, 0
    inner = rest.rpartition("}")[0]
    for at, letter in enumerate([*inner, ","]):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            yield from ((*prefix, *leaf) for leaf in _leaves(inner[start:at]))
            start = at + 1


def _resolve(path: Module, module: Module, files: dict[Module, Path]) -> Module | None:
    """A path from the root of the crate; None if it leads out of the crate."""
    if not path:
        return None
    if path[0] == "crate":
        return path[1:]
    ups = next((n for n, part in enumerate(path) if part != "super"), len(path))
    if ups:
        return (*module[: len(module) - ups], *path[ups:])
    return (*module, *path) if (*module, path[0]) in files else None
