"""The document of the metrics, the alert rules and the dashboard speak of metrics and labels that there are."""

import re
import shutil
import subprocess

import pytest
import yaml

from drover.agents.metrics_document import metrics_document
from tests.runtime.expressions import ROOT, RULE_TESTS, RULES, asked_by, expressions, rules

PROCESS = {"process_cpu_seconds_total": set[str](), "process_resident_memory_bytes": set[str]()}
# Prometheus itself adds these, and the labels of its own functions.
ADDED = {"instance", "job", "le"}


def known() -> dict[str, set[str]]:
    """Return every series that a worker can expose, with its labels."""
    found: dict[str, set[str]] = dict(PROCESS)
    row = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)
    for name, kind, labels in row.findall(metrics_document()):
        names = set(re.findall(r"`(\w+)`", labels))
        for suffix in ("_bucket", "_count", "_sum") if kind == "histogram" else ("",):
            found[name + suffix] = names
    return found


def test_the_document_is_made_from_the_metrics() -> None:
    written = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert written == metrics_document(), "python -m drover.agents.metrics_document > docs/metrics.md"


@pytest.mark.parametrize("expression", [*expressions()])
def test_an_expression_asks_for_what_there_is(expression: str) -> None:
    series = known()
    asked = asked_by(expression)
    assert asked
    for one in asked:
        assert one.labels - ADDED <= series[one.name]


@pytest.mark.parametrize("wrong", ["sum by cluster (drover_frozen)", "sum(drover_frozen[5m])", "rate(drover_frozen)"])
def test_what_prometheus_would_not_take_is_noticed(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        asked_by(wrong)


def test_there_is_an_alert_for_each_thing_that_must_wake_somebody_and_a_test_that_it_fires() -> None:
    assert {rule["alert"].removeprefix("Drover") for rule in rules()} == {
        "NoOwner", "Stalled", "BlockedTooLong", "ThrottleLeft", "DeadLetters", "FencedWrites", "OutOfReach",
        "BrokerFailed", "BrokerUnreachable", "LogDirectoryFailed", "BrokerAway", "PartitionsUnhealed", "ShardDamaged",
        "ThrottleRefused",
        "MismatchedCluster", "CommandsUndecided",
    }  # fmt: skip
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in rules())
    fired = set()
    for test in yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))["tests"]:
        for asked in test["promql_expr_test"]:
            if asked["exp_samples"]:
                fired |= set(re.findall(r'alertname="(\w+)"', asked["expr"]))
    assert fired == {rule["alert"] for rule in rules()}


def test_prometheus_own_checker_agrees_where_it_is_installed() -> None:
    """Debian's package `prometheus` has it. Where it is not, the tests above have read the same files."""
    program = shutil.which("promtool")
    commands = [] if program is None else [["check", "rules", RULES.name], ["test", "rules", RULE_TESTS.name]]
    for command in commands:
        done = subprocess.run(
            [str(program), *command], cwd=RULES.parent, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
