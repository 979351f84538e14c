"""Names of annotations that are imported when the annotations are evaluated, not before.

`import bytepair` stays fast, since most modules import numpy, pyarrow and each other for type
checkers alone. `inspect.signature(function, eval_str=True)` evaluates annotations, as DuckDB,
pydantic and FastAPI do, and needs a value for each name:

    if TYPE_CHECKING:
        import pyarrow as pa
    else:
        pa = Later("pyarrow")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """A module, or a name in a module, that is imported on first use.

    What cannot be imported, because an optional package is not installed, is `Any`.

    Example:
        >>> fractions = Later("fractions")
        >>> fractions.Fraction, Later("fractions", "Fraction") | None, Later("missing").Value
        (<class 'fractions.Fraction'>, fractions.Fraction | None, typing.Any)
    """

    def __init__(self, module: str, name: str = "") -> None:
        self._module, self._name = module, name

    def _value(self) -> Any:
        try:
            module = import_module(self._module)
        except ImportError:
            return Any
        return getattr(module, self._name) if self._name else module

    def __getattr__(self, name: str) -> Any:
        """A name of the module; `Any` without the module."""
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._value()
        return Any if value is Any else getattr(value, name)

    def __getitem__(self, item: Any) -> Any:
        """A generic type with its arguments."""
        value = self._value()
        return Any if value is Any else value[item]

    def __or__(self, other: Any) -> Any:
        """A union."""
        return self._value() | other

    def __ror__(self, other: Any) -> Any:
        """A union."""
        return other | self._value()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the class: `typing` takes what is callable for a type."""
        return self._value()(*arguments, **options)
