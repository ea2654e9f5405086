"""The PromQL of the alert rules and of the dashboard, read by Prometheus' own grammar."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml
from prometheus_client.samples import Sample

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docker" / "prometheus" / "drover.rules.yml"
RULE_TESTS = RULES.with_name("drover.rules.test.yml")
DASHBOARD = ROOT / "docker" / "grafana" / "drover.json"
LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")


@dataclass(frozen=True)
class Asked:
    """The series that one selector asks for: a name and conditions on labels; and all labels that are spoken of."""

    name: str
    conditions: tuple[tuple[str, str, str], ...]
    labels: frozenset[str]

    def takes(self, sample: Sample) -> bool:
        """Tell whether a sample is one of them."""
        return sample.name == self.name and all(_holds(sample.labels, *one) for one in self.conditions)


def _holds(labels: Mapping[str, str], label: str, operator: str, value: str) -> bool:
    found = labels.get(label, "")
    matches = found == value if operator in {"=", "!="} else re.fullmatch(value, found) is not None
    return matches is (operator in {"=", "=~"})


def rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    """Yield every expression, as it is when all clusters are looked at."""
    for rule in rules():
        yield rule["expr"]
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$cluster", ".*")
    for variable in dashboard["templating"]["list"]:
        if found := LABEL_VALUES.fullmatch(variable["query"]):
            yield f"count by ({found[2]}) ({found[1]})"


def asked_by(expression: str) -> list[Asked]:
    """Return what an expression asks for; raises `ValueError` for what Prometheus would not take."""
    found = list(_selectors(promql_parser.parse(expression)))
    grouped = {label for by in re.findall(r"\bby \(([^)]*)\)", expression) for label in re.split(r", *", by)}
    return [Asked(one.name, one.conditions, one.labels | grouped) for one in found]


def _selectors(node: Any) -> Iterator[Asked]:
    if isinstance(node, promql_parser.VectorSelector):
        conditions = tuple((one.name, _OPERATORS[str(one.op)], one.value) for one in node.matchers.matchers)
        assert node.name is not None, "every expression names its metrics"
        yield Asked(node.name, conditions, frozenset(label for label, _, _ in conditions))
        return
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        if (part := getattr(node, name, None)) is not None:
            yield from _selectors(part)
    for part in getattr(node, "args", ()):
        yield from _selectors(part)


_OPERATORS = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}
