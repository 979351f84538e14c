"""The lowest versions of packages that pyproject.toml allows, for pip.

The arguments name extras. The output has the form `name==version`, and is for the package and these
extras.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(requirement: str) -> str:
    """The requirement of the lowest version that another allows.

    >>> lowest("jinja2>=3.1.6"), lowest("ray[data]>=2.40"), lowest("regex")
    ('jinja2==3.1.6', 'ray[data]==2.40', 'regex')
    """
    return re.sub(r">=([0-9.]+).*", r"==\1", requirement)


def main() -> None:
    """Print the requirements of the package and the named extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *(name for extra in sys.argv[1:] for name in extras[extra])]
    sys.stdout.write(" ".join(dict.fromkeys(map(lowest, listed))))


if __name__ == "__main__":
    main()
