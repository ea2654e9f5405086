"""The manifests that are made of the chart: commands, ports, probes, secrets and rights, without a Kubernetes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from drover.settings.sources import load_settings
from tests.architecture.test_tooling import toml
from tests.deploy.manifests import CHART, MANIFESTS, VALUES, digest, find_helm, helm, made, template
from tests.docker.parsing import takes
from tests.docker.test_compose import variables

TEXT = MANIFESTS.read_text(encoding="utf-8")
OBJECTS: list[dict[str, Any]] = [each for each in yaml.safe_load_all(TEXT) if each is not None]
# The ports at which the image listens, by the role of a pod.
LISTENS = {"worker": "DROVER_WORKER__LISTEN", "projection": "DROVER_ZOOKEEPER__LISTEN", "page": "DROVER_WEB__LISTEN"}
ROLES = {*LISTENS, "spark"}


def of(kind: str) -> dict[str, dict[str, Any]]:
    """The specs of one kind, by role."""
    return {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]
        for each in OBJECTS
        if each["kind"] == kind
    }


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Role, pod and container of everything that runs."""
    for role, spec in {**of("StatefulSet"), **of("Deployment")}.items():
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        yield role, pod, container


def test_the_manifests_were_made_of_the_chart_as_it_is() -> None:
    assert f"digest {digest()}." in TEXT, "make manifests"


def test_every_role_runs_a_command_that_drover_takes() -> None:
    assert {role for role, _, _ in pods()} == ROLES
    for _, _, container in pods():
        takes(container["args"])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            command = container.get(probe, {}).get("exec", {}).get("command")
            if command is not None:
                assert command[0] == "drover"
                takes(command[1:])


def test_probes_and_services_name_the_ports_at_which_the_image_listens() -> None:
    image = variables("core")
    for role, _, container in pods():
        if role == "spark":
            assert container["livenessProbe"]["exec"]["command"] == ["drover", "healthcheck", "spark"]
            continue
        (port,) = container["ports"]
        assert image[LISTENS[role]].endswith(f":{port['containerPort']}")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == port["name"]
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
        assert container["readinessProbe"]["httpGet"]["path"] == ("/livez" if role == "page" else "/readyz")
        (served,) = of("Service")[role]["ports"]
        assert (served["port"], served["targetPort"]) == (port["containerPort"], port["name"])


def test_the_page_is_asked_under_a_name_that_it_answers_for() -> None:
    (asked,) = [container["livenessProbe"]["httpGet"] for role, _, container in pods() if role == "page"]
    assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


def test_a_worker_has_time_to_stop_and_others_stay_while_a_node_is_drained() -> None:
    """It ends by itself within 15 s of SIGTERM, which Kubernetes sends to the program itself."""
    for role, pod, container in pods():
        assert pod["terminationGracePeriodSeconds"] > 15
        assert "command" not in container, "the image's own: no shell in between would pass a signal on"
        if role in {"worker", "projection"}:
            assert of("PodDisruptionBudget")[role]["maxUnavailable"] == 1
    assert of("StatefulSet")["worker"]["replicas"] >= 2
    assert of("StatefulSet")["spark"]["replicas"] == 1, "one job per directory"


def test_no_pod_has_rights_that_it_does_not_need() -> None:
    for role, pod, container in pods():
        assert not pod["automountServiceAccountToken"], role
        assert pod["securityContext"]["runAsNonRoot"], role
        assert pod["securityContext"]["runAsUser"] == 10001, role
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, role
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
        }, role  # fmt: skip
        assert {"requests", "limits"} == container["resources"].keys(), role
        name, tag = container["image"].split(":")
        assert name == ("drover-spark" if role == "spark" else "drover")
        assert tag == toml("pyproject.toml")["project"]["version"]


def test_settings_and_secrets_are_where_drover_looks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (settings,) = [each["data"]["drover.toml"] for each in OBJECTS if each["kind"] == "ConfigMap"]
    file = tmp_path / "drover.toml"
    file.write_text(settings, encoding="utf-8")
    monkeypatch.setenv("DROVER_ZOOKEEPER__PASSWORD", "from the Secret")
    assert load_settings(file).zookeeper.options().hosts == "zookeeper:2181"
    for role, pod, container in pods():
        environment = {each["name"]: each.get("value") for each in container["env"]}
        mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
        assert mounts[str(environment["DROVER_CONFIG"])]["readOnly"], role
        assert container["envFrom"] == [{"secretRef": {"name": "drover-passwords"}}]
        volumes = {each["name"] for each in pod["volumes"]}
        volumes |= {
            each["metadata"]["name"] for each in of("StatefulSet").get(role, {}).get("volumeClaimTemplates", ())
        }
        assert {each["name"] for each in container["volumeMounts"]} == volumes, role
        if role == "spark":
            assert variables("spark")["DROVER_SPARK__DIRECTORY"] in mounts


def test_every_selector_names_the_pods_of_its_role() -> None:
    labels = {
        role: spec["template"]["metadata"]["labels"] for role, spec in {**of("StatefulSet"), **of("Deployment")}.items()
    }
    selected: dict[str, Callable[[dict[str, Any]], dict[str, str]]] = {
        "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
        "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
        "Service": lambda spec: spec["selector"],
        "StatefulSet": lambda spec: spec["selector"]["matchLabels"],
        "Deployment": lambda spec: spec["selector"]["matchLabels"],
    }
    for kind, selector in selected.items():
        for role, spec in of(kind).items():
            assert selector(spec).items() <= labels[role].items(), (kind, role)
            assert not any(selector(spec).items() <= labels[other].items() for other in labels if other != role)


def test_nobody_reaches_a_pod_but_who_is_named_and_it_reaches_kafka() -> None:
    policies = of("NetworkPolicy")
    assert policies.keys() == ROLES
    for role, policy in policies.items():
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        ports = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
        assert ports >= {53, 9092, 2181}
        if role in {"worker", "projection"}:
            (rule,) = policy["ingress"]
            ((port,),) = [[each["port"] for each in rule["ports"]]]
            assert variables("core")[LISTENS[role]].endswith(f":{port}")
        else:
            assert policy["ingress"] == [], "nobody, unless the values name somebody"


def test_prometheus_is_told_of_what_has_metrics() -> None:
    assert of("ServiceMonitor").keys() == {"worker", "projection"}
    for role, monitor in of("ServiceMonitor").items():
        (endpoint,) = monitor["endpoints"]
        assert endpoint["path"] == "/metrics"
        assert endpoint["port"] == of("Service")[role]["ports"][0]["name"]


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == toml("pyproject.toml")["project"]["version"]


def test_helm_agrees_where_it_is_there() -> None:
    """`make helm` builds it with Go. Where it is not, the tests above have read what it made."""
    if find_helm() is None:
        return
    assert made() == TEXT
    for values in ((), ("--values", str(VALUES))):
        assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), *values)
    with pytest.raises(AssertionError, match="nonsense"):
        helm("lint", str(CHART), "--set", "worker.nonsense=1")
    alone = list(yaml.safe_load_all(template()))
    kinds = sorted(each["kind"] for each in alone if each is not None)
    assert kinds == sorted(
        [
            "ConfigMap",
            "Deployment",
            "StatefulSet",
            "Service",
            "Service",
            "PodDisruptionBudget",
            "NetworkPolicy",
            "NetworkPolicy",
        ]
    )
