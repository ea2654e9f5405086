"""`drover healthcheck` asks the process of its settings, and says in one line why it is not alive."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drover.cli.main import cli
from drover.spark.files import JobFiles
from drover.spark.heartbeat import Heartbeat


class Answering(BaseHTTPRequestHandler):
    """Answers /livez with the status of its server, to the host `localhost` only, as the page does."""

    status = 200

    def do_GET(self) -> None:
        is_asked = (self.path, self.headers["Host"]) == ("/livez", "localhost")
        self.send_response(self.status if is_asked else 421)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """The port at which something answers."""
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def check(process: str, settings: str, directory: Path) -> Result:
    file = directory / "drover.toml"
    file.write_text(f'[log]\nbootstrap = "kafka:9092"\n{settings}\n', encoding="utf-8")
    return CliRunner().invoke(cli, ["healthcheck", process, "--config", str(file)])


@pytest.mark.parametrize(
    ("process", "section"), [("worker", "worker"), ("zookeeper", "zookeeper"), ("web", "web")], ids=str
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - the server of this test listens on loopback
def test_a_process_that_answers_is_alive(process: str, section: str, host: str, port: int, tmp_path: Path) -> None:
    done = check(process, f'[{section}]\nlisten = "{host}:{port}"', tmp_path)
    assert (done.exit_code, done.stdout) == (0, f"{process}: alive\n")


def test_a_process_that_answers_that_it_is_not_well_is_not_alive(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answering, "status", 503)
    done = check("worker", f'[worker]\nlisten = "127.0.0.1:{port}"', tmp_path)
    assert (done.exit_code, done.stderr) == (1, f"Error: worker: 127.0.0.1:{port} answers with 503\n")


def test_a_process_that_does_not_answer_is_not_alive(port: int, tmp_path: Path) -> None:
    # Nothing listens on the address beside.
    done = check("worker", f'[worker]\nlisten = "127.0.0.2:{port}"', tmp_path)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: worker: no answer from 127.0.0.2:{port}: ")


def test_a_process_that_listens_on_any_port_cannot_be_asked(tmp_path: Path) -> None:
    done = check("worker", '[worker]\nlisten = "127.0.0.1:0"', tmp_path)
    assert done.exit_code == 2
    assert "give it a port" in done.stderr


def test_the_spark_job_is_alive_while_its_heart_beats(tmp_path: Path) -> None:
    settings = f'[spark]\ndirectory = "{tmp_path}"'
    silent = check("spark", settings, tmp_path)
    assert (silent.exit_code, silent.stderr) == (1, f"Error: spark: no sign of life in {tmp_path}\n")
    Heartbeat(JobFiles(tmp_path).alive).beat()
    alive = check("spark", settings, tmp_path)
    assert (alive.exit_code, alive.stdout) == (0, "spark: alive\n")
