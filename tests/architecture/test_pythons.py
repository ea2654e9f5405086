"""What is said about versions of Python agrees everywhere, and every one that is found takes the code as it is."""

import re
import shutil
import subprocess
import sys

from tests.architecture.repository import ROOT, python_files
from tests.architecture.test_tooling import toml

SCRIPT = (ROOT / ".ci" / "pythons").read_text(encoding="utf-8")
(VERSIONS,) = (found.split() for found in re.findall(r'^VERSIONS="([\d. ]+)"$', SCRIPT, re.MULTILINE))
COMPILE = """
import sys
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        compile(file.read(), path, "exec")
"""


def test_the_versions_that_are_tested_are_those_that_are_promised() -> None:
    project = toml("pyproject.toml")["project"]
    classifiers = re.findall(r"Programming Language :: Python :: (\d+\.\d+)", "\n".join(project["classifiers"]))
    assert classifiers == VERSIONS
    assert project["requires-python"] == f">={VERSIONS[0]}"


def test_every_python_that_is_found_compiles_every_file_without_a_warning() -> None:
    named = (shutil.which(f"python{version}") for version in VERSIONS)
    tried = 0
    for python in {sys.executable, *filter(None, named)}:
        if subprocess.run([python, "-c", ""], capture_output=True, timeout=30, check=False).returncode != 0:
            continue  # a shim that stands for nothing
        done = subprocess.run(
            [python, "-W", "error", "-c", COMPILE, *map(str, python_files())],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{python}: {done.stderr}"
        tried += 1
    assert tried >= 1
