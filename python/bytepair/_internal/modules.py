"""A module that is called like a function: an error that says what to call."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import NoReturn

from bytepair.errors import ArgumentError, WayOut


class PublicModule(ModuleType):
    """A module that is no function and says so."""

    def __call__(self, *_arguments: object, **_options: object) -> NoReturn:
        """Refuse the call.

        Raises:
            ArgumentError: always; it names the function to call.
        """
        raise ArgumentError(
            f"{self.__name__} is a module", WayOut(f"call {vars(self)['_call_instead']}")
        )


def call_instead(module: str, call: str) -> None:
    """Have a module say what to call.

    Args:
        module: the name of the module, which is being imported.
        call: the call, as it stands in the message.
    """
    vars(sys.modules[module])["_call_instead"] = call
    sys.modules[module].__class__ = PublicModule
