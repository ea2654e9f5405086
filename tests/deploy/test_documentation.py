"""docs/kubernetes.md: the chart takes its values, Drover reads its settings, and what it names is there."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from drover.cli.main import cli
from drover.settings.sources import load_settings
from tests.architecture.repository import ROOT
from tests.deploy.manifests import CHART, MANIFESTS
from tests.docs.test_commands import parse

PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")


def values() -> dict[str, Any]:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def test_the_chart_takes_the_values() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    merged = {
        name: {**defaults[name], **value} if isinstance(value, dict) else value for name, value in values().items()
    }
    jsonschema.validate({**defaults, **merged}, schema)


def test_drover_reads_the_settings_and_the_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "drover.toml"
    file.write_text(values()["settings"], encoding="utf-8")
    given = "12345678"
    for variable in re.findall(r"--from-literal=(\w+)=", PAGE):
        monkeypatch.setenv(variable, given)
    settings = load_settings(file)
    assert settings.log.security.sasl_plain_password == given
    assert settings.clusters["prod"].security.sasl_plain_password == given


def test_every_value_that_the_page_names_is_one_of_the_chart() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    names = re.findall(r"`((?:worker|page|projection|spark|networkPolicy|serviceMonitor)\.\w+)`", PAGE)
    assert len(names) > 7
    for name in names:
        part, _, value = name.partition(".")
        assert value in defaults[part]


def test_what_kubectl_asks_for_is_made_by_the_chart_and_runs_a_command() -> None:
    objects = [each for each in yaml.safe_load_all(MANIFESTS.read_text(encoding="utf-8")) if each is not None]
    made = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert {("StatefulSet", "drover-worker"), ("Service", "drover-page")} <= made
    commands = re.findall(r"kubectl .* exec (?:-it )?drover-worker-0 -- (drover .*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) > 2
    for command in commands:
        assert parse(tuple(command.split())) is not cli
