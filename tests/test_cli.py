"""The real command, as people run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from subprocess import PIPE

import click
import pytest
from click.testing import CliRunner

import bytepair
from bytepair.cli import COMMANDS, command, option
from commands import message_of
from messages import told


def run(
    *words: str, cwd: Path, stdin: bytes = b"", code: int = 0
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "bytepair", *words],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `bytepair train` ran."""
    cwd = tmp_path_factory.mktemp("cli")
    done = run("train", "--vocab-size", "2000", cwd=cwd)
    out = done.stdout.decode()
    assert "bytes per token" in out
    assert "2,000 ids in" in out
    assert out.replace("|", "").startswith("a sentence in tokens: Good morrow")
    assert "GGUF" not in out  # the note on GGUF comes only where GGUF is written
    assert done.stderr == b""  # no bar where there is no terminal
    return cwd


def test_training_shows_no_sentence_that_would_be_letters(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("자유롭고 평등한 인간 " * 20, encoding="utf-8")
    done = run("train", "a.txt", "--vocab-size", "300", cwd=tmp_path)
    assert "sentence" not in done.stdout.decode()


def test_explore_opens_with_the_published_vocabularies_of_this_machine(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared / "vocabularies"))
    run("explore", "--export", "page.html", "--text", "hello", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert all(f'"{name}"' in page for name in ("GPT-2", "GPT-4 (cl100k_base)", "GPT-4o"))


def test_train_on_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello world " * 10)
    words = ["train", "a.txt", "--vocab-size", "262", "--special-token", "<|end|>", "-o", "out"]
    run(
        *words,
        "--pattern",
        "gpt2",
        "--ties",
        "hf",
        "--min-count",
        "2",
        "--threads",
        "1",
        cwd=tmp_path,
    )
    tok = bytepair.load(tmp_path / "out")
    assert tok.special_tokens == {"<|end|>": 261}
    assert tok.pattern == bytepair.PATTERNS["gpt2"]


def test_counts_are_trained_from_and_verified(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello help world " * 10)
    assert b"5 distinct pretokens of 41" in run("count", "a.txt", cwd=tmp_path).stdout
    run("train", "counts.parquet", "--vocab-size", "270", cwd=tmp_path)
    run("train", "a.txt", "--vocab-size", "270", "-o", "direct", cwd=tmp_path)
    assert bytepair.load(tmp_path / "tokenizer") == bytepair.load(tmp_path / "direct")
    good = run("verify", "tokenizer", "counts.parquet", cwd=tmp_path).stdout
    assert b"all 5 merges verified" in good
    bad = run("verify", "tokenizer", "counts.parquet", "--ties", "bytes-max", cwd=tmp_path, code=1)
    assert b"comes first" in bad.stdout


def test_counts_are_known_by_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello help world " * 10)
    run("count", "a.txt", "-o", "of-a.parquet", cwd=tmp_path)
    run("train", "of-a.parquet", "--vocab-size", "270", cwd=tmp_path)
    run("train", "a.txt", "--vocab-size", "270", "-o", "direct", cwd=tmp_path)
    assert bytepair.load(tmp_path / "tokenizer") == bytepair.load(tmp_path / "direct")
    check = bytepair.Counts.is_counts_file
    assert check(tmp_path / "of-a.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "of-a.parquet").read_bytes()[:-9])
    assert not any(check(tmp_path / name) for name in ["a.txt", "cut.parquet", "none", "."])


def test_encode_and_decode_are_a_pipe(folder: Path) -> None:
    text = "Hello, Wörld! 你好\n two\n".encode()
    ids = run("encode", cwd=folder, stdin=text).stdout
    assert run("decode", cwd=folder, stdin=ids).stdout == text
    tok = bytepair.load(folder / "tokenizer")
    assert [int(i) for i in ids.split()] == tok.encode(text.decode())
    lines = run("encode", "--lines", "--json", cwd=folder, stdin=text).stdout.splitlines()
    assert [json.loads(line) for line in lines] == tok.encode_batch(text.decode().splitlines())
    again = run("decode", "--lines", cwd=folder, stdin=b"\n".join(lines)).stdout
    assert again == text


def test_encode_begins_to_write_before_the_text_ends(folder: Path) -> None:
    words = [sys.executable, "-m", "bytepair", "encode", "--prepend", "<|bos|>"]
    half = "Hello, Wörld! 你好\n".encode() * 100_000
    with subprocess.Popen(words, cwd=folder, stdin=PIPE, stdout=PIPE) as process:
        to, out = process.stdin, process.stdout
        assert to is not None
        assert out is not None
        seen = threading.Event()

        def feed() -> None:
            to.write(half)
            to.flush()
            if seen.wait(60):
                to.write(half)
            to.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        head = out.read(1000)
        seen.set()
        ids = head + out.read()
        feeder.join()
    tok = bytepair.load(folder / "tokenizer")
    assert [int(i) for i in ids.split()] == tok.encode((2 * half).decode(), prepend="<|bos|>")


def test_encode_reads_lines_across_blocks(folder: Path) -> None:
    lines = [f"line {n} {'ö' * (n % 500)}" for n in range(8000)] + ["", "", "last"]
    text = "\n".join(lines)
    tok = bytepair.load(folder / "tokenizer")
    out = run("encode", "--lines", cwd=folder, stdin=text.encode()).stdout.decode()
    assert [list(map(int, line.split())) for line in out.split("\n")[:-1]] == tok.encode_batch(
        lines
    )
    assert run("encode", "--lines", cwd=folder, stdin=b"").stdout == b""
    assert run("encode", "--json", cwd=folder, stdin=b"").stdout == b"[]\n"
    broken = text.encode() + b"\xe4"
    error = run("encode", cwd=folder, stdin=broken, code=1).stderr.decode()
    assert f"standard input is not UTF-8 at byte {len(text.encode())}" in error


def test_the_number_of_tokens_is_written_in_place_of_the_ids(folder: Path) -> None:
    tok = bytepair.load(folder / "tokenizer")
    texts = ["Hello, Wörld! 你好", "", "two\nlines"]
    rows = [json.dumps({"text": text}) for text in texts]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "one.txt").write_text(texts[2], encoding="utf-8")
    numbers = [len(tok.encode(text)) for text in texts]

    def printed(*words: str, stdin: bytes = b"") -> list[int]:
        return [int(line) for line in run("encode", *words, cwd=folder, stdin=stdin).stdout.split()]

    assert printed("--count-each", "rows.jsonl", "one.txt") == [*numbers, numbers[2]]
    assert printed("--count", "rows.jsonl", "one.txt") == [sum(numbers) + numbers[2]]
    assert printed("--count", stdin=texts[0].encode()) == numbers[:1]
    assert printed("--count", "--text", texts[0], "--prepend", "<|bos|>") == [numbers[0] + 1]
    lines = [len(tok.encode(line)) for line in texts[2].split("\n")]
    assert printed("--count-each", "--lines", "one.txt") == lines
    assert "contradict" in run("encode", "--count", "--json", cwd=folder, code=2).stderr.decode()


def test_encode_options(folder: Path) -> None:
    tok = bytepair.load(folder / "tokenizer")
    out = run(
        "encode", "--text", "<|bos|>Hi", "--special", "all", "--append", "<|bos|>", cwd=folder
    )
    assert [int(i) for i in out.stdout.split()] == tok.encode(
        "<|bos|>Hi", special="all", append="<|bos|>"
    )
    (folder / "x.txt").write_text("file")
    assert run("encode", "x.txt", "x.txt", cwd=folder).stdout.count(b"\n") == 2


def test_inspect(folder: Path) -> None:
    out = run("inspect", cwd=folder).stdout.decode()
    tok = bytepair.load(folder / "tokenizer")
    for part in (
        "2,000",
        "nanochat",
        "<|bos|>=1991",
        "eos=<|bos|>",
        tok.fingerprint,
        "longest",
        "16.0.0",
    ):
        assert part in out
    view = tok.show("Hello, world", color=False)
    assert run("inspect", "--text", "Hello, world", cwd=folder).stdout.decode() == f"{view}\n"
    assert "|" in view
    rows = dict(line.split(None, 1) for line in out.splitlines() if len(line.split()) > 1)
    assert len(rows["last"].split()) == len(rows["first"].split()) == 12


def test_a_terminal_does_not_obey_the_names_of_special_tokens(tmp_path: Path) -> None:
    ranks = {bytes([b]): b for b in range(256)}
    names = {"\x1b[31mred": 256, "\u202eback": 257}
    bytepair.Tokenizer.from_ranks(ranks, pattern="gpt2", special_tokens=names).save(tmp_path / "t")
    out = run("inspect", "t", cwd=tmp_path).stdout.decode()
    assert "␛[31mred=256 <U+202E>back=257" in out
    assert not {"\x1b", "\u202e"} & set(out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inspect", "nowhere"], "there is no tokenizer at nowhere"),
        (["train", "nowhere.txt"], "no file or folder 'nowhere.txt'; check the path"),
        (["count", "file:///nowhere.txt"], "there is no file at file:///nowhere.txt"),
        (["train", "--vocab-size", "0"], "--vocab-size 0 is too small"),
        (["train", "--vocab-size", "10"], "pass at least 265"),
        (["train", "--vocab-size", "9" * 30], "at most 9223372036854775807"),
        (["decode", "9" * 30], "9" * 30),
        (["train", "--pattern", "("], "not valid at byte"),
        (["encode", "--text", "x", "--prepend", "<nope>"], "not a special token"),
        (["decode", "x1"], "'x1' is not an id"),
        (["decode", "99999"], "id 99999 is not in the vocabulary"),
    ],
)
def test_failures_are_one_line_and_exit_code_1(
    folder: Path, words: list[str], message: str
) -> None:
    where = ["--out", "new"] if words[0] == "train" else []
    error = run(*words, *where, cwd=folder, code=1).stderr.decode()
    assert message in message_of(error[error.index("error: ") :])
    assert "Traceback" not in error


def test_wrong_usage_is_exit_code_2(folder: Path) -> None:
    run("train", "--no-such-option", cwd=folder, code=2)
    run("nonsense", cwd=folder, code=2)
    assert b"did you mean 'encode'?" in run("encod", cwd=folder, code=2).stderr
    for name, value in [("--ties", "x"), ("--threads", "0"), ("--doc-cap", "-1")]:
        run("train", name, value, cwd=folder, code=2)
    run("encode", "--text", "x", "--special", "x", cwd=folder, code=2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1), ("100_000", 100_000), ("1,000", 1000), ("2k", 2000), ("561M", 561_000_000),
        ("1.5B", 1_500_000_000), ("2G", 2_000_000_000), ("1e6", 1_000_000), (" 3T ", 3 * 10**12),
    ],
)  # fmt: skip
def test_numbers_of_options(text: str, expected: int) -> None:
    assert option.number(text) == expected


@pytest.mark.parametrize(
    "text", ["", "0", "0.4", "-1", "x", "1e999", "1e30", "1e", "1KM", "nan", "١", "4096,8192"]
)
def test_what_is_no_number_of_an_option(text: str) -> None:
    with told(click.BadParameter):
        option.number(text)


def test_running_out_of_pairs_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("tiny")
    error = run("train", "a.txt", "--vocab-size", "5000", cwd=tmp_path).stderr.decode()
    assert "no more pairs to merge" in error
    assert bytepair.load(tmp_path / "tokenizer").notes.get("exhausted") == "true"


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_a_broken_pipe_ends_quietly(folder: Path) -> None:
    (folder / "long.txt").write_text("line\n" * 50_000)
    words = [sys.executable, "-m", "bytepair", "encode", "--lines", "long.txt"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=folder, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().strip()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX pipes")
def test_a_table_into_a_broken_pipe_ends_quietly(folder: Path) -> None:
    words = [sys.executable, "-m", "bytepair", "evaluate", "tokenizer", "--against", "none"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=folder, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_the_version() -> None:
    out = run("--version", cwd=Path.cwd()).stdout.decode()
    assert out == f"bytepair {bytepair.__version__}\n"


def test_paths_of_results_are_checked_before_the_work(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    missing, folder, file = tmp_path / "no/out", tmp_path, tmp_path / "file"
    files = {
        ("count", "corpus.txt"): ["-o", "--checkpoint"],
        ("evaluate", "gpt2"): ["--sizes", "--token-bytes"],
    }
    for words, names in files.items():
        for name in names:
            for path, reason in (
                (missing, "does not exist; create it"),
                (folder, "is a folder; pass"),
            ):
                result = CliRunner().invoke(command, [*words, name, str(path)])
                assert result.exit_code == 2, result.output
                assert reason in " ".join(result.output.split())
    for words in (("shard", "corpus.txt"),):
        for path in (file, file / "out"):
            result = CliRunner().invoke(command, [*words, "-o", str(path)])
            assert result.exit_code == 2, result.output
            assert "is a file; pass a folder" in " ".join(result.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_pattern_of_a_rank_file_is_an_option(folder: Path, tmp_path: Path) -> None:
    tok = bytepair.load(folder / "tokenizer")
    file = tmp_path / "ranks.tiktoken"
    plain = bytepair.Tokenizer.from_ranks(tok.mergeable_ranks(), pattern=tok.pattern)
    plain.export(file, lossy=True)
    refused = run("evaluate", str(file), "--against", "none", cwd=tmp_path, code=1)
    assert b"pattern" in refused.stderr
    words = [str(file), "--pattern", tok.pattern]
    run("evaluate", *words, "--against", "none", cwd=tmp_path)
    export = ["--export", "explore.html", "--text", "hello"]
    run("explore", str(file), *export, cwd=tmp_path, code=1)


@pytest.mark.parametrize("ties", option._TIES)
def test_every_rule_of_ties_is_verified(ties: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello hello help world low lower é ü " * 3)
    run("count", "a.txt", cwd=tmp_path)
    run("train", "counts.parquet", "--vocab-size", "280", "--ties", ties, cwd=tmp_path)
    output = run("verify", "tokenizer", "counts.parquet", "--ties", ties, cwd=tmp_path).stdout
    assert b"merges verified" in output
    for other in option._TIES:
        verdict = run_any("verify", "tokenizer", "counts.parquet", "--ties", other, cwd=tmp_path)
        same = bytepair.train(tmp_path / "a.txt", 280, ties=other)
        assert (verdict == 0) == (same.merges() == bytepair.load(tmp_path / "tokenizer").merges())


def run_any(*words: str, cwd: Path) -> int:
    """The exit code of a command."""
    line = [sys.executable, "-m", "bytepair", *words]
    return subprocess.run(line, cwd=cwd, capture_output=True, check=False).returncode


def test_options_mean_the_same_in_all_commands() -> None:
    """An option of one name has one type, one default and one kind, but for those listed here."""
    own = {
        "-o", "--out", "--pattern", "--vocab-size", "--tokenizer", "-t", "--counts",
        "--format", "--special", "--errors", "--max-chars", "--text", "--json", "--rank",
    }  # fmt: skip
    kinds: dict[str, set[tuple[object, ...]]] = {}
    for name in COMMANDS:
        entry = command.get_command(click.Context(command), name)
        assert entry is not None
        for param in entry.params:
            if isinstance(param, click.Option):
                kind = (param.is_flag, param.multiple, repr(param.default))
                for one in param.opts:
                    kinds.setdefault(one, set()).add(kind)
    assert {one for one, forms in kinds.items() if len(forms) > 1} <= own
    flags = {one for one, forms in kinds.items() if len({kind[0] for kind in forms}) > 1}
    assert not flags  # no name is a flag here and takes a value there


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_words_are_coloured_on_a_terminal_only(tmp_path: Path) -> None:
    import pty

    words = [sys.executable, "-m", "bytepair", "count", "nowhere.txt"]
    for extra, shown in (({}, b"\x1b[31m\x1b[1merror:\x1b[0m "), ({"NO_COLOR": "1"}, b"error: ")):
        ours, theirs = pty.openpty()
        env = {**os.environ, "TERM": "xterm", **extra}
        with subprocess.Popen(words, cwd=tmp_path, stderr=theirs, stdout=theirs, env=env) as child:
            os.close(theirs)
            assert os.read(ours, 1000).startswith(shown)
            child.wait(60)
        os.close(ours)
