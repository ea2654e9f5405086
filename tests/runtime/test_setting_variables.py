"""Variables: which setting each one names, and that text stays the text that somebody has set."""

import subprocess
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.settings.settings import Settings
from drover.settings.sources import load_settings

PROD = "DROVER_CLUSTERS__PROD__SECURITY__"
FILE = """
[log]
bootstrap = "kafka:9092"

[clusters.prod]
bootstrap = "prod:9092"

[clusters.prod.security]
security_protocol = "SASL_SSL"
sasl_mechanism = "PLAIN"
sasl_plain_username = "drover"
sasl_plain_password = "of the file"
"""
HYPHENS = """
[log]
bootstrap = "kafka:9092"
[clusters.eu-west]
bootstrap = "eu:1"
[clusters."us.east"]
bootstrap = "us:1"
"""


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


def load(text: str, monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    file = Path("drover.toml")
    file.write_text(text)
    return load_settings(file)


def refusal(text: str, monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        load(text, monkeypatch, **variables)
    return str(raised.value)


@pytest.mark.parametrize("text", ["12345678", "true", "1e5", "null", '"quoted"', "[1]", '{"a": 1}', " spaces ", "#;$"])
def test_a_password_that_looks_like_json_is_the_text_that_was_set(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(FILE, monkeypatch, **{f"{PROD}SASL_PLAIN_PASSWORD": text})
    assert settings.clusters["prod"].security.sasl_plain_password == text


@pytest.mark.parametrize("text", ["12345678", "true", "1e5", '"quoted"'])
def test_every_setting_that_holds_text_takes_it_as_it_is(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(
        FILE,
        monkeypatch,
        **{
            f"{PROD}SASL_PLAIN_USERNAME": text,
            f"{PROD}SSL_CAFILE": text,
            "DROVER_WORKER__NAME": text,
            "DROVER_WORKER__GROUP": text,
            "DROVER_ZOOKEEPER__USERNAME": text,
            "DROVER_ZOOKEEPER__PASSWORD": text,
            "DROVER_SPARK__MASTER": text,
            "DROVER_SPARK__DIRECTORY": text,
            "DROVER_SPARK__OPTIONS__KEY": text,
        },
    )
    prod = settings.clusters["prod"].security
    assert [prod.sasl_plain_username, prod.ssl_cafile] == [text] * 2
    assert [settings.worker.name, settings.worker.group] == [text] * 2
    assert [settings.zookeeper.username, settings.zookeeper.password] == [text] * 2
    assert [settings.spark.master, settings.spark.directory, settings.spark.options["key"]] == [text] * 3


def test_numbers_switches_lists_and_nulls_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(
        FILE,
        monkeypatch,
        DROVER_CLUSTERS__PROD__MAX_MOVES_PER_BROKER="7",
        DROVER_CLUSTERS__PROD__MAX_BYTES_IN_FLIGHT="null",
        DROVER_CLUSTERS__PROD__REPAIRS_BY_ITSELF="true",
        DROVER_CLUSTERS__PROD__ADAPTS_TO_HEALTH="off",
        DROVER_CLUSTERS__PROD__STEPPING="swap",
        DROVER_CLUSTERS__PROD__HEALING__ALARM_MS="60000",
        DROVER_PLANNING__DISK_LIMIT="0.5",
        DROVER_WEB__HOSTS='["a.example", "b.example"]',
        DROVER_WEB__PROXIES="10.0.0.1, 10.0.0.2",
    )
    prod = settings.clusters["prod"]
    assert (prod.max_moves_per_broker, prod.max_bytes_in_flight, prod.stepping.value) == (7, None, "swap")
    assert (prod.repairs_by_itself, prod.adapts_to_health) == (True, False)
    assert prod.healing is not None
    assert (prod.healing.alarm_ms, settings.planning.disk_limit) == (60_000, 0.5)
    assert settings.web.hosts == ("a.example", "b.example")
    assert settings.web.proxies == ("10.0.0.1", "10.0.0.2")
    said = refusal(FILE, monkeypatch, DROVER_WORKER__SESSION_TIMEOUT_MS="soon")
    assert "environment variable DROVER_WORKER__SESSION_TIMEOUT_MS" in said


def test_a_section_is_json_and_a_variable_of_one_setting_wins_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(
        '[log]\nbootstrap = "kafka:9092"\n',
        monkeypatch,
        DROVER_CLUSTERS='{"eu-west": {"bootstrap": "eu:1", "max_moves_per_broker": 3}}',
        DROVER_CLUSTERS__EU_WEST__MAX_MOVES_PER_BROKER="4",
        DROVER_LOG='{"prefix": "mine"}',
    )
    assert (settings.log.bootstrap, settings.log.prefix) == ("kafka:9092", "mine")
    assert [(name, one.bootstrap, one.max_moves_per_broker) for name, one in settings.clusters.items()] == [
        ("eu-west", "eu:1", 4)
    ]
    said = refusal(FILE, monkeypatch, DROVER_LOG="kafka:9092")
    assert "DROVER_LOG names a section: write it as JSON, or set one of its settings, such as DROVER_LOG__NAME" in said


def test_a_shell_can_export_the_variable_of_a_cluster_with_a_hyphen_or_a_dot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load(
        HYPHENS,
        monkeypatch,
        DROVER_CLUSTERS__EU_WEST__MAX_MOVES_PER_BROKER="3",
        DROVER_CLUSTERS__US_EAST__MAX_MOVES_PER_BROKER="4",
    )
    assert {name: one.max_moves_per_broker for name, one in settings.clusters.items()} == {"eu-west": 3, "us.east": 4}
    said = refusal(HYPHENS.replace('"eu:1"', "7"), monkeypatch)
    assert "line 5: clusters.eu-west.bootstrap" in said
    said = refusal(HYPHENS.replace('bootstrap = "eu:1"', ""), monkeypatch)
    assert "set DROVER_CLUSTERS__EU_WEST__BOOTSTRAP" in said
    exported = "export DROVER_CLUSTERS__EU_WEST__BOOTSTRAP=x"
    assert subprocess.run(["/bin/sh", "-c", exported], check=False).returncode == 0
    said = refusal(HYPHENS, monkeypatch, DROVER_CLUSTERS__EU_WEST__MAX_MOVES_PER_BROKER="many")
    assert "environment variable DROVER_CLUSTERS__EU_WEST__MAX_MOVES_PER_BROKER" in said


def test_a_cluster_of_exactly_that_name_is_meant_first_and_of_two_others_none_is_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = HYPHENS + '[clusters.eu_west]\nbootstrap = "own:1"\n'
    variable = {"DROVER_CLUSTERS__EU_WEST__MAX_MOVES_PER_BROKER": "3"}
    clusters = load(own, monkeypatch, **variable).clusters
    assert (clusters["eu_west"].max_moves_per_broker, clusters["eu-west"].max_moves_per_broker) == (3, 5)
    two = HYPHENS + '[clusters."eu.west"]\nbootstrap = "other:1"\n'
    assert "may mean the clusters eu-west and eu.west" in refusal(two, monkeypatch, **variable)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("DROVER_LOG__SECURTY__SSL_CAFILE", "did you mean security?"),
        ("DROVER_LOG__BOOTSTRP", "did you mean bootstrap?"),
        ("DROVER_LOG__BOOTSTRAP__HOST", "DROVER_LOG__BOOTSTRAP__HOST names no setting"),
        ("DROVER_CLUSTERS__PROD__SECURITY__SASL_PASSWORD", "did you mean sasl_plain_password?"),
        ("DROVER_LOG_BOOTSTRAP", "did you mean DROVER_LOG__BOOTSTRAP? Two underscores"),
        ("DROVER_WORKER_SESSION_TIMEOUT_MS", "did you mean DROVER_WORKER__SESSION_TIMEOUT_MS?"),
        (
            "DROVER_CLUSTERS_PROD_SECURITY_SASL_PLAIN_PASSWORD",
            "did you mean DROVER_CLUSTERS__PROD__SECURITY__SASL_PLAIN_PASSWORD?",
        ),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_right_one(
    variable: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = refusal(FILE, monkeypatch, **{variable: "x"})
    assert said in words
    assert "x" not in words.split()


def test_variables_that_others_set_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes sets such for services that are called drover-web and drover-log."""
    others = {"DROVER_WEB_PORT": "tcp://10.0.0.1:80", "DROVER_WEB_SERVICE_HOST": "10.0.0.1", "DROVER_LOG_PORT": "1"}
    assert load(FILE, monkeypatch, **others).log.bootstrap == "kafka:9092"
