"""Passwords and certificates are read again once their files have changed; what cannot be read changes nothing."""

import asyncio
import logging
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from drover.journal.login import connect
from drover.local.certificates import make_certificates
from drover.logins import ChangingSecret
from drover.settings.security import Security
from tests.runtime.test_client_certificate import Files

SECTION = "log.security"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def shown(context: ssl.SSLContext, files: Files) -> str:
    """Shake hands in memory; return the name in the certificate that the server was shown."""
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.authority)
    server_context.load_cert_chain(files.server)
    server_context.verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = context.wrap_bio(to_client, to_server, server_hostname="localhost")
    waiting = [client.do_handshake, server.do_handshake]
    while waiting:
        for step in tuple(waiting):
            try:
                step()
                waiting.remove(step)
            except ssl.SSLWantReadError:
                continue
    content = server.getpeercert(binary_form=True)
    assert content is not None
    (name,) = x509.load_der_x509_certificate(content).subject
    return str(name.value)


def test_a_renewed_certificate_is_shown_by_the_next_connection(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    mine = files.directory / "mine.pem"
    mine.write_bytes(Path(files.other).read_bytes())
    security = Security("SSL", ssl_cafile=files.authority, ssl_certfile=str(mine))
    context = security.client_options(SECTION)["ssl_context"]
    assert shown(context, files) == "other"
    with caplog.at_level(logging.WARNING):
        mine.write_text("half of a")
        assert shown(context, files) == shown(context, files) == "other"
        assert [record.message.partition(":")[0] for record in caplog.records] == [
            "connections keep the certificates that were read before"
        ]
        mine.write_bytes(Path(files.server).read_bytes())
        assert shown(context, files) == "server"
        assert len(caplog.records) == 1


def test_an_authority_that_is_replaced_is_trusted_by_the_next_connection(files: Files) -> None:
    trusted = files.directory / "trusted.pem"
    trusted.write_text(make_certificates(["x"]).authority)
    context = Security("SSL", ssl_cafile=str(trusted), ssl_certfile=files.other).client_options(SECTION)["ssl_context"]
    with pytest.raises(ssl.SSLCertVerificationError):
        shown(context, files)
    trusted.write_bytes(Path(files.authority).read_bytes())
    assert shown(context, files) == "other"


def test_a_renewed_password_is_the_one_of_the_next_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    security = Security("SASL_SSL", "PLAIN", "me", sasl_plain_password_file=str(file))
    password = security.client_options(SECTION)["sasl_plain_password"]
    assert isinstance(password, ChangingSecret)
    assert (password, password.now()) == ("first", "first")
    file.write_text("second\n")
    assert password.now() == "second"
    file.unlink()
    with caplog.at_level(logging.WARNING):
        assert password.now() == password.now() == "second"
    assert len(caplog.records) == 1
    assert "second" not in caplog.text + repr(password)


async def test_aiokafka_logs_in_with_the_password_of_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    from aiokafka import client  # noqa: PLC0415 - to see what its clients call

    seen: list[object] = []

    async def create(_host: str, _port: int, **options: object) -> None:
        seen.append(options["sasl_plain_password"])
        await asyncio.sleep(0)

    words = iter(("first", "second"))
    monkeypatch.setattr("drover.journal.login.create_conn", create)
    assert client.create_conn is connect
    for _ in range(2):
        await client.create_conn("kafka", 1, sasl_plain_password=ChangingSecret("first", lambda: next(words)))
    assert seen == ["first", "second"]
