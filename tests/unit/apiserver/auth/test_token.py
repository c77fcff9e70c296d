"""Bearer tokens in the sub-protocols of requests for WebSockets."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from fairlead.apiserver.auth.authentication.token import TokenAuthenticator, authenticated
from fairlead.apiserver.error import ApiError

TOKEN = "???>>>a"  # contains both letters in which base64url differs from base64
ENCODED = urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
BEARER = "base64url.bearer.authorization.k8s.io."
UPGRADE = {"connection": "keep-alive, Upgrade", "upgrade": "WebSocket"}
AUTHENTICATE = TokenAuthenticator({TOKEN: authenticated("alice")})


def of(encoded, headers):
    """Return the name of the user whose encoded token is in the sub-protocols of a request."""
    return AUTHENTICATE({**headers, "sec-websocket-protocol": f"v4, {BEARER}{encoded}"}).name


def test_the_token_of_a_websocket_may_be_in_a_sub_protocol():
    assert set(ENCODED) >= {"-", "_"}
    assert of(ENCODED, UPGRADE) == "alice"


@pytest.mark.parametrize("headers", [{}, {"upgrade": "h2c", "connection": "upgrade"}])
@pytest.mark.parametrize("encoded", [ENCODED, "d3Jvbmc", "?"])
def test_sub_protocols_of_other_requests_are_ignored(encoded, headers):
    assert of(encoded, headers) == "system:anonymous"


@pytest.mark.parametrize(
    "encoded", [f"{ENCODED}==", ENCODED.replace("-", "+").replace("_", "/"), "d3Jvbmc", "_w", "a"]
)
def test_other_encodings_and_unknown_tokens_are_refused(encoded):
    with pytest.raises(ApiError, match="Unauthorized"):
        of(encoded, UPGRADE)


WRONG = {**UPGRADE, "authorization": "Bearer wrong"}


def test_a_valid_token_in_a_sub_protocol_counts_although_the_header_has_an_invalid_one():
    assert of(ENCODED, WRONG) == "alice"


def test_a_valid_token_in_the_header_counts_although_the_sub_protocol_has_an_invalid_one():
    assert of("a", {**UPGRADE, "authorization": f"Bearer {TOKEN}"}) == "alice"


@pytest.mark.parametrize("encoded", ["", "d3Jvbmc"])
def test_an_invalid_token_in_the_header_is_refused_if_no_sub_protocol_has_a_valid_one(encoded):
    with pytest.raises(ApiError, match="Unauthorized"):
        of(encoded, WRONG)
