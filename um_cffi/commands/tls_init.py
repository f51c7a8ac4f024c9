"""`um tls-init`: a private certificate authority, and a key pair for each host, for contexts with `use_tls`.

A folder holds the authority; hosts can be added to it later, and their pairs renewed. Keys are readable by their owner
only. What is printed is what to set on each host.
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import os
import re
from pathlib import Path
from typing import Any

from um_cffi.errors import InvalidArgument, UmError

UTC = datetime.timezone.utc
CLOCKS = datetime.timedelta(hours=1)  # that may differ between hosts
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
KEYS = ("rsa3072", "rsa2048", "ec")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "tls-init",
        help="make an authority and a key pair for each host, for use_tls",
        description="Make a private certificate authority in FOLDER, or use the one that is there, and for each HOST a "
        "key and a certificate; print the options to set. Needs the package cryptography (pip install um-cffi[tls]).",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="of the authority; made where it does not exist")
    parser.add_argument(
        "hosts",
        metavar="HOST",
        nargs="+",
        help="name of a host, and after commas its further names and addresses: trader1,trader1.example.com,10.0.0.5",
    )
    parser.add_argument("--days", type=int, default=397, help="lifetime of certificates of hosts (397)")
    parser.add_argument("--ca-days", type=int, default=3650, help="lifetime of a new authority (3650)")
    parser.add_argument("--ca-name", default="libum private authority", help="name of a new authority")
    parser.add_argument(
        "--key", choices=KEYS, default=KEYS[0], help="kind of keys; with ec, TLS 1.2 needs tls_cipher_suites (rsa3072)"
    )
    parser.add_argument(
        "--ca-password-file", metavar="FILE", type=Path, help="its first line encrypts, or opens, the authority's key"
    )
    parser.add_argument("--force", action="store_true", help="replace the pairs of hosts that have one: renew them")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    hosts = [Host(text) for text in arguments.hosts]
    for option in ("days", "ca_days"):
        if not 1 <= getattr(arguments, option) <= 36500:
            raise InvalidArgument(f"--{option.replace('_', '-')} {getattr(arguments, option)}: must be 1..36500")
    folder = arguments.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    taken = [name for host in hosts for name in host.files(folder) if name.exists()]
    if taken and not arguments.force:
        raise InvalidArgument(f"{taken[0]}: exists already; use --force to replace it")
    authority = Authority(arguments, folder)
    for host in hosts:
        authority.issue(host)
    print("\n\n".join(host.told(folder) for host in hosts))
    print(f"\n# Copy {authority.certificate_file} and a host's own two files to it; {authority.key_file} stays here.")
    print(f"# Certificates of hosts are valid until {authority.until:%Y-%m-%d}: renew them before, with --force.")
    return 0


class Host:
    """One host: the name of its files, and the names and addresses it has."""

    def __init__(self, text: str) -> None:
        self.names = [name.strip() for name in text.split(",")]
        self.name = self.names[0]
        if not all(self.names) or not FILE_NAME.match(self.name) or self.name == "ca":
            raise InvalidArgument(
                f"host {text!r}: must begin with a name of letters, digits, '.', '_' and '-' (not 'ca'), and go on "
                "with names and addresses behind commas"
            )

    def files(self, folder: Path) -> tuple[Path, Path]:
        """Certificate and key."""
        return folder / f"{self.name}.pem", folder / f"{self.name}.key"

    def told(self, folder: Path) -> str:
        """Its lines of a configuration file."""
        certificate, key = (path.resolve() for path in self.files(folder))
        return "\n".join(
            [
                f"# {self.name}",
                "context use_tls 1",
                f"context tls_certificate {certificate}",
                f"context tls_certificate_key {key}",
                f"context tls_trusted_certificates {(folder / 'ca.pem').resolve()}",
            ]
        )


class Authority:
    """The one of a folder, made where there is none."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.folder = folder
        self.kind = arguments.key
        self.certificate_file, self.key_file = folder / "ca.pem", folder / "ca.key"
        now = datetime.datetime.now(UTC).replace(microsecond=0)
        self.since = now - CLOCKS
        self.until = now + datetime.timedelta(days=arguments.days)
        self._x = _cryptography()
        password = _password(arguments.ca_password_file)
        if self.certificate_file.exists() != self.key_file.exists():
            raise InvalidArgument(f"{folder}: has only one of ca.pem and ca.key; put the other one back")
        if self.certificate_file.exists():
            self._load(password)
        else:
            self._make(arguments.ca_name, now + datetime.timedelta(days=arguments.ca_days), password)
        end = self.certificate.not_valid_after_utc
        if end <= now:
            raise UmError(f"{self.certificate_file}: expired at {end:%Y-%m-%d}; begin another authority elsewhere")
        self.until = min(self.until, end)

    def _load(self, password: bytes | None) -> None:
        x = self._x
        try:
            self.certificate = x.x509.load_pem_x509_certificate(self.certificate_file.read_bytes())
            self.key = x.serialization.load_pem_private_key(self.key_file.read_bytes(), password)
        except (ValueError, TypeError) as error:
            raise InvalidArgument(f"{self.key_file}: {error} (--ca-password-file?)") from None

    def _make(self, name: str, until: datetime.datetime, password: bytes | None) -> None:
        x = self._x
        self.key = self._new_key()
        subject = x.x509.Name([x.x509.NameAttribute(x.oid.NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, subject, self.key.public_key(), until)
        builder = builder.add_extension(x.x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(self._usage(signs_certificates=True), critical=True)
        self.certificate = builder.sign(self.key, x.hashes.SHA256())
        self._write((self.certificate_file, self.key_file), self.certificate, self.key, password)

    def issue(self, host: Host) -> None:
        """Make the pair of a host, in place of one that it has."""
        x = self._x
        key = self._new_key()
        subject = x.x509.Name([x.x509.NameAttribute(x.oid.NameOID.COMMON_NAME, host.name[:64])])
        builder = self._builder(subject, self.certificate.subject, key.public_key(), self.until)
        builder = builder.add_extension(x.x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(self._usage(signs_certificates=False), critical=True)
        purposes = [x.oid.ExtendedKeyUsageOID.SERVER_AUTH, x.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x.x509.ExtendedKeyUsage(purposes), critical=False)
        names = x.x509.SubjectAlternativeName([self._alternative(name) for name in dict.fromkeys(host.names)])
        builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, x.hashes.SHA256())
        self._write(host.files(self.folder), certificate, key, None)

    def _builder(self, subject: Any, issuer: Any, public_key: Any, until: datetime.datetime) -> Any:
        x509 = self._x.x509
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.since)
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )

    def _usage(self, *, signs_certificates: bool) -> Any:
        return self._x.x509.KeyUsage(
            digital_signature=not signs_certificates,
            key_encipherment=not signs_certificates and self.kind != "ec",
            key_cert_sign=signs_certificates,
            crl_sign=signs_certificates,
            content_commitment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )

    def _alternative(self, name: str) -> Any:
        x509 = self._x.x509
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    def _new_key(self) -> Any:
        if self.kind == "ec":
            return self._x.ec.generate_private_key(self._x.ec.SECP256R1())
        return self._x.rsa.generate_private_key(public_exponent=65537, key_size=int(self.kind[3:]))

    def _write(self, files: tuple[Path, Path], certificate: Any, key: Any, password: bytes | None) -> None:
        certificate_file, key_file = files
        serialization = self._x.serialization
        how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        _replace(key_file, key.private_bytes(pem, pkcs8, how), 0o600)
        _replace(certificate_file, certificate.public_bytes(pem), 0o644)


def _replace(path: Path, data: bytes, mode: int) -> None:
    """Never readable by others for a moment, never half a file."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(part, mode)
    os.replace(part, path)


def _password(file: Path | None) -> bytes | None:
    if file is None:
        return None
    password = file.read_bytes().split(b"\n")[0].rstrip(b"\r")
    if not password:
        raise InvalidArgument(f"--ca-password-file {file}: its first line is empty")
    return password


def _cryptography() -> Any:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
        from cryptography.x509 import oid
    except ImportError:
        raise UmError("the package cryptography is missing: pip install um-cffi[tls]") from None
    return argparse.Namespace(x509=x509, oid=oid, hashes=hashes, serialization=serialization, ec=ec, rsa=rsa)
