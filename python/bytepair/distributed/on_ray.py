"""Tasks on a Ray cluster, through Ray Data: the only file that knows Ray.

Ray brings the functions to its workers, runs a task again whose worker died, and nothing else: what
the tasks make lies in files, as it does without Ray.
"""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from bytepair.errors import ShardError


def each(items: Iterable[Any], function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Call a function for each item, somewhere."""
    results(items, function, arguments)


def results(
    items: Iterable[Any], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> list[Any]:
    """Call a function for each item, somewhere, and return what it gives, in order.

    Raises:
        ImportError: if Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError("to use a cluster, install Ray: pip install 'bytepair[ray]'") from error
    packed = [{"number": number, "item": pickle.dumps(item)} for number, item in enumerate(items)]
    if not packed:
        return []

    def call(row: dict[str, Any]) -> dict[str, Any]:
        result = function(pickle.loads(row["item"]), *arguments)
        return {"number": row["number"], "result": pickle.dumps(result)}

    data = ray.data.from_items(packed, override_num_blocks=len(packed)).map(call)
    with _progress_on_terminals_only():
        rows = sorted(data.take_all(), key=lambda row: row["number"])
    if len(rows) != len(packed):
        raise ShardError(f"Ray gave {len(rows)} results for {len(packed)} tasks")
    return [pickle.loads(row["result"]) for row in rows]


@contextmanager
def _progress_on_terminals_only() -> Iterator[None]:
    """Where there are no bars, Ray Data logs how far it is; warnings stay."""
    logger = logging.getLogger("ray.data")
    level = logger.level
    if not sys.stderr.isatty():
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
