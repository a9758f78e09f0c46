"""Certificates for servers on loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def self_signed(folder: Path) -> ssl.SSLContext:
    """The TLS context of a server whose certificate nobody has reason to trust."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("this needs the openssl command to make a certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command_options = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        # httpx 0.27 reads no host from the common name.
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    subprocess.run(
        [openssl, *command_options, "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
