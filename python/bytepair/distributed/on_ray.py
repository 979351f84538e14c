"""Runs tasks on a Ray cluster, with Ray Data; no other file uses Ray.

Ray sends the functions to its workers and restarts the task of a worker that died. The results of
tasks are in files, as they are without Ray.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bytepair.errors import ShardError, visible

#: The number of seconds in which a cluster must answer.
CONNECT_SECONDS: Final = 10.0


def check() -> None:
    """Check that Ray is installed and its cluster answers, before anything is read or written."""
    try:
        import_module("pandas")  # which Ray Data imports when it is used
        from bytepair._internal.extras import ray
    except ImportError as error:
        raise ImportError("to use a cluster, install Ray: pip install 'bytepair[ray]'") from error
    if not ray.is_initialized():
        _check_reachable()


def run(items: Iterable[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Call a function for each item, on any worker."""
    check()
    from bytepair._internal.extras import ray

    packed = [{"item": pickle.dumps(item)} for item in items]
    if not packed:
        return

    def call(row: dict[str, Any]) -> dict[str, Any]:
        function(pickle.loads(row["item"]), *arguments)
        return {"is_done": True}

    data = ray.data.from_items(packed, override_num_blocks=len(packed)).map(call)
    with _progress_on_terminals_only():
        done = len(data.take_all())
    if done != len(packed):
        raise ShardError(f"Ray has run {done} of {len(packed)} tasks")


def _check_reachable() -> None:
    """Check that the cluster that Ray would use answers; Ray itself retries for many minutes."""
    address, origin = os.environ.get("RAY_ADDRESS", "auto"), "RAY_ADDRESS"
    if address == "auto":
        note = _address_file()
        origin = str(note)
        address = note.read_text("utf-8", errors="replace").strip() if note.is_file() else ""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:  # a port above 65,535
        raise ConnectionError(
            f"no Ray cluster answers at {visible(address)}, which {origin} names: {error}; "
            "start one with `ray start --head`, name another in RAY_ADDRESS, or set "
            "RAY_ADDRESS=local to use this machine alone"
        ) from error


def _address_file() -> Path:
    """The file with the address of this machine's cluster; it remains if Ray is killed."""
    folder = os.environ.get("RAY_TMPDIR")
    if folder is None and sys.platform == "linux":
        folder = os.environ.get("TMPDIR")
    usual = tempfile.gettempdir() if sys.platform == "win32" else "/tmp"
    return Path(folder or usual, "ray", "ray_current_cluster")


@contextmanager
def _progress_on_terminals_only() -> Iterator[None]:
    """Without progress bars, Ray Data logs its progress; log only warnings then."""
    logger = logging.getLogger("ray.data")
    level = logger.level
    if not sys.stderr.isatty():
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
