"""renovate.json finds the versions that no manager of Renovate's own would find."""

import itertools
import json
import re

from drover.jars import KAFKA_VERSION
from tests.architecture.repository import ROOT
from tests.architecture.test_tooling import toml

RENOVATE = json.loads((ROOT / "renovate.json").read_text(encoding="utf-8"))


def test_each_pattern_finds_one_version_in_the_file_that_it_is_for() -> None:
    found = {}
    for manager in RENOVATE["customManagers"]:
        (pattern,) = manager["managerFilePatterns"]
        files = [path for path in ("drover/jars/lock.py", ".ci/install", "Makefile") if re.search(pattern[1:-1], path)]
        (file,) = files
        (text,) = manager["matchStrings"]
        (version,) = re.findall(text.replace("(?<", "(?P<"), (ROOT / file).read_text(encoding="utf-8"))
        found[manager["depNameTemplate"]] = version
    assert found["org.apache.kafka:kafka_2.13"] == KAFKA_VERSION
    assert found.keys() == {"org.apache.kafka:kafka_2.13", "uv", "helm.sh/helm/v3"}
    assert all(re.fullmatch(r"v?\d+\.\d+\.\d+", version) for version in found.values())


def test_what_is_pinned_exactly_is_updated_alone() -> None:
    named = {name for rule in RENOVATE["packageRules"] for name in rule.get("matchPackageNames", ())}
    project = toml("pyproject.toml")["project"]
    requirements = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    pinned = {requirement.split("==")[0] for requirement in requirements if "==" in requirement}
    assert "aiokafka" in pinned <= named
