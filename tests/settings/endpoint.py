"""A token endpoint on this machine, which gives tokens that a Kafka can check, or whatever a test wants."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

KEY_ID = "of-this-test"
HOUR_S = 3600


@cache
def signing_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Endpoint:
    """What it was asked, and what it answers; `/jwks` has the key of its tokens."""

    client: tuple[str, str] = ("drover", "hunter2")
    life_s: int = HOUR_S
    asked: list[dict[str, Any]] = field(default_factory=list)
    issued: list[str] = field(default_factory=list)
    # An answer instead of a token: status, content and further headers.
    answer: tuple[int, bytes, dict[str, str]] | None = None
    url: str = ""

    def token(self, subject: str, life_s: int | None = None) -> str:
        """Sign a JWT as an identity provider does."""
        now_s = int(time.time())
        claims = {
            "sub": subject,
            "iss": "tests",
            "aud": "kafka",
            "iat": now_s,
            "exp": now_s + (self.life_s if life_s is None else life_s),
            "jti": str(len(self.issued)),
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        body = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
        signature = signing_key().sign(body.encode(), padding.PKCS1v15(), hashes.SHA256())
        self.issued.append(f"{body}.{encoded(signature)}")
        return self.issued[-1]

    def keys(self) -> dict[str, Any]:
        numbers = signing_key().public_key().public_numbers()
        return {
            "keys": [
                {
                    "kty": "RSA",
                    "use": "sig",
                    "alg": "RS256",
                    "kid": KEY_ID,
                    "n": encoded(numbers.n.to_bytes(256, "big")),
                    "e": encoded(numbers.e.to_bytes(3, "big")),
                }
            ]
        }

    def grant(self, header: str, form: str) -> tuple[int, bytes, dict[str, str]]:
        """Answer a request of a client."""
        self.asked.append({"header": header, "form": {name: value[0] for name, value in parse_qs(form).items()}})
        if self.answer is not None:
            return self.answer
        if base64.b64decode(header.removeprefix("Basic ")).decode() != ":".join(self.client):
            return 401, json.dumps({"error": "invalid_client", "error_description": "who is this?"}).encode(), {}
        granted = {"access_token": self.token(self.client[0]), "expires_in": self.life_s, "token_type": "Bearer"}
        return 200, json.dumps(granted).encode(), {}


@contextmanager
def token_endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.reply(*endpoint.grant(self.headers.get("Authorization", ""), form))

        def do_GET(self) -> None:
            self.reply(200, json.dumps(endpoint.keys()).encode(), {})

        def reply(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            serving.join()
