"""The published vocabularies that can be loaded here by name, and where they were looked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bytepair.errors import BytepairError
from bytepair.formats import hub, published, registry
from bytepair.formats.hub import hub_place, rank_places


@dataclass(frozen=True)
class Vocabularies:
    """What `list_vocabularies` found. As a string, it is a list for people.

    Attributes:
        files: for each name that `bytepair.load` takes without a network, its file or folder.
        broken: for each name whose files cannot be used, the reason.
        searched: the folders that were searched, each with what it is, in order.
    """

    files: dict[str, Path]
    broken: dict[str, str]
    searched: dict[Path, str]

    def __str__(self) -> str:
        lines = [f"{name:<24}  {path}" for name, path in self.files.items()]
        lines += [f"{name:<24}  cannot be used: {why}" for name, why in self.broken.items()]
        lines = lines or ["No published vocabulary is on this machine."]
        lines += ["", "Searched, in this order:"]
        for path, what in self.searched.items():
            missing = "" if path.is_dir() else " (there is no such folder)"
            lines.append(f"  {path}{missing}: {what}")
        return "\n".join(lines)


def list_vocabularies() -> Vocabularies:
    """List the published vocabularies that `bytepair.load` can load here without a network.

    Encodings of tiktoken are found in its cache and in packages, checked by their SHA-256;
    repositories of the Hugging Face Hub in its cache, if they have files of a tokenizer.

    Example:
        >>> import bytepair
        >>> vocabularies = bytepair.list_vocabularies()
        >>> all(path.exists() for path in vocabularies.files.values())
        True
    """
    files: dict[str, Path] = {}
    broken: dict[str, str] = {}
    for name in published.ENCODINGS:
        try:
            path = published.rank_file(name)
        except BytepairError as error:
            broken[name] = str(error)
            continue
        if path is not None:
            files[name] = path
    for name, folder in hub.repositories().items():
        try:
            registry.recognize(folder)
        except (BytepairError, OSError):
            continue  # a model without a tokenizer of a known format
        files[name] = folder
    places = [*rank_places(), hub_place()]
    return Vocabularies(files, broken, {place.path: place.what for place in places})
