"""Tokens of service accounts in a local cluster, whose clock can differ from the machine's."""

from __future__ import annotations

import base64

import pytest

from fairlead.apiserver.error import ApiError

TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"
ROBOT = "system:serviceaccount:default:default"


def issued(cluster, **spec):
    """Return a token of the default account."""
    cluster.pass_time(1)
    return cluster.ask("POST", TOKENS, {"spec": spec})["status"]["token"]


def known(cluster, token):
    """Return the user that `token` authenticates. Raises ApiError."""
    return cluster.local.tokens({"authorization": f"Bearer {token}"}).name


def reviewed(cluster, token, *audiences):
    """Return the status of a TokenReview of `token`."""
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    spec = {"token": token, "audiences": list(audiences)}
    return cluster.ask("POST", path, {"spec": spec})["status"]


def test_a_token_expires_by_the_clock_of_the_cluster(cluster):
    cluster.pass_time(100 * 365 * 24 * 3_600)
    token = issued(cluster)
    assert known(cluster, token) == ROBOT
    cluster.pass_time(3_601)
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)


def test_a_token_for_another_audience_is_valid_only_for_this_audience(cluster):
    token = issued(cluster, audiences=["vault"])
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)
    assert "authenticated" not in reviewed(cluster, token)
    assert reviewed(cluster, token, "elsewhere", "vault")["audiences"] == ["vault"]


def test_a_bound_object_reference_needs_no_uid(cluster):
    secrets = "/api/v1/namespaces/default/secrets"
    cluster.ask("POST", secrets, {"metadata": {"name": "s"}})
    token = issued(cluster, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"})
    assert known(cluster, token) == ROBOT
    cluster.ask("DELETE", f"{secrets}/s")
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)


def test_a_token_is_invalid_a_minute_after_the_deletion_of_its_bound_object(cluster):
    """This also holds if a finalizer keeps the object."""
    secrets = "/api/v1/namespaces/default/secrets"
    cluster.ask("POST", secrets, {"metadata": {"name": "s", "finalizers": ["a/b"]}})
    token = issued(cluster, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"})
    cluster.ask("DELETE", f"{secrets}/s")
    cluster.pass_time(60)
    assert known(cluster, token) == ROBOT
    cluster.pass_time(2)
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)


def test_a_token_cannot_be_bound_to_other_kinds(cluster):
    nothing = cluster.ask("POST", TOKENS, {"spec": {"boundObjectRef": {"kind": "ConfigMap"}}})
    assert "cannot bind token for serviceaccount" in nothing["message"]


# --- tokens in Secrets -----------------------------------------------------------------------

SECRETS = "/api/v1/namespaces/default/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def token_secret(account="default", name="s", **annotations):
    """Return a Secret that requests a token of an account."""
    annotations = {"kubernetes.io/service-account.name": account, **annotations}
    meta = {"name": name, "annotations": annotations}
    return {"metadata": meta, "type": "kubernetes.io/service-account-token"}


def filled(cluster, name="s"):
    """Return the decoded data of a Secret."""
    data = cluster.ask("GET", f"{SECRETS}/{name}").get("data") or {}
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


def test_a_secret_gets_a_token_that_does_not_expire(cluster):
    cluster.pass_time(1)
    cluster.ask("POST", SECRETS, token_secret())
    cluster.pass_time(1)
    data = filled(cluster)
    assert data["namespace"] == "default"
    account = cluster.ask("GET", f"{ACCOUNTS}/default")
    annotations = cluster.ask("GET", f"{SECRETS}/s")["metadata"]["annotations"]
    assert annotations["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
    cluster.pass_time(365 * 24 * 3_600)
    assert known(cluster, data["token"]) == ROBOT
    assert reviewed(cluster, data["token"])["user"]["username"] == ROBOT
    assert "authenticated" not in reviewed(cluster, data["token"], "vault")
    assert filled(cluster) == data


def test_a_token_is_valid_while_its_secret_contains_it(cluster):
    cluster.pass_time(1)
    cluster.ask("POST", SECRETS, token_secret())
    cluster.pass_time(1)
    first = filled(cluster)["token"]
    other = {"data": {"token": base64.b64encode(b"another").decode()}}
    cluster.ask("PATCH", f"{SECRETS}/s", other, "application/merge-patch+json")
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, first)


def test_token_secrets_without_their_service_account_are_deleted(cluster):
    """The account does not exist, or has another uid than the Secret's annotation."""
    cluster.ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    cluster.ask("POST", SECRETS, token_secret("robot"))
    cluster.ask("POST", SECRETS, token_secret("nobody", "t"))
    cluster.ask(
        "POST", SECRETS, token_secret("robot", "u", **{"kubernetes.io/service-account.uid": "x"})
    )
    cluster.ask("POST", SECRETS, {**token_secret("nobody", "opaque"), "type": "Opaque"})
    cluster.pass_time(1)
    names = {one["metadata"]["name"] for one in cluster.ask("GET", SECRETS)["items"]}
    assert names == {"s", "opaque"}
    token = filled(cluster)["token"]
    cluster.ask("DELETE", f"{ACCOUNTS}/robot")
    cluster.pass_time(1)
    assert cluster.ask("GET", f"{SECRETS}/s")["reason"] == "NotFound"
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)


def test_a_deleted_secret_is_removed_from_its_service_account(cluster):
    listed = [{"name": "s"}, {"name": "other"}]
    cluster.ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}, "secrets": listed})
    cluster.ask("POST", SECRETS, token_secret("robot"))
    cluster.pass_time(1)
    cluster.ask("DELETE", f"{SECRETS}/s")
    cluster.pass_time(1)
    assert cluster.ask("GET", f"{ACCOUNTS}/robot")["secrets"] == [{"name": "other"}]
