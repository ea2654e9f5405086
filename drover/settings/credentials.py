"""Passwords and client certificates, and the files that hold them.

A certificate and its key are PEM or PKCS #12, encrypted or not. Other formats are refused, and so is an encrypted key
without its password, because OpenSSL would ask for it on the terminal and ignore signals meanwhile.
"""

import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from drover.errors import ConfigurationError
from drover.logins import Secret
from drover.text_files import decode_text

if TYPE_CHECKING:
    from ssl import SSLContext

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

# Includes the older form of trusted certificates.
_CERTIFICATE = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----")
_KEY = re.compile(rb"-----BEGIN ((?:[A-Z0-9]+ )*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
# The first bytes of Java's own key stores: JKS and JCEKS.
_JAVA_STORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
# Of PKCS #12: a sequence that begins with the version 3.
_PKCS12 = re.compile(rb"\x30(?:[\x00-\x80]|\x81.|\x82..|\x83...|\x84....)\x02\x01\x03", re.DOTALL)


def unusable(section: str, setting: str, file: str, why: str) -> ConfigurationError:
    """Return the error for an unusable file of a setting."""
    return ConfigurationError(f"{section}.{setting}: the file {file} cannot be used: {why}")


def read_file(section: str, setting: str, file: str) -> bytes:
    """Read the file of a setting. Raises `ConfigurationError` that names both."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise unusable(section, setting, file, f"{error.strerror}; correct it or name another") from error


def read_secret(section: str, setting: str, text: str | None, file: str | None) -> Secret | None:
    """Return the password of a setting: its text, or the content of the file in `setting` + `_file` without a line end.

    None if neither is set. Raises `ConfigurationError` for a file that cannot be read or is empty.
    """
    if file is None:
        return Secret(text) if text else None
    setting = f"{setting}_file"
    try:
        password = decode_text(read_file(section, setting, file)).rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise unusable(section, setting, file, "it is not UTF-8 text") from error
    if not password:
        raise unusable(section, setting, file, "it is empty")
    return Secret(password)


@dataclass(frozen=True, slots=True)
class SettingNames:
    """The names of a certificate's settings in messages; `section` is their section."""

    section: str
    certificate: str = "ssl_certfile"
    key: str = "ssl_keyfile"
    password: str = "ssl_key_password or ssl_key_password_file"  # noqa: S105 - names of settings


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """The files of a client's certificate; without `key_file` the first one holds the key, too.

    Every method reads the files, and raises `ConfigurationError` that names file, setting and remedy.
    """

    names: SettingNames
    certificate_file: str
    key_file: str | None = None
    password: Secret | None = None

    def load_into(self, context: "SSLContext") -> None:
        """Load the certificate into a TLS context."""
        certificate, key = self._read()
        if key is not None:
            self._load_pem(context)
            return
        chain, plain = self._pkcs12(certificate)
        from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415 - costs start-up time

        # OpenSSL reads only files. This one is readable by its owner only, and its key is encrypted.
        passphrase = secrets.token_hex(32).encode()
        encrypted = plain.private_bytes(
            forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(passphrase)
        )
        try:
            with tempfile.NamedTemporaryFile() as file:
                file.write(encrypted + chain)
                file.flush()
                context.load_cert_chain(file.name, password=passphrase)
        except OSError as error:
            raise self._unusable(f"{error}; it takes a temporary file, for which TMPDIR names the directory") from error

    def check_pem(self) -> None:
        """Refuse files that a client could not read by itself."""
        import ssl  # noqa: PLC0415 - costs start-up time and few need it

        _, key = self._read()
        if key is None:
            command = f"openssl pkcs12 -in {self.certificate_file} -noenc -out client.pem"
            raise self._unusable(f"it is PKCS #12, but must be PEM here; convert it with: {command}")
        self._load_pem(ssl.create_default_context())

    def texts(self) -> tuple[str, str]:
        """Return the certificates and the key as PEM; the key is PKCS #8 and not encrypted, as Java reads it."""
        from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415 - costs start-up time

        certificate, key = self._read()
        chain, plain = self._pkcs12(certificate) if key is None else (certificate, self._plain(key))
        text = plain.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
        return chain.decode("ascii", errors="replace"), text.decode()

    def _read(self) -> tuple[bytes, bytes | None]:
        """Return the certificate's file, and the key in PEM; no key if the file is PKCS #12 and holds both."""
        names = self.names
        certificate = read_file(names.section, names.certificate, self.certificate_file)
        if certificate.startswith(_JAVA_STORES):
            command = (
                f"keytool -importkeystore -srckeystore {self.certificate_file} -destkeystore client.p12 "
                "-deststoretype PKCS12"
            )
            raise self._unusable(f"it is a Java key store; convert it to PKCS #12, and name that file: {command}")
        if _PKCS12.match(certificate):
            if self.key_file is not None:
                raise ConfigurationError(
                    f"{names.section}.{names.key} has no effect: {self.certificate_file} is PKCS #12, which holds the "
                    "key, too; leave it out"
                )
            return certificate, None
        if _CERTIFICATE.search(certificate) is None:
            raise self._unusable("it holds no certificate: it must be PEM or PKCS #12")
        holder = certificate if self.key_file is None else read_file(names.section, names.key, self.key_file)
        key = _KEY.search(holder)
        if key is None and self.key_file is None:
            raise self._unusable(f"it holds no private key: name the key's file in {names.section}.{names.key}")
        if key is None:
            raise self._wrong_key("it holds no private key in PEM")
        if _is_encrypted(key[0]) and self.password is None:
            raise self._wrong_key(f"the key is encrypted; set {names.password}")
        return certificate, key[0]

    def _load_pem(self, context: "SSLContext") -> None:
        import ssl  # noqa: PLC0415 - see above

        try:
            # Without a password OpenSSL would ask for one.
            context.load_cert_chain(self.certificate_file, self.key_file, password=self.password or "")
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise self._wrong_key(f"it is not the key of the certificate in {self.certificate_file}") from error
            _, key = self._read()
            # OpenSSL does not say which of the two files it means.
            if key is not None:
                self._plain(key)
            raise self._unusable(str(error)) from error

    def _plain(self, key: bytes) -> "PrivateKeyTypes":
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - costs start-up time
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - the same

        try:
            return load_pem_private_key(key, (self.password or "").encode() if _is_encrypted(key) else None)
        except (ValueError, UnsupportedAlgorithm) as error:
            opened = f"{self.names.password} does not open it" if _is_encrypted(key) else f"{error}"
            raise self._wrong_key(opened) from error

    def _pkcs12(self, content: bytes) -> tuple[bytes, "PrivateKeyTypes"]:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - costs start-up time
        from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - the same
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12  # noqa: PLC0415 - the same

        try:
            bundle = load_pkcs12(content, None if self.password is None else self.password.encode())
        except ValueError as error:
            if self.password is None:
                raise self._unusable(f"it is PKCS #12 and encrypted; set {self.names.password}") from error
            raise self._unusable(f"it is damaged PKCS #12, or {self.names.password} does not open it") from error
        except UnsupportedAlgorithm as error:
            command = f"openssl pkcs12 -legacy -in {self.certificate_file} -out client.pem"
            raise self._unusable(f"its encryption is outdated ({error}); convert it to PEM: {command}") from error
        if bundle.key is None or bundle.cert is None:
            raise self._unusable("it is PKCS #12 without a certificate and its key: a trust store?")
        chain = (bundle.cert, *bundle.additional_certs)
        return b"".join(certificate.certificate.public_bytes(Encoding.PEM) for certificate in chain), bundle.key

    def _unusable(self, why: str) -> ConfigurationError:
        return unusable(self.names.section, self.names.certificate, self.certificate_file, why)

    def _wrong_key(self, why: str) -> ConfigurationError:
        if self.key_file is None:
            return self._unusable(why)
        return unusable(self.names.section, self.names.key, self.key_file, why)


def read_authorities(section: str, file: str, password: Secret | None) -> str:
    """Return the certificates of a file of authorities as PEM; it may be PKCS #12, as Java's trust stores are.

    Raises `ConfigurationError` for an unusable file, for one of Java's own format with the command that converts it.
    """
    content = read_file(section, "ssl_cafile", file)
    if content.startswith(_JAVA_STORES):
        command = f"keytool -list -rfc -keystore {file} > ca.pem"
        why = f"it is a Java trust store, but must be PEM or PKCS #12; convert it with: {command}"
        raise unusable(section, "ssl_cafile", file, why)
    if _PKCS12.match(content):
        return _trusted_by_pkcs12(section, file, content, password)
    if _CERTIFICATE.search(content) is None:
        raise unusable(section, "ssl_cafile", file, "it holds no certificate in PEM")
    return content.decode("ascii", errors="ignore")


def _trusted_by_pkcs12(section: str, file: str, content: bytes, password: Secret | None) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - costs start-up time
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - the same
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12  # noqa: PLC0415 - the same

    names = "ssl_ca_password or ssl_ca_password_file"
    try:
        bundle = load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        why = f"it is PKCS #12 and encrypted; set {names}"
        if password is not None:
            why = f"it is damaged PKCS #12, or {names} does not open it"
        raise unusable(section, "ssl_cafile", file, why) from error
    except UnsupportedAlgorithm as error:
        command = f"keytool -list -rfc -keystore {file} > ca.pem"
        why = f"its encryption is outdated ({error}); convert it to PEM: {command}"
        raise unusable(section, "ssl_cafile", file, why) from error
    chain = (*filter(None, (bundle.cert,)), *bundle.additional_certs)
    if not chain:
        raise unusable(section, "ssl_cafile", file, "it is PKCS #12 without a certificate")
    return b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain).decode()


def _is_encrypted(key: bytes) -> bool:
    """Whether a key in PEM is encrypted, as PKCS #8 or in OpenSSL's older form."""
    return b"ENCRYPTED" in key[:80]
