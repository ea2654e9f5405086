"""Certificates of a secure local cluster: one per node, signed by an authority whose key is never written."""

import datetime as dt
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from drover.local.layout import HOST

VALID = dt.timedelta(days=3650)
# Certificates are valid from a little earlier, because the clocks of the two sides may differ.
BACKDATED = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM texts: the authority's certificate and, per common name, a private key with its certificate chain."""

    authority: str
    keystores: Mapping[str, str]


def make_certificates(common_names: Sequence[str], hosts: Sequence[str] = (HOST, "localhost")) -> Certificates:
    """Create an authority and a certificate per common name, valid for these host names and addresses."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("drover local authority")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    keystores = {}
    for common_name in common_names:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_name(common_name), authority_name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .sign(authority_key, hashes.SHA256())
        )
        keystores[common_name] = _pem(key) + _pem(certificate) + _pem(authority)
    return Certificates(_pem(authority), keystores)


def _builder(subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(thing: ec.EllipticCurvePrivateKey | x509.Certificate) -> str:
    if isinstance(thing, x509.Certificate):
        return thing.public_bytes(serialization.Encoding.PEM).decode()
    return thing.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
