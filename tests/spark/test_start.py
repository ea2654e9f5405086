"""Before Spark runs: one job per directory, the JVM of before gone, a Java that takes Spark's arguments."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from drover.errors import ConfigurationError
from drover.local.certificates import make_certificates
from drover.settings.java_options import java_client_options
from drover.settings.security import Security
from drover.spark import only_one
from drover.spark.files import JobFiles
from drover.spark.java_home import DROPPED, java_home
from drover.spark.only_one import only_job, remember_jvm

SLEEP = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def test_a_second_job_is_refused_and_a_later_one_is_not(tmp_path: Path) -> None:
    files = JobFiles(tmp_path / "job")
    with only_job(files), pytest.raises(ConfigurationError, match="another job"), only_job(files):
        pass
    with only_job(files):
        assert files.lock.exists()


def test_a_directory_that_cannot_be_used_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files = JobFiles(tmp_path / "file" / "job")
    with pytest.raises(ConfigurationError, match=r"file/job \(Not a directory\): .* --dir"), only_job(files):
        pass


def test_a_job_waits_until_the_jvm_of_before_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = JobFiles(tmp_path)
    with subprocess.Popen(SLEEP, stdin=subprocess.PIPE) as process:
        remember_jvm(files, process.pid)
        with monkeypatch.context() as patch:
            patch.setattr(only_one, "JVM_GONE_S", 0.05)
            with pytest.raises(ConfigurationError, match=f"process {process.pid}"), only_job(files):
                pass
        assert process.stdin is not None
        process.stdin.close()
        with only_job(files):
            assert not psutil.pid_exists(process.pid) or process.poll() is not None


def test_another_process_of_the_same_number_is_not_waited_for(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    remember_jvm(files, psutil.Process().pid)
    files.jvm.write_text(files.jvm.read_text().replace('"began_s":', '"began_s":1'))
    with only_job(files):
        assert files.jvm.exists()


def test_the_java_home_runs_java_and_drops_what_not_every_runtime_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path))
    java = java_home() / "bin" / "java"
    done = subprocess.run([java, DROPPED, "-version"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "version" in done.stderr
    assert java_home() / "bin" / "java" == java


def test_the_java_client_is_told_what_the_python_clients_are(tmp_path: Path) -> None:
    made = make_certificates(["me"])
    key, mark, certificates = made.keystores["me"].partition("-----END PRIVATE KEY-----\n")
    for name, text in {"ca.pem": made.authority, "me.pem": certificates, "me.key": key + mark}.items():
        (tmp_path / name).write_text(text)
    password = tmp_path / "password"
    password.write_text('a "quoted" \\ word')
    secure = Security(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="drover",
        sasl_plain_password_file=str(password),
    )
    options = java_client_options(secure, "log.security")
    assert options["security.protocol"] == "SASL_SSL"
    assert options["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="drover" password="a \\"quoted\\" \\\\ word";'
    )
    files = Security(
        security_protocol="SSL",
        ssl_cafile=str(tmp_path / "ca.pem"),
        ssl_certfile=str(tmp_path / "me.pem"),
        ssl_keyfile=str(tmp_path / "me.key"),
    )
    options = java_client_options(files, "log.security")
    assert options["ssl.truststore.certificates"] == made.authority
    assert (options["ssl.keystore.certificate.chain"], options["ssl.keystore.key"]) == (
        certificates,
        key + mark,
    )
    assert java_client_options(Security(), "log.security") == {"security.protocol": "PLAINTEXT"}
    (tmp_path / "me.key").unlink()
    with pytest.raises(ConfigurationError, match="ssl_keyfile"):
        java_client_options(files, "log.security")
