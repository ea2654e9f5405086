"""Whether anybody listens at the addresses of a Kafka: soon said to a person, whose client would try for long."""

import asyncio
import contextlib
import socket

from drover.errors import ClusterUnavailableError
from drover.reasons import reason_of
from drover.time_limits import time_limit

CONNECT_S = 2.0


async def check_reachable(bootstrap: str) -> None:
    """Connect to each of the bootstrap servers at the same time; one of them is enough.

    Raises `ClusterUnavailableError`, with the reason for each, if none accepts a connection within two seconds.
    """
    addresses = [address.strip() for address in bootstrap.split(",")]
    problems = await asyncio.gather(*map(_problem, addresses))
    if all(problems):
        named = "; ".join(f"{address}: {problem}" for address, problem in zip(addresses, problems, strict=True))
        raise ClusterUnavailableError(
            f"no bootstrap server can be reached ({named}): check the addresses, and that the cluster runs"
        )


async def _problem(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        async with time_limit(CONNECT_S):
            _, writer = await asyncio.open_connection(host, int(port))
    except TimeoutError:
        return f"no answer within {CONNECT_S:g} s"
    except socket.gaierror:
        return f"the host {host} is unknown"
    except OSError as error:
        return reason_of(error)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return None
