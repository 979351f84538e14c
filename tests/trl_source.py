"""TRL's chat templates, to compare with: of the package, or of a clone that `TRL_GIT` names."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final


def _folder() -> Path:
    """The folder of the templates; one that does not exist if there is none."""
    if "TRL_GIT" in os.environ:
        command = ["git", "-C", os.environ["TRL_GIT"], "archive", "HEAD", "trl/chat_templates"]
        files = subprocess.run(command, capture_output=True, check=True).stdout
        folder = tempfile.mkdtemp(prefix="trl")
        with tarfile.open(fileobj=io.BytesIO(files)) as archive:
            archive.extractall(folder, filter="data")
        return Path(folder) / "trl" / "chat_templates"
    found = find_spec("trl")
    return Path(found.origin or "").parent / "chat_templates" if found else Path("no trl")


FOLDER: Final = _folder()
TEMPLATES: Final = sorted(FOLDER.glob("*.jinja"))
#: Those with `{% generation %}` blocks, for training.
TRAINING: Final = [path for path in TEMPLATES if path.stem.endswith("_training")]
REASON: Final = "needs the package trl, or a clone of huggingface/trl that TRL_GIT names"
