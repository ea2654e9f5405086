"""One cluster for all tests of this folder: brokers with a listener for bearer tokens, and one for Kerberos tickets."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from drover.local import LocalCluster, local_cluster
from drover.local.layout import HOST, BrokerSpec
from drover.local.ports import HIGHEST_PORT, is_free
from drover.testing.shared_process import SharedProcess
from tests.settings.endpoint import Endpoint, token_endpoint

BROKERS = (1, 2, 3)
_OAUTH = "org.apache.kafka.common.security.oauthbearer"


@dataclass
class OAuthCluster:
    """The cluster, the endpoint whose tokens it takes, and the brokers' listener for them."""

    local: LocalCluster
    endpoint: Endpoint
    bootstrap: str

    def of_endpoint(self) -> dict[str, str]:
        """Return the settings of a client that gets its tokens from the endpoint."""
        return {
            "sasl_oauth_token_endpoint": f'"{self.endpoint.url}/token"',
            "sasl_oauth_client_id": '"drover"',
            "sasl_oauth_client_secret": '"hunter2"',
        }

    def settings_file(self, file: Path, security: Mapping[str, str]) -> Path:
        """Write settings in which this cluster is managed and holds the log."""
        lines = [
            "[clusters.default]",
            f'bootstrap = "{self.bootstrap}"',
            "[clusters.default.security]",
            'security_protocol = "SASL_PLAINTEXT"',
            "allow_plaintext_sasl = true",
            'sasl_mechanism = "OAUTHBEARER"',
            *(f"{name} = {value}" for name, value in security.items()),
            "[worker]",
            "allow_drover_topics = true",
            "session_timeout_ms = 3000",
        ]
        file.write_text("\n".join(lines) + "\n")
        return file


@pytest.fixture(scope="package")
def endpoint() -> Iterator[Endpoint]:
    with token_endpoint() as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def oauth(endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OAuthCluster]:
    free = (port for port in range(HIGHEST_PORT + 100, HIGHEST_PORT + 700) if is_free(port))
    ports = {broker: next(free) for broker in BROKERS}

    def listeners(broker: BrokerSpec) -> str:
        listed = f"PLAINTEXT://{HOST}:{broker.port},OAUTH://{HOST}:{ports[broker.id]}"
        own = "listener.name.oauth.oauthbearer.sasl"
        return (
            f"listeners={listed}\nadvertised.listeners={listed}\ninter.broker.listener.name=PLAINTEXT\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OAUTH:SASL_PLAINTEXT\n"
            "listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER\n"
            f"{own}.jaas.config={_OAUTH}.OAuthBearerLoginModule required;\n"
            f"{own}.server.callback.handler.class={_OAUTH}.OAuthBearerValidatorCallbackHandler\n"
            f"sasl.oauthbearer.jwks.endpoint.url={endpoint.url}/jwks\n"
            "sasl.oauthbearer.expected.audience=kafka\nsasl.oauthbearer.expected.issuer=tests\n"
        )

    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # Kafka 4 asks nobody who is not named here. Java takes further arguments from this variable.
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={endpoint.url}/jwks"
            patch.setenv("JDK_JAVA_OPTIONS", f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {allowed}".strip())
            local = await stack.enter_async_context(
                local_cluster(
                    tmp_path_factory.mktemp("oauth"),
                    len(BROKERS),
                    start_nodes=SharedProcess(),
                    more_settings=listeners,
                )
            )
        yield OAuthCluster(local, endpoint, ",".join(f"{HOST}:{port}" for port in ports.values()))
