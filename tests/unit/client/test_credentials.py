"""Tokens, token files and exec plugins."""

from __future__ import annotations

import json
import sys

import pytest

from fairlead.client import exec_plugin
from fairlead.client.connection import ConnectionConfig, ExecPlugin, Impersonation
from fairlead.client.credentials import Credentials, TlsTexts
from fairlead.client.error import ConnectionConfigError

VERSION = "client.authentication.k8s.io/v1"
EMPTY = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": {}})


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def credentials(clock):
    def make(**fields):
        return Credentials(ConnectionConfig(name="context x", server="https://x", **fields), clock)

    return make


def plugin(tmp_path, status, **fields):
    """Return the configuration of a plugin that prints an ExecCredential and counts its runs."""
    calls = tmp_path / "calls"
    text = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})
    script = tmp_path / "plugin.py"
    script.write_text(
        f"import os\nopen({str(calls)!r}, 'a').write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
        f"print({text!r})\n"
    )
    return ExecPlugin(sys.executable, VERSION, (str(script),), **fields), calls


def test_a_password_is_sent_as_basic_authorization(credentials):
    assert credentials(username="me", password="pw").headers() == [
        ("Authorization", "Basic bWU6cHc=")
    ]


def test_headers_are_built_once_for_each_token(credentials, clock, tmp_path):
    file = tmp_path / "token"
    file.write_text("one")
    used = credentials(token_file=str(file))
    first = used.headers()
    assert used.headers() is first
    file.write_text("two")
    clock.now += 61
    assert used.headers() == [("Authorization", "Bearer two")]
    assert first == [("Authorization", "Bearer one")]


def test_an_impersonated_user_is_sent_with_groups_and_extra_fields(credentials):
    user = Impersonation("jane", "7", ("a", "b"), {"example.com/Scope": ("x", "y")})
    headers = credentials(token="t", impersonation=user).headers()
    assert headers == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fscope", "x"),
        ("Impersonate-Extra-example.com%2Fscope", "y"),
        ("Authorization", "Bearer t"),
    ]


def test_a_token_file_is_read_again_every_minute(credentials, clock, tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n")
    used = credentials(token_file=str(file), token="other")
    assert used.headers() == [("Authorization", "Bearer one")]
    file.write_text("two")
    assert used.headers() == [("Authorization", "Bearer one")]
    clock.now += 60
    assert used.headers() == [("Authorization", "Bearer two")]
    file.unlink()
    clock.now += 60
    assert used.headers() == [("Authorization", "Bearer two")]


def test_a_missing_token_file_is_an_error_only_without_another_token(credentials, tmp_path):
    path = str(tmp_path / "absent")
    assert credentials(token_file=path, token="t").headers() == [("Authorization", "Bearer t")]
    with pytest.raises(ConnectionConfigError, match="context x: tokenFile: cannot read"):
        credentials(token_file=path).headers()


def test_an_empty_token_file_is_an_error_only_without_another_token(credentials, clock, tmp_path):
    path = tmp_path / "token"
    path.write_text("\n")
    assert credentials(token_file=str(path), token="t").headers() == [("Authorization", "Bearer t")]
    with pytest.raises(ConnectionConfigError, match=f"context x: tokenFile: {path} is empty"):
        credentials(token_file=str(path)).headers()
    path.write_text("first")
    used = credentials(token_file=str(path))
    used.headers()
    path.write_text("")  # about to be written again
    clock.now += 61
    assert used.headers() == [("Authorization", "Bearer first")]


def test_an_endless_token_file_is_refused(credentials):
    with pytest.raises(ConnectionConfigError, match="cannot read /dev/zero: longer than 8 MiB"):
        credentials(token_file="/dev/zero").headers()


def test_an_exec_plugin_runs_once_until_its_credential_expires(credentials, clock, tmp_path):
    status = {"token": "t", "expirationTimestamp": "1970-01-01T00:20:00Z"}
    found, calls = plugin(tmp_path, status, cluster={"server": "https://x"})
    used = credentials(exec_plugin=found)
    assert used.headers() == used.headers() == [("Authorization", "Bearer t")]
    (info,) = map(json.loads, calls.read_text().splitlines())
    assert info == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }
    clock.now = 1_200.0
    used.headers()
    assert len(calls.read_text().splitlines()) == 2


def test_a_refused_credential_is_requested_again(credentials, tmp_path):
    found, calls = plugin(tmp_path, {"token": "t"})
    used = credentials(exec_plugin=found)
    used.headers()
    assert used.renew(used.headers())
    used.headers()
    assert len(calls.read_text().splitlines()) == 2
    fixed = credentials(token="fixed")
    assert not fixed.renew(fixed.headers())


def test_an_exec_plugin_can_return_a_certificate(credentials, tmp_path):
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    found, _ = plugin(tmp_path, status)
    used = credentials(exec_plugin=found)
    assert used.tls_texts() == TlsTexts("", "CERT", "KEY")
    assert used.headers() == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('a-secret-token')", "printed 15 bytes of other text instead of JSON"),
        ("pass", "printed nothing instead of JSON"),
        ("print('{}')", "did not print an ExecCredential of " + VERSION),
        ("raise SystemExit(3)", "failed with exit code 3"),
        (
            f"print({EMPTY!r})",
            "printed neither a token nor a client certificate",
        ),
        (
            "print(" + repr(EMPTY.replace("{}", '{"token": 5}')) + ")",
            "printed a token that is not text",
        ),
        (
            "print(" + repr(EMPTY.replace("{}", '{"token": "a\\nb"}')) + ")",
            "printed a token with characters that are not printable ASCII",
        ),
        ("print('[' * 100_000)", "printed 100001 bytes of other text instead of JSON"),
        ("while True: print('y' * 4_096)", "printed more than 8 MiB"),
    ],
)
def test_a_failed_exec_plugin_is_reported(credentials, code, problem):
    used = credentials(exec_plugin=ExecPlugin(sys.executable, VERSION, ("-c", code)))
    with pytest.raises(ConnectionConfigError) as refusal:
        used.headers()
    assert str(refusal.value).startswith(f"context x: the credential plugin {sys.executable} ")
    assert problem in str(refusal.value)


def test_an_exec_plugin_can_leave_a_background_process(credentials, monkeypatch):
    monkeypatch.setattr(exec_plugin, "_OUTPUT_AWAITED_S", 0.1)
    printed = json.dumps(
        {"apiVersion": VERSION, "kind": "ExecCredential", "status": {"token": "t"}}
    )
    script = f"sleep 5 & echo '{printed}'"
    used = credentials(exec_plugin=ExecPlugin("/bin/sh", VERSION, ("-c", script)))
    assert used.headers() == [("Authorization", "Bearer t")]


def test_an_exec_plugin_that_hangs_is_killed_with_its_output_open(credentials, monkeypatch):
    monkeypatch.setattr(exec_plugin, "EXEC_SECONDS_MAX", 0.2)
    used = credentials(exec_plugin=ExecPlugin("/bin/sh", VERSION, ("-c", "sleep 5; sleep 5")))
    with pytest.raises(ConnectionConfigError, match=r"took over 0.2 seconds"):
        used.headers()


def test_a_missing_exec_plugin_is_reported_with_its_install_hint(credentials):
    plugin = ExecPlugin("no-such-plugin", VERSION, install_hint="Install it\nfrom example.com.")
    with pytest.raises(ConnectionConfigError, match=r"was not found; Install it from example.com"):
        credentials(exec_plugin=plugin).headers()


def test_a_plugin_that_needs_a_terminal_is_refused_without_one(credentials, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    plugin = ExecPlugin("x", VERSION, interactive_mode="Always")
    with pytest.raises(ConnectionConfigError, match="needs a terminal"):
        credentials(exec_plugin=plugin).headers()


@pytest.mark.parametrize("token", ["a\nb", "\u00e9"])
def test_a_token_with_invalid_header_characters_is_refused(credentials, token):
    with pytest.raises(ConnectionConfigError, match="the Authorization header would contain"):
        credentials(token=token).headers()
