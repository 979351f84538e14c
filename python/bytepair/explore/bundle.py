r"""Scripts that import each other in, one script without imports out.

Each file becomes a function that runs once, after the files that it imports, and returns the
exports. Only the forms of imports and exports that the page uses are supported, one per line:

    >>> files = {"a.js": "export const one = 1;", "b.js": 'import { one } from "./a.js";\none;'}
    >>> print(bundle(files, "b.js"))
    const $a = (() => {
    const one = 1;
    return { one };
    })();
    const $b = (() => {
    const { one } = $a;
    one;
    return {  };
    })();
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAMED = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w-]+)\.js";$', re.M)
_WHOLE = re.compile(r'^import \* as (\w+) from "\./([\w-]+)\.js";$', re.M)
_EXPORTED = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.M)


def bundle(files: Mapping[str, str], entry: str) -> str:
    """One script equivalent to `entry`.

    Args:
        files: the scripts, by name.
        entry: the name of the script to run.

    Raises:
        ValueError: if a script cannot be bundled, or would end its element of HTML.
    """
    order: list[str] = []
    _visit(files, entry, order, ())
    return "\n".join(_wrapped(name, files[name]) for name in order)


def _visit(files: Mapping[str, str], name: str, order: list[str], above: tuple[str, ...]) -> None:
    """Append a file to the order, after those that it imports."""
    if name in order:
        return
    if name in above:
        raise ValueError(f"scripts import each other in a circle: {' '.join([*above, name])}")
    for pattern in (_NAMED, _WHOLE):
        for found in pattern.finditer(files[name]):
            _visit(files, f"{found[2]}.js", order, (*above, name))
    order.append(name)


def _wrapped(name: str, text: str) -> str:
    body = _NAMED.sub(lambda one: f"const {{ {one[1].replace(' as ', ': ')} }} = ${one[2]};", text)
    body = _WHOLE.sub(r"const \1 = $\2;", body)
    exported = ", ".join(found[2] for found in _EXPORTED.finditer(body))
    body = _EXPORTED.sub(r"\1 \2", body)
    if strange := re.search(r"^(import|export)\b.*|\bimport\(|<!--|</?script", body, re.M | re.I):
        raise ValueError(f"{name} has {strange[0]!r}, which cannot be bundled")
    waits = re.search(r"^(const .* = )?await ", body, re.M)
    begin = "await (async () => {" if waits else "(() => {"
    const = f"const ${name.removesuffix('.js')}"
    return f"{const} = {begin}\n{body}\nreturn {{ {exported} }};\n}})();"
