"""How long 50 clients wait for a web service that encodes their prompts: half, 99 % and 99.9 %.

    python benchmarks/server.py CORPUS --rank-file qwen3.tiktoken --pattern qwen2

The services are FastAPI on uvicorn, each in a process of its own, and take turns: in a round each
gets the same 500 prompts, so that a machine that is slow for a while is slow for all of them. Each
client sends one request after another. Of 100 prompts, 90 have 1,000 characters, 9 have 10,000 and
one has 100,000; none comes twice if the corpus is large enough. In `loop`, the event loop itself
encodes. In `thread` it leaves that to threads, as FastAPI does with functions without `async`.
`framework` is the service without a tokenizer. The first round is not timed; before it, the ids are
compared. On a busy machine, compare the processor's time.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import peers
import runs

Encode = Callable[[str], Any]
Body = dict[str, str]
#: Milliseconds of each service by its name: percentiles, and what a request took of the processor.
Figures = dict[str, dict[str, float]]

CLIENTS = 50
#: Requests of a round.
REQUESTS = 500
#: Characters of a prompt, and how many of 100 prompts have as many.
LENGTHS = {1_000: 90, 10_000: 9, 100_000: 1}
PERCENTILES = {"p50": 50, "p99": 99, "p99.9": 99.9}
PATHS = ["loop", "thread"]
#: What encodes a prompt.
ENCODERS: dict[str, Callable[[peers.Vocabulary], Encode]] = {
    "bytepair": lambda v: peers.PEERS["bytepair"](v).one,
    "wrapper": lambda v: model("bytepair", v),
    "tokenizers": lambda v: model("tokenizers", v),
    "fastokens": lambda v: model("fastokens", v),
    "framework": lambda v: lambda text: [],
}


def model(name: str, v: peers.Vocabulary) -> Encode:
    """`AutoTokenizer` on a library."""
    auto = peers.MODELS[name](v)
    return lambda text: auto(text).input_ids


def application(name: str, vocabulary: peers.Vocabulary) -> Any:
    """A service that answers with the number of ids, or with ids, or with the time it has used."""
    fastapi: Any = importlib.import_module("fastapi")
    app, encode = fastapi.FastAPI(), ENCODERS[name](vocabulary)

    async def ids(body: Body) -> list[int]:
        return list(encode(body["text"]))

    async def loop(body: Body) -> int:
        return len(encode(body["text"]))

    def thread(body: Body) -> int:
        return len(encode(body["text"]))

    async def seconds() -> float:
        return time.process_time()

    routes: dict[str, Callable[..., Any]] = {"ids": ids, "loop": loop, "thread": thread}
    app.post("/seconds")(seconds)
    for path, function in routes.items():
        app.post(f"/{path}")(function)
    return app


@contextmanager
def service(name: str, folder: Path) -> Iterator[int]:
    """Start a service on a free port, and stop it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    words = runs.again("--worker", name, "--port", str(port), "--files", str(folder))
    with subprocess.Popen([sys.executable, *words]) as process:
        try:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            else:
                sys.exit(f"the service of {name} has not started; --peers leaves it out")
            yield port
        finally:
            process.terminate()


def prompts(text: str, count: int) -> list[str]:
    """Prompts of all lengths in a random order; the text is read again if it is too short."""
    lengths = [length for length, share in LENGTHS.items() for _ in range(share)]
    order = (lengths * (count // len(lengths) + 1))[:count]
    random.Random(0).shuffle(order)
    texts, at = [], 0
    for length in order:
        if at + length > len(text):
            at = 0
        texts.append(text[at : at + length])
        at += length
    return texts


async def send(port: int, path: str, texts: list[str]) -> list[tuple[float, bytes]]:
    """Send one request after another; the milliseconds and the answer of each."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    answers = []
    for text in texts:
        body = json.dumps({"text": text}).encode()
        head = f"POST /{path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        message = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        started = time.perf_counter()
        writer.write(message)
        start = await reader.readuntil(b"\r\n\r\n")
        length = re.match(rb"(?is)HTTP/1.1 200.*content-length: (\d+)", start)
        assert length is not None, start
        answer = await reader.readexactly(int(length[1]))
        answers.append((1e3 * (time.perf_counter() - started), answer))
    writer.close()
    return answers


async def clients(port: int, path: str, texts: list[str]) -> list[tuple[float, bytes]]:
    """All clients at once; they share the prompts."""
    parts = (send(port, path, texts[number::CLIENTS]) for number in range(CLIENTS))
    return [answer for answers in await asyncio.gather(*parts) for answer in answers]


def measure(path: str, names: list[str], folder: Path, texts: list[str]) -> Figures:
    """The figures of all rounds but the first, with new services."""
    times: dict[str, list[float]] = {name: [] for name in names}
    used: dict[str, float] = {}
    with ExitStack() as stack:
        ports = {name: stack.enter_context(service(name, folder)) for name in names}
        compare(ports, texts[:REQUESTS])
        for number, at in enumerate(range(0, len(texts), REQUESTS)):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                answers = asyncio.run(clients(ports[name], path, texts[at : at + REQUESTS]))
                if number:
                    times[name] += [milliseconds for milliseconds, _ in answers]
                else:
                    used[name] = processor_ms(ports[name])
        used = {name: processor_ms(port) - used[name] for name, port in ports.items()}
    return {
        name: {key: float(np.percentile(every, at)) for key, at in PERCENTILES.items()}
        | {"processor": used[name] / len(every)}
        for name, every in times.items()
    }


def processor_ms(port: int) -> float:
    """The time that a service has used of the processors, on all threads."""
    ((_, answer),) = asyncio.run(send(port, "seconds", [""]))
    return 1e3 * float(answer)


def compare(ports: dict[str, int], texts: list[str]) -> None:
    """Leave if the ids of two services differ."""
    answers = {
        name: [ids for _, ids in asyncio.run(send(port, "ids", texts))]
        for name, port in ports.items()
        if name != "framework"
    }
    if any(ids != answers["bytepair"] for ids in answers.values()):
        sys.exit("the ids are not equal; nothing else matters")


def main() -> None:
    parser = runs.parser(__doc__, ENCODERS, rounds=12)
    parser.add_argument("source", nargs="?", default="")
    runs.add_vocabulary(parser)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        uvicorn: Any = importlib.import_module("uvicorn")
        vocabulary = peers.Vocabulary(args.files, args.rank_file, args.pattern)
        uvicorn.run(application(args.worker, vocabulary), port=args.port, log_level="warning")
        return
    texts = prompts("\n".join(runs.texts(args.source, 30)), (args.rounds + 1) * REQUESTS)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        peers.Vocabulary(Path(folder), args.rank_file, args.pattern).write()
        for path in PATHS:
            results[path] = measure(path, args.peers, Path(folder), texts)
            print(f"\n{path}, milliseconds:\n")
            runs.show({name: [row] for name, row in results[path].items()})
    runs.record(args.record, results)


if __name__ == "__main__":
    main()
