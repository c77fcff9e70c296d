"""The connection that a context of kubeconfig files defines."""

from __future__ import annotations

import base64
import os

import pytest
import yaml

from fairlead.client.connection import Impersonation
from fairlead.client.error import ConnectionConfigError
from fairlead.client.kubeconfig import Kubeconfig, kubeconfig_paths


def config(user=None, cluster=None, **more):
    """Return a kubeconfig with the context `prod`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [
            {"name": "prod", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}
        ],
        "current-context": "prod",
        **more,
    }


@pytest.fixture
def write(tmp_path):
    def write(value, name="config"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(value if isinstance(value, str) else yaml.safe_dump(value))
        return str(path)

    return write


def base64_of(text):
    return base64.b64encode(text.encode()).decode()


def test_a_context_has_a_server_and_a_token(write):
    found = Kubeconfig([write(config(user={"token": "secret"}))]).connection()
    assert (found.name, found.server) == ("context prod", "https://api:6443")
    assert (found.token, found.namespace) == ("secret", "shop")


def test_data_takes_precedence_over_files_and_paths_are_relative(write, tmp_path):
    (tmp_path / "ca.pem").write_text("authority")
    certificate = {"client-certificate-data": base64_of("cert"), "client-key-data": base64_of("k")}
    user = {**certificate, "client-certificate": "absent.pem"}
    value = config(user=user, cluster={"certificate-authority": "ca.pem"})
    found = Kubeconfig([write(value)]).connection("prod")
    assert (found.authority, found.certificate) == ("authority", "cert")


def test_the_first_file_that_defines_a_name_is_used(write):
    first = write(config(user={"token": "one"}, **{"current-context": None}), "a")
    other = write(config(user={"token": "two"}), "b")
    assert Kubeconfig([first, other]).connection().token == "one"


def test_impersonation_and_tls_options_are_read(write):
    user = {"as": "jane", "as-groups": ["dev"], "as-uid": "7", "as-user-extra": {"scope": ["a"]}}
    cluster = {"tls-server-name": "kube", "insecure-skip-tls-verify": True}
    found = Kubeconfig([write(config(user, {**cluster, "proxy-url": "http://p:1"}))]).connection()
    assert found.impersonation == Impersonation("jane", "7", ("dev",), {"scope": ("a",)})
    assert (found.tls_server_name, found.is_insecure) == ("kube", True)
    assert found.proxy_url == "http://p:1"


def test_an_exec_plugin_with_a_folder_is_relative_to_the_kubeconfig(write, tmp_path):
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["--now"],
        "env": [{"name": "A", "value": "b"}],
        "provideClusterInfo": True,
    }
    found = Kubeconfig([write(config(user={"exec": plugin}))]).connection().exec_plugin
    assert found.command == str(tmp_path / "bin/login")
    assert (found.arguments, found.environment) == (("--now",), {"A": "b"})
    assert found.cluster == {"server": "https://api:6443"}


@pytest.mark.parametrize("server", ["http://api", "HTTP://api", "api"])
@pytest.mark.parametrize(
    "user",
    [
        {"token": "secret"},
        {"username": "jane", "password": "secret"},
        {"tokenFile": "absent"},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "login"}},
    ],
)
def test_no_credentials_are_sent_to_a_plain_http_server(write, server, user):
    """As kubectl, which sends impersonation headers only; a CA does not change the scheme."""
    cluster = {"server": server, "certificate-authority-data": base64_of("ca")}
    found = Kubeconfig([write(config({**user, "as": "jane"}, cluster))]).connection()
    assert found.server == "http://api"
    assert (found.token, found.token_file, found.username) == ("", "", "")
    assert found.exec_plugin is None
    assert found.impersonation.user == "jane"


def test_an_authority_may_have_comments_with_any_characters(write):
    cluster = {"server": "https://api", "certificate-authority-data": base64_of("# \u0151\n")}
    found = Kubeconfig([write(config({"token": "s"}, cluster))]).connection()
    assert found.authority == "# \u0151\n"


def test_a_scheme_in_upper_case_is_tls(write):
    found = Kubeconfig([write(config({"token": "s"}, {"server": "HTTPS://api/"}))]).connection()
    assert (found.server, found.token) == ("https://api", "s")


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}


@pytest.mark.parametrize(
    ("value", "context", "problem"),
    [
        pytest.param("a: [", "", "is not YAML: ", id="no YAML"),
        pytest.param("- a", "", "is not a kubeconfig: expected an object", id="no object"),
        pytest.param(
            config(cluster={"server": 7}), "", "clusters[0].cluster.server: Expected", id="type"
        ),
        pytest.param(
            config(cluster={"server": ""}), "", "clusters[c].server: is required", id="no server"
        ),
        pytest.param(
            config(cluster={"server": "ftp://x"}),
            "",
            "clusters[c].server: 'ftp://x' is not an http or https URL",
            id="no URL",
        ),
        *(
            pytest.param(config(cluster={"server": server}), "", "is not an http or https URL")
            for server in ("https://x:99999", "https://", "https://x/a b", "https://x/a\n")
        ),
        *(
            pytest.param(
                config(cluster={"proxy-url": url}), "", "is not an http, https or socks5 URL"
            )
            for url in ("http://", "socks5://:1", "http://x:99999", "x:1")
        ),
        pytest.param(
            config(user={"client-certificate-data": base64_of("cert")}),
            "",
            "users[u].client-key: is required with a certificate",
            id="certificate without key",
        ),
        pytest.param(
            config(), "prd", "there is no context 'prd'; did you mean prod? ", id="context"
        ),
        pytest.param(
            config(**{"current-context": ""}), "", "current-context: has no current", id="none"
        ),
        pytest.param(config(users=[]), "", "contexts[prod].user: there is no user 'u'", id="user"),
        pytest.param(
            config(user={"auth-provider": {"name": "gcp"}}),
            "",
            "users[u].auth-provider: auth providers were removed in Kubernetes 1.26",
            id="auth provider",
        ),
        pytest.param(
            config(user={"client-key-data": "%"}),
            "",
            "users[u].client-key-data: is not base64",
            id="base64",
        ),
        pytest.param(
            config(user={"client-key": "absent"}), "", "users[u].client-key: cannot read", id="file"
        ),
        pytest.param(
            config(user={"as-groups": ["a"]}), "", "users[u].as: is required", id="impersonation"
        ),
        pytest.param(
            config(user={"exec": {**PLUGIN, "apiVersion": "v1alpha1"}}),
            "",
            "users[u].exec.apiVersion: 'v1alpha1' is not supported",
            id="exec version",
        ),
        pytest.param(
            config(cluster={"proxy-url": "socks4://p:1"}),
            "",
            "clusters[c].proxy-url: 'socks4://p:1' is not an http, https or socks5 URL",
            id="proxy",
        ),
        pytest.param(
            config(cluster={"proxy-url": "socks5://p:1", "tls-server-name": "api.example"}),
            "",
            "clusters[c].tls-server-name: cannot be used with a socks5 proxy",
            id="proxy and server name",
        ),
        pytest.param(
            config(
                cluster={
                    "certificate-authority-data": base64_of("ca"),
                    "insecure-skip-tls-verify": True,
                }
            ),
            "",
            "clusters[c].insecure-skip-tls-verify: cannot be used with a certificate authority",
            id="authority of an insecure server",
        ),
    ],
)
def test_an_invalid_kubeconfig_is_refused_with_file_and_field(write, value, context, problem):
    path = write(value)
    with pytest.raises(ConnectionConfigError) as refusal:
        Kubeconfig([path]).connection(context)
    assert str(refusal.value).startswith(path)
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_files_come_from_the_option_the_environment_or_the_home_folder(
    write, monkeypatch, tmp_path
):
    path = write(config())
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join((str(tmp_path / "absent"), path)))
    assert kubeconfig_paths("mine") == ["mine"]
    assert kubeconfig_paths() == [path]
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(ConnectionConfigError, match=r"KUBECONFIG: .*absent: no such file"):
        kubeconfig_paths()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConnectionConfigError, match="no such file; name one with --kubeconfig"):
        kubeconfig_paths()
    write(config(), ".kube/config")
    assert kubeconfig_paths() == [str(tmp_path / ".kube/config")]


def test_an_endless_file_is_refused():
    with pytest.raises(ConnectionConfigError, match="cannot be read: longer than 8 MiB"):
        Kubeconfig(["/dev/zero"])
