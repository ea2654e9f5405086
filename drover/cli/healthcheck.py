"""`drover healthcheck`: the health check of a container, in which one process of Drover runs."""

import http.client
import time

import click

from drover.cli.exits import ExitCode, Failure
from drover.cli.help import drover_command
from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import say
from drover.cli.spark import directory_of
from drover.errors import ConfigurationError
from drover.settings.settings import Settings
from drover.spark.files import JobFiles
from drover.spark.heartbeat import state_of_job

ANSWERS_WITHIN_S = 2.0
# Where a process that listens on every address is reached from the same machine.
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - it is looked up here, not listened on


@drover_command(example="drover healthcheck worker")
@click.argument("process", type=click.Choice(("worker", "zookeeper", "web", "spark")))
@settings_options
@pass_invocation
def healthcheck(invocation: Invocation, process: str) -> None:
    """Say whether the process of these settings on this machine is alive; exit code 1 if it is not.

    The worker, the projection and the page are asked for /livez at the address at which they listen. The Spark job
    gives a sign of life in its directory.
    """
    settings = invocation.settings()
    if process == "spark":
        answer = _answer_of_job(settings)
    else:
        addresses = {
            "worker": settings.worker.address,
            "zookeeper": settings.zookeeper.address,
            "web": settings.web.address,
        }
        answer = _answer_of(*addresses[process])
    if answer is not None:
        raise Failure(f"{process}: {answer}", ExitCode.FAILED)
    say(f"{process}: alive")


def _answer_of_job(settings: Settings) -> str | None:
    """Return what is wrong with the Spark job; None if it is alive."""
    directory = directory_of(settings.spark, None)
    is_alive = state_of_job(JobFiles(directory).alive, time.time_ns() // 1_000_000) is not None
    return None if is_alive else f"no sign of life in {directory}"


def _answer_of(host: str, port: int) -> str | None:
    """Return what is wrong with what listens there; None if it is alive."""
    if port == 0:
        raise ConfigurationError("it listens on any free port, as its settings say: give it a port to be asked at")
    connection = http.client.HTTPConnection(EVERY_ADDRESS.get(host, host), port, timeout=ANSWERS_WITHIN_S)
    try:
        # The page answers for its own names only, and `localhost` is one of them.
        connection.request("GET", "/livez", headers={"Host": "localhost"})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"no answer from {host}:{port}: {error}"
    finally:
        connection.close()
    return None if status == http.HTTPStatus.OK else f"{host}:{port} answers with {status}"
