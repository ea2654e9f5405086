"""A proxy that accepts AWS_MSK_IAM logins, as Amazon MSK does, records them, and forwards other requests to a broker.

Only Amazon can check what AWS has signed. The broker behind the proxy is a real one.
"""

import asyncio
import json
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

HANDSHAKE, AUTHENTICATE = 17, 36
BEARER = re.compile(rb"auth=Bearer ([^\x01]+)\x01")
SIGNED = re.compile(rb"\{.*\}")
_SIZE, _HEAD = struct.Struct(">i"), struct.Struct(">hhi")
_ACCEPTED = json.dumps({"version": "2020_10_22", "request-id": "of this test"}).encode()


class IAMGate:
    """A proxy for one broker; it records `tokens` of OAUTHBEARER and signed `requests` of AWS_MSK_IAM clients."""

    def __init__(self, host: str, port: int, broker_port: int) -> None:
        self._host, self._port, self._broker_port = host, port, broker_port
        self.tokens: list[str] = []
        self.requests: list[dict[str, str]] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen for the length of a block."""
        server = await asyncio.start_server(self._serve, self._host, self._port)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection(self._host, self._broker_port)
        back = asyncio.create_task(_copy(answers, writer))
        try:
            while True:
                size = await reader.readexactly(_SIZE.size)
                content = await reader.readexactly(*_SIZE.unpack(size))
                answer = self._answer(content)
                if answer is None:
                    requests.write(size + content)
                else:
                    writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            back.cancel()
            requests.close()
            writer.close()

    def _answer(self, content: bytes) -> bytes | None:
        key, version, correlation = _HEAD.unpack_from(content)
        if key == HANDSHAKE:
            answer: Any = SaslHandshakeResponse(error_code=0, mechanisms=["AWS_MSK_IAM", "OAUTHBEARER"])
        elif key == AUTHENTICATE:
            tokens = [token.decode() for token in BEARER.findall(content)]
            signed = [] if tokens else [json.loads(text) for text in SIGNED.findall(content)]
            self.tokens += tokens
            self.requests += signed
            accepted = b"" if tokens else _ACCEPTED
            answer = SaslAuthenticateResponse(
                error_code=0, error_message=None, auth_bytes=accepted, session_lifetime_ms=0
            )
        else:
            return None
        answer.API_VERSION = version
        answer.with_header(correlation_id=correlation)
        return bytes(answer.encode(header=True, framed=True))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while content := await source.read(1 << 16):
        target.write(content)
    target.close()
