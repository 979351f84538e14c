"""Stand-ins for packages that are not installed, so that a part of a large package can be imported.

Inference engines import torch and much else before their tokenizers. Those are not called for a
tokenizer: any name of a stand-in is an empty class. Packages that are installed are never replaced:
an engine that can be imported whole is, and another one gets stand-ins only for what it misses.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class _Anything(type):
    """The type of names in a stand-in: a class that is callable and has any item and attribute."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(name)

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


def _made(name: str) -> Any:
    def new(cls: Any, *args: Any, **options: Any) -> Any:
        if len(args) == 1 and not options and isinstance(args[0], types.FunctionType | type):
            return args[0]  # a decorator
        return object.__new__(cls)

    space = {
        "__new__": new,
        "__init__": lambda self, *args, **options: None,
        "__init_subclass__": classmethod(lambda cls, **options: None),
        "__call__": lambda self, *args, **options: args[0] if args else None,
        "__getattr__": lambda self, name: _made(name),
    }
    return _Anything(name, (), space)


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        part = _made(name)
        setattr(self, name, part)
        return part


def stand_in(name: str) -> types.ModuleType:
    """A module of which any name is an empty class."""
    return _Module(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = set(names)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not any(fullname == name or fullname.startswith(f"{name}.") for name in self.names):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return _Module(spec.name)

    def exec_module(self, module: Any) -> None:
        module.__path__ = []
        module.__version__ = "99.0.0"


def missing(package: str, names: Sequence[str]) -> list[str]:
    """The names that cannot be imported: parts of the package, and packages not installed."""
    return [
        name
        for name in names
        if (top := name.partition(".")[0]) == package
        or (top not in sys.modules and importlib.util.find_spec(top) is None)
    ]


def imports(package: str) -> bool:
    """Whether a package can be imported whole."""
    before = set(sys.modules)
    try:
        importlib.import_module(package)
    except Exception:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == package:
                del sys.modules[name]
        return False
    return True


@contextmanager
def stood_in_for(package: Path, names: Sequence[str]) -> Iterator[None]:
    """Import parts of a package, with stand-ins for those of some names that are not installed.

    If the package cannot be imported whole, its own `__init__` is not run.
    """
    if imports(package.name):
        yield
        return
    names = missing(package.name, names)
    before = dict(sys.modules)
    finder = _Finder(names)
    sys.meta_path.insert(0, finder)
    module = types.ModuleType(package.name)
    module.__path__ = [str(package)]
    module.__spec__ = importlib.machinery.ModuleSpec(package.name, None, is_package=True)
    sys.modules[package.name] = module
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - set(before):
            if name.partition(".")[0] in {package.name, *(n.partition(".")[0] for n in names)}:
                del sys.modules[name]
