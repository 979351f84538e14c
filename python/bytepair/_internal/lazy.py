"""Import the exported names of a package on first access (PEP 562).

This keeps `import bytepair` fast: a program that only encodes never imports numpy or pyarrow. The
package imports the same names under `TYPE_CHECKING`, for type checkers and editors.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module


def lazy(package: str, homes: Mapping[str, str]) -> None:
    """Make names of a package importable lazily.

    Args:
        package: the name of the package, which is being imported.
        homes: for each exported name, the module that defines it; for a submodule, the submodule.
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
