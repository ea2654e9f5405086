"""GSSAPI on a real Kafka and a real KDC: the log, a managed cluster and Spark, and what is said without a ticket."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from drover.errors import ConfigurationError
from drover.local import local_cluster
from drover.local.deadline import wait_until
from drover.local.layout import BrokerSpec
from drover.local.ports import HIGHEST_PORT, is_free
from drover.spark.files import JobFiles
from drover.spark.sinks.sqlite import read_standing
from drover.spark.view import open_tables
from drover.testing.commands import DroverProcess, Finished, PythonCommands
from drover.testing.shared_process import SharedProcess
from tests.logins.kerberos import HOST, REALM, Realm, realm

pytestmark = [pytest.mark.cluster, pytest.mark.kerberos, pytest.mark.story, pytest.mark.timeout(600)]

# Java is whole where the system has it; that of the wheel has no Kerberos.
JAVA = {"PATH": os.environ["PATH"]}


@dataclass
class KerberosCluster:
    realm: Realm
    bootstrap: str

    @property
    def flags(self) -> tuple[str, str]:
        return ("--bootstrap-server", self.bootstrap)

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        section = "DROVER_CLUSTERS__DEFAULT__SECURITY__"
        settings = {
            f"{section}SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            f"{section}ALLOW_PLAINTEXT_SASL": "true",
            f"{section}SASL_MECHANISM": "GSSAPI",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        return {**self.realm.environment, **settings, **more}

    async def drover(self, *arguments: str, **environment: str) -> Finished:
        return await PythonCommands().run((*arguments, *self.flags), self.environment(environment), "")

    async def audit(self, **environment: str) -> Finished:
        """Read the log with Spark's Kafka client."""
        return await self.drover("audit", "--section", "commands", "-o", "json", **environment)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kerberos(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KerberosCluster]:
    free = (port for port in range(HIGHEST_PORT + 300, HIGHEST_PORT + 700) if is_free(port))
    ports = {broker: next(free) for broker in (1, 2, 3)}
    with realm(tmp_path_factory.mktemp("realm")) as made, pytest.MonkeyPatch.context() as patch:
        table = made.add(f"kafka/{HOST}")
        made.add("drover")

        def listeners(broker: BrokerSpec) -> str:
            listed = f"PLAINTEXT://127.0.0.1:{broker.port},KERBEROS://{HOST}:{ports[broker.id]}"
            own = "listener.name.kerberos"
            return (
                f"listeners={listed}\nadvertised.listeners={listed}\ninter.broker.listener.name=PLAINTEXT\n"
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,KERBEROS:SASL_PLAINTEXT\n"
                f"{own}.sasl.enabled.mechanisms=GSSAPI\nsasl.kerberos.service.name=kafka\n"
                f"{own}.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required "
                f'useKeyTab=true storeKey=true keyTab="{table}" principal="kafka/{HOST}@{REALM}";\n'
            )

        told = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Djava.security.krb5.conf={made.client_file}"
        patch.setenv("JDK_JAVA_OPTIONS", told.strip())
        place = tmp_path_factory.mktemp("kerberos")
        async with local_cluster(place, 3, start_nodes=SharedProcess(), more_settings=listeners):
            yield KerberosCluster(made, ",".join(f"{HOST}:{port}" for port in ports.values()))


async def test_the_log_and_the_cluster_take_the_ticket(kerberos: KerberosCluster) -> None:
    table = str(kerberos.realm.key_table("drover"))
    done = await kerberos.drover("log", "init", KRB5_CLIENT_KTNAME=table)
    assert done.code == 0, done.errors
    done = await kerberos.drover("doctor", "-o", "json", KRB5_CLIENT_KTNAME=table)
    assert done.code == 0, done.output + done.errors
    done = await kerberos.drover("status", "-o", "json", KRB5_CLIENT_KTNAME=table)
    assert done.code == 0, done.errors


@pytest.mark.parametrize("arguments", [("status",), ("describe",), ("log", "check")], ids=" ".join)
async def test_without_a_ticket_one_sentence_says_so(
    arguments: tuple[str, ...], kerberos: KerberosCluster, tmp_path: Path
) -> None:
    done = await kerberos.drover(*arguments, KRB5CCNAME=f"FILE:{tmp_path / 'none'}")
    assert done.code == 2, done.errors
    assert len(done.errors.strip().splitlines()) == 1
    assert "Kerberos ticket" in done.errors
    assert "No Kerberos credentials available" in done.errors


async def test_an_audit_takes_the_ticket_of_a_cache(kerberos: KerberosCluster) -> None:
    cache = str(kerberos.realm.directory / "of kinit")
    kerberos.realm.run("kinit", "-c", cache, "-k", "-t", str(kerberos.realm.key_table("drover")), "drover")
    environment = {"KRB5CCNAME": f"FILE:{cache}", **JAVA}
    assert (await kerberos.drover("log", "init", **environment)).code == 0
    done = await kerberos.audit(**environment)
    assert done.code == 0, done.errors
    assert json.loads(done.output)


async def test_spark_s_job_takes_the_key_of_a_table(kerberos: KerberosCluster, tmp_path: Path) -> None:
    environment = {"KRB5_CLIENT_KTNAME": f"FILE:{kerberos.realm.key_table('drover')}", **JAVA}
    assert (await kerberos.drover("log", "init", **environment)).code == 0
    log, files = tmp_path / "said.log", JobFiles(tmp_path / "spark")
    arguments = ("spark", "run", "--dir", str(tmp_path / "spark"), *kerberos.flags)
    job = DroverProcess(arguments, kerberos.environment(environment), log, PythonCommands())
    job.start()

    def has_read() -> bool:
        assert job.is_running, log.read_text()
        with suppress(ConfigurationError), open_tables(files) as tables:
            return read_standing(tables) is not None
        return False

    try:
        await wait_until(has_read, what="the first batch of the tables", timeout_s=400)
        assert await job.stop() == 0
    finally:
        await job.kill()


async def test_a_java_without_kerberos_is_named(kerberos: KerberosCluster) -> None:
    table = str(kerberos.realm.key_table("drover"))
    assert (await kerberos.drover("log", "init", KRB5_CLIENT_KTNAME=table)).code == 0
    done = await kerberos.audit(KRB5_CLIENT_KTNAME=table, PATH="", JAVA_HOME="")
    assert done.code == 2, done.errors
    assert "has no module jdk.security.jgss" in done.errors
    assert "Set JAVA_HOME" in done.errors
