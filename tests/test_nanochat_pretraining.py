"""nanochat's own pre-training scripts, on a CPU, with and without bytepair: equal results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from nanochat_source import TODAY

ROOT = Path(__file__).resolve().parents[1]
IDS = 400
TRAIN = (
    "scripts.base_train --depth=2 --aspect-ratio=16 --head-dim=16 --window-pattern=L"
    " --max-seq-len=64 --device-batch-size=2 --total-batch-size=128 --num-iterations=4"
    " --eval-every=2 --eval-tokens=256 --core-metric-every=-1 --sample-every=-1 --warmup-steps=1"
)
EVALUATE = "scripts.base_eval --eval bpb --device-batch-size=2 --split-tokens=256"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of nanochat with two files of text, and a tokenizer as the page makes it."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "base_data_climbmix").mkdir()
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    documents = [piece * 40 if i % 50 == 0 else piece for i, piece in enumerate(text.split("\n\n"))]
    half = len(documents) // 2
    for number, part in enumerate([documents[:half], documents[half:]]):
        path = folder / "base_data_climbmix" / f"shard_{number:05}.parquet"
        pq.write_table(pa.table({"text": part}), path, row_group_size=100)
    tok = bytepair.train(
        folder / "base_data_climbmix",
        IDS,
        reading=bytepair.Reading(max_chars=2_000_000_000, doc_cap=10_000),
    )
    tok.export(folder / "tokenizer", "nanochat")
    return folder


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two clones of nanochat: as it is, and with the patch of the page."""
    if "NANOCHAT_GIT" not in os.environ:
        pytest.skip("needs a clone of karpathy/nanochat, which NANOCHAT_GIT names")
    for package in ("torch", "rustbpe"):
        pytest.importorskip(package)
    folders = [tmp_path_factory.mktemp("nanochat") / name for name in ("plain", "patched")]
    for folder in folders:
        subprocess.run(["git", "clone", "-q", os.environ["NANOCHAT_GIT"], str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "checkout", "-q", TODAY], check=True)
        if find_spec("wandb") is None:
            (folder / "wandb.py").touch()  # it is imported, and not called
    page = (ROOT / "docs/migrate-nanochat.md").read_text(encoding="utf-8")
    patch = re.search(r"```diff\n(.*?)```", page, re.DOTALL)
    assert patch is not None
    command = ["git", "-C", str(folders[1]), "apply", "--unidiff-zero", "-"]
    subprocess.run(command, input=patch[1], text=True, check=True)
    return folders


def run(clone: Path, base: Path, command: str) -> str:
    """What a script of nanochat prints; torch compiles nothing."""
    path = f"{ROOT / 'python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    env = {
        **os.environ, "NANOCHAT_BASE_DIR": str(base), "PYTHONPATH": path,
        "TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(words, cwd=clone, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr  # nor one that Python ignores
    return done.stdout


def test_losses_and_bits_per_byte_are_equal(clones: list[Path], base: Path) -> None:
    printed = []
    for clone in clones:
        tag = f"--model-tag {clone.name}"
        both = [run(clone, base, f"{command} {tag}") for command in (TRAIN, EVALUATE)]
        printed.append(re.findall(r"(?:loss|bpb): [\d.]+", "".join(both)))
    assert len(printed[0]) == 4 + 3 + 1 + 2  # losses, evaluations, the smallest, base_eval
    assert printed[0] == printed[1]


def test_tok_train_gives_what_the_page_gives(
    clones: list[Path], base: Path, tmp_path: Path
) -> None:
    (tmp_path / "base_data_climbmix").symlink_to(base / "base_data_climbmix")
    ours = bytepair.load(base / "tokenizer", allow_pickle=True)
    for clone in clones:
        run(clone, tmp_path, f"scripts.tok_train --vocab-size {IDS}")
        assert bytepair.load(tmp_path / "tokenizer", allow_pickle=True) == ours
