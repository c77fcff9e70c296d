"""Certificates that clients of a local cluster accept, and tokens of service accounts."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime
from threading import Thread

import pytest
from cryptography import x509

from fairlead.apiserver.auth.authentication.service_account_token import (
    ServiceAccountTokens,
    claims_of,
)
from fairlead.apiserver.auth.authentication.token import API_AUDIENCES
from fairlead.apiserver.auth.certificate_authority import new_authority, new_client, new_server
from fairlead.apiserver.kind import NODE, POD, SECRET, SERVICE_ACCOUNT
from fairlead.apiserver.storage.storage import Storage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_S = 1_767_225_600
KEY = new_authority(NOW).key


def contexts(tmp_path, authority, pair):
    """Return the TLS contexts of the server and of the client."""
    (tmp_path / "chain").write_text(pair.certificate)
    (tmp_path / "key").write_text(pair.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "chain", tmp_path / "key")
    return server, ssl.create_default_context(cadata=authority.certificate)


def shaken(server, client, name):
    """Run a TLS handshake over a pair of sockets."""
    near, far = socket.socketpair()
    with near, far:
        thread = Thread(target=lambda: server.wrap_socket(far, server_side=True).close())
        thread.start()
        try:
            client.wrap_socket(near, server_hostname=name).close()
        finally:
            thread.join()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "kubernetes.default.svc"])
def test_a_client_with_the_authoritys_certificate_trusts_the_server(tmp_path, name):
    authority = new_authority(NOW)
    pair = new_server(authority, ["127.0.0.1"], NOW)
    shaken(*contexts(tmp_path, authority, pair), name)


def test_a_client_certificate_contains_user_and_groups():
    pair = new_client(new_authority(NOW), "alice", ["dev"], NOW)
    subject = x509.load_pem_x509_certificate(pair.certificate.encode()).subject
    assert subject.rfc4514_string() == "CN=alice,O=dev"


@pytest.fixture
def storage():
    """A storage with a service account and a pod that uses it."""
    found = Storage()
    meta = {"name": "robot", "namespace": "n", "uid": "u-1"}
    found.put(SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    pod = {"name": "p", "namespace": "n", "uid": "u-2"}
    found.put(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": {}})
    return found


def issued(storage, now_s=NOW_S, **spec):
    """Return (ServiceAccountTokens at `now_s`, a token of the account issued at NOW_S)."""
    account = storage.find(SERVICE_ACCOUNT, "n", "robot")
    wanted = {"audiences": list(API_AUDIENCES), "expirationSeconds": 600, **spec}
    tokens = ServiceAccountTokens(KEY, storage, lambda: now_s * 10**9)
    return tokens, tokens.issue(claims_of(account, wanted, NOW_S, "issuer"))


def test_a_token_identifies_its_service_account(storage):
    tokens, token = issued(storage)
    user = tokens.recognize(token)
    assert (user.name, user.uid) == ("system:serviceaccount:n:robot", "u-1")
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:n",
        "system:authenticated",
    )


def test_a_token_expires(storage):
    assert issued(storage, NOW_S + 599)[0].recognize(issued(storage)[1])
    assert issued(storage, NOW_S + 600)[0].recognize(issued(storage)[1]) is None


def test_a_token_expires_by_the_clock_of_the_cluster():
    """The clock of the cluster differs from the machine's clock by a hundred years."""
    found = Storage()
    meta = {"name": "robot", "namespace": "n", "uid": "u-1"}
    found.put(SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    far_s = NOW_S + 100 * 365 * 24 * 3_600
    wanted = {"audiences": list(API_AUDIENCES), "expirationSeconds": 600}
    tokens = ServiceAccountTokens(KEY, found, lambda: far_s * 10**9)
    account = found.find(SERVICE_ACCOUNT, "n", "robot")
    assert tokens.recognize(tokens.issue(claims_of(account, wanted, far_s, "issuer")))
    too_early = tokens.issue(claims_of(account, wanted, far_s + 120, "issuer"))
    assert tokens.recognize(too_early) is None


def test_a_token_for_another_audience_is_refused(storage):
    tokens, token = issued(storage, audiences=["vault"])
    assert tokens.recognize(token) is None
    assert tokens.recognize(token, ["vault", "elsewhere"])


def test_a_token_bound_to_a_secret_is_invalid_after_its_deletion(storage):
    meta = {"name": "s", "namespace": "n", "uid": "u-3"}
    storage.put(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    tokens, token = issued(storage, boundObjectRef={"kind": "Secret", "name": "s", "uid": "u-3"})
    assert tokens.recognize(token)
    storage.remove(SECRET, "n", "s")
    assert tokens.recognize(token) is None


def test_a_token_bound_to_a_pod_is_invalid_after_its_deletion(storage):
    tokens, token = issued(storage, boundObjectRef={"kind": "Pod", "name": "p", "uid": "u-2"})
    assert tokens.recognize(token).extra["authentication.kubernetes.io/pod-name"] == ("p",)
    storage.remove(POD, "n", "p")
    assert tokens.recognize(token) is None


def test_a_token_contains_its_id_and_the_node_of_its_pod(storage):
    """`kubectl auth whoami` shows the id and the node, even if the node no longer exists."""
    meta = {"name": "node-1", "uid": "u-4"}
    storage.put(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    pod = storage.find(POD, "n", "p")
    storage.put(POD, {**pod, "spec": {"nodeName": "node-1"}})
    account = storage.find(SERVICE_ACCOUNT, "n", "robot")
    reference = {"kind": "Pod", "name": "p", "uid": "u-2"}
    wanted = {"audiences": list(API_AUDIENCES), "expirationSeconds": 600}
    tokens = ServiceAccountTokens(KEY, storage, lambda: NOW_S * 10**9, lambda: "id-1")
    said = claims_of(account, {**wanted, "boundObjectRef": reference}, NOW_S, "issuer")
    token = tokens.issue(said)
    storage.remove(NODE, "", "node-1")
    assert tokens.recognize(token).extra == {
        f"authentication.kubernetes.io/{name}": (value,)
        for name, value in {
            "pod-name": "p",
            "pod-uid": "u-2",
            "node-name": "node-1",
            "node-uid": "u-4",
            "credential-id": "JTI=id-1",
        }.items()
    }


def test_a_token_of_a_deleted_or_recreated_service_account_is_invalid(storage):
    tokens, token = issued(storage)
    storage.remove(SERVICE_ACCOUNT, "n", "robot")
    assert tokens.recognize(token) is None


def test_a_token_signed_with_another_key_is_invalid(storage):
    _, token = issued(storage)
    other = ServiceAccountTokens(new_authority(NOW).key, storage, lambda: NOW_S * 10**9)
    assert other.recognize(token) is None
    assert other.recognize("nonsense") is None
