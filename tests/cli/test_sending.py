"""What the commands that change something refuse before they send anything."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drover.cli.exits import ExitCode
from drover.cli.main import cli

PLAN = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}
# Nothing listens there.
CONFIG = """
[log]
bootstrap = "127.0.0.1:1"
[clusters.prod]
bootstrap = "127.0.0.1:1"
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    Path("drover.toml").write_text(CONFIG)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="drover")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cancel", "--rollback", "--partition", f"orders:{10**22}"), "partition: it must be at most 2147483647"),
        (("throttle", "set", str(10**24), "--force"), "bytes_per_second: it must be at most 9223372036854775807"),
        (("alter", "plan.json", "--throttle", str(10**24), "--force"), "throttle_bytes_per_second: it must be at most"),
        (("leaders", "demote", "3", "--for", f"{10**22}d"), "for_ms: it must be at most 9007199254740992"),
    ],
)
def test_a_number_that_no_message_can_hold_is_refused_as_any_that_is_too_large(
    arguments: tuple[str, ...], said: str
) -> None:
    Path("plan.json").write_text(json.dumps(PLAN))
    result = run(*arguments, "--reason", "r")
    assert result.exit_code == ExitCode.USAGE
    assert said in result.output
