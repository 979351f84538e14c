"""Whether a tag may be released, and what its release says: `python packaging/release.py TAG`.

Prints the part of CHANGELOG.md on this version, or says what is wrong and ends with 1.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from source import ROOT, workspace


def wrong(tag: str, environment: dict[str, str], changelog: str) -> str | None:
    """What stands against a release, if anything.

    Args:
        tag: the tag of git, as "v0.1.0".
        environment: the variables of the workflow, which name the repository it runs in.
        changelog: the text of CHANGELOG.md.
    """
    facts = workspace()
    if tag != f"v{facts['version']}":
        return f"the tag is {tag}, and Cargo.toml has version {facts['version']}"
    if "GITHUB_REPOSITORY" in environment:
        here = f"{environment['GITHUB_SERVER_URL']}/{environment['GITHUB_REPOSITORY']}"
        if here != facts["repository"]:
            return f"this is {here}, and Cargo.toml says {facts['repository']}; change it there"
    if not notes(changelog, facts["version"]):
        return f'CHANGELOG.md has no part "## {facts["version"]}"'
    return None


def notes(changelog: str, version: str) -> str:
    r"""The part of a changelog on one version; empty if there is none.

    Example:
        >>> notes("# Changes\n\n## 0.2.0 - today\n\n- b\n\n## 0.1.0\n\n- a\n", "0.2.0")
        '- b'
    """
    found = re.search(rf"^## {re.escape(version)}\b.*\n(?s:(.*?))(?=^## |\Z)", changelog, re.M)
    return found[1].strip() if found else ""


if __name__ == "__main__":
    text = Path(ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if reason := wrong(sys.argv[1], dict(os.environ), text):
        sys.exit(f"this cannot be released: {reason}")
    sys.stdout.write(notes(text, workspace()["version"]) + "\n")
