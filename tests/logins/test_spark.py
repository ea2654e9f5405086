"""Spark's Kafka client gets tokens by itself, from the same endpoint and from the same file."""

import json
from pathlib import Path

import pytest

from drover.testing.commands import PythonCommands
from tests.logins.conftest import OAuthCluster

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.timeout(900)]


@pytest.mark.parametrize("way", ["endpoint", "file"])
async def test_an_audit_reads_the_log_with_a_token(way: str, oauth: OAuthCluster, tmp_path: Path) -> None:
    security = oauth.of_endpoint()
    if way == "file":
        (tmp_path / "token").write_text(oauth.endpoint.token("drover"))
        security = {"sasl_oauth_token_file": json.dumps(str(tmp_path / "token"))}
    config = oauth.settings_file(tmp_path / "drover.toml", security)
    environment = {"DROVER_CONFIG": str(config), "NO_COLOR": "1", "COLUMNS": "200"}
    made = await PythonCommands().run(("log", "init"), environment, "")
    assert made.code == 0, made.errors
    asked = len(oauth.endpoint.asked)
    done = await PythonCommands().run(("audit", "--section", "commands", "-o", "json"), environment, "")
    assert done.code == 0, done.errors
    assert json.loads(done.output)
    assert (len(oauth.endpoint.asked) > asked) is (way == "endpoint")
