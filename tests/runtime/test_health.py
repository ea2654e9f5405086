"""The health server as an HTTP client sees it."""

import asyncio
import json
from contextlib import suppress

import psutil
import pytest
import structlog

from drover.errors import ConfigurationError
from drover.local import wait_until
from drover.service import health
from drover.service.health import Check, HealthServer
from drover.service.metrics import Metrics

MEMORY_BYTES = 64 * 1024 * 1024


async def ask(port: int, request: str) -> tuple[str, str]:
    """Send a request and return head and body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    await writer.drain()
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return head, body


async def get(port: int, path: str) -> tuple[str, str]:
    return await ask(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")


def server(ready: list[Check]) -> HealthServer:
    return HealthServer("127.0.0.1", 0, live=lambda: [Check("loop", ok=True)], ready=lambda: ready, metrics=Metrics())


async def test_readyz_is_503_until_every_check_holds() -> None:
    checks = [Check("assigned", ok=False, detail="no shards yet")]
    async with server(checks) as serving:
        head, body = await get(serving.port, "/readyz")
        assert head.startswith("HTTP/1.1 503 ")
        assert json.loads(body) == {
            "status": "failing",
            "checks": [{"name": "assigned", "ok": False, "detail": "no shards yet"}],
        }
        checks[:] = [Check("assigned", ok=True, detail="3 shards")]
        head, body = await get(serving.port, "/readyz?verbose")
        assert head.startswith("HTTP/1.1 200 ")
        assert json.loads(body)["status"] == "ok"


async def test_livez_and_metrics_are_served() -> None:
    async with server([]) as serving:
        assert (await get(serving.port, "/livez"))[0].startswith("HTTP/1.1 200 ")
        head, body = await get(serving.port, "/metrics")
        assert "text/plain" in head
        assert "drover_shards_owned 0.0" in body


async def test_other_paths_and_methods_are_refused() -> None:
    async with server([]) as serving:
        assert " 404 " in (await get(serving.port, "/"))[0]
        assert " 405 " in (await ask(serving.port, "POST /livez HTTP/1.1\r\nHost: x\r\n\r\n"))[0]
        head, body = await ask(serving.port, "HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert " 200 " in head
        assert body == ""


@pytest.mark.parametrize("nonsense", ["\x16\x03\x01 no HTTP\r\n\r\n", f"GET /{'x' * 10_000} HTTP/1.1\r\n\r\n"])
async def test_nonsense_is_refused_and_does_not_stop_the_server(nonsense: str) -> None:
    async with server([]) as serving:
        assert " 400 " in (await ask(serving.port, nonsense))[0]
        assert (await get(serving.port, "/livez"))[0].startswith("HTTP/1.1 200 ")


async def test_an_address_in_use_is_named() -> None:
    async with server([]) as serving:
        second = HealthServer("127.0.0.1", serving.port, live=list, ready=list, metrics=Metrics())
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{serving.port}"):
            await second.__aenter__()


async def test_a_probe_is_answered_while_silent_clients_hold_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(health, "CONNECTION_TIMEOUT_S", 600.0)
    async with server([]) as serving:
        silent = [await asyncio.open_connection("127.0.0.1", serving.port) for _ in range(20)]
        for _ in range(3):
            assert (await get(serving.port, "/livez"))[0].startswith("HTTP/1.1 200 ")
        for _, writer in silent:
            writer.close()
            with suppress(ConnectionResetError):
                await writer.wait_closed()


async def test_a_thousand_connections_that_say_little_keep_no_probe_waiting_and_take_little_memory() -> None:
    beginnings = (
        b"",
        b"GET /livez HTTP/1.1\r\nHo",
        b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n" + bytes(32 * 1024),
    )
    async with server([]) as serving:
        before = psutil.Process().memory_info().rss
        writers = []
        for number in range(1000):
            _, writer = await asyncio.open_connection("127.0.0.1", serving.port)
            writer.write(beginnings[number % len(beginnings)])
            writers.append(writer)
        for _ in range(3):
            assert (await get(serving.port, "/livez"))[0].startswith("HTTP/1.1 200 ")
        assert psutil.Process().memory_info().rss - before < MEMORY_BYTES
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def test_a_client_that_sends_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CONNECTION_TIMEOUT_S", 0.1)
    async with server([]) as serving:
        for beginning in (b"", b"GET /livez HTTP/1.1\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
            writer.write(beginning)
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()


async def test_a_client_that_does_not_read_its_answer_keeps_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough of them locked out everybody else for good, the probes that keep a worker alive among them."""
    monkeypatch.setattr(health, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(health, "CONNECTION_TIMEOUT_S", 0.3)
    monkeypatch.setattr(Metrics, "render", lambda _: bytes(32 * 1024 * 1024))
    async with server([]) as serving:
        # A reader of asyncio's stops reading from the socket soon when nobody takes what it has.
        silent = [await asyncio.open_connection("127.0.0.1", serving.port) for _ in range(2)]
        for _, writer in silent:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")

        async def is_served() -> bool:
            return (await get(serving.port, "/livez"))[0].startswith("HTTP/1.1 200 ")

        await wait_until(is_served, what="the silent clients have lost their places")
        for _, writer in silent:
            writer.close()


@pytest.mark.parametrize(("host", "is_told"), [("127.0.0.1", False), ("::1", False), ("0.0.0.0", True)])  # noqa: S104 - meant
async def test_listening_beyond_this_machine_is_announced(host: str, is_told: bool) -> None:
    with structlog.testing.capture_logs() as said:
        async with HealthServer(host, 0, live=lambda: (), ready=lambda: (), metrics=Metrics()):
            pass
    assert bool(said) is is_told
