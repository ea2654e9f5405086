"""A password that is changed at Kafka and in its file: the next connections of a running process use it."""

import hashlib
import os
from pathlib import Path

import pytest
from kafka.protocol.admin import AlterUserScramCredentialsRequest

from drover.cluster.kafka import KafkaDriver
from drover.errors import ClusterAccessError, LogAccessError
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.settings.security import Security
from tests.secure.support import ITERATIONS, SCRAM_SHA_512, SecureCluster

pytestmark = [pytest.mark.cluster, pytest.mark.story]

USER = "renewing"


async def set_password(secure: SecureCluster, password: str) -> None:
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS)
    upsertion = (USER, SCRAM_SHA_512, ITERATIONS, salt, salted)
    response = await secure._admin(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]))
    assert [result.error_code for result in response.results] == [0]


async def test_a_renewed_password_needs_no_restart(secure: SecureCluster, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    await set_password(secure, "first")
    security = Security(
        "SASL_SSL",
        "SCRAM-SHA-512",
        USER,
        sasl_plain_password_file=str(file),
        ssl_cafile=str(secure.layout.authority_file),
    )
    options = security.client_options("log.security")
    connection = LogConnection(secure.local.bootstrap, TopicNames(), options)

    async def connect() -> None:
        """Connect anew, as clients do that have lost their connections."""
        driver = KafkaDriver("renewed", secure.local.bootstrap, options, call_timeout_ms=20_000)
        try:
            assert len((await driver.identify()).racks) == 3
        finally:
            await driver.close()
        async with LogReader(connection) as reader:
            await reader.partition_counts(("drover.events",))

    await connect()
    await set_password(secure, "second")
    driver = KafkaDriver("refused", secure.local.bootstrap, options, call_timeout_ms=20_000)
    with pytest.raises(ClusterAccessError, match="refuses the user or the password"):
        await driver.identify()
    with pytest.raises(LogAccessError, match="refuses the user"):
        await LogReader(connection).__aenter__()
    file.write_text("second\n")
    assert len((await driver.identify()).racks) == 3, "the same driver goes on"
    await driver.close()
    await connect()
