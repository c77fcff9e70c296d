"""Tokens of service accounts: signed by the server, recognized by their signature.

upstream: pkg/serviceaccount/{jwt,claims}.go
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

import jwt

from fairlead.apiserver.auth.impersonation import service_account_groups
from fairlead.apiserver.auth.rbac import SERVICE_ACCOUNT_PREFIX
from fairlead.apiserver.kind import POD, SERVICE_ACCOUNT, Kind
from fairlead.apiserver.request import User
from fairlead.apiserver.storage import Storage

Json = dict[str, Any]

ALGORITHM: Final = "ES256"
PRIVATE: Final = "kubernetes.io"
_NS_PER_S: Final = 1_000_000_000


class ServiceAccountTokens:
    """Issues tokens with `key` (the PEM text of a P-256 key) and finds the user of one.

    A token is worth nothing when its time is over, or what it is bound to is gone from `storage`.
    """

    def __init__(self, key: str, storage: Storage, clock: Callable[[], int]) -> None:
        """`clock` tells the time in ns since 1970."""
        self._key = jwt.get_algorithm_by_name(ALGORITHM).prepare_key(key)
        self._public = self._key.public_key()
        self._storage = storage
        self._clock = clock

    @property
    def keys(self) -> tuple[Json, ...]:
        """The public key, as others may know it (RFC 7517)."""
        return (_public_key(self._public),)

    def issue(self, claims: Json) -> str:
        """A token that says `claims`."""
        key_id = {"kid": self.keys[0]["kid"]}
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers=key_id)

    def recognize(self, token: str) -> User | None:
        """The account whose token that is, None when it is none or no longer good."""
        try:
            options: Any = {"verify_exp": False, "verify_aud": False, "verify_nbf": False}
            claims = jwt.decode(token, self._public, algorithms=[ALGORITHM], options=options)
        except jwt.InvalidTokenError:
            return None
        bound = claims.get(PRIVATE, {})
        if claims.get("exp", 0) * _NS_PER_S <= self._clock() or not self._is_there(bound):
            return None
        return _user(bound)

    def _is_there(self, bound: Json) -> bool:
        """Whether the account, and the pod that the token is for, are those of then."""
        namespace = bound.get("namespace", "")
        account = bound.get("serviceaccount", {})
        pod = bound.get("pod")
        return self._is_same(SERVICE_ACCOUNT, namespace, account) and (
            pod is None or self._is_same(POD, namespace, pod)
        )

    def _is_same(self, kind: Kind, namespace: str, reference: Json) -> bool:
        found = self._storage.find(kind, namespace, reference.get("name", ""))
        return found is not None and found["metadata"]["uid"] == reference.get("uid")


def claims_of(account: Json, spec: Json, now_s: int, issuer: str) -> Json:
    """What the token of a TokenRequest with `spec` says of `account`."""
    meta = account["metadata"]
    reference = {"name": meta["name"], "uid": meta["uid"]}
    bound: Json = {"namespace": meta["namespace"], "serviceaccount": reference}
    target = spec.get("boundObjectRef") or {}
    if target.get("kind") == POD.kind:
        bound["pod"] = {"name": target.get("name", ""), "uid": target.get("uid", "")}
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
    described: Json = jwt.algorithms.ECAlgorithm.to_jwk(key, as_dict=True)
    named = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:32]
    return {"use": "sig", **described, "kid": named, "alg": ALGORITHM}


def _user(bound: Json) -> User:
    namespace, account = bound["namespace"], bound["serviceaccount"]
    extra = {}
    if "pod" in bound:
        pod = bound["pod"]
        extra = {
            "authentication.kubernetes.io/pod-name": (str(pod["name"]),),
            "authentication.kubernetes.io/pod-uid": (str(pod["uid"]),),
        }
    return User(
        name=f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account['name']}",
        groups=service_account_groups(namespace),
        uid=account["uid"],
        extra=extra,
    )
