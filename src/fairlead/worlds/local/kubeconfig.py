"""The kubeconfig of a local cluster.

upstream: client-go/tools/clientcmd/api/v1/types.go
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from fairlead.worlds.standard_stream import standard_stream

if TYPE_CHECKING:  # `fairlead down` must not import the server
    from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair

NAME: Final = "fairlead"
# The extension of the cluster by which `fairlead up` recognises its own kubeconfigs.
EXTENSION: Final = "fairlead.dev"
NO_OTHERS: Final[Mapping[str, str]] = {}
NO_PAIRS: Final[Mapping[str, CertificateKeyPair]] = {}


def kubeconfig(
    server: str,
    token: str,
    authority: str = "",
    others: Mapping[str, str] = NO_OTHERS,
    pairs: Mapping[str, CertificateKeyPair] = NO_PAIRS,
    name: str = NAME,
) -> str:
    """Return the kubeconfig for the URL `server`.

    `authority` is the PEM text of the CA, "" if the server does not use TLS. `name` is the name of
    the cluster, of its administrator and of the administrator's context. `token` is the
    administrator's token. `others` are the tokens of other users, keyed by the user's name;
    `entry_name` returns the name of the user's entry and context. `pairs` are client certificates
    with their keys, keyed by context name. The user of a context in `pairs` authenticates by
    certificate instead of token.
    """
    cluster: dict[str, Any] = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = _data(authority)
    cluster["extensions"] = [{"name": EXTENSION, "extension": {}}]
    tokens = {name: token} | {entry_name(user, name): text for user, text in others.items()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [
            {"name": user, "user": _credentials(text, pairs.get(user))}
            for user, text in tokens.items()
        ],
        "contexts": [{"name": user, "context": {"cluster": name, "user": user}} for user in tokens],
        "current-context": name,
    }
    return yaml.safe_dump(config, sort_keys=False)


def entry_name(user: str, cluster: str) -> str:
    """Return the name of the user `user`, who is not the administrator, in a kubeconfig.

    If the cluster has the default name, the result is the user's own name. Otherwise, the result
    also contains the name of the cluster: if kubectl reads several kubeconfigs, it uses only the
    first of several entries with the same name.
    """
    return user if cluster == NAME else f"{user}@{cluster}"


def _credentials(token: str, pair: CertificateKeyPair | None) -> dict[str, str]:
    if pair is None:
        return {"token": token}
    return {"client-certificate-data": _data(pair.certificate), "client-key-data": _data(pair.key)}


def _data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def is_of_a_local_cluster(text: bytes) -> bool:
    """Return whether `text` is a kubeconfig with only one cluster, a cluster of `fairlead up`."""
    try:
        (cluster,) = yaml.safe_load(text)["clusters"]
        extensions = [one["name"] for one in cluster["cluster"].get("extensions") or ()]
    except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError):
        return False
    # Older versions of Fairlead wrote no extension.
    return cluster["name"] == NAME or EXTENSION in extensions


def write_secret(path: Path, text: str) -> None:
    """Write `text` to a file atomically; only the user can read the file.

    If `path` is a device, a pipe or standard output, `text` is written to it directly. Raises
    OSError.
    """
    if (stream := standard_stream(path)) is not None:
        with os.fdopen(stream, "w") as file:
            file.write(text)
        return
    if path.exists() and not path.is_file():
        path.write_text(text)
        return
    path = Path(os.path.realpath(path))  # `resolve` fails if links form a loop
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
