"""Judgement from outside of what controllers write: webhooks and policies, as for anybody.

Webhooks are asked over HTTP by whoever runs the cluster, and a command waits until its webhooks
have answered. Where nobody asks (no event loop runs the cluster), what needs a webhook's answer is
done without. Reports of status and events are judged like all else, but events.

upstream: controllers are clients of the API server like any other
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from fairlead.apiserver.admission.webhooks.plugin import WebhookCall, WebhookNeeded
from fairlead.apiserver.auth.authorization.node import NodeAuthorizer
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
from fairlead.apiserver.registry.write import Write
from fairlead.apiserver.request import NO_ANSWERS, User, WebhookAnswer
from fairlead.engine.core.command import Bind, CallExtender, Command, EvictPod, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.worlds.local.component_identity import program_of, user_of
from fairlead.worlds.local.field_manager import FieldManagers
from fairlead.worlds.perform import Outcome, perform

_JUDGES: Final = (
    MUTATING_ADMISSION_POLICY_BINDING,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_ADMISSION_POLICY_BINDING,
    VALIDATING_WEBHOOK_CONFIGURATION,
)


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """`command` waits until somebody has asked `call`; what it was told and given so far."""

    command: Command
    call: WebhookCall
    answers: Mapping[str, WebhookAnswer]
    drawn: tuple[str, ...]


class AdmissionGateway:
    """Does commands on `store` as far as those outside let it."""

    def __init__(self, store: Store, signatures: FieldManagers) -> None:
        """Nobody asks webhooks before `is_asking` says so."""
        self.is_asking = False
        self.waiting: deque[PendingCommand] = deque()
        self._store = store
        self._rights = Rbac(store.storage, (NodeAuthorizer(store.storage),))
        self._signatures = signatures

    def perform(
        self,
        command: Command,
        asked: Command,
        now: Instant,
        *,
        answers: Mapping[str, WebhookAnswer] = NO_ANSWERS,
        drawn: tuple[str, ...] = (),
    ) -> Outcome | None:
        """What came of `command`, as which `asked` is done; None where it waits."""
        user = self._user(command) if self._is_judged() else None
        if user is None:
            return perform(self._store, asked, now, self.write_of(command, now))
        write_of = self.write_of(command, now, user, answers)
        self._store.ids.begin(drawn)
        try:
            return perform(self._store, asked, now, write_of)
        except WebhookNeeded as needed:
            if not self.is_asking:
                return perform(self._store, asked, now, self.write_of(command, now))
            given = self._store.ids.end()
            self.waiting.append(PendingCommand(command, needed.call, answers, given))
            return None
        finally:
            self._store.ids.end()

    def write_of(
        self,
        command: Command,
        now: Instant,
        user: User | None = None,
        answers: Mapping[str, WebhookAnswer] = NO_ANSWERS,
    ) -> Callable[[Kind, str], Write]:
        """How the program that sends `command` writes a kind, or a part of it."""
        return partial(self._write, command, now, user, answers)

    def _write(
        self,
        command: Command,
        now: Instant,
        user: User | None,
        answers: Mapping[str, WebhookAnswer],
        kind: Kind,
        subresource: str,
    ) -> Write:
        track = self._signatures.of(program_of(command), kind, subresource, now)
        return Write(track=track, user=user, webhooks=answers, rights=self._rights)

    def _is_judged(self) -> bool:
        return any(self._store.storage.unsorted(kind) for kind in _JUDGES)

    def _user(self, command: Command) -> User | None:
        match command:
            case RecordEvent() | CallExtender():
                return None
            case Bind(pod, _) | EvictPod(pod, _):
                target = pod
            case _:
                target = command.target
        kind = find_kind(target.kind)
        old = self._store.find(kind, target.namespace, target.name) if kind else None
        return user_of(command, old)
