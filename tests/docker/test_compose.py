"""docker-compose.yml and the Dockerfile, parsed: no Docker is needed, nor proven to work."""

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from drover.local.settings import KAFKA_COMMON, KRAFT
from drover.settings.settings import Settings
from drover.settings.sources import load_settings
from tests.architecture.repository import ROOT
from tests.architecture.test_tooling import toml
from tests.docker.parsing import takes

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = {name: service for name, service in SERVICES.items() if name.startswith("kafka-")}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LOCK = json.loads((ROOT / "drover" / "jars" / "jars.lock.json").read_text(encoding="utf-8"))
EVERYWHERE = "0.0.0.0"  # noqa: S104 - inside a container
ONE_SHOT = {"topics"}
DROVER = {name: service for name, service in SERVICES.items() if "build" in service}
# What runs Drover for good, by the name of its health check.
ROLES = {"worker": "worker", "projection": "zookeeper", "page": "web", "spark": "spark"}
PROMETHEUS = yaml.safe_load((ROOT / "docker" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
GRAFANA = ROOT / "docker" / "grafana" / "provisioning"


def stages() -> dict[str, list[str]]:
    """The instructions of each stage of the Dockerfile, after those of the stage that it is made from."""
    found: dict[str, list[str]] = {}
    for text in re.split(r"^(?=FROM )", DOCKERFILE.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        first, *rest = [line for line in text.splitlines() if line and not line.startswith("#")]
        (base, name) = re.findall(r"^FROM (\S+) AS (\S+)$", first)[0]
        found[name] = [*found.get(base, []), *rest]
    return found


def variables(stage: str) -> dict[str, str]:
    """The environment of a stage."""
    return {
        name: value
        for line in stages()[stage]
        if line.startswith("ENV ")
        for name, _, value in (word.partition("=") for word in shlex.split(line.removeprefix("ENV ")))
    }


def last(stage: str, instruction: str) -> Any:
    """What the last instruction of a kind has, as JSON."""
    lines = [line for line in stages()[stage] if line.startswith(f"{instruction} ")]
    return json.loads(lines[-1][lines[-1].index("[") :])


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
    images = {name: service["image"] for name, service in DROVER.items()}
    assert images.pop("spark") == f"drover-spark:{version}"
    assert set(images.values()) == {f"drover:{version}"}
    assert DROVER.keys() == {*ROLES, *ONE_SHOT}
    for name, service in DROVER.items():
        assert service["build"] == {"context": ".", "target": "spark" if name == "spark" else "core"}


def test_every_address_in_the_settings_is_a_service_that_listens_there(settings: Settings) -> None:
    named = f"{settings.log.bootstrap},{settings.clusters['local'].bootstrap},{settings.zookeeper.hosts}"
    addresses = [address.split(":") for address in named.split(",")]
    assert len(addresses) == 9
    assert [name for name, port in addresses if port not in ports(name)] == []
    assert {name for name, _ in addresses} == {*BROKERS, "zookeeper"}


def test_the_settings_are_where_drover_looks_for_them() -> None:
    for service in DROVER.values():
        source, target, mode = service["volumes"][0].split(":")
        assert (ROOT / source).is_file()
        assert (service["environment"]["DROVER_CONFIG"], mode) == (target, "ro")


def test_every_file_that_is_mounted_is_there() -> None:
    mounts = [mount for service in SERVICES.values() for mount in service.get("volumes", ())]
    files = {mount.split(":")[0] for mount in mounts if mount.startswith("./")}
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert {mount.split(":")[0] for mount in mounts if not mount.startswith("./")} == COMPOSE["volumes"].keys()


def test_every_service_starts_again_when_it_ends() -> None:
    for name, service in SERVICES.items():
        assert service["restart"] == ("on-failure" if name in ONE_SHOT else "unless-stopped"), name


def test_every_command_of_drover_is_one_that_it_takes() -> None:
    for service in DROVER.values():
        takes(service["command"])
    for name, process in ROLES.items():
        assert DROVER[name]["healthcheck"]["test"] == ["CMD", "drover", "healthcheck", process]
        takes(["healthcheck", process])
    for stage, command, process in (("core", ["worker"], "worker"), ("spark", ["spark", "run"], "spark")):
        assert last(stage, "ENTRYPOINT") == ["drover"]
        assert last(stage, "CMD") == command
        assert last(stage, "HEALTHCHECK") == ["drover", "healthcheck", process]
    with pytest.raises(click.UsageError):
        takes(["worker", "--nonsense"])


def test_what_the_image_sets_is_a_setting_and_everything_listens_inside(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.worker.address[0] == "127.0.0.1"
    for name, value in variables("core").items():
        if name.startswith("DROVER_"):
            monkeypatch.setenv(name, value)
    inside = load_settings(ROOT / "docker" / "drover.toml")
    ports = {section.address for section in (inside.worker, inside.web, inside.zookeeper)}
    assert ports == {(EVERYWHERE, 8150), (EVERYWHERE, 8160), (EVERYWHERE, 8161)}
    assert {f"{port}" for _, port in ports} == {
        word for line in stages()["core"] if line.startswith("EXPOSE") for word in line.split()[1:]
    }
    # Spark's tables, the volume, and what the image makes for its user.
    directory = inside.spark.directory
    assert any(directory in line and "useradd --uid 10001" in line for line in stages()["core"])
    for name in ("spark", "page"):
        assert f"tables:{directory}" in SERVICES[name]["volumes"]
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.keys() == {"page", "prometheus", "grafana"}
    assert all(port.startswith("127.0.0.1:") for (port,) in published.values())
    assert published["page"] == [f"127.0.0.1:{inside.web.address[1]}:{inside.web.address[1]}"]


def test_prometheus_reads_every_process_with_metrics_and_the_rules(settings: Settings) -> None:
    (job,) = PROMETHEUS["scrape_configs"]
    (group,) = job["static_configs"]
    assert group["targets"] == [f"worker:{settings.worker.address[1]}", f"projection:{settings.zookeeper.address[1]}"]
    mounts = [mount.split(":") for mount in SERVICES["prometheus"]["volumes"]]
    folders = {Path(target).parent for _, target, _ in mounts}
    assert {Path(source).name for source, _, _ in mounts} == {"prometheus.yml", *PROMETHEUS["rule_files"]}
    assert len(folders) == 1, "the rules are beside the settings that name them"


def test_grafana_shows_the_dashboard_and_asks_this_prometheus() -> None:
    (source,) = yaml.safe_load((GRAFANA / "datasources" / "prometheus.yml").read_text(encoding="utf-8"))["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert SERVICES["prometheus"]["ports"] == ["127.0.0.1:9090:9090"]
    (provider,) = yaml.safe_load((GRAFANA / "dashboards" / "drover.yml").read_text(encoding="utf-8"))["providers"]
    mounts = dict(mount.removesuffix(":ro").split(":") for mount in SERVICES["grafana"]["volumes"])
    dashboard = mounts["./docker/grafana/drover.json"]
    assert Path(dashboard).parent == Path(provider["options"]["path"])
    assert SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == dashboard
    assert mounts["./docker/grafana/provisioning"] == "/etc/grafana/provisioning"
    wanted = json.loads((ROOT / "docker" / "grafana" / "drover.json").read_text(encoding="utf-8"))
    (variable,) = [each for each in wanted["templating"]["list"] if each["type"] == "datasource"]
    assert variable["query"] == source["type"]


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
    assert well == SERVICES.keys() - ONE_SHOT
    for service in SERVICES.values():
        for name, needed in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if name in ONE_SHOT else "service_healthy"
            assert needed == {"condition": wanted}, name
    assert SERVICES["topics"]["depends_on"].keys() == {*BROKERS, "controller"}
    assert {name for name, service in SERVICES.items() if "topics" in service.get("depends_on", {})} == ROLES.keys()
    assert SERVICES["grafana"]["depends_on"].keys() == {"prometheus"}


def test_the_projection_shows_the_state_in_the_zookeeper_that_is_there_for_it(settings: Settings) -> None:
    """It refuses settings that it cannot use; the workers leave it to it."""
    assert not settings.zookeeper.project
    assert settings.zookeeper.options().hosts == "zookeeper:2181"
    assert SERVICES["projection"]["command"] == ["zookeeper", "run"]
    assert "zookeeper" in SERVICES["projection"]["depends_on"]
    assert "ports" not in SERVICES["zookeeper"], "anybody who reaches it may write to it"


def test_every_image_has_an_exact_version() -> None:
    images = [service["image"] for service in SERVICES.values()] + re.findall(
        r"^FROM (\S+:\S+)", DOCKERFILE, re.MULTILINE
    )
    assert [image for image in images if not re.search(r":v?\d+\.\d+\.\d+[-\w]*(@|$)", image)] == []


def test_every_image_that_is_not_built_here_has_a_digest_and_each_tag_has_one() -> None:
    """A tag may be given to another image; a digest of the index, over all machines, may not."""
    built = {service["image"] for service in SERVICES.values() if "build" in service}
    images = {service["image"] for service in SERVICES.values()} - built
    images |= set(re.findall(r"^FROM (\S+:\S+)", DOCKERFILE, re.MULTILINE))
    pinned = [re.fullmatch(r"(\S+)@sha256:[0-9a-f]{64}", image) for image in sorted(images)]
    assert None not in pinned, images
    assert len({found[1] for found in pinned if found}) == len(images) == 5


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
    assert all(re.search(r"uv (pip install|build) .*--build-constraints \S*build.txt", text) for text in installs)
    assert all("--no-install-project" in text for text in installs)


def test_the_image_holds_what_is_copied_and_runs_without_rights() -> None:
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]]
    assert {"agents", "drover", "events", "spark", "uv.lock", "NOTICE"} <= set(copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [name for name in copied if not (ROOT / name).exists() or f"!{name}" not in ignored] == []
    for stage in ("core", "spark"):
        (user,) = [line.split()[1] for line in stages()[stage] if line.startswith("USER ")]
        assert int(user) > 0
        labels = re.findall(r"org\.opencontainers\.image\.(\w+)=", " ".join(stages()[stage]))
        assert {"title", "description", "licenses", "version", "revision"} == {*labels}
    (version,) = re.findall(r"^ARG VERSION=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert version == toml("pyproject.toml")["project"]["version"]


def test_an_edit_of_a_source_leaves_the_dependencies_as_they_are() -> None:
    """They are installed in stages that copy nothing but the lock, and the core has no extra."""
    for stage, extras in (("dependencies", []), ("spark-dependencies", ["spark", "local", "plots"])):
        copied = [line.split()[1:-1] for line in stages()[stage] if line.startswith("COPY")]
        assert copied == [[".ci/uv.txt", ".ci/build.txt"], ["pyproject.toml", "uv.lock"]]
        synced = [line for line in stages()[stage] if "uv sync" in line][-1]
        assert re.findall(r"--extra (\S+)", synced) == extras
    assert not any("COPY --from=spark" in line for line in stages()["core"])


def test_every_command_that_builds_the_images_is_one_that_is_there() -> None:
    runs = [line for stage in ("installed", "spark-installed") for line in stages()[stage] if line.startswith("RUN ")]
    commands = [command.split() for line in runs for command in line.removeprefix("RUN ").split(" && ")]
    drover = [words[1:] for words in commands if words[0] == "/opt/drover/bin/drover"]
    assert drover == [["spark", "jars", "--msk"]], "a container with any login fetches nothing"
    takes(drover[0])
    modules = [words[2] for words in commands if words[:2] == ["/opt/drover/bin/python", "-m"]]
    assert [find_spec(module) is not None for module in modules] == [True]
    extras = toml("pyproject.toml")["project"]["optional-dependencies"]
    assert set(re.findall(r"--extra ([\w-]+)", DOCKERFILE)) <= extras.keys()


def test_the_images_hold_byte_code_since_no_container_can_write_its_own() -> None:
    for stage in ("installed", "spark-installed"):
        assert variables(stage)["UV_COMPILE_BYTECODE"] == "1"


def test_any_builder_of_images_can_build_them() -> None:
    """Mounts of other stages are BuildKit's, and Buildah 1.28 does not see stages there that it has kept."""
    assert "--mount" not in DOCKERFILE


def test_no_service_has_more_rights_than_its_user_and_drover_writes_to_memory_only() -> None:
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        if "build" in service:
            assert service["read_only"], name
            assert service["tmpfs"] == ["/tmp", "/home/drover"], name  # noqa: S108 - of the container
