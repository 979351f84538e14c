"""nanochat with rustbpe and tiktoken beside nanochat with bytepair: its own scripts, as they are.

python benchmarks/nanochat.py CLONE FOLDER

`CLONE` is a clone of karpathy/nanochat and `FOLDER` has parquet files with a column `text`, the
last for validation. The patch is that of docs/migrate-nanochat.md, applied to a copy. Timed are
`tok_train` (32,768 ids), `tok_eval` (without GPT-2, whose files tiktoken would fetch; those of
GPT-4 are fetched, or in `TIKTOKEN_CACHE_DIR`) and 60 batches of the loader for pretraining after
the first, 32 x 2,048 ids each, on the CPU. What the two print and the batches must be equal.

It needs torch, rustbpe and tiktoken. The seconds of the processor count all threads, and are what
to compare on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import runs

COMMIT = "92d63d4"
PAGE = Path(__file__).resolve().parents[1] / "docs/migrate-nanochat.md"
PROGRAMS = ["tok_train", "tok_eval", "loader"]
SIDES = ["nanochat", "patched"]
ROWS, LENGTH, BATCHES = 32, 2048, 60


def prepare(clone: str, texts: str, folder: Path) -> None:
    """For each side a copy of nanochat, and a folder with the data."""
    patch = re.search(r"```diff\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert patch is not None
    for side in SIDES:
        code, base = folder / side, folder / f"{side}-base"
        git = ["git", "-C", str(code)]
        subprocess.run(["git", "clone", "-q", clone, str(code)], check=True)
        subprocess.run([*git, "checkout", "-q", COMMIT], check=True)
        if side == "patched":
            command = [*git, "apply", "--unidiff-zero", "-"]
            subprocess.run(command, input=patch[1], text=True, check=True)
        base.mkdir()
        (base / "base_data_climbmix").symlink_to(Path(texts).resolve())


def run_script(name: str) -> Any:
    """Run a script of nanochat, and return what it prints; GPT-2 is left out."""
    text = Path(f"scripts/{name}.py").read_text(encoding="utf-8").replace('"gpt2", ', "")
    text = re.sub(r""".*(vocab_sizes\['gpt2'\]|\("GPT-2", ).*\n""", "", text)
    sys.argv = [name]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, name, "exec"), {"__name__": "__main__"})
    return re.sub(r"time: .*|(encoding|token_bytes) to .*", "", out.getvalue())


def load(side: str) -> Any:
    """Read batches; return a digest of them, and how long they took."""
    from nanochat.tokenizer import get_tokenizer  # type: ignore[import-not-found, unused-ignore]

    module: Any
    if side == "patched":
        module = importlib.import_module("bytepair.compat.nanochat")
    else:
        module = importlib.import_module("nanochat.dataloader")
    loader = module.tokenizing_distributed_data_loader_with_state_bos_bestfit(
        get_tokenizer(), ROWS, LENGTH, split="train", device="cpu"
    )
    next(loader)
    started, cpu, checksum = time.perf_counter(), time.process_time(), 0
    for _ in range(BATCHES):
        inputs, targets, state = next(loader)
        checksum = (31 * checksum + int(inputs.sum()) + 7 * int(targets.sum())) % (1 << 61)
    timed = {"part": time.perf_counter() - started, "part_cpu": time.process_time() - cpu}
    return (checksum, state), timed


def work(name: str, folder: Path) -> None:
    program, side = name.split()
    os.environ |= {"NANOCHAT_BASE_DIR": str(folder / f"{side}-base"), "OMP_NUM_THREADS": "1"}
    os.chdir(folder / side)
    sys.path.insert(0, str(folder / side))
    result, timed = load(side) if program == "loader" else (run_script(program), {})
    runs.say({"result": result, "cpu": time.process_time(), **timed})


def show(results: dict[str, list[dict[str, Any]]]) -> None:
    for program in PROGRAMS:
        ours, theirs = results[f"{program} patched"], results[f"{program} nanochat"]
        assert len({str(row["result"]) for row in [*ours, *theirs]}) == 1, program
        for key in ("seconds", "cpu", "part", "part_cpu", "peak_mb"):
            if key in ours[0]:
                a, b = runs.median(theirs, key), runs.median(ours, key)
                print(f"{program:10} {key:8} {a:9.2f} {b:9.2f} {a / b:6.1f} x")
    for side in SIDES:
        rate = ROWS * LENGTH * BATCHES / runs.median(results[f"loader {side}"], "part") / 1e6
        print(f"loader {side}: {rate:.2f} million tokens a second")


def main() -> None:
    options = runs.parser(__doc__, rounds=5)
    options.add_argument("clone")
    options.add_argument("texts")
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.worker:
        work(args.worker, args.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        prepare(args.clone, args.texts, Path(name))
        worker = [str(Path(__file__).resolve()), args.clone, args.texts, "--folder", name]
        names = [f"{program} {side}" for program in PROGRAMS for side in SIDES]
        results = runs.measure(worker, names, args.rounds)
    show(results)
    runs.record(args.record, results, ["bytepair", "rustbpe", "tiktoken", "torch", "pyarrow"])


if __name__ == "__main__":
    main()
