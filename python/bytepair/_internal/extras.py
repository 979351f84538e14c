"""Imports optional packages on first use, with an error that says how to install them.

    from bytepair._internal.extras import pyarrow as pa

imports pyarrow when this line runs, not earlier. The required dependencies (numpy, click, rich)
are imported as usual. `lazy` does the same for the exported names of a package of bytepair, so that
a program that only encodes never imports numpy or pyarrow.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import huggingface_hub as huggingface_hub
    import jinja2 as jinja2
    import llguidance as llguidance
    import matplotlib as matplotlib
    import pyarrow as pyarrow
    import ray as ray
    import regex as regex
    import tiktoken as tiktoken
    import tokenizers as tokenizers
    import transformers as transformers
    import xgrammar as xgrammar

#: For each package, the extra of bytepair that installs it.
_EXTRAS: Final = {
    "huggingface_hub": "hub",
    "jinja2": "chat",
    "llguidance": "llguidance",
    "matplotlib": "plot",
    "pyarrow": "data",
    "ray": "ray",
    "regex": "reference",
    "scipy": "infer",
    "tiktoken": "tiktoken",
    "tokenizers": "hf",
    "torch": "torch",
    "xgrammar": "xgrammar",
    "transformers": "hf",
}


def __getattr__(name: str) -> Any:
    """Import a package; `pyarrow_parquet` stands for `pyarrow.parquet`."""
    module = name
    for package in ("matplotlib", "pyarrow", "scipy", "tokenizers"):
        module = module.replace(f"{package}_", f"{package}.")
    package = module.partition(".")[0]
    if package not in _EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ImportError(
            f"this needs the package {package}: pip install 'bytepair[{_EXTRAS[package]}]'",
            name=package,
        ) from error


def lazy(package: str, modules: Sequence[str]) -> None:
    """Import the exported names of a package on first access (PEP 562).

    The package, which is being imported, imports the same names under `TYPE_CHECKING`, for type
    checkers and editors. A name is that of one of the modules, or comes from the first of them that
    has it.
    """
    module = sys.modules[package]

    def find(name: str) -> object:
        if name not in vars(module)["__all__"]:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        value: object
        if name in modules:
            value = import_module(f".{name}", package)
        else:
            homes = (import_module(f".{home}", package) for home in modules)
            value = next(getattr(home, name) for home in homes if hasattr(home, name))
        setattr(module, name, value)
        return value

    vars(module).update(
        __getattr__=find,
        __dir__=lambda: sorted({*vars(module), *vars(module)["__all__"]}),
    )
