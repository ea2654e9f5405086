"""The lock fits the project and names public places only; `make` alone lists every target."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.architecture.repository import ROOT
from tests.conftest import LONGEST_GROUPS, SHARED_CLUSTER, SHARING_FOLDERS, WITH_KILLS, GroupScheduling, group_of

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower() for requirement in requirements}


def test_everything_that_is_locked_comes_from_the_public_index_with_a_hash() -> None:
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
    packages = [package for package in toml("uv.lock")["package"] if "registry" in package["source"]]
    files = [file for package in packages for file in (*package.get("wheels", ()), package.get("sdist")) if file]
    assert len(packages) > 50
    assert all(file["hash"].startswith("sha256:") for file in files)


def test_the_lock_was_made_from_these_dependencies() -> None:
    project = toml("pyproject.toml")
    (locked,) = [package for package in toml("uv.lock")["package"] if package["name"] == project["project"]["name"]]
    metadata = locked["metadata"]
    wanted = _specifiers(project["project"]["dependencies"])
    found = {
        (entry["name"], _parts(entry.get("specifier", "")))
        for entry in metadata["requires-dist"]
        if "marker" not in entry
    }
    assert found == wanted
    for extra, requirements in project["project"]["optional-dependencies"].items():
        of_extra = {
            (entry["name"], _parts(entry.get("specifier", "")))
            for entry in metadata["requires-dist"]
            if entry.get("marker") == f"extra == '{extra}'"
        }
        assert of_extra == _specifiers(requirements), extra
    development = {entry["name"] for entry in metadata["requires-dev"]["dev"]}
    assert development == names(project["dependency-groups"]["dev"])


def _specifiers(requirements: list[str]) -> set[tuple[str, frozenset[str]]]:
    return {
        (name, _parts(specifier))
        for requirement in requirements
        for name, specifier in re.findall(r"^([\w.-]+)(.*)$", requirement)
    }


def _parts(specifier: str) -> frozenset[str]:
    return frozenset(specifier.split(","))


def test_make_alone_lists_every_target_in_a_line() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    listed = re.findall(r"^  make ([\w-]+) +\S", done.stdout, flags=re.MULTILINE)
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert sorted(listed) == sorted(phony.split())
    assert len(done.stdout.splitlines()) == len(listed)


def test_an_interpreter_that_is_too_old_or_no_interpreter_is_named_in_the_error() -> None:
    done = subprocess.run(
        [ROOT / ".ci" / "install"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": "/bin/false"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "PYTHON=/bin/false" in done.stderr


@pytest.mark.parametrize(
    ("python3", "wanted", "used"),
    [
        ("optimised", {}, "python3"),
        ("plain", {}, "python3.12"),
        ("without venv", {}, "python3.12"),
        ("plain", {"PYTHON": "python3"}, "python3"),
    ],
)
def test_the_environment_is_made_with_an_optimised_interpreter_unless_the_user_names_another_one(
    python3: str, wanted: dict[str, str], used: str, tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "install", tmp_path / ".ci")
    for name, kind in (("python3", python3), ("python3.12", "optimised"), ("python3.11", "plain"), ("python3.13", "")):
        # Asked for its age, for venv, and for how it was built; told to make an environment, it leaves its name.
        (tmp_path / name).write_text(
            f"#!/bin/sh\ncase \"$*\" in '-m venv '*) echo {name} >{tmp_path}/used; exit 3;;\n"
            f"*enable-optimizations*) [ '{kind}' != plain ];; *ensurepip*) [ '{kind}' != 'without venv' ];;\n"
            f"*) [ -n '{kind}' ];; esac\n"
        )
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **wanted}
    done = subprocess.run(
        [tmp_path / ".ci" / "install"], env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 3
    assert (tmp_path / "used").read_text().strip() == used
    assert ("PYTHON=python3 decides otherwise" in done.stderr) == (used != "python3")


@pytest.mark.parametrize(
    ("prefix", "arguments", "is_optimised"),
    [
        ("/usr", "'--enable-shared'", True),  # Debian's: optimised by its own rules
        ("/usr/local", "'--enable-optimizations' '--with-lto'", True),
        ("/home/ana/.pyenv/versions/3.11.7", "'--enable-shared'", False),
        ("/opt/python", None, False),
    ],
)
def test_an_interpreter_counts_as_optimised_when_it_was_built_so_or_is_the_distributions(
    prefix: str, arguments: str | None, is_optimised: bool
) -> None:
    text = (ROOT / ".ci" / "install").read_text(encoding="utf-8")
    (asked,) = re.findall(r"^OPTIMISED='(.*?)'$", text, flags=re.MULTILINE | re.DOTALL)
    built = f"sys.base_prefix, sysconfig.get_config_var = {prefix!r}, {{'CONFIG_ARGS': {arguments!r}}}.get"
    program = f"import sys, sysconfig\n{built}\n{asked}"
    done = subprocess.run([sys.executable, "-c", program], timeout=30, check=False)
    assert done.returncode == (0 if is_optimised else 1)


@pytest.mark.parametrize("own", [None, "0"])
def test_uv_trusts_the_authorities_of_a_system_that_has_some_unless_the_user_says_otherwise(own: str | None) -> None:
    environment = {"PATH": os.environ["PATH"], **({} if own is None else {"UV_SYSTEM_CERTS": own})}
    done = subprocess.run(
        ["make", "--silent", "--eval", "say: ; @echo $$UV_SYSTEM_CERTS", "say"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    (named,) = re.findall(r"wildcard ([^)]+)\),1,0", MAKEFILE)
    has_some = any(Path(file).exists() for file in named.split())
    assert done.stdout.strip() == (own or str(int(has_some)))


def test_the_programs_of_a_new_machine_are_those_of_essential_packages_git_make_and_python(tmp_path: Path) -> None:
    told = tmp_path / "dpkg-query"
    told.write_text(
        '#!/bin/sh\ncase "$*" in *Essential*) echo "yes base"; echo "no java";;\n'
        '*java) echo /usr/bin/java;; *base) echo /bin/ls; echo /usr/share/doc/ls;; *) echo "/usr/bin/${2}";; esac\n'
    )
    told.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path), "PYTHON": sys.executable}
    done = subprocess.run(
        [ROOT / ".ci" / "essentials"], env=environment, capture_output=True, text=True, timeout=30, check=True
    )
    links = {link.name: link.readlink() for link in Path(done.stdout.strip()).iterdir()}
    assert set(links) == {"ls", "git", "make", "sh", "awk", "python3"}
    assert links["python3"] == Path(sys.executable)


def test_tests_that_share_a_cluster_share_a_process_and_others_do_not() -> None:
    assert issubclass(GroupScheduling, LoadScopeScheduling)
    groups = {
        "cluster/test_contract": SHARED_CLUSTER,
        "journal/test_contract": SHARED_CLUSTER,
        "integration/test_moves": SHARED_CLUSTER,
        "integration/test_steppings": "integration",
        "integration/test_leaders": WITH_KILLS,
        "secure/test_drover": "secure",
        "shard/test_fold": "shard/test_fold",
    }
    assert {file: group_of(ROOT / "tests" / f"{file}.py") for file in groups} == groups
    every_group = {group_of(file) for file in (ROOT / "tests").rglob("test_*.py")}
    assert every_group >= LONGEST_GROUPS >= SHARING_FOLDERS
