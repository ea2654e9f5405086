"""`python -m tests.deploy.manifests`: makes the manifests of the chart, with every part; needs helm (`make helm`)."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.architecture.repository import ROOT

CHART = ROOT / "deploy" / "helm" / "drover"
FOLDER = ROOT / "deploy" / "kubernetes"
MANIFESTS, VALUES = FOLDER / "drover.yaml", FOLDER / "values.yaml"
HEADER = """\
# Made of deploy/helm/drover with the values beside this file, by `make manifests`: edit these instead.
# Of the chart with the digest {digest}.
"""


def digest() -> str:
    """The digest of everything that the manifests are made of."""
    files = sorted(file for file in CHART.rglob("*") if file.is_file())
    sums = [f"{file.relative_to(ROOT)} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in [*files, VALUES]]
    return hashlib.sha256("\n".join(sums).encode()).hexdigest()


def find_helm() -> str | None:
    """The program of that name: that of `make helm`, or one that is installed."""
    return shutil.which("helm", path=os.pathsep.join((str(ROOT / ".tools"), os.environ.get("PATH", ""))))


def helm(*arguments: str) -> str:
    """Run helm and return what it prints."""
    program = find_helm()
    assert program is not None, "there is no helm: make helm"
    done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def template(*arguments: str) -> str:
    """What the chart makes; helm is told the oldest Kubernetes that the chart is for, since it has none to ask."""
    chart = str(CHART.relative_to(ROOT))
    return helm("template", "drover", chart, "--kube-version", "1.27.0", "--namespace", "drover", *arguments)


def made() -> str:
    """The manifests of the chart as it is."""
    return HEADER.format(digest=digest()) + template("--values", str(VALUES))


def main() -> None:
    """Write them."""
    Path(MANIFESTS).write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main()
