"""Certificates for tests of TLS."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import trustme


@dataclass(frozen=True)
class Certificates:
    """An authority, and what it vouches for: one server and one client; each a PEM file."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    @classmethod
    def make(
        cls,
        directory: Path,
        *,
        hosts: Iterable[str] = ("127.0.0.1", "localhost"),
        user: str = "postgres",
        key_type: trustme.KeyType = trustme.KeyType.ECDSA,
    ) -> Self:
        """Write new ones: for a server of these names, and for a client whose common name is `user`."""
        directory.mkdir(parents=True, exist_ok=True)
        files = cls(*(directory / f"{name}.pem" for name in ("ca", "server", "server-key", "client", "client-key")))
        authority = trustme.CA(key_type=key_type)
        authority.cert_pem.write_to_path(files.authority)
        _write(authority.issue_cert(*hosts, key_type=key_type), files.server, files.server_key)
        _write(authority.issue_cert(common_name=user, key_type=key_type), files.client, files.client_key)
        return files


def _write(issued: trustme.LeafCert, certificate: Path, key: Path) -> None:
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    key.chmod(0o600)  # Clients refuse a key that others can read.
