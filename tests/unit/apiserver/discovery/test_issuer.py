"""OpenID discovery of the token issuer and its keys."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import jwt
import pytest

from fairlead.apiserver.auth.authentication.service_account_token import ServiceAccountTokens
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.auth.certificate_authority import new_authority
from fairlead.apiserver.discovery.issuer import CONFIGURATION, KEYS, IssuerDocuments
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.request import Request
from fairlead.apiserver.storage.storage import Storage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOKENS = ServiceAccountTokens(new_authority(NOW).key, Storage(), lambda: 0)
DOCUMENTS = IssuerDocuments(
    Identity(
        rights=Rbac(Storage()), recognize=TOKENS.recognize, issue=TOKENS.issue, keys=TOKENS.keys
    ),
    "127.0.0.1:6443",
)


def got(path, accept="*/*", method="GET"):
    response = DOCUMENTS(Request(method, path, headers={"accept": accept}), 0)
    return json.loads(b"".join(response.body))


def test_the_configuration_has_the_url_of_the_keys():
    configuration = got(CONFIGURATION)
    assert configuration["jwks_uri"] == "https://127.0.0.1:6443/openid/v1/jwks"
    assert configuration["id_token_signing_alg_values_supported"] == ["ES256"]


def test_a_token_is_verified_with_the_key_named_in_its_header():
    token = TOKENS.issue({"sub": "x"})
    (key,) = got(KEYS)["keys"]
    assert key["kid"] == jwt.get_unverified_header(token)["kid"]
    assert jwt.decode(token, jwt.PyJWK(key).key, algorithms=["ES256"]) == {"sub": "x"}


@pytest.mark.parametrize(
    ("path", "accept", "method", "code"),
    [(KEYS, "application/json", "GET", 406), (CONFIGURATION, "*/*", "HEAD", 405)],
)
def test_unsupported_media_types_and_methods_are_refused(path, accept, method, code):
    with pytest.raises(ApiError) as refused:
        got(path, accept, method)
    assert refused.value.code == code


def test_other_paths_are_left_to_other_handlers():
    assert DOCUMENTS(Request("GET", "/openid"), 0) is None
