"""Tokens of service accounts, and the objects that they are bound to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairlead.apiserver.auth.authentication.service_account_token import ServiceAccountTokens
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.auth.certificate_authority import new_authority
from fairlead.apiserver.endpoints.compose import complete_server

KEY = new_authority(datetime(2026, 1, 1, tzinfo=UTC)).key
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"

OTHER_ACCOUNT = (
    'cannot bind token for serviceaccount "sa" to pod running with different serviceaccount name.'
)
OTHER_UID = (
    'Operation cannot be fulfilled on Pod "own": the UID in the bound object reference (x) does '
    "not match the UID in record. The object might have been deleted and then recreated"
)


@pytest.fixture
def request_token(api, pods, pod):
    """Requests tokens of the account `sa`.

    The cluster has a pod of this account, a pod of another account, and a node.
    """
    storage = api.store.storage
    tokens = ServiceAccountTokens(KEY, storage, lambda: api.now)
    identity = Identity(
        rights=Rbac(storage), recognize=tokens.recognize, issue=tokens.issue, keys=tokens.keys
    )
    api.server = complete_server(
        api.store, clock=lambda: api.now, address="127.0.0.1:6443", version="0", identity=identity
    )
    api.post(ACCOUNTS, {"metadata": {"name": "sa"}})
    api.post(pods, pod("own", serviceAccountName="sa"))
    api.post(pods, pod("other", serviceAccountName="other"))
    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    api.recognize = tokens.recognize
    return lambda spec, **meta: api.post(f"{ACCOUNTS}/sa/token", {"metadata": meta, "spec": spec})


def bound(kind, name, version="v1", **more):
    return {"boundObjectRef": {"kind": kind, "apiVersion": version, "name": name, **more}}


@pytest.mark.parametrize("reference", [bound("Pod", "own"), bound("Node", "n")])
def test_a_token_is_valid_while_its_bound_object_exists(api, request_token, pods, reference):
    issued = request_token(reference)
    token = issued.json["status"]["token"]
    assert api.recognize(token, issued.json["spec"]["audiences"]).name.endswith(":default:sa")
    api.delete(f"{pods}/own")
    api.delete("/api/v1/nodes/n")
    assert api.recognize(token, issued.json["spec"]["audiences"]) is None


@pytest.mark.parametrize(
    ("reference", "code", "why"),
    [
        (
            bound("Pod", "other"),
            400,
            OTHER_ACCOUNT,
        ),
        (
            bound("ConfigMap", "x"),
            400,
            'cannot bind token for serviceaccount "sa" to type /v1, Kind=ConfigMap',
        ),
        (
            bound("Pod", "own", "apps/v1"),
            400,
            'cannot bind token for serviceaccount "sa" to type apps/v1, Kind=Pod',
        ),
        (
            bound("Pod", "own", uid="x"),
            409,
            OTHER_UID,
        ),
    ],
)
def test_an_invalid_bound_object_reference_is_refused(request_token, reference, code, why):
    refused = request_token(reference)
    assert (refused.status, refused.message) == (code, why)


def test_a_request_with_the_name_of_another_account_is_refused(request_token):
    assert request_token({}, name="default").message == (
        'TokenRequest.authentication.k8s.io "sa" is invalid: metadata.name: Invalid value: '
        '"default": must match the service account name if specified'
    )
