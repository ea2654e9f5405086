"""`drover acls`: the table with the addresses, prefix and group of the settings, and the users of the options."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from drover.cli.main import cli
from drover.client.acls import Part

SETTINGS = """
[log]
bootstrap = "log:9092"
prefix = "mine"
[clusters.one]
bootstrap = "one:9093"
[clusters.two]
bootstrap = "two:9093"
[clusters.two.security]
security_protocol = "SASL_SSL"
sasl_mechanism = "SCRAM-SHA-512"
sasl_plain_username = "mover"
sasl_plain_password_file = "never-read"
[worker]
group = "ours"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "drover.toml"
    file.write_text(SETTINGS)
    return file


def run(config: Path, *arguments: str) -> str:
    done = CliRunner().invoke(cli, ["acls", "--config", str(config), *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_nobody_who_prints_the_acls_of_the_worker_is_named_in_them(config: Path) -> None:
    """The settings name an operator's own user: with the worker's ACLs it could write the log."""
    printed = run(config)
    assert "mover" not in printed
    assert {word for word in printed.split() if word.startswith("User:")} == {
        "User:WORKER", "User:OPERATOR", "User:SETUP",
    }  # fmt: skip
    assert printed.splitlines()[-1] == (
        "Replace the placeholders OPERATOR, SETUP, WORKER, or give --operator-user, --setup-user, --worker-user."
    )


def test_each_part_has_the_user_of_its_option(config: Path) -> None:
    printed = run(config, "--worker-user", "drover", "--operator-user", "ana", "--setup-user", "root")
    assert {word for word in printed.split() if word.startswith("User:")} == {"User:drover", "User:ana", "User:root"}
    assert "Replace" not in printed
    rows = json.loads(run(config, "--worker-user", "drover", "--operator-user", "ana", "-o", "json"))["acls"]
    assert {(row["part"], row["user"]) for row in rows} == {
        ("worker", "drover"),
        ("operator", "ana"),
        ("setup", "SETUP"),
    }


def test_every_managed_cluster_is_named(config: Path) -> None:
    lines = run(config, "--part", "worker").splitlines()
    assert sum("one:9093" in line and "User:WORKER " in line for line in lines) == 4
    assert sum("two:9093" in line and "User:WORKER " in line for line in lines) == 4
    assert any(line.endswith("--operation Read --group ours") for line in lines)
    assert any("--topic mine.events" in line for line in lines)
    assert any(line.endswith("--operation Describe --topic '*'") for line in lines), "or the shell would expand it"
    assert any(line.endswith("--operation Alter --cluster") for line in lines)


@pytest.mark.parametrize("part", [part.value for part in Part])
def test_a_program_gets_one_row_for_each_acl(config: Path, part: str) -> None:
    rows = json.loads(run(config, "--part", part, f"--{part}-user", "somebody", "-o", "json"))["acls"]
    assert {(row["part"], row["user"]) for row in rows} == {(part, "somebody")}
    assert len({tuple(row.values()) for row in rows}) == len(rows) > 3


def test_an_operator_may_write_commands_and_change_nothing_else(config: Path) -> None:
    rows = json.loads(run(config, "--part", "operator", "-o", "json"))["acls"]
    written = {row["name"] for row in rows if row["operation"] == "Write"}
    assert written == {"mine.alter", "mine.cancel", "mine.blacklist", "mine.broker-failed"}
    assert {row["operation"] for row in rows} == {"Describe", "DescribeConfigs", "Read", "Write"}
