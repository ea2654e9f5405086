"""The document of the metrics, the alert rules and the dashboard speak of metrics and labels that there are."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from drover.runtime.metrics_document import metrics_document

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docker" / "prometheus" / "drover.rules.yml"
RULE_TESTS = RULES.with_name("drover.rules.test.yml")
DASHBOARD = ROOT / "docker" / "grafana" / "drover.json"
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


def expressions() -> Iterator[str]:
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    yield from (variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query")


def test_the_document_is_made_from_the_metrics() -> None:
    written = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert written == metrics_document(), "python -m drover.runtime.metrics_document > docs/metrics.md"


@pytest.mark.parametrize("expression", [*expressions()])
def test_an_expression_asks_for_what_there_is(expression: str) -> None:
    series = known()
    names = re.findall(r"\b(?:drover|process)_\w+", expression)
    assert names
    assert set(names) <= series.keys()
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    asked = {label for group in grouped for label in re.split(r", *", group)}
    matched = {label for group in re.findall(r"\{([^}]*)\}", expression) for label in re.findall(r"(\w+)=", group)}
    assert (asked | matched) - ADDED <= set().union(*(series[name] for name in names))


def test_there_is_an_alert_for_each_thing_that_must_wake_somebody_and_a_test_that_it_fires() -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
    assert {rule["alert"].removeprefix("Drover") for rule in rules} == {
        "NoOwner", "Stalled", "BlockedTooLong", "ThrottleLeft", "DeadLetters", "FencedWrites", "OutOfReach",
        "BrokerFailed",
    }  # fmt: skip
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in rules)
    fired = set()
    for test in yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))["tests"]:
        for asked in test["promql_expr_test"]:
            if asked["exp_samples"]:
                fired |= set(re.findall(r'alertname="(\w+)"', asked["expr"]))
    assert fired == {rule["alert"] for rule in rules}


def test_prometheus_own_checker_agrees_where_it_is_installed() -> None:
    """Debian's package `prometheus` has it. Where it is not, the tests above have read the same files."""
    program = shutil.which("promtool")
    commands = [] if program is None else [["check", "rules", RULES.name], ["test", "rules", RULE_TESTS.name]]
    for command in commands:
        done = subprocess.run(
            [str(program), *command], cwd=RULES.parent, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
