"""Client certificates and keys; unusable ones are refused without a password prompt."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from fairlead.client import connection
from fairlead.client.connection import ConnectionConfig, tls_context
from fairlead.client.error import ConnectionConfigError

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
CERTIFICATE = (
    x509.CertificateBuilder()
    .subject_name(NAME)
    .issuer_name(NAME)
    .public_key(KEY.public_key())
    .serial_number(1)
    .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
    .not_valid_after(datetime(2027, 1, 1, tzinfo=UTC))
    .sign(KEY, SHA256())
    .public_bytes(Encoding.PEM)
    .decode()
)


def key_text(key, encryption):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def use(certificate, key):
    fields = {"certificate": certificate, "key": key}
    return tls_context(ConnectionConfig(name="context x", server="https://x", **fields))


def test_a_certificate_with_its_key_is_used():
    assert use(CERTIFICATE, key_text(KEY, NoEncryption())) is not None


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [
        (CERTIFICATE, key_text(KEY, BestAvailableEncryption(b"secret")), "the key is encrypted"),
        (
            CERTIFICATE,
            key_text(ec.generate_private_key(ec.SECP256R1()), NoEncryption()),
            "KEY_VALUES_MISMATCH",
        ),
        ("nonsense", "nonsense", "PEM"),
    ],
    ids=["encrypted", "another key", "no PEM"],
)
def test_a_key_that_cannot_be_used_is_refused(certificate, key, why):
    with pytest.raises(ConnectionConfigError) as refusal:
        use(certificate, key)
    problem = "context x: the client certificate and key cannot be used"
    assert str(refusal.value).startswith(problem)
    assert why in str(refusal.value)


def test_a_full_disk_is_reported(monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(connection, "NamedTemporaryFile", refuse)
    with pytest.raises(ConnectionConfigError, match=r"cannot be used \(.*No space left"):
        use(CERTIFICATE, key_text(KEY, NoEncryption()))


def test_a_pipe_without_a_writer_is_refused(tmp_path, monkeypatch):
    """Opening it in the usual way would wait for ever."""
    monkeypatch.setattr(connection, "_WRITER_AWAITED_MS", 10)
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    with pytest.raises(ConnectionConfigError, match="it is a pipe that no program writes to"):
        connection.read_text(path, "", path)


def test_a_pipe_with_a_writer_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("text",), daemon=True)
    writer.start()
    assert connection.read_text(str(path), "", str(path)) == "text"
