"""A Maven repository on loopback that misbehaves on demand."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Repository:
    """What the server serves and what it saw; faults are set per path."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut_after_bytes: dict[str, int] = {}
        self.failures: Counter[str] = Counter()
        self.requests: list[tuple[str, str | None]] = []
        self.together = threading.Barrier(1)
        self.authorizations: list[str | None] = []
        self.address = ""

    def requested(self, path: str) -> list[str | None]:
        """The Range headers of the requests for a path, in order."""
        return [header for requested, header in self.requests if requested == path]


@contextmanager
def serve(repository: Repository) -> Iterator[None]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            header = self.headers.get("Range")
            repository.requests.append((path, header))
            repository.authorizations.append(self.headers.get("Authorization"))
            repository.together.wait(timeout=10)
            if repository.failures[path]:
                repository.failures[path] -= 1
                self.send_error(503)
                return
            content = repository.files.get(path)
            if content is None:
                self.send_error(404)
                return
            start = int(header.removeprefix("bytes=").rstrip("-")) if header else 0
            self.send_response(206 if header else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            cut = repository.cut_after_bytes.pop(path, None)
            self.wfile.write(content[start:] if cut is None else content[start : start + cut])

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    repository.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
