"""docker-compose.yml and the Dockerfile, parsed: no Docker is needed, nor proven to work."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from drover.local.settings import KAFKA_COMMON, KRAFT
from drover.settings.settings import Settings
from drover.settings.sources import load_settings
from tests.architecture.repository import ROOT
from tests.architecture.test_tooling import toml

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = {name: service for name, service in SERVICES.items() if name.startswith("kafka-")}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LOCK = json.loads((ROOT / "drover" / "jars" / "jars.lock.json").read_text(encoding="utf-8"))
ONE_SHOT = {"topics"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path))
    return load_settings(ROOT / "docker" / "drover.toml")


def jar_version(group: str, name: str) -> str:
    (version,) = {
        jar["version"] for jars in LOCK.values() for jar in jars if (jar["group"], jar["name"]) == (group, name)
    }
    return str(version)


def tag_of(service: dict[str, Any]) -> str:
    """The image of a service without its digest."""
    tag, _, _ = str(service["image"]).partition("@")
    return tag


def ports(name: str) -> set[str]:
    """The ports on which a service listens, as its own settings say."""
    listeners = SERVICES[name]["environment"].get("KAFKA_LISTENERS", "//:2181")
    return set(re.findall(r"//:(\d+)", listeners))


def test_the_images_are_of_the_versions_that_the_jars_are() -> None:
    kafka, zookeeper = jar_version("org.apache.kafka", "kafka-server"), jar_version("org.apache.zookeeper", "zookeeper")
    assert {tag_of(service) for service in (*BROKERS.values(), SERVICES["controller"])} == {f"apache/kafka:{kafka}"}
    assert tag_of(SERVICES["zookeeper"]) == f"zookeeper:{zookeeper}"
    version = toml("pyproject.toml")["project"]["version"]
    assert {SERVICES[name]["image"] for name in ("worker", "topics")} == {f"drover:{version}"}


def test_every_address_in_the_settings_is_a_service_that_listens_there(settings: Settings) -> None:
    named = f"{settings.log.bootstrap},{settings.clusters['local'].bootstrap},{settings.zookeeper.hosts}"
    addresses = [address.split(":") for address in named.split(",")]
    assert len(addresses) == 9
    assert [name for name, port in addresses if port not in ports(name)] == []
    assert {name for name, _ in addresses} == {*BROKERS, "zookeeper"}


def test_the_settings_are_where_the_worker_looks_for_them() -> None:
    for name in ("worker", "topics"):
        (mount,) = SERVICES[name]["volumes"]
        source, target, mode = mount.split(":")
        assert (ROOT / source).is_file()
        assert (SERVICES[name]["environment"]["DROVER_CONFIG"], mode) == (target, "ro")


def test_every_broker_is_one_of_its_own_in_the_same_cluster() -> None:
    environments = {name: service["environment"] for name, service in BROKERS.items()}
    assert [found["KAFKA_NODE_ID"] for found in environments.values()] == ["1", "2", "3", "4"]
    assert len({found["KAFKA_BROKER_RACK"] for found in environments.values()}) == 3
    for name, found in environments.items():
        assert found["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{name}:9092"
    controller = SERVICES["controller"]["environment"]
    voters = f"{controller['KAFKA_NODE_ID']}@controller:9093"
    assert {found["KAFKA_CONTROLLER_QUORUM_VOTERS"] for found in (*environments.values(), controller)} == {voters}
    assert "9093" in ports("controller")
    (cluster_id,) = {found["CLUSTER_ID"] for found in (*environments.values(), controller)}
    assert len(cluster_id) == 22


def test_the_brokers_are_set_as_those_of_the_local_cluster() -> None:
    local = dict(line.split("=", 1) for line in (KRAFT + KAFKA_COMMON).splitlines())
    environment = BROKERS["kafka-1"]["environment"]
    same = {name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in environment.items()}
    shared = {key: value for key, value in same.items() if key in local and "{" not in local[key]}
    assert len(shared) >= 6
    assert shared == {key: local[key] for key in shared}


def test_every_service_says_when_it_is_well_and_waits_for_those_that_it_needs() -> None:
    well = {name for name, service in SERVICES.items() if "test" in service.get("healthcheck", {})}
    assert well == SERVICES.keys() - ONE_SHOT - {"worker"}, "the worker's check is the image's"
    assert "/readyz" in DOCKERFILE
    for service in SERVICES.values():
        for name, needed in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if name in ONE_SHOT else "service_healthy"
            assert needed == {"condition": wanted}, name
    assert SERVICES["topics"]["depends_on"].keys() == {*BROKERS, "controller"}
    assert SERVICES["worker"]["depends_on"].keys() == {"topics", "zookeeper"}


def test_the_worker_shows_the_state_in_the_zookeeper_that_is_there_for_it(settings: Settings) -> None:
    """What a worker does at its start: it projects if that is set, and refuses settings that it cannot use."""
    assert settings.zookeeper.project
    assert settings.zookeeper.options().hosts == "zookeeper:2181"
    assert "zookeeper" in SERVICES["worker"]["depends_on"]
    assert "ports" not in SERVICES["zookeeper"], "anybody who reaches it may write to it"


def test_every_image_has_an_exact_version() -> None:
    images = [service["image"] for service in SERVICES.values()] + re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert [image for image in images if not re.search(r":\d+\.\d+\.\d+[-\w]*(@|$)", image)] == []


def test_every_image_that_is_not_built_here_has_a_digest_and_each_tag_has_one() -> None:
    """A tag may be given to another image; a digest of the index, over all machines, may not."""
    built = {service["image"] for service in SERVICES.values() if "build" in service}
    images = {service["image"] for service in SERVICES.values()} - built
    images |= set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    pinned = [re.fullmatch(r"(\S+)@sha256:[0-9a-f]{64}", image) for image in sorted(images)]
    assert None not in pinned, images
    assert len({found[1] for found in pinned if found}) == len(images) == 3


def test_the_image_is_of_a_python_that_the_project_takes_and_of_the_same_uv() -> None:
    pythons = {tuple(map(int, found)) for found in re.findall(r"^FROM python:(\d+)\.(\d+)", DOCKERFILE, re.MULTILINE)}
    (python,) = pythons
    project = toml("pyproject.toml")["project"]
    (oldest,) = re.findall(r"^>=(\d+)\.(\d+)$", project["requires-python"])
    assert python >= tuple(map(int, oldest))
    assert f"Programming Language :: Python :: {python[0]}.{python[1]}" in project["classifiers"]
    (uv,) = re.findall(r"^UV_VERSION=(\S+)$", (ROOT / ".ci" / "install").read_text(encoding="utf-8"), re.MULTILINE)
    pinned = (ROOT / ".ci" / "uv.txt").read_text(encoding="utf-8")
    assert re.findall(r"^(uv==\S+) ", pinned, re.MULTILINE) == [f"uv=={uv}"]
    assert pinned.count("--hash=sha256:") > 10, "for every machine on which it may be built"
    backend = (ROOT / ".ci" / "build.txt").read_text(encoding="utf-8")
    (hatchling,) = toml("pyproject.toml")["build-system"]["requires"]
    assert f"{hatchling} \\\n    --hash=sha256:" in backend
    assert len(re.findall(r"^\S+==\S+ ", backend, re.MULTILINE)) < backend.count("--hash=sha256:"), "all by hash"
    installs = [DOCKERFILE, (ROOT / ".ci" / "install").read_text(encoding="utf-8")]
    assert all(re.search(r"pip install .*--require-hashes", text) for text in installs)
    assert all(re.search(r"uv pip install .*--build-constraints \S*build.txt", text) for text in installs)
    assert all("--no-install-project" in text for text in installs)


def test_the_image_holds_what_is_copied_and_runs_without_rights() -> None:
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]]
    assert {"agents", "drover", "events", "spark", "uv.lock"} <= set(copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [name for name in copied if not (ROOT / name).exists() or f"!{name}" not in ignored] == []
    (user,) = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert int(user) > 0
    assert DOCKERFILE.index("USER") < DOCKERFILE.index("ENTRYPOINT")


def test_no_service_has_more_rights_than_its_user_and_drover_writes_to_memory_only() -> None:
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        if "build" in service:
            assert service["read_only"], name
            assert service["tmpfs"] == ["/tmp", "/home/drover"], name  # noqa: S108 - of the container
