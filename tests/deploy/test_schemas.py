"""The manifests are what Kubernetes takes, by the schemas of its API."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.architecture.repository import ROOT
from tests.deploy.manifests import MANIFESTS
from tests.docker.packages import UV

pytestmark = pytest.mark.story

# Those of Prometheus's operator are not among them.
FOREIGN = {"ServiceMonitor"}
# The oldest that the chart promises, and the newest that the validator knows.
VERSIONS = ("1.27", "1.37")


def validated(file: Path, version: str) -> subprocess.CompletedProcess[str]:
    command = [UV, "run", "--quiet", "--isolated", "--frozen", "--only-group", "deploy"]
    return subprocess.run(
        [*command, "kubernetes-validate", "--strict", "-k", version, str(file)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_the_manifests_and_no_made_up_field(version: str, tmp_path: Path) -> None:
    objects = [each for each in yaml.safe_load_all(MANIFESTS.read_text(encoding="utf-8")) if each is not None]
    own = [each for each in objects if each["kind"] not in FOREIGN]
    assert len(objects) - len(own) == 2
    file = tmp_path / "drover.yaml"
    file.write_text(yaml.safe_dump_all(own), encoding="utf-8")
    done = validated(file, version)
    assert done.returncode == 0, done.stdout + done.stderr
    own[0]["spec" if "spec" in own[0] else "nonsense"] = {"nonsense": 1}
    file.write_text(yaml.safe_dump_all(own), encoding="utf-8")
    assert validated(file, version).returncode != 0
