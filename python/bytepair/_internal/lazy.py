"""Names of a package in: each is imported when it is asked for, and not before.

So `import bytepair` is quick, and who only encodes never waits for numpy or pyarrow. The package
imports the same names under `TYPE_CHECKING`, where type checkers and editors find them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module


def lazy(package: str, homes: Mapping[str, str]) -> None:
    """Give a package names that are imported when they are asked for.

    Args:
        package: its name; it is being imported.
        homes: for each name the module that defines it, or the module that it is.
    """
    module = sys.modules[package]

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        home = import_module(homes[name])
        value = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(module, name, value)
        return value

    vars(module).update(
        __getattr__=find,
        __dir__=lambda: sorted({*vars(module), *homes}),
    )
