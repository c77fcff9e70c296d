"""Tokens of service accounts in a local cluster, whose time may be far from the machine's."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError

TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"
ROBOT = "system:serviceaccount:default:default"


def issued(cluster, **spec):
    """A token of the default account."""
    cluster.pass_time(1)
    return cluster.ask("POST", TOKENS, {"spec": spec})["status"]["token"]


def known(cluster, token):
    """Who shows `token`. Raises ApiError."""
    return cluster.local.tokens({"authorization": f"Bearer {token}"}).name


def reviewed(cluster, token, *audiences):
    """What a review says of `token`."""
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    spec = {"token": token, "audiences": list(audiences)}
    return cluster.ask("POST", path, {"spec": spec})["status"]


def test_a_token_counts_by_the_clusters_clock(cluster):
    cluster.pass_time(100 * 365 * 24 * 3_600)
    token = issued(cluster)
    assert known(cluster, token) == ROBOT
    cluster.pass_time(3_601)
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)


def test_a_token_for_others_is_for_them_alone(cluster):
    token = issued(cluster, audiences=["vault"])
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)
    assert "authenticated" not in reviewed(cluster, token)
    assert reviewed(cluster, token, "elsewhere", "vault")["audiences"] == ["vault"]


def test_what_a_token_is_bound_to_need_not_be_told_by_uid(cluster):
    secrets = "/api/v1/namespaces/default/secrets"
    cluster.ask("POST", secrets, {"metadata": {"name": "s"}})
    token = issued(cluster, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"})
    assert known(cluster, token) == ROBOT
    cluster.ask("DELETE", f"{secrets}/s")
    with pytest.raises(ApiError, match="Unauthorized"):
        known(cluster, token)


def test_a_token_is_bound_to_what_there_is(cluster):
    nothing = cluster.ask("POST", TOKENS, {"spec": {"boundObjectRef": {"kind": "ConfigMap"}}})
    assert "cannot bind token for serviceaccount" in nothing["message"]
