"""The kubeconfig of a local cluster.

upstream: client-go/tools/clientcmd/api/v1/types.go
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair

NAME: Final = "fairlead"
NO_OTHERS: Final[Mapping[str, str]] = {}
NO_PAIRS: Final[Mapping[str, CertificateKeyPair]] = {}


def kubeconfig(
    server: str,
    token: str,
    authority: str = "",
    others: Mapping[str, str] = NO_OTHERS,
    pairs: Mapping[str, CertificateKeyPair] = NO_PAIRS,
) -> str:
    """Return the kubeconfig for the URL `server`; `authority` is the CA's PEM text, "" without TLS.

    `token` is the administrator's token. `others` are the tokens of other users, keyed by name;
    each user gets a context with the user's name. `pairs` are client certificates with their keys,
    keyed by context name. The user of a context in `pairs` authenticates by certificate instead of
    token.
    """
    cluster: dict[str, Any] = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = _data(authority)
    tokens = {NAME: token, **others}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [
            {"name": name, "user": _credentials(text, pairs.get(name))}
            for name, text in tokens.items()
        ],
        "contexts": [{"name": name, "context": {"cluster": NAME, "user": name}} for name in tokens],
        "current-context": NAME,
    }
    return yaml.safe_dump(config, sort_keys=False)


def _credentials(token: str, pair: CertificateKeyPair | None) -> dict[str, str]:
    if pair is None:
        return {"token": token}
    return {"client-certificate-data": _data(pair.certificate), "client-key-data": _data(pair.key)}


def _data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def is_of_a_local_cluster(text: bytes) -> bool:
    """Return whether `text` is a kubeconfig with one cluster, named as `fairlead up` names it."""
    try:
        config = yaml.safe_load(text)
        return [cluster["name"] for cluster in config["clusters"]] == [NAME]
    except (yaml.YAMLError, LookupError, TypeError):
        return False


def write_secret(path: Path, text: str) -> None:
    """Write `text` to a file atomically; only the user can read the file.

    If `path` is a device or a pipe, `text` is written to it directly. Raises OSError.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_text(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
