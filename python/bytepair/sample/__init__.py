"""A little text to begin with: Shakespeare, and one declaration in sixty languages.

What is shipped, where it comes from and under which terms is said in README.md beside this file.
"""

from pathlib import Path


def paths() -> list[Path]:
    """The files, one document each, always in the same order.

    Example:
        >>> from bytepair import sample
        >>> [path.name for path in sample.paths()][:2]
        ['tinyshakespeare.txt', 'am.txt']
    """
    here = Path(__file__).parent
    return [here / "tinyshakespeare.txt", *sorted((here / "udhr").glob("*.txt"))]
