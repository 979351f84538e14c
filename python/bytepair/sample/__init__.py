"""The sample texts: Shakespeare, and the declaration of human rights in sixty languages.

README.md beside this file lists the files, their sources and their licences.
"""

from pathlib import Path

__all__ = ["paths"]


def paths() -> list[Path]:
    """Return the paths of the text files, one document each, always in the same order.

    Example:
        >>> from bytepair import sample
        >>> [path.name for path in sample.paths()][:2]
        ['tinyshakespeare.txt', 'am.txt']
    """
    here = Path(__file__).parent
    return [here / "tinyshakespeare.txt", *sorted((here / "udhr").glob("*.txt"))]
