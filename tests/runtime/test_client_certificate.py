"""Client certificates in the forms that people have: what a handshake shows, and what is refused how."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from drover.errors import ConfigurationError
from drover.local.certificates import make_certificates
from drover.settings.java_options import java_client_options
from drover.settings.security import Security
from drover.settings.settings import ZooKeeperSettings

PASSWORD = "12345678"  # noqa: S105 - of a key that this test makes
ENCRYPTED = BestAvailableEncryption(PASSWORD.encode())
SECTION = "log.security"


@dataclass
class Files:
    """An authority, a server that trusts it, and one client's certificate and key."""

    directory: Path

    def __post_init__(self) -> None:
        made = make_certificates(["server", "me", "other"])
        self.authority = self.write("ca.pem", made.authority)
        self.server = self.write("server.pem", made.keystores["server"])
        self.other = self.write("other.pem", made.keystores["other"])
        text = made.keystores["me"]
        key = load_pem_private_key(text.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self.key = key
        self.chain = x509.load_pem_x509_certificates(text.encode())
        self.certificate = self.write("me.pem", "".join(one.public_bytes(Encoding.PEM).decode() for one in self.chain))

    def write(self, name: str, content: str | bytes) -> str:
        file = self.directory / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(file)

    def key_file(self, form: PrivateFormat, encryption: KeySerializationEncryption) -> str:
        return self.write("me.key", self.key.private_bytes(Encoding.PEM, form, encryption))

    def pkcs12(self, encryption: KeySerializationEncryption) -> str:
        own, *others = self.chain
        return self.write("me.p12", pkcs12.serialize_key_and_certificates(b"me", self.key, own, others, encryption))

    def security(self, certificate: str, key: str | None = None, password: str | None = None) -> Security:
        return Security(
            security_protocol="SSL",
            ssl_cafile=self.authority,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            ssl_key_password=password,
        )

    def shown_by(self, security: Security) -> str:
        """Return the name in the certificate that a server is shown, in a real handshake."""
        server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.authority)
        server_context.verify_mode = ssl.CERT_REQUIRED
        server_context.load_cert_chain(self.server)
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = security.client_options(SECTION)["ssl_context"].wrap_bio(back, there, server_hostname="localhost")
        server = server_context.wrap_bio(there, back, server_side=True)
        waiting = [client, server]
        while waiting:
            for end in tuple(waiting):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                waiting.remove(end)
        shown = server.getpeercert(binary_form=True)
        assert shown is not None
        return x509.load_der_x509_certificate(shown).subject.rfc4514_string()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def refusal(security: Security) -> str:
    with pytest.raises(ConfigurationError) as raised:
        security.client_options(SECTION)
    assert PASSWORD not in str(raised.value)
    return str(raised.value)


def test_a_key_that_is_not_encrypted_needs_no_password(files: Files) -> None:
    for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL):
        key = files.key_file(form, NoEncryption())
        assert files.shown_by(files.security(files.certificate, key)) == "CN=me"
        assert files.shown_by(files.security(files.certificate, key, "needless")) == "CN=me"


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_an_encrypted_key_is_opened_with_its_password(form: PrivateFormat, files: Files) -> None:
    key = files.key_file(form, ENCRYPTED)
    assert files.shown_by(files.security(files.certificate, key, PASSWORD)) == "CN=me"
    both = files.write("both.pem", Path(files.certificate).read_bytes() + Path(key).read_bytes())
    assert files.shown_by(files.security(both, password=PASSWORD)) == "CN=me"


def test_the_password_of_a_key_may_be_in_a_file(files: Files) -> None:
    key = files.key_file(PrivateFormat.PKCS8, ENCRYPTED)
    security = Security(
        security_protocol="SSL",
        ssl_cafile=files.authority,
        ssl_certfile=files.certificate,
        ssl_keyfile=key,
        ssl_key_password_file=files.write("password", f"{PASSWORD}\r\n".encode("utf-8-sig")),
    )
    assert files.shown_by(security) == "CN=me"
    files.write("password", "\n")
    assert "ssl_key_password_file: the file" in refusal(security)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_an_encrypted_key_without_a_password_is_refused_and_nobody_is_asked(form: PrivateFormat, files: Files) -> None:
    key = files.key_file(form, ENCRYPTED)
    assert refusal(files.security(files.certificate, key)) == (
        f"log.security.ssl_keyfile: the file {key} cannot be used: the key is encrypted; "
        "set ssl_key_password or ssl_key_password_file"
    )
    both = files.write("both.pem", Path(files.certificate).read_bytes() + Path(key).read_bytes())
    assert f"log.security.ssl_certfile: the file {both} cannot be used: the key is encrypted; set" in refusal(
        files.security(both)
    )
    assert f"{key} cannot be used: ssl_key_password or ssl_key_password_file does not open it" in refusal(
        files.security(files.certificate, key, "wrong")
    )


def test_pkcs12_is_read_with_its_password_and_leaves_no_file_behind(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert files.shown_by(files.security(files.pkcs12(ENCRYPTED), password=PASSWORD)) == "CN=me"
    assert files.shown_by(files.security(files.pkcs12(NoEncryption()))) == "CN=me"
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert "TMPDIR names the directory" in refusal(files.security(files.pkcs12(NoEncryption())))


def test_pkcs12_that_cannot_be_used_says_what_is_wrong(files: Files) -> None:
    store = files.pkcs12(ENCRYPTED)
    assert f"{store} cannot be used: it is PKCS #12 and encrypted; set ssl_key_password or" in refusal(
        files.security(store)
    )
    assert "does not open it" in refusal(files.security(store, password="wrong"))  # noqa: S106 - no password
    key = files.key_file(PrivateFormat.PKCS8, NoEncryption())
    assert f"ssl_keyfile has no effect: {store} is PKCS #12, which holds the key, too" in refusal(
        files.security(store, key, PASSWORD)
    )
    trust = files.write("trust.p12", pkcs12.serialize_key_and_certificates(None, None, None, files.chain, ENCRYPTED))
    assert "without a certificate and its key" in refusal(files.security(trust, password=PASSWORD))
    authorities = Security(security_protocol="SSL", ssl_cafile=trust)
    assert "it is PKCS #12 and encrypted; set ssl_ca_password or ssl_ca_password_file" in refusal(authorities)
    authorities = Security(security_protocol="SSL", ssl_cafile=trust, ssl_ca_password="wrong")  # noqa: S106 - no password
    assert "or ssl_ca_password or ssl_ca_password_file does not open it" in refusal(authorities)
    nothing = files.write("key.p12", pkcs12.serialize_key_and_certificates(b"me", files.key, None, None, ENCRYPTED))
    authorities = Security(security_protocol="SSL", ssl_cafile=nothing, ssl_ca_password=PASSWORD)
    assert "it is PKCS #12 without a certificate" in refusal(authorities)


def test_authorities_may_be_pkcs12_as_java_has_them(files: Files) -> None:
    trust = files.write("trust.p12", pkcs12.serialize_key_and_certificates(None, None, None, files.chain, ENCRYPTED))
    security = Security(security_protocol="SSL", ssl_cafile=trust, ssl_ca_password=PASSWORD)
    trusted = security.client_options(SECTION)["ssl_context"].get_ca_certs()
    assert ((("commonName", "drover local authority"),),) in [each["subject"] for each in trusted]
    told = java_client_options(security, SECTION)["ssl.truststore.certificates"]
    assert x509.load_pem_x509_certificates(told.encode()) == files.chain


def test_a_java_key_store_gets_the_command_that_converts_it(files: Files) -> None:
    store = files.write("me.jks", b"\xfe\xed\xfe\xed\x00\x00\x00\x02rest")
    command = f"keytool -importkeystore -srckeystore {store} -destkeystore client.p12 -deststoretype PKCS12"
    assert command in refusal(files.security(store))
    authorities = Security(security_protocol="SSL", ssl_cafile=store)
    assert f"ssl_cafile: the file {store} cannot be used: it is a Java trust store" in refusal(authorities)
    with pytest.raises(ConfigurationError, match="keytool -list"):
        java_client_options(authorities, SECTION)


def test_the_file_that_is_wrong_is_the_one_that_is_named(files: Files) -> None:
    key = files.key_file(PrivateFormat.PKCS8, NoEncryption())
    der = files.write("me.der", files.chain[0].public_bytes(Encoding.DER))
    assert f"ssl_certfile: the file {der} cannot be used: it holds no certificate: it must be PEM or PKCS #12" in (
        refusal(files.security(der, key))
    )
    assert f"ssl_keyfile: the file {files.authority} cannot be used: it holds no private key in PEM" in refusal(
        files.security(files.certificate, files.authority)
    )
    assert "name the key's file in log.security.ssl_keyfile" in refusal(files.security(files.certificate))
    assert f"ssl_keyfile: the file {files.other} cannot be used: it is not the key of the certificate in" in refusal(
        files.security(files.certificate, files.other)
    )
    gone = str(files.directory / "gone.key")
    assert f"ssl_keyfile: the file {gone} cannot be used: No such file" in refusal(
        files.security(files.certificate, gone)
    )
    damaged = files.write("damaged.key", Path(key).read_bytes().replace(b"M", b"A"))
    assert f"ssl_keyfile: the file {damaged} cannot be used" in refusal(files.security(files.certificate, damaged))


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("encryption", [ENCRYPTED, NoEncryption()], ids=["encrypted", "plain"])
def test_java_gets_every_key_in_the_one_form_that_it_reads(
    form: PrivateFormat, encryption: KeySerializationEncryption, files: Files
) -> None:
    plain = files.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    pem = files.security(files.certificate, files.key_file(form, encryption), PASSWORD)
    store = files.security(files.pkcs12(encryption), password=None if encryption is not ENCRYPTED else PASSWORD)
    for security in (pem, store):
        options = java_client_options(security, SECTION)
        assert options["ssl.keystore.key"] == plain
        assert x509.load_pem_x509_certificates(options["ssl.keystore.certificate.chain"].encode()) == files.chain


def test_the_password_of_a_key_is_a_secret_and_needs_a_key(files: Files) -> None:
    security = files.security(files.certificate, password=PASSWORD)
    assert PASSWORD not in repr(security)
    with pytest.raises(ValueError, match="ssl_key_password has no effect without ssl_certfile"):
        Security(security_protocol="SSL", ssl_key_password=PASSWORD)
    with pytest.raises(ValueError, match="ssl_key_password and ssl_key_password_file are both set"):
        Security("SSL", ssl_certfile="me.p12", ssl_key_password=PASSWORD, ssl_key_password_file="file")  # noqa: S106
    with pytest.raises(ValueError, match="no effect with security_protocol = PLAINTEXT"):
        Security(ssl_key_password_file="file")  # noqa: S106 - no password


def test_the_client_of_zookeeper_asks_nobody_for_a_password_either(files: Files) -> None:
    key = files.key_file(PrivateFormat.PKCS8, ENCRYPTED)

    def keeper(certificate: str, password: str | None) -> ZooKeeperSettings:
        return ZooKeeperSettings("zk:1", use_tls=True, cert_file=certificate, key_file=key, key_password=password)

    with pytest.raises(ConfigurationError, match=r"zookeeper\.key_file: .* the key is encrypted; set key_password"):
        keeper(files.certificate, None).options()
    assert keeper(files.certificate, PASSWORD).options().key_password == PASSWORD
    assert PASSWORD not in repr(keeper(files.certificate, PASSWORD))
    with pytest.raises(ValueError, match="key_password has no effect without key_file"):
        ZooKeeperSettings("zk:1", key_password=PASSWORD)
