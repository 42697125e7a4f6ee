"""A certificate of this machine's own, as browsers give pages from elsewhere a camera over HTTPS only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

DAYS = 30


@contextmanager
def self_signed(private: bool) -> Iterator[tuple[str, str]]:
    """Files of a certificate and its key, which are gone afterwards.

    Args:
        private: whether only this machine reaches the page; it needs none then.

    Yields:
        two paths; two empty texts where none is needed, or the package ``cryptography`` is not installed.
    """
    if private:
        yield "", ""
        return
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        yield "", ""
        return
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pocketgraph live")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    with tempfile.TemporaryDirectory(prefix="pocketgraph-") as folder:
        paths = os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
        contents = (
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )
        for path, content in zip(paths, contents, strict=True):
            with open(path, "xb") as file:
                os.fchmod(file.fileno(), 0o600) if hasattr(os, "fchmod") else None
                file.write(content)
        yield paths
