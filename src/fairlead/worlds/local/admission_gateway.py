"""AdmissionGateway: controllers' writes pass webhooks and policies, as clients' writes do.

The event loop that runs the cluster calls the webhooks over HTTP; a command is pending until they
have answered. Without an event loop the webhooks are skipped. Events skip admission.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.admission.webhooks.plugin import WebhookCall, WebhookNeeded
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.auth.authorization.node_authorizer import NodeAuthorizer
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.kind import (
    MUTATING_ADMISSION_POLICY_BINDING,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_ADMISSION_POLICY_BINDING,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
    find_kind,
)
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import NO_ANSWERS, User, WebhookAnswer
from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    Command,
    DeleteCollection,
    EvictPod,
    Issued,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.worlds.local.component_identity import user_of
from fairlead.worlds.local.field_manager import FieldManagers
from fairlead.worlds.perform import Outcome, perform

_ADMISSION_KINDS: Final = (
    MUTATING_ADMISSION_POLICY_BINDING,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_ADMISSION_POLICY_BINDING,
    VALIDATING_WEBHOOK_CONFIGURATION,
)


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command that waits for the webhook `call`, with the answers received so far."""

    issued: Issued
    call: WebhookCall
    answers: Mapping[str, WebhookAnswer]
    drawn: tuple[str, ...]


class AdmissionGateway:
    """Performs commands on `store` as their issuers, through admission."""

    def __init__(self, store: Store, field_managers: FieldManagers) -> None:
        """Webhooks are skipped until `calls_webhooks` is set."""
        self.calls_webhooks = False
        self.pending: deque[PendingCommand] = deque()
        self._store = store
        self._rights = Rbac(store.storage, (NodeAuthorizer(store.storage),))
        self._field_managers = field_managers
        self._quotas = QuotaLedgers(store.storage)

    def perform(
        self,
        issued: Issued,
        detailed: Command,
        now: Instant,
        *,
        answers: Mapping[str, WebhookAnswer] = NO_ANSWERS,
        drawn: tuple[str, ...] = (),
    ) -> Outcome | None:
        """Perform a command in its `detailed` form; return its outcome, None while pending."""
        user = self._user(issued) if self._has_admission_objects() else None
        write_of = self.write_of(issued.issuer, now, user, answers)
        if user is None:
            return perform(self._store, detailed, now, write_of, self._quotas)
        self._store.ids.begin(drawn)
        try:
            return perform(self._store, detailed, now, write_of, self._quotas)
        except WebhookNeeded as needed:
            if not self.calls_webhooks:
                write_of = self.write_of(issued.issuer, now)
                return perform(self._store, detailed, now, write_of, self._quotas)
            given = self._store.ids.end()
            self.pending.append(PendingCommand(issued, needed.call, answers, given))
            return None
        finally:
            self._store.ids.end()

    def write_of(
        self,
        issuer: Issuer,
        now: Instant,
        user: User | None = None,
        answers: Mapping[str, WebhookAnswer] = NO_ANSWERS,
    ) -> Callable[[Kind, str], Write]:
        """How `issuer` writes a kind, or a subresource of it."""

        def write(kind: Kind, subresource: str) -> Write:
            track = self._field_managers.of(issuer.component, kind, subresource, now)
            return Write(track=track, user=user, webhooks=answers, rights=self._rights)

        return write

    def _has_admission_objects(self) -> bool:
        """Whether any webhook or policy is configured."""
        return any(self._store.storage.unsorted(kind) for kind in _ADMISSION_KINDS)

    def _user(self, issued: Issued) -> User | None:
        match issued.command:
            case RecordEvent() | CallExtender() | DeleteCollection():
                return None
            case Bind(pod, _) | EvictPod(pod, _):
                target = pod
            case command:
                target = command.target
        kind = find_kind(target.kind)
        old = self._store.find(kind, target.namespace, target.name) if kind else None
        return user_of(issued, old)
