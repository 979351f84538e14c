"""How long 50 clients wait for answers of `fastapi_app.py`, also with a long text among them.

    pip install bytepair fastapi uvicorn httpx
    python fastapi_latency.py      # in this folder

The service is a process of its own. Each client sends one request after another. Then a further
client sends texts of 5 million characters all the time, which must not delay the others.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx

CLIENTS = 50
REQUESTS = 40
SHORT = "The quick brown fox jumps over the lazy dog. " * 20
LONG = SHORT * 5600


@asynccontextmanager
async def service() -> AsyncIterator[httpx.AsyncClient]:
    """Start the service on a free port of this machine, and stop it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "uvicorn", "fastapi_app:app", "--port", str(port), "--log-level", "warning"]
    with subprocess.Popen([sys.executable, *words], cwd=Path(__file__).parent) as process:
        try:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            base = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=base, limits=limits, timeout=60) as client:
                for _ in range(300):
                    with suppress(httpx.TransportError):
                        await client.post("/count", json={"text": "ready"})
                        break
                    await asyncio.sleep(0.1)
                yield client
        finally:
            process.terminate()


async def seconds(client: httpx.AsyncClient, path: str, body: dict[str, object]) -> list[float]:
    """The time of each of the requests of one client."""
    found = []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        answer = await client.post(path, json=body)
        answer.raise_for_status()
        found.append(time.perf_counter() - start)
    return found


async def measure(client: httpx.AsyncClient, path: str, **more: object) -> str:
    """The median and the 99th percentile for all clients at once, and requests per second."""
    start = time.perf_counter()
    body = {"text": SHORT, **more}
    lists = await asyncio.gather(*(seconds(client, path, body) for _ in range(CLIENTS)))
    times = [1000 * one for some in lists for one in some]
    rate = len(times) / (time.perf_counter() - start)
    high = statistics.quantiles(times, n=100)[98]
    return f"{statistics.median(times):6.1f} ms  {high:6.1f} ms  {rate:6.0f} / s"


async def long_texts(client: httpx.AsyncClient) -> None:
    """Send long texts until cancelled."""
    while True:
        (await client.post("/count", json={"text": LONG})).raise_for_status()


async def main() -> None:
    """Print a table."""
    async with service() as client:
        print("request                      median       99 %       rate")
        print("/count, an empty text     ", await measure(client, "/count", text=""))
        print("/count                    ", await measure(client, "/count"))
        print("/truncate                 ", await measure(client, "/truncate", max_tokens=50))
        print("/stream                   ", await measure(client, "/stream"))
        busy = asyncio.create_task(long_texts(client))
        print("/count, with a long text  ", await measure(client, "/count"))
        busy.cancel()
        with suppress(asyncio.CancelledError):
            await busy


if __name__ == "__main__":
    asyncio.run(main())
