"""Plans for a model: the published figures, the arithmetic, the warning, the command."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import bytepair
from bytepair.cli import command
from bytepair.plan import plan_data
from messages import told


@pytest.mark.parametrize(
    ("params", "tokens", "chars", "shards"),
    [(155e6, 3.1, 15, 60), (561e6, 11.2, 54, 216), (1e9, 20, 96, 384)],
)
def test_the_figures_of_d12_d20_and_d26(
    params: float, tokens: float, chars: int, shards: int
) -> None:
    needed = plan_data(params)
    assert round(needed.tokens / 1e9, 1) == tokens
    assert round(needed.chars / 1e9) == chars
    assert needed.shards == shards
    assert "warning" not in str(needed)


def test_a_depth_gives_the_parameters_of_nanochat() -> None:
    needed = plan_data(depth=20, vocab_size=65536)
    assert [plan_data(depth=d).params for d in (12, 20, 26)] == [185597952, 560988160, 1081999360]
    assert needed.params == 560_988_160
    assert needed.shards == 216
    assert needed.embedding_params == 65536 * 1280 == 83_886_080
    assert "83.9 million parameters (65,536 x 1,280)" in str(needed)
    assert plan_data(1e9).embedding_params is None
    assert plan_data(1e9, width=2048, vocab_size=100).embedding_params == 204_800


def test_the_preset_of_2026_counts_as_nanochat_does() -> None:
    """Its speedrun: the matrices and the output table of a d24; 7 billion tokens, 150 shards."""
    needed = plan_data(depth=24, preset="nanochat-2026", ratio=9.5)
    assert needed.vocab_size == 32768
    assert needed.params == 12 * 24 * 1536**2 + 32768 * 1536
    assert round(needed.tokens / 1e9, 1) == 6.9
    assert needed.shards == 150
    assert plan_data(depth=24, preset="nanochat-2026").tokens == 12 * needed.params
    assert plan_data(1e9, preset="nanochat-2026", vocab_size=100).embedding_params is None
    assert plan_data(1e9, preset="nanochat-2025") == plan_data(1e9)


def test_presets_name_data_sets_that_can_be_downloaded() -> None:
    for preset in bytepair.plan.PRESETS.values():
        assert bytepair.corpus.download.DATASETS[preset.dataset].shards == preset.shards + 1


def test_disk_depends_on_the_vocabulary_and_time_on_the_rate() -> None:
    assert plan_data(1e9, vocab_size=65536).disk_bytes == 40e9
    assert plan_data(1e9, vocab_size=65537).disk_bytes == 80e9
    assert plan_data(1e9, chars_per_second=96e6).seconds == 1000
    assert plan_data(1e9, ratio=10, chars_per_token=4).chars == 40e9


def test_too_small_a_data_set_is_said() -> None:
    needed = plan_data(10e9)
    assert "it has 1,822 shards and 3,840 are needed" in str(needed)
    assert "2.1 epochs" in str(needed)
    assert "warning" not in str(plan_data(1e9))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"params": 0},
        {"params": 1e9, "ratio": -1},
        {"params": 1e9, "preset": "nanochat"},
        {"depth": 0},
        {"params": float("nan")},
        {"params": 1e9, "chars_per_token": float("inf")},
    ],
)
def test_invalid_options(options: dict[str, float]) -> None:
    with told(bytepair.errors.ArgumentError):
        plan_data(**options)  # type: ignore[arg-type]


def test_measuring_counts_characters(trained: bytepair.Tokenizer) -> None:
    chars_per_token, chars_per_second = bytepair.plan.measure(trained, ["héllo"] * 10)
    assert chars_per_token == 5 / len(trained.encode("héllo"))
    assert chars_per_second > 0
    with told(bytepair.errors.CorpusError):
        bytepair.plan.measure(trained, [])


def test_the_plan_command(trained: bytepair.Tokenizer, tmp_path: object) -> None:
    def run(*words: str) -> str:
        command = [sys.executable, "-m", "bytepair", "plan", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    out = run("--depth", "20", "--vocab-size", "65536")
    assert re.search(r"tokens +11\.2 billion", out)
    assert re.search(r"shards +216 of text", out)
    assert "83.9 million" in out
    assert re.search(r"characters +\S+ billion, \d\.\d\d a token", out)
    assert re.search(r"tokens +11\.2 billion", run("--params", "561M"))
    assert "too small" in run("--params", "10B")
    out = run("--depth", "24", "--preset", "nanochat-2026", "--ratio", "8")
    assert re.search(r"parameters +729\.8 million", out)
    assert re.search(r"shards +127 of text", out)
    trained.save(str(tmp_path))
    assert re.search(r"tokens +20\.0 billion", run("--params", "1B", "-t", str(tmp_path)))


def test_the_command_that_comes_next_works(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "tok")
    row = '{"text": "some words"}\n'
    (tmp_path / "one.txt").write_text("some words")
    (tmp_path / "one.jsonl").write_text(row * 200)
    (tmp_path / "many").mkdir()
    for name in "ab":
        (tmp_path / "many" / f"{name}.jsonl").write_text(row)
    for corpus in ("one.txt", "one.jsonl", "many"):
        words = ["plan", "--params", "1M", "-t", str(tmp_path / "tok")]
        words += ["--corpus", str(tmp_path / corpus)]
        output = CliRunner().invoke(command, words, catch_exceptions=False).output
        _, *following = shlex.split(output.rpartition("next: ")[2])
        following[following.index("-o") + 1] = str(tmp_path / f"shards of {corpus}")
        assert CliRunner().invoke(command, following, catch_exceptions=False).exit_code == 0


def test_no_file_is_an_option_of_the_command_that_comes_next(
    trained: bytepair.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trained.save("tok")
    Path("-o.txt").write_text("some words")
    words = ["plan", "--params", "1M", "-t", "tok", "--corpus=-o.txt"]
    output = CliRunner().invoke(command, words, catch_exceptions=False).output
    assert "bytepair shard ./-o.txt -t tok" in output
