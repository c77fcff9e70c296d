"""AdmissionGateway: passes controllers' writes through webhooks and policies, like clients' writes.

The event loop that runs the cluster calls the webhooks over HTTP. A command is pending until its
webhooks have answered. If there is no event loop (`calls_webhooks` is False), a command that would
call a webhook skips all webhooks and policies. Events, evictions and the finalization of namespaces
skip admission.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.auth.authorization.node_authorizer import NodeAuthorizer
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.admission_control import has_dynamic_admission
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import User
from fairlead.apiserver.suspension import (
    PAUSE,
    WebhookAnswer,
    WebhookCall,
    WebhookCalls,
    run_to_end,
)
from fairlead.engine.core.command import Command, IssuedCommand, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import CommandSucceeded
from fairlead.worlds.component_identity import sender_of
from fairlead.worlds.local.field_manager import FieldManagers
from fairlead.worlds.local.kubelet.pod_status import ReportInputs, generated_name
from fairlead.worlds.local.pod_write_copy import PodWrite, PodWriteCopies
from fairlead.worlds.perform import Outcome, perform, refused


class PendingCommand(Struct, frozen=True):
    """A command that waits for the answer to `call`, a call of a webhook.

    `steps` receives the answer and continues the command.
    """

    issued: IssuedCommand
    call: WebhookCall
    steps: WebhookCalls[Outcome]


class AdmissionGateway:
    """Performs commands on `store` through admission, as the user of the issuing component."""

    def __init__(self, store: Store, field_managers: FieldManagers) -> None:
        """`store` receives the writes; `calls_webhooks` is False at first."""
        self.calls_webhooks = False
        self.pending: deque[PendingCommand] = deque()
        self._store = store
        self._rights = Rbac(store.storage, (NodeAuthorizer(store.storage),))
        self._field_managers = field_managers
        self._quotas = QuotaLedgers(store.storage)
        self._copies = PodWriteCopies(store)

    def described_report(
        self, command: PatchStatus, inputs: ReportInputs, now: Instant
    ) -> PodWrite | None:
        """Return a PodWrite that describes `command`, a kubelet's status write.

        The result is an argument of `copied`. `command` contains no details yet, such as container
        statuses and IPs; `PodDetails` makes them from `inputs`. Returns None if the write must go
        through webhooks and policies, or if it cannot be stored as a copy of an earlier write.
        """
        if has_dynamic_admission(self._store.storage):
            return None
        return self._copies.described_report(command, inputs, now)

    def copied(self, command: Command, report: PodWrite) -> Outcome | None:
        """Perform `command` by copying the result of an earlier write; return the outcome.

        `report` is the PodWrite that `described_report` returned for `command`. Returns None and
        stores nothing if no earlier write has the same `PodWrite.text` as `report`.
        """
        try:
            return CommandSucceeded(command) if self._copies.write_report(report) else None
        except ApiError as refusal:
            return refused(command, refusal)

    def perform(
        self, issued: IssuedCommand, detailed: Command, now: Instant, report: PodWrite | None = None
    ) -> Outcome | None:
        """Perform the command `detailed` and return its outcome; None if it waits for a webhook.

        `detailed` is the command in `issued`, completed by the caller with details such as the pod
        IP. `report` is the result of `described_report` for a kubelet's status write, and None for
        any other write.
        """
        if not has_dynamic_admission(self._store.storage):
            return self._perform_alone(issued, detailed, now, report)
        user = sender_of(issued, self._store)
        steps = self._steps(issued, detailed, now, user)
        try:
            call = _next_call(steps)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        if not self.calls_webhooks:
            return run_to_end(self._steps(issued, detailed, now, None))
        self.pending.append(PendingCommand(issued, call, steps))
        return None

    def _perform_alone(
        self, issued: IssuedCommand, detailed: Command, now: Instant, report: PodWrite | None
    ) -> Outcome:
        """Perform the command `detailed` without calls of webhooks, and return its outcome.

        `detailed` is the command in `issued`, completed with details such as the pod IP. `report`
        describes a kubelet's status write, and is None for any other write. This method is used
        only while the store contains no webhook configurations and no admission policies.
        """
        described = self._copies.described(detailed, issued.issuer.component, now)
        if described is None:
            return run_to_end(self._steps(issued, detailed, now, None))
        try:
            if self._copies.write(described):
                self._copies.learn_report(report, described)
                return CommandSucceeded(detailed)
        except ApiError as refusal:
            return refused(detailed, refusal)
        outcome = run_to_end(self._steps(issued, detailed, now, None))
        if isinstance(outcome, CommandSucceeded):
            self._copies.learn(described)
        return outcome

    def resume(self, pending: PendingCommand, answer: WebhookAnswer) -> Outcome | None:
        """Continue a command with the answer of its webhook, and return its outcome.

        Returns None if the command now waits for another webhook.
        """
        try:
            call = _next_call(pending.steps, answer)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        self.pending.append(PendingCommand(pending.issued, call, pending.steps))
        return None

    def _steps(
        self, issued: IssuedCommand, detailed: Command, now: Instant, user: User | None
    ) -> WebhookCalls[Outcome]:
        write_of = self.write_of(issued.issuer, now, user, generated_name(detailed))
        return perform.steps(self._store, detailed, now, write_of, self._quotas)

    def write_of(
        self, issuer: Issuer, now: Instant, user: User | None = None, generated_name: str = ""
    ) -> Callable[[Kind, str], Write]:
        """Return a function that returns the Write of `issuer` for a kind and a subresource.

        A Write contains the field manager of a request, and the user who sends it. `generated_name`
        is the name that the server chose for a new object whose request has only a generateName; ""
        for all other requests.
        """

        def write(kind: Kind, subresource: str) -> Write:
            track = self._field_managers.of(issuer.component, kind, subresource, now)
            return Write(
                track=track,
                manager=issuer.component.value,
                user=user,
                rights=self._rights,
                generated_name=generated_name,
            )

        return write


def _next_call(steps: WebhookCalls[Outcome], answer: WebhookAnswer | None = None) -> WebhookCall:
    """Continue `steps` with `answer`, and return the next call of a webhook.

    If `answer` is None, `steps` is started. If `steps` yields PAUSE, `steps` is continued
    immediately. Raises StopIteration with the outcome when `steps` ends.
    """
    call = next(steps) if answer is None else steps.send(answer)
    while call is PAUSE:
        call = steps.send(WebhookAnswer())
    return call
