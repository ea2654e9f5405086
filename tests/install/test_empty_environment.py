"""The wheel in an empty environment, without extras: what every role needs is there, and what is not is named."""

import asyncio
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from drover.extras import LIBRARIES
from drover.local import local_cluster
from drover.local.layout import WORKER
from tests.docker.packages import UV, site_of

pytestmark = pytest.mark.story

# numpy alone takes 74 with its byte code.
MOST_MEGABYTES = 190
# Their modules may need a library of an extra, or pytest: Spark's own, what starts nodes in one JVM, the fixtures.
NEEDS_MORE = ("drover.spark.", "drover.testing.shared_process", "drover.testing.fixtures")
IMPORT_ALL = """
import importlib, pathlib, sys
needs_more, site = tuple(sys.argv[2:]), pathlib.Path(sys.argv[1])
files = [file.relative_to(site).with_suffix("") for file in (site / "drover").rglob("*.py")]
names = sorted(".".join(file.parts).removesuffix(".__init__") for file in files)
for name in names:
    if not name.startswith(needs_more) and not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""


def variables(environment: Path) -> dict[str, str]:
    """Settings of a log that is not there."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(environment),
        "DROVER_LOG__BOOTSTRAP": "127.0.0.1:1",
        "DROVER_CLUSTERS__PROD__BOOTSTRAP": "127.0.0.1:1",
        "DROVER_ZOOKEEPER__HOSTS": "127.0.0.1:1",
        "DROVER_ZOOKEEPER__ALLOW_OPEN_ZOOKEEPER": "true",
        "DROVER_ZOOKEEPER__LISTEN": "127.0.0.1:0",
        "DROVER_WORKER__LISTEN": "127.0.0.1:0",
        "DROVER_WEB__LISTEN": "127.0.0.1:0",
    }


def drover(environment: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(environment / "bin" / "drover"), *words],
        cwd=environment, env=variables(environment), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_the_core_is_small(environment: Path) -> None:
    # Without what programs of other tests keep in their home, which is the environment's folder.
    installed_files = (file for folder in ("bin", "lib") for file in (environment / folder).rglob("*"))
    size = sum(file.stat().st_size for file in installed_files if file.is_file() and not file.is_symlink())
    print(f"{size / 1e6:.0f} MB")
    assert size < MOST_MEGABYTES * 1e6
    installed = {path.name for path in site_of(environment).iterdir()}
    assert not installed & {library for libraries in LIBRARIES.values() for library in libraries}


@pytest.mark.parametrize(
    "role", [["worker"], ["zookeeper", "run"], ["web"], ["local", "up"], ["demo"], ["spark", "run"]], ids=" ".join
)
def test_the_help_of_every_role_is_there(role: list[str], environment: Path) -> None:
    done = drover(environment, *role, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: drover {' '.join(role)}")


@pytest.mark.parametrize("command", [["worker"], ["status"], ["log", "check"], ["describe"]], ids=" ".join)
def test_a_command_gets_as_far_as_the_log_that_is_not_there(command: list[str], environment: Path) -> None:
    done = drover(environment, *command)
    assert done.returncode in {1, 2}, done.stdout + done.stderr
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_is_served_and_ends_at_sigterm(environment: Path) -> None:
    command = [str(environment / "bin" / "drover"), "web"]
    with subprocess.Popen(
        command, cwd=environment, env=variables(environment), stdout=subprocess.PIPE, text=True
    ) as page:
        assert page.stdout is not None
        address = page.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{address}livez", timeout=60) as answer:  # noqa: S310 - of this machine
            assert answer.status == 200
        page.terminate()
        assert page.wait(timeout=60) == 0


def test_a_command_without_its_extra_names_it_in_one_line(environment: Path) -> None:
    for command, extra in ((["spark", "run"], "spark"), (["audit"], "spark"), (["audit", "verify"], "spark")):
        done = drover(environment, *command)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.endswith(f"pip install 'kafka-drover[{extra}]'\n")


def test_every_module_of_the_core_can_be_imported_and_pandas_3_may_stand_beside_it(environment: Path) -> None:
    python = str(environment / "bin" / "python")
    done = subprocess.run(
        [python, "-c", IMPORT_ALL, str(site_of(environment)), *NEEDS_MORE],
        cwd=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300
    # Resolved with what is installed, and not installed.
    others = ["pandas>=3", "openai-agents", "events"]
    command = [UV, "pip", "install", "--dry-run", "--python", python, *others]
    resolved = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert resolved.returncode == 0, resolved.stderr
    assert " - " not in resolved.stderr, "nothing of Drover's would be replaced"


@pytest.mark.cluster
async def test_a_worker_of_the_core_drains_a_broker_of_a_real_cluster(environment: Path, tmp_path: Path) -> None:
    async with local_cluster(tmp_path / ".local" / "cluster", 4, 3) as cluster:
        said = {
            "PATH": os.environ["PATH"],
            "HOME": str(environment),
            "DROVER_CONFIG": str(cluster.config_of(WORKER)),
            "DROVER_WORKER__ALLOW_DROVER_TOPICS": "true",
        }

        async def run(program: str, *words: str) -> str:
            process = await asyncio.create_subprocess_exec(
                program,
                *words,
                cwd=tmp_path,
                env=said,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await process.communicate()
            assert process.returncode == 0, output.decode()
            return output.decode()

        core = str(environment / "bin" / "drover")
        await run(core, "log", "init")
        await run(sys.executable, "-m", "drover", "local", "seed", "orders", "--partitions", "6", "--megabytes", "1")
        worker = await asyncio.create_subprocess_exec(core, "worker", "--listen", "127.0.0.1:0", cwd=tmp_path, env=said)
        try:
            drain = ("plan", "drain", "1", "--include-internal", "--plan", "core", "--apply", "--reason", "a test")
            await run(core, *drain, "--follow")
            assert "reassignment-completed" in await run(core, "history", "--plan", "core", "--events")
            assert "Verified" in await run(core, "replay", "--verify")
        finally:
            worker.terminate()
            assert await worker.wait() == 0
