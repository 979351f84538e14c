"""nanochat's own modules, of any commit, to compare with: run with arrays in the place of torch.

They come from a clone of karpathy/nanochat (or its `.git`) that `NANOCHAT_GIT` names; tests that
need one are skipped without it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from absent import stand_in

#: The first commit, the last of 2025, and that of July 2026.
FIRST, LAST_OF_2025, TODAY = "3a5e0bc", "10231df", "92d63d4"


def source(commit: str, path: str) -> str:
    """The text of a file of nanochat."""
    if "NANOCHAT_GIT" not in os.environ:
        pytest.skip("needs a clone of karpathy/nanochat, which NANOCHAT_GIT names")
    command = ["git", "-C", os.environ["NANOCHAT_GIT"], "show", f"{commit}:{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Tensor(np.ndarray):
    """An array with the methods of tensors that nanochat's loaders call."""

    def view(self, *shape: Any) -> Any:  # type: ignore[override]
        is_shape = bool(shape) and all(isinstance(n, int) for n in shape)
        return self.reshape(shape) if is_shape else super().view(*shape)

    def copy_(self, other: Any, **_: Any) -> Any:
        self[...] = other
        return self

    def to(self, *_: Any, dtype: Any = None, **__: Any) -> Any:
        return self.astype(dtype or self.dtype)

    def contiguous(self) -> Any:
        return self


def torch() -> Any:
    """What nanochat's loaders use of torch."""
    module: Any = types.ModuleType("torch")
    module.long = module.int64 = np.int64
    module.int32, module.int8 = np.int32, np.int8
    module.from_numpy = lambda array: array.view(Tensor)
    module.empty = lambda *shape, dtype, **_: np.empty(
        shape[0] if len(shape) == 1 else shape, dtype
    ).view(Tensor)
    module.tensor = lambda values, dtype, **_: np.array(values, dtype).view(Tensor)
    return module


@contextmanager
def modules(
    commit: str, *names: str, base: Path | None = None, rank: int = 0, world_size: int = 1
) -> Iterator[list[Any]]:
    """Modules of nanochat as they were at a commit, in the order of their imports."""
    before = dict(sys.modules)
    common: Any = types.ModuleType("nanochat.common")
    common.get_base_dir = lambda: str(base)
    common.get_dist_info = lambda: (world_size > 1, rank, rank, world_size)
    package = types.ModuleType("nanochat")
    sys.modules |= {
        "torch": torch(), "nanochat": package, "nanochat.common": common,
        **{name: stand_in(name) for name in (
            "requests", "tokenizers", "tokenizers.models", "tokenizers.trainers",
        )},
    }  # fmt: skip
    try:
        imports = []
        for name in names:
            module = types.ModuleType(f"nanochat.{name}")
            sys.modules[module.__name__] = module
            exec(compile(source(commit, f"nanochat/{name}.py"), name, "exec"), module.__dict__)
            imports.append(module)
        yield imports
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)


def function(commit: str, path: str, name: str, **names: Any) -> Any:
    """One function of a script, with these names as its globals."""
    tree = ast.parse(source(commit, path))
    nodes: list[ast.stmt] = [
        n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name
    ]
    space: dict[str, Any] = {"torch": torch(), **names}
    exec(compile(ast.Module(nodes, []), path, "exec"), space)
    return space[name]
