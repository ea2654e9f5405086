"""OAUTHBEARER on a real Kafka that checks signature, issuer and audience: the log and a managed cluster, each way."""

import json
import sys
from pathlib import Path

import pytest

from drover.cluster.kafka import KafkaDriver
from drover.errors import ClusterAccessError, LogAccessError
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.settings.sources import load_settings
from drover.testing.commands import PythonCommands
from tests.logins.conftest import OAuthCluster

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.timeout(600)]

SECTION = "clusters.default.security"


def of_file(oauth: OAuthCluster, directory: Path, token: str) -> dict[str, str]:
    file = directory / "token"
    file.write_text(f"{token}\n")
    return {"sasl_oauth_token_file": json.dumps(str(file))}


async def drover(config: Path, *arguments: str) -> tuple[int, str, str]:
    environment = {"DROVER_CONFIG": str(config), "NO_COLOR": "1", "COLUMNS": "200"}
    done = await PythonCommands().run(arguments, environment, "")
    return done.code, done.output, done.errors


@pytest.mark.parametrize("way", ["endpoint", "file", "command"])
async def test_the_log_and_the_cluster_take_the_token(way: str, oauth: OAuthCluster, tmp_path: Path) -> None:
    security = oauth.of_endpoint()
    if way == "file":
        security = of_file(oauth, tmp_path, oauth.endpoint.token("drover"))
    if way == "command":
        program = f"print({oauth.endpoint.token('drover')!r})"
        security = {"sasl_oauth_token_command": json.dumps([sys.executable, "-c", program])}
    config = oauth.settings_file(tmp_path / "drover.toml", security)
    code, output, errors = await drover(config, "log", "init")
    assert code == 0, errors
    code, output, errors = await drover(config, "describe", "-o", "json")
    assert code == 0, errors
    assert json.loads(output)["version"] == 1
    code, output, errors = await drover(config, "status", "-o", "json")
    assert code == 0, errors


async def test_kafka_s_own_properties_do_the_same(oauth: OAuthCluster, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.login.callback.handler.class="
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={oauth.endpoint.url}/token\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \\\n"
        '    clientId="drover" clientSecret="hunter2";\n'
    )
    flags = ("--bootstrap-server", oauth.bootstrap, "--command-config", str(tmp_path / "client.properties"))
    allowed = {"DROVER_CLUSTERS__DEFAULT__SECURITY__ALLOW_PLAINTEXT_SASL": "true"}
    done = await PythonCommands().run(("log", "init", *flags), allowed, "")
    assert done.code == 0, done.errors
    done = await PythonCommands().run(("describe", "-o", "json", *flags), allowed, "")
    assert json.loads(done.output)["version"] == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("issuer", "refuses the token: check its issuer"),
        ("secret", "answers 401: invalid_client, who is this?"),
        ("file", "sasl_oauth_token_file: the file"),
    ],
)
async def test_what_is_wrong_is_one_clear_sentence(wrong: str, said: str, oauth: OAuthCluster, tmp_path: Path) -> None:
    security = {
        "issuer": of_file(oauth, tmp_path, oauth.endpoint.token("drover")[:-8] + "AAAAAAAA"),
        "secret": {**oauth.of_endpoint(), "sasl_oauth_client_secret": '"another"'},
        "file": {"sasl_oauth_token_file": json.dumps(str(tmp_path / "gone"))},
    }[wrong]
    config = oauth.settings_file(tmp_path / "drover.toml", security)
    for arguments in (("log", "check"), ("status",)):
        code, _output, errors = await drover(config, *arguments)
        assert code in {1, 2}, errors
        assert len(errors.strip().splitlines()) == 1, errors
        assert "hunter2" not in errors
        assert "another" not in errors
    assert said in errors


async def test_a_token_that_is_renewed_is_shown_by_the_next_connection(oauth: OAuthCluster, tmp_path: Path) -> None:
    expired = oauth.endpoint.token("drover", life_s=-3600)
    config = oauth.settings_file(tmp_path / "drover.toml", of_file(oauth, tmp_path, expired))
    settings = load_settings(config)
    connection: LogConnection = settings.log.connection()
    with pytest.raises(LogAccessError, match="refuses the token"):
        await LogReader(connection).__aenter__()
    driver = KafkaDriver("default", oauth.bootstrap, settings.clusters["default"].security.client_options(SECTION))
    try:
        with pytest.raises(ClusterAccessError, match="refuses the token"):
            await driver.identify()
        (tmp_path / "token").write_text(oauth.endpoint.token("drover"))
        assert len((await driver.identify()).racks) == 3
        async with LogReader(connection) as reader:
            assert (await reader.partition_counts(("no-such-topic",)))["no-such-topic"] == 0
    finally:
        await driver.close()
