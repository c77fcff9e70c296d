"""Service account tokens: JWTs that the server signs and recognizes by their signatures.

A token from the TokenRequest API expires. A token in a Secret is valid while the Secret contains
it.

upstream: pkg/serviceaccount/{jwt,claims,legacy}.go
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import jwt

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp
from fairlead.apiserver.auth.authentication.token import API_AUDIENCES
from fairlead.apiserver.auth.service_account_user import (
    SERVICE_ACCOUNT_PREFIX,
    service_account_groups,
)
from fairlead.apiserver.kind import NODE, POD, SECRET, SERVICE_ACCOUNT, Kind
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.storage import Storage

ALGORITHM: Final = "ES256"
PRIVATE: Final = "kubernetes.io"
# The kinds of objects to which a token can be bound in addition to its account, by claim.
BOUND_OBJECTS: Final = {"node": NODE, "pod": POD, "secret": SECRET}
_EXTRA: Final = "authentication.kubernetes.io/"
_BOUND_FIELDS: Final = (("pod", "name"), ("pod", "uid"), ("node", "name"), ("node", "uid"))
CREDENTIAL: Final = "credential-id"
# The issuer and the claims of a token in a Secret
_LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
_LEGACY_NAMESPACE: Final = f"{PRIVATE}/serviceaccount/namespace"
_LEGACY_SECRET: Final = f"{PRIVATE}/serviceaccount/secret.name"
_LEGACY_ACCOUNT: Final = f"{PRIVATE}/serviceaccount/service-account.name"
_LEGACY_UID: Final = f"{PRIVATE}/serviceaccount/service-account.uid"
# Tolerated clock skew; upstream: go-jose's jwt.DefaultLeeway
_LEEWAY_S: Final = 60
# The library does not check these claims, because it would compare times with the machine's clock
# rather than the cluster's.
_CHECKED: Final[Any] = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud")}


class ServiceAccountTokens:
    """Issues and authenticates tokens, which are signed with `key`.

    `key` is the PEM text of a P-256 key. A token is invalid if it has expired, or if an object to
    which it is bound no longer exists in `storage`.
    """

    def __init__(
        self,
        key: str,
        storage: Storage,
        clock: Callable[[], int],
        new_id: Callable[[], str] | None = None,
    ) -> None:
        """`clock` returns the time in ns since 1970. `new_id` returns a unique token id.

        If `new_id` is None, tokens have no id.
        """
        self._key = jwt.get_algorithm_by_name(ALGORITHM).prepare_key(key)
        self._public = self._key.public_key()
        self._storage = storage
        self._clock = clock
        self._new_id = new_id

    @property
    def keys(self) -> tuple[Json, ...]:
        """The public keys as JWKs (RFC 7517). There is exactly one."""
        return (_public_key(self._public),)

    def issue(self, claims: Json) -> str:
        """Return a signed token that contains `claims`, and its own id as a further claim (`jti`).

        If the token is bound to a pod, it also contains the node of the pod as a claim.
        """
        key_id = {"kid": self.keys[0]["kid"]}
        token_id_claim = {"jti": self._new_id()} if self._new_id else {}
        bound = {PRIVATE: self._with_node(claims[PRIVATE])} if PRIVATE in claims else {}
        all_claims = {**claims, **token_id_claim, **bound}
        return jwt.encode(all_claims, self._key, algorithm=ALGORITHM, headers=key_id)

    def issue_for_secret(self, account: Json, secret: Json) -> str:
        """Return the signed token of `account` for `secret`."""
        meta = account["metadata"]
        claims = {
            "iss": _LEGACY_ISSUER,
            "sub": f"{SERVICE_ACCOUNT_PREFIX}{meta['namespace']}:{meta['name']}",
            _LEGACY_NAMESPACE: meta["namespace"],
            _LEGACY_SECRET: secret["metadata"]["name"],
            _LEGACY_ACCOUNT: meta["name"],
            _LEGACY_UID: meta["uid"],
        }
        key_id = {"kid": self.keys[0]["kid"]}
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers=key_id)

    def recognize(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> User | None:
        """Return the user of a token.

        Return None if the token is invalid, has expired or is for none of `audiences`.
        """
        try:
            claims = jwt.decode(token, self._public, algorithms=[ALGORITHM], options=_CHECKED)
        except jwt.InvalidTokenError:
            return None
        if claims.get("iss") == _LEGACY_ISSUER:
            is_for_server = not set(API_AUDIENCES).isdisjoint(audiences)
            return self._user_of_secret(token, claims) if is_for_server else None
        bound = claims.get(PRIVATE, {})
        has_audience = any(audience in claims["aud"] for audience in audiences)
        is_valid = (
            has_audience
            and self._is_in_validity_period(claims)
            and self._is_bound_to_existing(bound)
        )
        return _user(bound, claims.get("jti", "")) if is_valid else None

    def _user_of_secret(self, token: str, claims: Json) -> User | None:
        """Return the user of `token`, which was issued for a Secret.

        Return None if the token is not valid.
        """
        # upstream: pkg/serviceaccount/legacy.go:Validate
        namespace = claims[_LEGACY_NAMESPACE]
        secret = self._storage.find(SECRET, namespace, claims[_LEGACY_SECRET])
        account = self._storage.find(SERVICE_ACCOUNT, namespace, claims[_LEGACY_ACCOUNT])
        if secret is None or account is None or account["metadata"]["uid"] != claims[_LEGACY_UID]:
            return None
        if any(one["metadata"].get("deletionTimestamp") for one in (secret, account)):
            return None
        if (secret.get("data") or {}).get("token") != base64.b64encode(token.encode()).decode():
            return None
        reference = {"name": claims[_LEGACY_ACCOUNT], "uid": claims[_LEGACY_UID]}
        return _user({"namespace": namespace, "serviceaccount": reference}, "")

    def _with_node(self, bound: Json) -> Json:
        # upstream: pkg/registry/core/serviceaccount/storage/token.go:Create
        pod = self._storage.find(POD, bound.get("namespace", ""), bound.get("pod", {}).get("name"))
        name = pod["spec"].get("nodeName") if pod is not None else None
        if not name:
            return bound
        node = self._storage.find(NODE, "", name)
        uid = {"uid": node["metadata"]["uid"]} if node is not None else {}
        return {**bound, "node": {"name": name, **uid}}

    def _is_in_validity_period(self, claims: Json) -> bool:
        now_s = self._clock() / NANOSECONDS_PER_SECOND
        return bool(claims["nbf"] - _LEEWAY_S <= now_s < claims["exp"])

    def _is_bound_to_existing(self, bound: Json) -> bool:
        """Return whether the objects in the claims `bound` still exist with the claimed uids.

        These objects are the service account and, for a bound token, the object to which it is
        bound. An object that is being deleted counts as existing until a minute after its
        deletionTimestamp. If the token is bound to a pod, the node of the pod need not exist.
        """
        namespace = bound.get("namespace", "")
        if "pod" in bound:
            bound = {claim: extra for claim, extra in bound.items() if claim != "node"}
        return self._exists(SERVICE_ACCOUNT, namespace, bound.get("serviceaccount", {})) and all(
            self._exists(kind, namespace, bound[claim])
            for claim, kind in BOUND_OBJECTS.items()
            if claim in bound
        )

    def _exists(self, kind: Kind, namespace: str, reference: Json) -> bool:
        reference_namespace = namespace if kind.namespaced else ""
        found = self._storage.find(kind, reference_namespace, reference.get("name", ""))
        if found is None or found["metadata"]["uid"] != reference.get("uid"):
            return False
        deleted = found["metadata"].get("deletionTimestamp")
        limit = self._clock() - _LEEWAY_S * NANOSECONDS_PER_SECOND
        return not deleted or parse_timestamp(deleted) >= limit


def claims_of(account: Json, spec: Json, now_s: int, issuer: str) -> Json:
    """Return the claims of the token that a TokenRequest with `spec` requests for `account`.

    `now_s` is the time in seconds since 1970. `spec` must contain audiences and
    expirationSeconds.
    """
    meta = account["metadata"]
    reference = {"name": meta["name"], "uid": meta["uid"]}
    bound: Json = {"namespace": meta["namespace"], "serviceaccount": reference}
    target = spec.get("boundObjectRef") or {}
    for claim, kind in BOUND_OBJECTS.items():
        if target.get("kind") == kind.kind:
            bound[claim] = {"name": target.get("name", ""), "uid": target.get("uid", "")}
    return {
        "aud": spec["audiences"],
        "exp": now_s + spec["expirationSeconds"],
        "iat": now_s,
        "nbf": now_s,
        "iss": issuer,
        "sub": f"{SERVICE_ACCOUNT_PREFIX}{meta['namespace']}:{meta['name']}",
        PRIVATE: bound,
    }


def _public_key(key: Any) -> Json:
    jwk: Json = jwt.algorithms.ECAlgorithm.to_jwk(key, as_dict=True)
    key_id = hashlib.sha256(json.dumps(jwk, sort_keys=True).encode()).hexdigest()[:32]
    return {"use": "sig", **jwk, "kid": key_id, "alg": ALGORITHM}


def _user(bound: Json, token_id: str) -> User:
    namespace, account = bound["namespace"], bound["serviceaccount"]
    return User(
        name=f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account['name']}",
        groups=service_account_groups(namespace),
        uid=account["uid"],
        extra=_extra(bound, token_id),
    )


def _extra(bound: Json, token_id: str) -> dict[str, tuple[str, ...]]:
    """Return the `extra` fields of the user that a token authenticates."""
    # upstream: apiserver/pkg/authentication/serviceaccount/util.go:UserInfo
    extra = {f"{claim}-{part}": bound.get(claim, {}).get(part, "") for claim, part in _BOUND_FIELDS}
    extra[CREDENTIAL] = f"JTI={token_id}" if token_id else ""
    return {f"{_EXTRA}{name}": (str(value),) for name, value in extra.items() if value}
