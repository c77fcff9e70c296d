"""OpenID discovery: the issuer of service account tokens, and its public keys.

upstream: pkg/routes/openidmetadata.go, pkg/serviceaccount/openidmetadata.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.negotiation.request_error import no_method, not_acceptable
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.request import Request, Response

CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
KEYS_TYPE: Final = "application/jwk-set+json"
_CACHED: Final = (("Cache-Control", "public, max-age=3600"),)


class IssuerDocuments:
    """Serves the OpenID configuration and the keys of the issuer of service account tokens.

    An instance is an `endpoints.server.Document`.
    """

    def __init__(self, identity: Identity, address: str) -> None:
        """`address` is the host and port in the URL of the keys."""
        self._identity = identity
        self._keys_url = f"https://{address}{KEYS}"

    def __call__(self, request: Request, now: int) -> Response | None:
        """Return the OpenID configuration or the public keys; None for any other path.

        Always returns None if the server issues no tokens. `now` is ignored. Raises ApiError 405
        for a method other than GET. Raises ApiError 406 if the client requests the keys but does
        not accept their media type.
        """
        if request.path not in (CONFIGURATION, KEYS) or self._identity.issue is None:
            return None
        if request.method != "GET":
            raise no_method()
        if request.path == CONFIGURATION:
            return Response(200, (encode(self._configuration()),), headers=_CACHED)
        if not _takes_keys(request.headers.get("accept", "")):
            raise not_acceptable((KEYS_TYPE,))
        body = encode({"keys": list(self._identity.keys)})
        return Response(200, (body,), KEYS_TYPE, _CACHED)

    def _configuration(self) -> Json:
        return {
            "issuer": self._identity.issuer,
            "jwks_uri": self._keys_url,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted(
                {key["alg"] for key in self._identity.keys}
            ),
        }


def _takes_keys(accept: str) -> bool:
    named = [clause.partition(";")[0].strip() for clause in accept.split(",")]
    return any(name in ("", "*/*", "application/*", KEYS_TYPE) for name in named)
