"""`um tls-init`: what it makes is valid, private, and works as printed."""

from __future__ import annotations

import contextlib
import datetime
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from pairs import HANG

from um_cffi import Context, Receiver, Source
from um_cffi.commands import main

UTC = datetime.timezone.utc
LOCAL = {
    "default_interface": "127.0.0.1/32",
    "resolver_multicast_interface": "127.0.0.1/32",
    "request_tcp_port_low": 0,
    "request_tcp_port_high": 0,
    "transport_tcp_port_low": 0,
    "transport_tcp_port_high": 0,
}


def certificate_of(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def options_of(text: str, host: str) -> dict[str, str]:
    """As printed for one host."""
    (block,) = [part for part in text.split("\n\n") if part.startswith(f"# {host}\n")]
    lines = [line.split(" ", 2) for line in block.splitlines() if line.startswith("context ")]
    return {name: value for _, name, value in lines}


def test_hosts_with_what_it_prints_exchange_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "authority"
    assert main(["tls-init", str(folder), "one", "two,127.0.0.1", "--key", "ec"]) == 0
    text = capsys.readouterr().out
    one, two = options_of(text, "one"), options_of(text, "two")
    assert one["tls_certificate"] == str(folder / "one.pem") and one["use_tls"] == "1"
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(Context({**LOCAL, **one, "um_tls_peer_names": "two"}))
        b = stack.enter_context(Context({**LOCAL, **two}))
        receiver, source = stack.enter_context(Receiver(b, "news")), stack.enter_context(Source(a, "news"))
        source.wait_receivers(1, HANG)
        source.send(b"private", flush=True)
        message = receiver.recv(timeout=HANG)
        assert message is not None and bytes(message) == b"private"


def test_certificates_have_sane_names_lifetimes_and_purposes(tmp_path: Path) -> None:
    names = "trader1,trader1.example.com,10.0.0.5"
    assert main(["tls-init", str(tmp_path), names, "--key", "rsa2048", "--days", "30"]) == 0
    authority, host = certificate_of(tmp_path / "ca.pem"), certificate_of(tmp_path / "trader1.pem")
    assert host.subject.rfc4514_string() == "CN=trader1" and host.issuer == authority.subject
    alternatives = host.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.DNSName) == ["trader1", "trader1.example.com"]
    assert [str(each) for each in alternatives.get_values_for_type(x509.IPAddress)] == ["10.0.0.5"]
    purposes = host.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {each.dotted_string for each in purposes} == {"1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"}
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not host.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    now = datetime.datetime.now(UTC)
    day = datetime.timedelta(days=1)
    assert host.not_valid_before_utc <= now and 29 * day < host.not_valid_after_utc - now <= 30 * day
    assert 3649 * day < authority.not_valid_after_utc - now <= 3650 * day
    key = authority.public_key()
    assert isinstance(key, rsa.RSAPublicKey) and host.signature_hash_algorithm is not None
    key.verify(host.signature, host.tbs_certificate_bytes, padding.PKCS1v15(), host.signature_hash_algorithm)


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert main(["tls-init", str(folder), "one", "--key", "ec"]) == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"ca.pem": 0o644, "one.pem": 0o644, "ca.key": 0o600, "one.key": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_hosts_are_added_to_an_authority_and_renewed_by_force_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tls-init", str(tmp_path), "one", "--key", "ec"]) == 0
    authority, first = (tmp_path / "ca.pem").read_bytes(), (tmp_path / "one.pem").read_bytes()
    assert main(["tls-init", str(tmp_path), "two", "--key", "ec"]) == 0
    assert main(["tls-init", str(tmp_path), "one", "three", "--key", "ec"]) == 1
    assert "one.pem: exists already; use --force" in capsys.readouterr().err
    assert not (tmp_path / "three.pem").exists() and (tmp_path / "one.pem").read_bytes() == first
    assert main(["tls-init", str(tmp_path), "one", "--key", "ec", "--force"]) == 0
    assert (tmp_path / "one.pem").read_bytes() != first
    assert (tmp_path / "ca.pem").read_bytes() == authority
    issuer = certificate_of(tmp_path / "ca.pem").public_key()
    assert isinstance(issuer, ec.EllipticCurvePublicKey)
    for name in ("one", "two"):
        certificate = certificate_of(tmp_path / f"{name}.pem")
        algorithm = certificate.signature_hash_algorithm
        assert algorithm is not None
        issuer.verify(certificate.signature, certificate.tbs_certificate_bytes, ec.ECDSA(algorithm))


def test_the_key_of_the_authority_may_have_a_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, password, guess = tmp_path / "ca", tmp_path / "password", tmp_path / "guess"
    password.write_text("open sesame\n")
    guess.write_text("guess\n")
    assert main(["tls-init", str(folder), "one", "--key", "ec", "--ca-password-file", str(password)]) == 0
    assert b"ENCRYPTED" in (folder / "ca.key").read_bytes() and b"ENCRYPTED" not in (folder / "one.key").read_bytes()
    for wrong in ([], ["--ca-password-file", str(guess)]):
        assert main(["tls-init", str(folder), "two", "--key", "ec", *wrong]) == 1
        assert "--ca-password-file" in capsys.readouterr().err
    assert main(["tls-init", str(folder), "two", "--key", "ec", "--ca-password-file", str(password)]) == 0


@pytest.mark.parametrize("host", ["", "ca", "../up", "a b", "one,,two", "-x"])
def test_names_that_are_no_names_of_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    assert main(["tls-init", str(tmp_path), "--", host]) == 1
    assert "must begin with a name" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_half_an_authority_is_not_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tls-init", str(tmp_path), "one", "--key", "ec"]) == 0
    (tmp_path / "ca.key").unlink()
    assert main(["tls-init", str(tmp_path), "two", "--key", "ec"]) == 1
    assert "only one of ca.pem and ca.key" in capsys.readouterr().err
    assert main(["tls-init", str(tmp_path), "two", "--days", "0"]) == 1
    assert "--days 0: must be 1..36500" in capsys.readouterr().err
