"""TokenSecrets: writes the tokens of ServiceAccounts into the Secrets that request them.

A user who needs a token without an expiry creates a Secret that has the type
`kubernetes.io/service-account-token` and names a ServiceAccount. This controller adds the token,
the server's CA and the namespace. The controller deletes such a Secret if its account does not
exist, and removes a deleted Secret from the field `secrets` of its account.

upstream: pkg/controller/serviceaccount/tokens_controller.go
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Unstructured
from fairlead.apiserver.kind import SECRET, SERVICE_ACCOUNT
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController, kind_name

FILLED_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
WHY_NO_ACCOUNT: Final = "its ServiceAccount does not exist"

IssueForSecret = Callable[[Json, Json], str]  # (account, secret) -> token


class TokenSecrets(ReactiveController):
    """Fills the token Secrets in `storage`.

    `issue(account, secret)` returns the token to write to `secret`. `authority` is the PEM text of
    the server's CA, "" for no CA.
    """

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)
    interest: ClassVar[Interest] = Interest(
        changed=(Unstructured,), succeeded=(), failed=(PatchObject, DeleteObject)
    )

    def __init__(self, storage: Storage, issue: IssueForSecret, authority: str = "") -> None:
        super().__init__()
        self._storage = storage
        self._issue = issue
        self._authority = authority

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Fill new Secrets, and delete the Secrets of deleted accounts."""
        commands: list[Command] = []
        for one, is_deleted in changed:
            meta, kind = one.metadata, kind_name(one)
            if kind == SECRET.kind:
                if is_deleted:
                    commands += self._unlisted(meta.namespace, meta.name, meta.annotations)
                else:
                    commands += self._completed(meta.namespace, meta.name)
            elif kind == SERVICE_ACCOUNT.kind and is_deleted:
                for secret in self._storage.items(SECRET, meta.namespace):
                    if _account_of(secret) == meta.name:
                        commands += self._completed(meta.namespace, secret["metadata"]["name"])
        return commands

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a token Secret."""
        secret = self._storage.find(SECRET, target.namespace, target.name)
        return target.kind == SECRET.kind and secret is not None and _is_token(secret)

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the write that the Secret `target` needs now; [] if it needs no write."""
        return self._completed(target.namespace, target.name)

    def _completed(self, namespace: str, name: str) -> list[Command]:
        """Return the command that a token Secret needs; [] if it needs no command.

        If the Secret's ServiceAccount no longer exists, the command deletes the Secret. Otherwise,
        the command adds the data that the Secret lacks.
        """
        secret = self._storage.find(SECRET, namespace, name)
        if secret is None or not _is_token(secret):
            return []
        meta = secret["metadata"]
        ref = ObjectRef(SECRET.kind, namespace, name, meta["uid"])
        account = self._storage.find(SERVICE_ACCOUNT, namespace, _account_of(secret))
        stated_uid = (meta.get("annotations") or {}).get(ACCOUNT_UID)
        if account is None or stated_uid not in (None, "", account["metadata"]["uid"]):
            return [] if meta.get("deletionTimestamp") else [DeleteObject(ref, why=WHY_NO_ACCOUNT)]
        missing = self._missing(secret, account)
        if not missing:
            return []
        annotations = {ACCOUNT_UID: account["metadata"]["uid"]}
        patch = {"metadata": {"annotations": annotations}, "data": missing}
        return [PatchObject(ref, patch)]

    def _missing(self, secret: Json, account: Json) -> Json:
        """Return the data that must be written to `secret`, in base64.

        The result contains the namespace and the token if `secret` lacks them. The result contains
        the CA certificate if `secret` lacks it or has another certificate.
        """
        known, missing = secret.get("data") or {}, {}
        if self._authority and known.get("ca.crt") != _encoded(self._authority):
            missing["ca.crt"] = _encoded(self._authority)
        if not known.get("namespace"):
            missing["namespace"] = _encoded(secret["metadata"]["namespace"])
        if not known.get("token"):
            missing["token"] = _encoded(self._issue(account, secret))
        return missing

    def _unlisted(
        self, namespace: str, name: str, annotations: dict[str, str]
    ) -> list[PatchObject]:
        """Return the write that removes the deleted Secret `name` from its account's `secrets`."""
        account = self._storage.find(SERVICE_ACCOUNT, namespace, annotations.get(ACCOUNT_NAME, ""))
        listed = (account or {}).get("secrets") or []
        kept = [one for one in listed if one.get("name") != name]
        if account is None or len(kept) == len(listed):
            return []
        meta = account["metadata"]
        ref = ObjectRef(SERVICE_ACCOUNT.kind, namespace, meta["name"], meta["uid"])
        return [PatchObject(ref, {"secrets": kept or None})]


def _is_token(secret: Json) -> bool:
    return secret.get("type") == FILLED_TYPE and bool(_account_of(secret))


def _account_of(secret: Json) -> str:
    found: str = (secret["metadata"].get("annotations") or {}).get(ACCOUNT_NAME, "")
    return found


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
