"""Settings: precedence, what is refused and how it is said, secrets."""

import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from drover.errors import ConfigurationError
from drover.events.commands import is_cluster_name
from drover.jars import cache_directory
from drover.local.certificates import make_certificates
from drover.planner.capacities import Capacity
from drover.planner.goals import Band
from drover.planner.loads import CAPACITIES, Load
from drover.planner.model import BrokerSet
from drover.planner.placement import Placement
from drover.planner.rules import NO_RULES
from drover.settings import sources, trusted_files
from drover.settings.security import Security
from drover.settings.settings import ClusterSettings, LogSettings, Settings, ZooKeeperSettings
from drover.settings.sources import load_settings

LOG = '[log]\nbootstrap = "kafka:9092"\n'
FILE = """
[log]
bootstrap = "kafka:9092"

[clusters.prod]
bootstrap = "prod:9092"
max_moves_per_broker = 7
repairs_by_itself = true

[clusters."eu.west"]
bootstrap = "eu:9092"

[worker]
name = "from-file"
session_timeout_ms = 20000
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "drover.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(autouse=True)
def no_named_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DROVER_CONFIG", raising=False)


def load(file: Path | None, monkeypatch: pytest.MonkeyPatch, **more: str) -> Settings:
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    return load_settings(file)


def complaint(text: str, tmp_path: Path) -> str:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        load_settings(file)
    return str(raised.value)


def test_a_file_with_several_clusters_is_read(file: Path) -> None:
    settings = load_settings(file)
    assert sorted(settings.clusters) == ["eu.west", "prod"]
    assert settings.clusters["prod"].limits.max_moves_per_broker == 7
    assert settings.clusters["eu.west"].limits.max_partitions_in_flight == 1250
    assert settings.clusters["prod"].limits.repairs_by_itself
    assert not settings.clusters["eu.west"].limits.repairs_by_itself
    assert settings.log.connection().client_options["bootstrap_servers"] == ["kafka:9092"]
    assert settings.group == "drover-worker"


def test_flags_win_over_variables_and_variables_over_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"DROVER_WORKER__NAME": "from-variable", "DROVER_WORKER__LISTEN": "127.0.0.1:1"}
    settings = load(file, monkeypatch, **variables)
    assert settings.worker.name == "from-variable"
    flagged = load_settings(file, {"worker": {"name": "from-flag"}})
    assert flagged.worker.name == "from-flag"
    assert flagged.worker.address == ("127.0.0.1", 1)
    assert flagged.worker.session_timeout_ms == 20000


def test_variables_alone_are_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    settings = load(
        None,
        monkeypatch,
        DROVER_LOG__BOOTSTRAP="kafka:1",
        DROVER_CLUSTERS__PROD__BOOTSTRAP="prod:1",
    )
    assert settings.log.bootstrap == "kafka:1"
    assert settings.clusters["prod"].bootstrap == "prod:1"


def test_the_file_is_found_by_variable_then_here_then_in_the_users_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / "drover" / "drover.toml"
    users.parent.mkdir()
    users.write_text(FILE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert sources.find_file(None) == users
    (tmp_path / "drover.toml").write_text(FILE)
    assert sources.find_file(None) == Path("drover.toml")
    monkeypatch.setenv("DROVER_CONFIG", "elsewhere.toml")
    assert sources.find_file(None) == Path("elsewhere.toml")
    assert sources.find_file(Path("flag.toml")) == Path("flag.toml")


def test_an_unknown_key_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    said = complaint('[log]\nbootstap = "a:1"\n', tmp_path)
    assert "log.bootstap is no setting; did you mean bootstrap?" in said
    assert "log.bootstrap is not set; add it to the file or set DROVER_LOG__BOOTSTRAP" in said
    assert str(tmp_path / "bad.toml") in said


def test_an_unknown_section_is_refused(tmp_path: Path) -> None:
    assert "workr is no setting; did you mean worker?" in complaint(FILE + "[workr]\n", tmp_path)


def test_an_unknown_variable_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"DROVER_LGO__BOOTSTRAP names no setting; did you mean log\?"):
        load(file, monkeypatch, DROVER_LGO__BOOTSTRAP="x:1")


def test_a_wrong_value_is_named_with_its_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"environment variable DROVER_WORKER__SESSION_TIMEOUT_MS: .*integer"):
        load(file, monkeypatch, DROVER_WORKER__SESSION_TIMEOUT_MS="soon")


@pytest.mark.parametrize("listen", ["8150", "localhost:", ":1", "localhost:http", "localhost:70000"])
def test_an_address_must_be_host_and_port(listen: str, tmp_path: Path) -> None:
    said = complaint(f'[log]\nbootstrap = "a:1"\n[worker]\nlisten = "{listen}"\n', tmp_path)
    assert "listen must be host:port" in said


def test_a_limit_of_nothing_is_refused(tmp_path: Path) -> None:
    text = '[log]\nbootstrap = "a:1"\n[clusters.x]\nbootstrap = "a:1"\nmax_moves_per_broker = 0\n'
    assert "max_moves_per_broker must be at least 1" in complaint(text, tmp_path)


def test_an_empty_directory_of_spark_is_refused(tmp_path: Path) -> None:
    assert "directory must not be empty" in complaint('[log]\nbootstrap = "a:1"\n[spark]\ndirectory = ""\n', tmp_path)


def test_a_cluster_name_outside_the_contract_is_refused(tmp_path: Path) -> None:
    text = '[log]\nbootstrap = "a:1"\n[clusters.Prod]\nbootstrap = "a:1"\n'
    assert "cluster name 'Prod' must be" in complaint(text, tmp_path)
    assert is_cluster_name("prod-1.eu_x")
    assert not is_cluster_name("-x")


def test_a_file_that_is_no_toml_or_is_not_there_is_named(tmp_path: Path) -> None:
    assert "is not valid TOML" in complaint("[log\n", tmp_path)
    with pytest.raises(ConfigurationError, match=r"gone\.toml cannot be read .*--config"):
        load_settings(tmp_path / "gone.toml")


# Of nobody; what matters is where it turns up.
PASSWORD = "hunter2"  # noqa: S105 - nobody's
SASL = """
[log]
bootstrap = "a:1"
[log.security]
security_protocol = "{protocol}"
sasl_mechanism = "PLAIN"
sasl_plain_username = "me"
sasl_plain_password = "hunter2"
"""


def test_sasl_without_tls_is_refused_unless_allowed(tmp_path: Path) -> None:
    text = SASL.format(protocol="SASL_PLAINTEXT")
    said = complaint(text, tmp_path)
    assert "log.security" in said
    assert "allow_plaintext_sasl = true" in said
    assert PASSWORD not in said
    allowed = tmp_path / "allowed.toml"
    allowed.write_text(text + "allow_plaintext_sasl = true\n")
    security = load_settings(allowed).log.security
    assert security.client_options("log.security")["sasl_plain_password"] == PASSWORD


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "sasl.toml"
    file.write_text(SASL.format(protocol="SASL_SSL"))
    settings = load_settings(file)
    options = settings.log.client_options()
    assert options["sasl_plain_password"] == PASSWORD
    assert options["ssl_context"].check_hostname
    assert options["ssl_context"].verify_mode is ssl.CERT_REQUIRED
    assert PASSWORD not in f"{settings} {settings.log.connection()} {options}", "the clients log their options"


def test_settings_that_have_no_effect_are_refused() -> None:
    with pytest.raises(ValueError, match="TLS files have no effect"):
        Security(ssl_cafile="ca.pem")
    with pytest.raises(ValueError, match="SASL settings have no effect"):
        Security(sasl_plain_username="me")
    with pytest.raises(ValueError, match="SASL_SSL needs"):
        Security(security_protocol="SASL_SSL")


def password_file(tmp_path: Path, content: str) -> LogSettings:
    file = tmp_path / "password"
    file.write_text(content)
    return LogSettings(
        "kafka:1",
        security=Security(
            security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username="me",
            sasl_plain_password_file=str(file),
        ),
    )


def test_a_password_in_a_file_is_read_when_it_is_needed_and_its_line_end_is_none_of_it(tmp_path: Path) -> None:
    log = password_file(tmp_path, f"{PASSWORD}\n")
    assert log.connection().security["sasl_plain_password"] == PASSWORD
    assert PASSWORD not in repr(log.connection())


def test_a_password_file_that_is_empty_or_not_there_is_named(tmp_path: Path) -> None:
    log = password_file(tmp_path, "\n")
    with pytest.raises(ConfigurationError, match=r"log\.security\.sasl_plain_password_file: .*password .*it is empty"):
        log.connection()
    (tmp_path / "password").unlink()
    with pytest.raises(ConfigurationError, match=r"log\.security\.sasl_plain_password_file: .*No such file"):
        log.connection()


def test_two_passwords_are_refused() -> None:
    with pytest.raises(ValueError, match="both set"):
        Security("SASL_SSL", "PLAIN", "me", PASSWORD, "a-file-beside-it")


def test_a_key_and_a_certificate_are_handed_to_the_clients(tmp_path: Path) -> None:
    made = make_certificates(["me"])
    (tmp_path / "ca.pem").write_text(made.authority)
    (tmp_path / "me.pem").write_text(made.keystores["me"])
    authority, mine = str(tmp_path / "ca.pem"), str(tmp_path / "me.pem")
    security = Security(security_protocol="SSL", ssl_cafile=authority, ssl_certfile=mine)
    context = security.client_options("clusters.x.security")["ssl_context"]
    assert [found["subject"] for found in context.get_ca_certs()] == [((("commonName", "drover local authority"),),)]


def test_a_tls_file_that_is_not_there_or_senseless_is_named(tmp_path: Path) -> None:
    log = LogSettings("kafka:1", security=Security(security_protocol="SSL", ssl_cafile="gone.pem"))
    with pytest.raises(
        ConfigurationError, match=r"log\.security\.ssl_cafile: the file gone\.pem cannot be used: No such"
    ):
        log.connection()
    senseless = tmp_path / "senseless.pem"
    senseless.write_text("no certificate")
    security = Security(security_protocol="SSL", ssl_certfile=str(senseless))
    with pytest.raises(
        ConfigurationError, match=r"clusters\.x\.security\.ssl_certfile: .*senseless\.pem .*no certificate"
    ):
        security.client_options("clusters.x.security")


def test_the_disk_limit_of_plans_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    assert load(file, monkeypatch).planning.disk_limit == 0.85
    assert load(file, monkeypatch, DROVER_PLANNING__DISK_LIMIT="0.7").planning.disk_limit == 0.7
    monkeypatch.delenv("DROVER_PLANNING__DISK_LIMIT")
    assert "disk_limit must be above 0 and at most 1" in complaint(f"{FILE}\n[planning]\ndisk_limit = 85\n", tmp_path)


PLANNING = """
[planning.limits]
network-in = 0.6
[planning.bands.all]
above = 0.2
[planning.bands.network-out]
below = 0.3
"""


def test_bands_and_limits_of_loads_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_text(file.read_text() + PLANNING)
    monkeypatch.setenv("DROVER_PLANNING__LIMITS__NETWORK_OUT", "0.5")
    limits = load_settings(file).planning.planner_limits
    assert [limits.limit(load) for load in CAPACITIES] == [0.85, 0.6, 0.5, 0.8]
    assert (limits.band(Load.DISK), limits.band(Load.NETWORK_OUT)) == (Band(0.2, 0.12), Band(0.1, 0.3))
    assert "memory is no load" in complaint(f"{FILE}\n[planning.bands.memory]\nabove = 0.1\n", tmp_path)
    assert "leaders is only compared with" in complaint(f"{FILE}\n[planning.limits]\nleaders = 0.1\n", tmp_path)
    assert "that of disk is 80" in complaint(f"{FILE}\n[planning.limits]\ndisk = 80\n", tmp_path)


ABLE = """
[clusters.prod.capacity.default]
cores = 16
network_in_bytes_per_s = 125e6
[clusters.prod.capacity.brokers.7]
cores = 32
"""


def test_the_capacities_of_brokers_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_text(file.read_text() + ABLE)
    monkeypatch.setenv("DROVER_CLUSTERS__PROD__CAPACITY__DEFAULT__MAX_REPLICAS", "4000")
    said = load_settings(file).clusters["prod"].capacity.capacities
    assert said.of(7) == Capacity(network_in_bytes_per_s=125e6, cores=32, max_replicas=4000)
    assert said.of(8).cores == 16
    for wrong, problem in (("brokers.x]", "named by their ids"), ("brokers.7]\ndisk_bytes = 0\n", "must be above 0")):
        bad = tmp_path / "bad.toml"
        bad.write_text('[clusters.prod]\nbootstrap = "prod:1"\n[clusters.prod.capacity.' + wrong)
        with pytest.raises(ConfigurationError, match=problem):
            load_settings(bad)


PLACED = """
[clusters.prod.placement]
leaders_in_racks = ["a"]
[clusters.prod.placement.broker_sets.gold]
brokers = [1, 2]
topics = ["orders*"]
[planning.limits]
disk = 0.7
"""


def test_plans_and_heals_of_a_cluster_have_the_same_rules_by_its_settings(file: Path) -> None:
    file.write_text(file.read_text() + ABLE + PLACED)
    rules = load_settings(file).rules
    assert rules["prod"].placement == Placement((BrokerSet("gold", (1, 2), ("orders*",)),), (), ("a",))
    assert rules["prod"].capacities.of(7).cores == 32
    assert [each.limits.limit(Load.DISK) for each in rules.values()] == [0.7, 0.7]
    assert (rules["eu.west"].placement, rules["eu.west"].capacities) == (NO_RULES.placement, NO_RULES.capacities)


@pytest.mark.parametrize("bootstrap", ["127.0.0.1", "kafka:", "kafka:http", "a:1,b", "a:1;b:2", ":9092", "k:70000", ""])
def test_an_address_without_its_form_is_refused_with_the_line(bootstrap: str, tmp_path: Path) -> None:
    said = complaint(f'# mine\n[log]\nprefix = "drover"\nbootstrap = "{bootstrap}"\n', tmp_path)
    assert "bootstrap must be host:port" in said
    assert "bad.toml, line 4:" in said


def test_an_unknown_key_is_told_with_its_line(tmp_path: Path) -> None:
    assert "line 5: worker.nme is no setting" in complaint(f'{LOG}\n[worker]\nnme = "x"\n', tmp_path)


def test_without_settings_the_remedy_is_one_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"or set DROVER_LOG__BOOTSTRAP$"):
        load_settings(None)
    monkeypatch.setenv("DROVER_LOG__BOOTSTRAP", "kafka:9092")
    assert load_settings(None).log.bootstrap == "kafka:9092"


def test_a_link_that_flips_to_another_users_file_is_judged_by_the_file_that_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link points at its owner's file whenever it is looked at by name, and at another user's when it is opened."""
    theirs, link = file.with_name("theirs.toml"), file.with_name("link.toml")
    theirs.write_text(file.read_text().replace("kafka:9092", "evil:9092"))
    link.symlink_to(file)
    path_open, theirs_status = Path.open, theirs.stat()

    def open_theirs(self: Path, *arguments: Any, **named: Any) -> Any:
        return path_open(theirs if self == link else self, *arguments, **named)

    monkeypatch.setattr(Path, "open", open_theirs)
    os_fstat = os.fstat

    def fstat_as_theirs(descriptor: int) -> Any:
        status = os_fstat(descriptor)
        if status.st_ino != theirs_status.st_ino:
            return status
        return os.stat_result((*status[:4], status.st_uid + 1, *status[5:]))

    monkeypatch.setattr(os, "fstat", fstat_as_theirs)
    with pytest.raises(ConfigurationError, match="it belongs to user"):
        load_settings(link)


@pytest.mark.parametrize("named", [None, Path("drover.toml")])
def test_a_file_that_others_may_write_is_refused_also_when_it_is_named(
    file: Path, named: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    for mode, writer in ((0o666, "anybody"), (0o664, "its group")):
        file.chmod(mode)
        with pytest.raises(ConfigurationError, match=f"{writer} may write it: chmod go-w"):
            load_settings(named)
    file.chmod(0o644)
    assert load_settings(named).log.bootstrap == "kafka:9092"
    owner = file.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    monkeypatch.setattr(trusted_files, "TRUSTED_OWNERS", frozenset())
    monkeypatch.setenv("DROVER_CONFIG_OWNER", str(owner + 2))
    with pytest.raises(ConfigurationError, match=f"DROVER_CONFIG_OWNER={owner} if that user"):
        load_settings(named)
    for trusted in (str(owner), "any"):
        monkeypatch.setenv("DROVER_CONFIG_OWNER", trusted)
        assert load_settings(named).log.bootstrap == "kafka:9092"


def test_options_of_spark_are_secrets_like_the_others(tmp_path: Path) -> None:
    file = tmp_path / "spark.toml"
    file.write_text(f'{LOG}[spark.options]\n"spark.hadoop.fs.s3a.secret.key" = "hush"\n')
    assert "hush" not in repr(load_settings(file))


def test_what_is_not_encrypted_is_named() -> None:
    secure = Security(security_protocol="SSL")
    clusters = {"prod": ClusterSettings("prod:1", secure), "test": ClusterSettings("test:1")}
    keeper = ZooKeeperSettings(hosts="zk:2181", username="drover", password="x")  # noqa: S106 - no secret
    assert Settings(LogSettings("k:1", security=secure), clusters, zookeeper=keeper).plaintext == (
        "clusters.test",
        "zookeeper (with its password)",
    )


def test_a_user_without_a_home_has_settings_and_is_told_where_jars_would_go(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number that no file of users holds."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "DROVER_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert load_settings(file) == load_settings(file)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match=r"no drover\.toml was found"):
        load_settings()
    with pytest.raises(ConfigurationError, match="DROVER_CACHE_DIR"):
        cache_directory()


def nobody(number: int) -> None:
    raise KeyError(f"getpwuid(): uid not found: {number}")
