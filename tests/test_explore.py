"""The requests of the page, and those that are refused; `test_explore_page.py` tests the page."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import explore, reference
from bytepair.evaluate.evaluation import declarations
from bytepair.explore.answers import TEMPLATES, ten_scripts
from messages import told

LONGEST_PRETOKEN_BYTES = 400

TEXTS = ["", "Hello, hello world!", "여러 <|bos|> scripts: مرحبا 🙂", "a\r\n\tb", ten_scripts()]


@pytest.fixture(scope="module")
def answers(trained: bytepair.Tokenizer) -> explore.Answers:
    bare = bytepair.Tokenizer.from_ranks({bytes([b]): b for b in range(256)}, pattern="gpt4")
    return explore.Answers({"trained": trained, "bytes": bare})


# ---------------------------------------------------------------------------- answers


def unpacked(data: bytes) -> list[tuple[list[int], list[int], list[int]]]:
    """The ids of each tokenizer, their lengths, and whether others do not have them."""
    numbers, rows = np.frombuffer(data, "<u4").tolist(), []
    while numbers:
        count = numbers[0]
        parts = [numbers[1 + n * count : 1 + (n + 1) * count] for n in range(3)]
        rows.append((parts[0], parts[1], parts[2]))
        numbers = numbers[1 + 3 * count :]
    return rows


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> explore.Answers:
    """A tokenizer whose normalizer makes 60 letters of an x, and one with a long token."""
    ranks = {bytes([b]): b for b in range(256)}
    folder = tmp_path_factory.mktemp("grows")
    bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4").export(folder / "h", "huggingface")
    path = folder / "h" / "tokenizer.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["normalizer"] = {"type": "Replace", "pattern": {"String": "x"}, "content": "y" * 60}
    path.write_text(json.dumps(values), encoding="utf-8")
    long = bytepair.Tokenizer.from_ranks(ranks | {b"a" * 16_000: 256}, pattern="gpt4")
    return explore.Answers({"grows": bytepair.load(path), "long": long})


@pytest.mark.parametrize(
    ("what", "body", "members"),
    [
        ("compare", b"a" * (5 << 20), {"shown": "1"}),
        ("compare", b"a" * (3 << 20), {"shown": "1,1,1"}),
        ("compare", b"x" * 200_000, {"shown": "0"}),
        ("search", b"a" * 1001, {"t": 1, "kind": "text"}),
        ("search", rb"(?<n>a)\g<n>", {"t": 1, "kind": "regex"}),
        ("steps", b"x" * 8, {"t": 0}),
        ("decode", b"256 " * 300, {"t": 1}),
        ("tokens", json.dumps([[256] * 300, [1] * 300]).encode(), {"t": 1}),
    ],
    ids=range(8),
)
def test_answers_are_bounded(
    large: explore.Answers, what: str, body: bytes, members: dict[str, Any]
) -> None:
    with told(bytepair.BytepairError):
        large.ask(what, body, **members)


def test_a_tokenizer_with_a_very_long_token_is_not_shown() -> None:
    ranks = {bytes([b]): b for b in range(256)} | {b"a" * 20_000: 256}
    with told(bytepair.BytepairError):
        explore.Answers({"": bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")})


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("special", [False, True])
def test_a_split_is_ids_and_lengths(
    answers: explore.Answers, trained: bytepair.Tokenizer, text: str, special: bool
) -> None:
    data = answers.ask("compare", text.encode(), shown="0", special=int(special))
    [(ids, lengths, different)] = unpacked(data)
    assert not any(different)
    assert ids == trained.encode(text, special="all" if special else "text")
    assert lengths == [len(trained.token_bytes(i)) for i in ids]
    assert sum(lengths) == len(text.encode())


@given(st.text())
def test_splits_differ_where_their_spans_do(answers: explore.Answers, text: str) -> None:
    data = text.encode("utf-8", "replace")
    (_, first, here), (_, second, there) = unpacked(answers.ask("compare", data, shown="0,1"))

    def spans(lengths: list[int]) -> list[tuple[int, int]]:
        ends = list(itertools.accumulate(lengths))
        return [(end - length, end) for end, length in zip(ends, lengths, strict=True)]

    assert here == [span not in spans(second) for span in spans(first)]
    assert there == [span not in spans(first) for span in spans(second)]


def test_the_vocabulary_is_all_tokens(
    answers: explore.Answers, trained: bytepair.Tokenizer
) -> None:
    tokens: dict[int, str] = {}
    while len(tokens) < trained.vocab_size:
        members: dict[str, Any] = {"from": len(tokens)}  # a keyword in Python
        part = answers.ask("search", b"", t=0, kind="text", **members)
        assert part["count"] == part["all"] == trained.vocab_size
        tokens |= {one["id"]: one["hex"] for one in part["tokens"]}
    assert tokens == {id: trained.token_bytes(id).hex() for id in range(trained.vocab_size)}


def leaves(node: dict[str, Any]) -> str:
    return "".join(map(leaves, node["parts"])) if "parts" in node else node["hex"]


def test_a_token_tells_how_it_was_built(
    answers: explore.Answers, trained: bytepair.Tokenizer
) -> None:
    for left, right in trained.merges()[::50]:
        token = left + right
        answer = answers.ask("token", t=0, id=trained.token_id(token))
        assert answer["hex"] == token.hex() == leaves(answer["tree"])
        assert [part["hex"] for part in answer["tree"]["parts"]] == [left.hex(), right.hex()]
        children = [a + b for a, b in trained.merges() if token in (a, b)]
        assert answer["children_count"] == len(children)
        assert [c["hex"] for c in answer["children"]] == [c.hex() for c in children[:40]]
        assert answer["rank"] == answer["id"]
    special = answers.ask("token", t=0, id=trained.special_tokens["<|bos|>"])
    assert special["special"]
    assert special["tree"] is special["rank"] is None
    alike = answers.ask("token", t=0, id=trained.token_id(b"the"))["alike"]
    assert b" the".hex() in [one["hex"] for one in alike]
    with pytest.raises(bytepair.errors.UnknownIdError):
        answers.ask("token", t=0, id=trained.vocab_size)


def test_a_token_that_is_too_long_has_no_tree() -> None:
    ranks = {bytes([b]): b for b in range(256)}
    ranks |= {b"a" * n: 254 + n for n in range(2, 3000)}  # a chain as deep as it is long
    answers = explore.Answers({"long": bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")})
    assert answers.ask("token", t=0, id=254 + 2999)["tree"] is None
    assert leaves(answers.ask("token", t=0, id=254 + 400)["tree"]) == "61" * 400


class Step(NamedTuple):
    """The parts of a pretoken after a merge: the index of what it made, and its rank."""

    parts: list[bytes]
    merged: int | None
    rank: int | None


def merge_steps(tok: bytepair.Tokenizer, word: bytes) -> list[Step]:
    return [
        Step([bytes.fromhex(part["hex"]) for part in one["parts"]], one["merged"], one["rank"])
        for one in explore.Answers({"": tok}).ask("steps", word, t=0)["steps"]
    ]


@pytest.mark.parametrize("word", [b"", b"h", b" hello", "안녕".encode(), b"\xff\xfe", b"aaaaaaaaa"])
def test_steps_end_where_the_reference_ends(
    answers: explore.Answers, trained: bytepair.Tokenizer, word: bytes
) -> None:
    steps = merge_steps(trained, word)
    for before, after in itertools.pairwise(steps):
        i = after.merged
        assert i is not None
        merged = before.parts[i] + before.parts[i + 1]
        assert after.parts == [*before.parts[:i], merged, *before.parts[i + 2 :]]
        assert after.rank == trained.token_id(merged)
    # The reference has a shortcut; it changes nothing for tokens that training made.
    ids = reference.encode(word, trained.mergeable_ranks()) if word else []
    assert [trained.token_id(part) for part in steps[-1].parts] == ids
    assert answers.ask("steps", word, t=0)["ids"] == ids


@pytest.mark.parametrize("text", ["1234567", "low 12345 word", "hello, hello!", "a\n\nb  c"])
def test_steps_do_not_cross_the_borders_of_pretokens(text: str) -> None:
    ranks = {bytes([b]): b for b in range(256)}
    for word in (b"12", b"34", b"123", b"67", b"45", b"1234", b"456", b"o 1", b"lo", b", h"):
        ranks[word] = len(ranks)
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="o200k_base")
    steps = merge_steps(tok, text.encode())
    tokens = [tok.token_bytes(id) for id in tok.encode(text)]
    assert steps[-1].parts == tokens
    assert explore.Answers({"one": tok}).ask("steps", text.encode(), t=0)["ids"] == tok.encode(text)


def test_steps_under_the_rule_of_merges() -> None:
    tokens = {bytes([b]): b for b in range(256)} | {b"bc": 256, b"ab": 257, b"abc": 258}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    tok = bytepair.Tokenizer.from_merges(tokens, merges, pattern="gpt4")
    steps = merge_steps(tok, b"abc")
    assert [tokens[p] for p in steps[-1].parts] == reference.encode_merges(b"abc", tokens, merges)
    answers = explore.Answers({"merges": tok})
    assert answers.ask("token", t=0, id=257)["rank"] == 1
    assert answers.ask("token", t=0, id=97)["rank"] is None


def test_steps_of_a_long_pretoken_are_refused(answers: explore.Answers) -> None:
    with told(ValueError):
        answers.ask("steps", b"a" * (LONGEST_PRETOKEN_BYTES + 1), t=0)


@pytest.mark.parametrize("text", TEXTS)
def test_the_pretoken_at_each_byte(
    answers: explore.Answers, trained: bytepair.Tokenizer, text: str
) -> None:
    data = text.encode()
    covered = {}
    for at in range(len(data)):
        answer = answers.ask("pretoken", data, t=0, at=at)
        pretoken = bytes.fromhex(answer["hex"])
        assert data[answer["start"] :].startswith(pretoken)
        assert answer["start"] <= at < answer["start"] + len(pretoken)
        covered[answer["start"]] = pretoken.decode()
    assert list(covered.values()) == bytepair.pretokenize(text, trained)


def test_pretokens_end_at_special_tokens(answers: explore.Answers) -> None:
    text = "one<|bos|>two"
    data = text.encode()
    parts = [answers.ask("pretoken", data, t=0, at=at, special=1) for at in (1, 5, 11)]
    assert [bytes.fromhex(one["hex"]) for one in parts] == [b"one", b"", b"two"]


def test_a_chat_has_ids_and_a_mask(answers: explore.Answers, trained: bytepair.Tokenizer) -> None:
    talk = [{"role": "user", "content": "<b>hi"}, {"role": "assistant", "content": "hello"}]
    ids, mask = trained.render_conversation(talk)
    tokens = answers.ask("chat", json.dumps(talk).encode(), t=0, template="nanochat")["tokens"]
    assert [one["id"] for one in tokens] == ids
    assert [one["trained"] for one in tokens] == mask
    assert tokens[0]["special"]
    with told(bytepair.errors.ConversationError):
        answers.ask("chat", json.dumps(talk).encode(), t=0, template="none")


TALKS: list[Any] = [
    [{"role": "user", "content": "a"}],
    [{"role": "system", "content": " s "}, {"role": "user", "content": "a\n"}],
    [{"role": "user", "content": "<|im_start|> <|bos|>"}, {"role": "assistant", "content": ""}],
    [{"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}],
    [{"role": "user", "content": "x"}, {"role": "assistant", "content": [
        {"type": "text", "text": "so "}, {"type": "python", "text": "1+1"},
        {"type": "python_output", "text": "2"}]}],
    [{"role": "user", "content": "x"}, {"role": "assistant", "content": [
        {"type": "image", "text": "so "}]}],
    [{"role": "assistant", "content": "a"}], [{"role": "system", "content": "a"}],
    [{"role": "user", "content": None}], [{"role": "user", "content": ["a"]}],
    [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}],
    [{"role": 1}], ["a"], [], 5, {"messages": 5}, [{"content": "a"}],
]  # fmt: skip


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_chat_is_rendered_as_python_renders_it(
    trained: bytepair.Tokenizer, template: bytepair.chat.Template, talk: Any
) -> None:
    names = {"<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>"}
    names |= {"<|start_header_id|>", "<|end_header_id|>", *trained.special_tokens}
    special = {name: 3000 + n for n, name in enumerate(sorted(names))}
    ranks = trained.mergeable_ranks()
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4", special_tokens=special)
    answers, body = explore.Answers({"a": tok}), json.dumps(talk).encode()
    try:
        ids, mask = tok.render_conversation(talk, template=template, on_untrained="keep")
    except bytepair.errors.BytepairError:
        with pytest.raises(bytepair.errors.BytepairError):
            answers.ask("chat", body, t=0, template=template.name)
        return
    tokens = answers.ask("chat", body, t=0, template=template.name)["tokens"]
    assert [one["id"] for one in tokens] == ids
    assert [one["trained"] for one in tokens] == mask


def test_the_templates_of_a_tokenizer_come_first() -> None:
    pytest.importorskip("jinja2")
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}"
    )
    tok = bytepair.train(["hi hi"], 260, special_tokens=["<|im_start|>", "<|im_end|>"])
    tok = tok.replace(chat_template=source).replace(chat_template={"tool_use": f"tools! {source}"})
    answers = explore.Answers({"mine": tok})
    about = answers.ask("about")
    assert "user" in about["templates"]["tool_use"]
    (about,) = about["tokenizers"]
    assert about["templates"] == ["default", "tool_use", "chatml"]
    assert about["own"] == ["default", "tool_use"]
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    shown = {
        name: answers.ask("chat", json.dumps(talk).encode(), t=0, template=name)
        for name in about["templates"]
    }
    for name in ("default", "tool_use"):
        ids, mask = tok.render_conversation(talk, template=name)
        assert [one["id"] for one in shown[name]["tokens"]] == ids
        assert [one["trained"] for one in shown[name]["tokens"]] == mask
        assert shown[name]["no_mask"] is None
    assert len(shown["tool_use"]["tokens"]) > len(shown["default"]["tokens"])
    forgets = source.replace("{{ m.content }}", "{{ m.content if loop.last else '-' }}")
    answers = explore.Answers({"mine": tok.replace(chat_template=forgets)})
    longer = json.dumps([*talk, *talk]).encode()
    answer = answers.ask("chat", longer, t=0, template="default")
    assert "does not continue the prompt" in answer["no_mask"]
    assert not any(one["trained"] for one in answer["tokens"])
    with told(bytepair.errors.ConversationError):
        answers.ask("chat", b'[{"content": "x"}]', t=0, template="default")
    for body in (b"[", b"\xff", b"[" * 200_000):
        with told(bytepair.errors.ConversationError):
            answers.ask("chat", body, t=0, template="default")


@pytest.mark.parametrize("own", [True, False])
def test_a_chat_is_limited(own: bool) -> None:
    """Its bytes, its messages and the tokens that a template makes of it."""
    tok = bytepair.train(["hi hi"], 260, special_tokens=["<|im_start|>", "<|im_end|>"])
    source = "{% for m in messages %}{{ m.content }}{% endfor %}"
    answers = explore.Answers({"mine": tok.replace(chat_template=source)})
    user = {"role": "user", "content": "x"}
    for talk in (
        [user | {"content": "x" * (1 << 22)}],
        [user | {"content": "xy" * 40_000}],
        [user, {"role": "assistant", "content": ""}] * 2_049,
    ):
        body = json.dumps(talk).encode()
        with told(bytepair.errors.BytepairError):
            answers.ask("chat", body, t=0, template="default" if own else "chatml")


def test_the_same_text_in_sixty_languages(
    answers: explore.Answers, trained: bytepair.Tokenizer
) -> None:
    costs, bare = (answers.ask("languages", t=t) for t in (0, 1))
    assert [one["code"] for one in costs] == sorted(declarations())
    assert [one["code"] for one in bare] == [one["code"] for one in costs]
    english = next(one for one in costs if one["code"] == "en")
    assert english["tokens"] == len(trained.encode(declarations()["en"]))
    assert all(one["tokens"] == one["bytes"] for one in bare)


def test_about_lists_templates_and_samples(answers: explore.Answers) -> None:
    about = answers.ask("about")
    assert [one["templates"] for one in about["tokenizers"]] == [["nanochat"], []]
    assert len(about["samples"]["ten scripts"].splitlines()) == 10
    assert about["templates"]["nanochat"] == {
        "system": [],
        "user": [],
        "assistant": ["text", "python", "python_output"],
    }
    assert about["templates"]["chatml"]["tool"] == []
    assert list(TEMPLATES) == ["nanochat", "chatml", "llama3"]


# ---------------------------------------------------------------------------- server


def test_a_conversation_of_many_tokens_is_not_shown(answers: explore.Answers) -> None:
    def tokens(count: int) -> int:
        body = json.dumps([[0] * count, [1] * count]).encode()
        return len(answers.ask("tokens", body, t=0)["tokens"])

    assert tokens(1 << 16) == 1 << 16
    with pytest.raises(bytepair.errors.ConversationError, match="65537 tokens"):
        tokens((1 << 16) + 1)


@pytest.fixture(scope="module")
def server(trained: bytepair.Tokenizer) -> Iterator[explore.Server]:
    with explore.Server({"trained": trained}) as running:
        yield running


def ask(
    server: explore.Server, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    response = connection.getresponse()
    answer = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return answer


def test_the_page_and_its_files_are_served(server: explore.Server) -> None:
    status, headers, page = ask(server, "GET", "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    files = re.findall(rb'(?:href|src)="([\w.-]+\.\w+)"', page)
    assert len(files) >= 4
    folder = Path(explore.__file__).parent / "page"
    for file in folder.iterdir():
        status, _, body = ask(server, "GET", f"/{file.name}")
        assert (status, body) == (200, file.read_bytes())


def test_the_page_has_no_remote_or_inline_code() -> None:
    for file in (Path(explore.__file__).parent / "page").iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        text = re.sub(r'<a href="https://bytepair\.github\.io/', "<a", text)  # loads nothing
        assert not re.search(r"https?://|//[a-z]+\.|innerHTML|outerHTML|insertAdjacentHTML", text)
        assert not re.search(r"\beval\(|new Function|document\.write", text), file
        if file.suffix == ".html":
            assert not re.search(r"<script>|<style|\son\w+=|\sstyle=", text)


@pytest.mark.parametrize("path", ["/nothing", "/../server.py", "/%2e%2e/server.py", "//etc/passwd"])
def test_no_other_file_is_served(server: explore.Server, path: str) -> None:
    assert ask(server, "GET", path)[0] == 404


def test_every_answer_says_what_the_page_may_do(server: explore.Server) -> None:
    for path in ("/", "/api/about", "/nothing"):
        headers = ask(server, "GET", path)[1]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200), ("localhost:99", 200), ("LOCALHOST", 200), ("[::1]:8765", 200),
        ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("10.0.0.1", 403), ("", 403),
        ("localhost.evil.example:8765", 403), ("[", 403),
    ],
)  # fmt: skip
def test_only_its_own_name_gets_answers(server: explore.Server, host: str, status: int) -> None:
    assert ask(server, "GET", "/api/about", Host=host)[0] == status


def test_other_pages_get_no_answers(server: explore.Server) -> None:
    own = f"http://127.0.0.1:{server.server_address[1]}"
    split = "/api/compare?shown=0"
    assert ask(server, "POST", split, b"a", Origin=own, Sec_Fetch_Site="same-origin")[0] == 200
    assert ask(server, "POST", split, b"a", Origin="http://evil.example")[0] == 403
    assert ask(server, "POST", split, b"a", Origin="null")[0] == 403
    assert ask(server, "GET", "/api/about", Sec_Fetch_Site="cross-site")[0] == 403
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert ask(server, "GET", "/", None, **followed)[0] == 200  # someone follows a link
    assert ask(server, "POST", split, b"a", **followed)[0] == 403


def test_answers_over_http(server: explore.Server, trained: bytepair.Tokenizer) -> None:
    text = "To be <|bos|>"
    data = ask(server, "POST", "/api/compare?shown=0&special=1", text.encode())[2]
    [(ids, _, _)] = unpacked(data)
    assert ids == trained.encode(text, special="all")
    assert json.loads(ask(server, "GET", "/api/token?id=300")[2])["id"] == 300
    assert len(json.loads(ask(server, "POST", "/api/steps", b" be")[2])["steps"]) >= 2
    pretoken = json.loads(ask(server, "POST", "/api/pretoken?at=3", text.encode())[2])
    assert bytes.fromhex(pretoken["hex"]) == b" be"
    talk = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
    assert ask(server, "POST", "/api/chat?template=nanochat", talk)[0] == 200
    languages = json.loads(ask(server, "GET", "/api/languages?t=0")[2])
    assert languages == server.answers.ask("languages", t=0)
    assert ask(server, "GET", "/api/languages?t=1")[0] == 400
    native = server.answers.ask("file", t=0, format="native")
    assert ask(server, "GET", "/api/file?t=0&format=native")[2] == native
    assert bytepair.Tokenizer.from_bytes(native) == trained


def test_tokenizers_come_and_go(server: explore.Server, trained: bytepair.Tokenizer) -> None:
    file = trained.to_bytes()
    status, _, number = ask(server, "POST", "/api/add?name=second", file)
    assert (status, number) == (200, b"1")
    about = json.loads(ask(server, "GET", "/api/about")[2])
    assert [one["name"] for one in about["tokenizers"]] == ["trained", "second"]
    data = ask(server, "POST", "/api/compare?shown=0,1", b"To be")[2]
    assert unpacked(data)[0] == unpacked(data)[1]
    assert ask(server, "GET", "/api/remove?t=1")[0] == 404  # a link changes nothing
    assert ask(server, "POST", "/api/remove?t=1", b"")[0] == 200
    assert ask(server, "POST", "/api/compare?shown=1", b"To be")[0] == 400
    train = "/api/train?name=mine&size=262&pattern=gpt4"
    number = ask(server, "POST", train, b"low lower lowest")[2]
    learned = json.loads(ask(server, "GET", f"/api/learned?t={number.decode()}")[2])
    assert [one["id"] for one in learned["merges"]] == list(range(256, 256 + learned["all"]))
    assert ask(server, "POST", f"/api/remove?t={number.decode()}", b"")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/token?t=0&id=99999999", None, 400), ("GET", "/api/token?t=7&id=1", None, 400),
        ("GET", "/api/token?t=0&id=x", None, 400), ("GET", "/api/token", None, 400),
        ("GET", "/api/token?t=-1&id=1", None, 400), ("POST", "/api/compare?shown=0", b"\xff", 400),
        ("POST", "/api/chat?template=nanochat", b"[", 400), ("POST", "/api/nothing", b"", 404),
        ("POST", "/api/chat?template=nanochat", b'{"messages": 5}', 400),
        ("POST", "/api/steps", b"a" * 1000, 400), ("GET", "/api/token?id=" + "9" * 30, None, 400),
    ],
)  # fmt: skip
def test_wrong_questions_have_a_reason(
    server: explore.Server, method: str, path: str, body: bytes | None, status: int
) -> None:
    code, _, answer = ask(server, method, path, body)
    assert code == status
    assert json.loads(answer)["error"]


def test_deep_json_is_a_wrong_question(
    server: explore.Server, capfd: pytest.CaptureFixture[str]
) -> None:
    status, _, body = ask(server, "POST", "/api/chat?t=0&template=nanochat", b"[" * 200_000)
    assert (status, capfd.readouterr().err) == (400, "")
    assert b"nested too deeply" in body


def test_a_slow_client_is_cut_off(
    trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bytepair.explore.server.MOST_REQUEST_SECONDS", 0.2)
    with (
        explore.Server({"t": trained}) as server,
        socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=30) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        assert client.recv(1) == b""


def test_further_connections_are_closed(
    trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bytepair.explore.server.MOST_CONNECTIONS", 2)
    with explore.Server({"t": trained}) as server:
        address = ("127.0.0.1", server.server_address[1])
        clients = [socket.create_connection(address, timeout=30) for _ in range(3)]
        assert clients[2].recv(1) == b""
        for client in clients:
            client.close()


def test_a_name_that_is_no_text_is_refused(trained: bytepair.Tokenizer) -> None:
    with told(bytepair.errors.ArgumentError):
        explore.Server({"n\udcff": trained})


def test_too_much_is_refused_before_it_is_read(server: explore.Server) -> None:
    for length, status in ((str(1 << 40), b" 413 "), ("many", b" 411 "), ("-5", b" 411 ")):
        with socket.create_connection(("127.0.0.1", server.server_address[1]), 20) as link:
            request = f"POST /api/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}"
            link.sendall(request.encode() + b"\r\n\r\n")
            assert status in link.recv(100)


def test_an_open_server_answers_only_ip_addresses(
    trained: bytepair.Tokenizer,
) -> None:
    with explore.Server({"trained": trained}, host="0.0.0.0") as open_server:
        assert ask(open_server, "GET", "/", Host="192.168.1.5:8765")[0] == 200
        assert ask(open_server, "GET", "/", Host="evil.example")[0] == 403


def test_there_must_be_a_tokenizer() -> None:
    with told(ValueError):
        explore.Server({})


def test_a_port_that_is_taken(server: explore.Server, trained: bytepair.Tokenizer) -> None:
    port = server.server_address[1]
    with told(OSError, str(port)):
        explore.Server({"trained": trained}, port=port)


def test_the_command_serves_until_it_is_interrupted(
    trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    trained.save(tmp_path / "mine")
    words = [sys.executable, "-u", "-m", "bytepair", "explore", "mine", "--port", "0"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        assert process.stdout.readline() == "Press Ctrl-C to stop.\n"
        connection = http.client.HTTPConnection(url[7:-1], timeout=20)
        connection.request("GET", "/api/about")
        about = json.loads(connection.getresponse().read())
        assert about["tokenizers"][0]["name"] == "mine"
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
