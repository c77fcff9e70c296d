"""Kubeconfig files: the server and the credentials of each context.

Several files are merged as kubectl merges them: the first file that defines a cluster, user or
context takes precedence. A relative path is relative to the file that contains it.

upstream: client-go/tools/clientcmd/{loader,client_config}.go,
client-go/tools/clientcmd/api/v1/types.go
"""

from __future__ import annotations

import base64
import binascii
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.text.yaml_documents import YamlError, documents
from fairlead.client.connection import (
    ConnectionConfig,
    ExecPlugin,
    Impersonation,
    host_of,
    read_text,
    require_proxy,
)
from fairlead.client.error import ConnectionConfigError

DEFAULT_FILE: Final = "~/.kube/config"
EXEC_API_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
Found = TypeVar("Found")


class _Cluster(Struct, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class _ExecVariable(Struct):
    name: str
    value: str


class _Exec(Struct, rename="camel"):
    command: str = ""
    args: list[str] | None = None
    env: list[_ExecVariable] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _User(Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    as_: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str = ""
    password: str = ""
    auth_provider: dict[str, Any] | None = None
    exec: _Exec | None = None


class _Context(Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Struct):
    name: str
    cluster: _Cluster


class _NamedUser(Struct):
    name: str
    user: _User


class _NamedContext(Struct):
    name: str
    context: _Context


class _File(Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


class Kubeconfig:
    """The merged contents of one or several kubeconfig files."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Read the files at `paths`, which are in order of precedence.

        Raises ConnectionConfigError if a file cannot be read or is not a kubeconfig.
        """
        self._sources = tuple(paths)
        self._clusters: dict[str, tuple[str, _Cluster]] = {}
        self._users: dict[str, tuple[str, _User]] = {}
        self._contexts: dict[str, tuple[str, _Context]] = {}
        self._current = ""
        for path in paths:
            file = _parse(path, read_text(path, "", path))
            for cluster in file.clusters or ():
                self._clusters.setdefault(cluster.name, (path, cluster.cluster))
            for user in file.users or ():
                self._users.setdefault(user.name, (path, user.user))
            for context in file.contexts or ():
                self._contexts.setdefault(context.name, (path, context.context))
            self._current = self._current or file.current_context

    def connection(self, context: str = "") -> ConnectionConfig:
        """Return the connection of `context`; "" means the current context.

        Raises ConnectionConfigError if a part of the context is missing or cannot be used.
        """
        name = context or self._current
        if not name:
            problem = f"has no current context; {_known('contexts', self._contexts)}"
            raise ConnectionConfigError(self._source, problem, "current-context")
        if name not in self._contexts:
            problem = f"there is no context {name!r}; {_known('contexts', self._contexts, name)}"
            raise ConnectionConfigError(self._source, problem)
        source, chosen = self._contexts[name]
        path, cluster = self._find(source, name, "cluster", chosen.cluster, self._clusters)
        connection = _with_cluster(name, path, chosen, cluster)
        if not chosen.user:
            return connection
        path, user = self._find(source, name, "user", chosen.user, self._users)
        return _with_user(connection, path, f"users[{chosen.user}]", user, cluster)

    @property
    def current_context(self) -> str:
        """The name of the current context; "" if the files have none."""
        return self._current

    @property
    def _source(self) -> str:
        return os.pathsep.join(self._sources)

    def _find(
        self,
        source: str,
        context: str,
        kind: str,
        name: str,
        known: Mapping[str, tuple[str, Found]],
    ) -> tuple[str, Found]:
        if name not in known:
            problem = f"there is no {kind} {name!r}; {_known(f'{kind}s', known, name)}"
            raise ConnectionConfigError(source, problem, f"contexts[{context}].{kind}")
        return known[name]


def kubeconfig_paths(path: str = "") -> list[str]:
    """Return the kubeconfig files to read: `path`, or the files in $KUBECONFIG, or ~/.kube/config.

    Files in $KUBECONFIG that do not exist are left out. If `path` is given, it is not checked. If
    `path` is "" and none of the files exists, raises ConnectionConfigError.
    """
    # upstream: client-go/tools/clientcmd/loader.go:NewDefaultClientConfigLoadingRules
    if path:
        return [path]
    named = os.environ.get("KUBECONFIG", "")
    if named:
        found = [each for each in named.split(os.pathsep) if each and Path(each).exists()]
        if not found:
            raise ConnectionConfigError("KUBECONFIG", f"{named}: no such file")
        return found
    default = Path(DEFAULT_FILE).expanduser()
    if not default.exists():
        raise ConnectionConfigError(DEFAULT_FILE, "no such file; name one with --kubeconfig")
    return [str(default)]


def _parse(path: str, text: str) -> _File:
    try:
        value = next(documents(text), None)
    except YamlError as cause:
        raise ConnectionConfigError(path, f"is not YAML: {cause}") from None
    if not isinstance(value, dict):
        raise ConnectionConfigError(path, "is not a kubeconfig: expected an object")
    try:
        return msgspec.convert(_without_nulls(value), _File)
    except msgspec.ValidationError as cause:
        text, _, place = str(cause).partition(" - at `$")
        raise ConnectionConfigError(path, text, place.strip("`").lstrip(".")) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _with_cluster(name: str, path: str, chosen: _Context, cluster: _Cluster) -> ConnectionConfig:
    place = f"clusters[{chosen.cluster}]"
    server = cluster.server
    if not server:
        raise ConnectionConfigError(path, "is required", f"{place}.server")
    if "://" not in server:
        # The scheme is http even if there is a certificate authority: clientcmd reads TLS settings
        # only for https URLs.
        server = f"http://{server}"
    if not host_of(server, ("http", "https")):
        problem = f"{server!r} is not an http or https URL"
        raise ConnectionConfigError(path, problem, f"{place}.server")
    server = urlsplit(server).geturl().rstrip("/")  # with the scheme in lower case
    _check_proxy(path, place, cluster)
    authority = _data(
        path,
        f"{place}.certificate-authority",
        cluster.certificate_authority_data,
        cluster.certificate_authority,
    )
    if authority and cluster.insecure_skip_tls_verify and server.startswith("https:"):
        # upstream: client-go/transport/transport.go: TLSConfigFor
        problem = "cannot be used with a certificate authority"
        raise ConnectionConfigError(path, problem, f"{place}.insecure-skip-tls-verify")
    return ConnectionConfig(
        name=f"context {name}",
        server=server,
        authority=authority,
        authority_file=_file(
            path, cluster.certificate_authority_data, cluster.certificate_authority
        ),
        is_insecure=cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        proxy_url=cluster.proxy_url,
        namespace=chosen.namespace,
    )


def _check_proxy(path: str, place: str, cluster: _Cluster) -> None:
    if cluster.proxy_url:
        require_proxy(path, f"{place}.proxy-url", cluster.proxy_url)
    if cluster.tls_server_name and urlsplit(cluster.proxy_url).scheme == "socks5":
        # The library for SOCKS verifies certificates for the name that it connects to.
        problem = "cannot be used with a socks5 proxy"
        raise ConnectionConfigError(path, problem, f"{place}.tls-server-name")


def _with_user(
    connection: ConnectionConfig, path: str, place: str, user: _User, cluster: _Cluster
) -> ConnectionConfig:
    if user.auth_provider:
        problem = "auth providers were removed in Kubernetes 1.26; use an exec credential plugin"
        raise ConnectionConfigError(path, problem, f"{place}.auth-provider")
    if (user.client_certificate or user.client_certificate_data) and not (
        user.client_key or user.client_key_data
    ):
        # upstream: tools/clientcmd/validation.go: validateAuthInfo
        raise ConnectionConfigError(path, "is required with a certificate", f"{place}.client-key")
    extra = {key: tuple(texts) for key, texts in (user.as_user_extra or {}).items()}
    if not user.as_ and (user.as_uid or user.as_groups or extra):
        problem = "is required with as-uid, as-groups or as-user-extra"
        raise ConnectionConfigError(path, problem, f"{place}.as")
    connection = replace(
        connection,
        impersonation=Impersonation(user.as_, user.as_uid, tuple(user.as_groups or ()), extra),
    )
    if not connection.server.startswith("https:"):
        # No credentials are sent, because they would be readable on the network.
        # upstream: client-go/rest/config.go: IsConfigTransportTLS
        return connection
    return replace(
        connection,
        certificate=_data(
            path,
            f"{place}.client-certificate",
            user.client_certificate_data,
            user.client_certificate,
        ),
        key=_data(path, f"{place}.client-key", user.client_key_data, user.client_key),
        certificate_file=_file(path, user.client_certificate_data, user.client_certificate),
        key_file=_file(path, user.client_key_data, user.client_key),
        token=user.token,
        token_file=_located(path, user.token_file),
        username=user.username,
        password=user.password,
        exec_plugin=_exec_plugin(path, f"{place}.exec", user.exec, cluster, connection.authority),
    )


def _exec_plugin(
    path: str, place: str, plugin: _Exec | None, cluster: _Cluster, authority: str
) -> ExecPlugin | None:
    if plugin is None:
        return None
    if not plugin.command:
        raise ConnectionConfigError(path, "is required", f"{place}.command")
    if plugin.api_version not in EXEC_API_VERSIONS:
        problem = f"{plugin.api_version!r} is not supported; expected {EXEC_API_VERSIONS[0]}"
        raise ConnectionConfigError(path, problem, f"{place}.apiVersion")
    if plugin.interactive_mode not in ("", "Never", "IfAvailable", "Always"):
        problem = f"{plugin.interactive_mode!r}: expected Never, IfAvailable or Always"
        raise ConnectionConfigError(path, problem, f"{place}.interactiveMode")
    # A command without a folder is looked up in $PATH.
    has_folder = Path(plugin.command).name != plugin.command
    return ExecPlugin(
        command=_located(path, plugin.command) if has_folder else plugin.command,
        api_version=plugin.api_version,
        arguments=tuple(plugin.args or ()),
        environment={variable.name: variable.value for variable in plugin.env or ()},
        install_hint=plugin.install_hint,
        interactive_mode=plugin.interactive_mode or "IfAvailable",
        cluster=_cluster_info(cluster, authority) if plugin.provide_cluster_info else None,
    )


def _cluster_info(cluster: _Cluster, authority: str) -> dict[str, object]:
    """Return the cluster in the form that `spec.cluster` of an ExecCredential has."""
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
        "proxy-url": cluster.proxy_url,
    }
    return {key: value for key, value in info.items() if value}


def _data(path: str, place: str, data: str, file: str) -> str:
    """Return the decoded base64 `data`; if `data` is empty, return the contents of `file`.

    `path` is the path of the kubeconfig. `place` is the field of the kubeconfig that names `file`.
    Error messages contain `place`.
    """
    if not data:
        return read_text(path, place, _located(path, file)) if file else ""
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise ConnectionConfigError(path, "is not base64 of a PEM text", f"{place}-data") from None


def _file(path: str, data: str, file: str) -> str:
    """Return the path of `file`, resolved against the folder of the kubeconfig `path`.

    Returns "" if the kubeconfig names no file, or if it contains the content itself (`data`).
    """
    return "" if data else _located(path, file)


def _located(path: str, file: str) -> str:
    """Return the path of `file`, resolved against the folder of the kubeconfig `path`."""
    return str(Path(path).parent / Path(file)) if file else ""


def _known(what: str, names: Iterable[str], given: str = "") -> str:
    known = sorted(names)
    nearest = difflib.get_close_matches(given, known, n=1)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"{hint}known {what}: {', '.join(known) or 'none'}"
