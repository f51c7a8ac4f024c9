"""Certificates for tests, made with the `cryptography` package.

    python tests/support/make_certificates.py FOLDER

writes those of tests/certificates, which the tests in C read; they are valid for a century, except the one that has
expired. Tests in Python make theirs as they need them.
"""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
import pathlib
import sys
from typing import Union

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Key = Union[rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey]
UTC = datetime.timezone.utc
FROM = datetime.datetime(2020, 1, 1, tzinfo=UTC)
TO = datetime.datetime(2120, 1, 1, tzinfo=UTC)
PASSWORD = b"open sesame"


@dataclasses.dataclass
class Pair:
    certificate: x509.Certificate
    key: Key


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def make(
    name: str,
    issuer: Pair | None,
    key: Key | None = None,
    names: tuple[str, ...] = (),
    span: tuple[datetime.datetime, datetime.datetime] = (FROM, TO),
) -> Pair:
    """A certificate of `name`, signed by `issuer`; without one, of an authority. `names`: DNS names and addresses."""
    key = key or rsa_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(span[0])
        .not_valid_after(span[1])
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([alternative(each) for each in names]), False)
    return Pair(builder.sign(key if issuer is None else issuer.key, hashes.SHA256()), key)


def alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def certificate_pem(pair: Pair) -> bytes:
    return pair.certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: Key, password: bytes | None = None) -> bytes:
    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)


def write(folder: pathlib.Path, stem: str, pair: Pair) -> None:
    (folder / f"{stem}.pem").write_bytes(certificate_pem(pair))
    (folder / f"{stem}.key").write_bytes(key_pem(pair.key))


def main(folder: pathlib.Path) -> None:
    ca, other_ca = make("libum test authority", None), make("another authority", None)
    host = make("host.test", ca, names=("host.test", "127.0.0.1"))
    write(folder, "host", host)
    write(folder, "peer", make("peer.test", ca, names=("peer.test", "10.1.2.3")))
    write(folder, "ec", make("ec.test", ca, ec.generate_private_key(ec.SECP256R1()), ("ec.test",)))
    write(folder, "stranger", make("stranger.test", other_ca, names=("host.test", "127.0.0.1")))
    (folder / "ca.pem").write_bytes(certificate_pem(ca))
    (folder / "other_ca.pem").write_bytes(certificate_pem(other_ca))
    past = (FROM, datetime.datetime(2021, 1, 1, tzinfo=UTC))
    (folder / "expired.pem").write_bytes(certificate_pem(make("host.test", ca, host.key, span=past)))
    future = (datetime.datetime(2110, 1, 1, tzinfo=UTC), TO)
    (folder / "future.pem").write_bytes(certificate_pem(make("host.test", ca, host.key, span=future)))
    (folder / "encrypted.key").write_bytes(key_pem(host.key, PASSWORD))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
