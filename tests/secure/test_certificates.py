"""Client certificates in the forms that people have, shown to a real Kafka that asks for one."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from drover.jars import KAFKA_VERSION, class_path, ensure, find_java, kafka_set
from drover.settings.java_options import java_client_options
from drover.settings.security import Security
from tests.secure.support import SecureCluster

pytestmark = [pytest.mark.cluster, pytest.mark.story]

NODE = "1"
PASSWORD = "12345678"  # noqa: S105 - of files that this test makes
LONG_S = 120


def forms_of(secure: SecureCluster, directory: Path) -> dict[str, dict[str, str]]:
    """Write a node's certificate, which its peers must be shown, as PKCS #12 and with keys that are encrypted."""
    pem = secure.layout.keystore_file(NODE).read_bytes()
    key = load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    own, *others = x509.load_pem_x509_certificates(pem)
    encrypted = BestAvailableEncryption(PASSWORD.encode())
    store, certificate = directory / "node.p12", directory / "node.pem"
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"node", key, own, others, encrypted))
    certificate.write_bytes(b"".join(one.public_bytes(Encoding.PEM) for one in (own, *others)))
    forms = {"pkcs12": {"ssl_certfile": str(store)}}
    for name, form in (("pkcs8", PrivateFormat.PKCS8), ("openssl", PrivateFormat.TraditionalOpenSSL)):
        file = directory / f"{name}.key"
        file.write_bytes(key.private_bytes(Encoding.PEM, form, encrypted))
        forms[name] = {"ssl_certfile": str(certificate), "ssl_keyfile": str(file)}
    return forms


def settings_file(secure: SecureCluster, directory: Path, name: str, form: Mapping[str, str]) -> Path:
    broker = secure.local.spec.brokers[0]
    security = {"security_protocol": "SSL", "ssl_cafile": str(secure.layout.authority_file), **form}
    lines = [f"{setting} = {json.dumps(value)}" for setting, value in security.items()]
    sections = (
        [f"[{section}]", f'bootstrap = "127.0.0.1:{broker.internal_port}"', f"[{section}.security]", *lines]
        for section in ("log", "clusters.eu-west")
    )
    file = directory / f"{name}.toml"
    file.write_text("\n".join(line for section in sections for line in section))
    return file


@pytest.mark.parametrize("form", ["pkcs12", "pkcs8", "openssl"])
async def test_kafka_is_shown_the_certificate(
    form: str, secure: SecureCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = forms_of(secure, tmp_path)[form]
    config = settings_file(secure, tmp_path, form, files)
    refused = await secure.drover("describe", "-o", "json", config=config)
    assert refused.code == 2
    assert "set ssl_key_password or ssl_key_password_file" in refused.errors
    monkeypatch.setenv("DROVER_LOG__SECURITY__SSL_KEY_PASSWORD", PASSWORD)
    monkeypatch.setenv("DROVER_CLUSTERS__EU_WEST__SECURITY__SSL_KEY_PASSWORD", PASSWORD)
    shown = await secure.drover("describe", "-o", "json", config=config)
    assert shown.code == 0, shown.errors
    assert json.loads(shown.output)["version"] == 1
    checked = await secure.drover("log", "check", config=config)
    assert "denied" not in checked.errors
    assert "cannot be reached" not in checked.errors


@pytest.mark.parametrize("form", ["pkcs12", "pkcs8", "openssl"])
async def test_kafkas_java_client_shows_the_certificate_too(form: str, secure: SecureCluster, tmp_path: Path) -> None:
    spec, files = secure.local.spec, forms_of(secure, tmp_path)[form]
    security = Security(
        security_protocol="SSL",
        ssl_cafile=str(secure.layout.authority_file),
        ssl_certfile=files["ssl_certfile"],
        ssl_keyfile=files.get("ssl_keyfile"),
        ssl_key_password=PASSWORD,
    )
    options = java_client_options(security, "log.security")
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{name}={value!r}\n".replace("'", "") for name, value in options.items()))
    process = await asyncio.create_subprocess_exec(
        *(str(find_java()), "org.apache.kafka.tools.ClusterTool", "cluster-id", "--config", str(properties)),
        *("--bootstrap-server", f"127.0.0.1:{spec.brokers[0].internal_port}"),
        env={**os.environ, "CLASSPATH": class_path(ensure(kafka_set(KAFKA_VERSION)))},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(LONG_S):
        said, _ = await process.communicate()
    assert f"Cluster ID: {spec.cluster_id}" in said.decode()
