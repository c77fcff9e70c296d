"""PolicyStatus: writes the status of ValidatingAdmissionPolicies.

The controller checks whether the expressions of a policy fit the types of the kinds that the policy
matches. The status contains the checked generation, and a warning for each expression that does not
fit. Wildcard resources are skipped, and so are rules with a wildcard group or version. A policy is
checked again only if its spec changes.

upstream: pkg/controller/validatingadmissionpolicystatus/controller.go:reconcile,
apiserver/pkg/admission/plugin/policy/validating/typechecking.go:typesToCheck
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Unstructured
from fairlead.apiserver.admission.policy.type_check import expression_warnings
from fairlead.apiserver.kind import VALIDATING_ADMISSION_POLICY, Kind
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import ApplyStatus, Command, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController, kind_name

MANAGER: Final = "validatingadmissionpolicy-status-controller"
TYPES_MAX: Final = 10


class PolicyStatus(ReactiveController):
    """Type-checks new and changed ValidatingAdmissionPolicies, and writes their status."""

    issuer: ClassVar[Issuer] = controller_account(MANAGER)
    interest: ClassVar[Interest] = Interest(
        changed=(Unstructured,), deleted=(), succeeded=(), failed=(ApplyStatus,)
    )

    def __init__(self, storage: Storage, served: ServedKinds) -> None:
        """`storage` contains the policies; `served` contains the kinds that policies can match."""
        super().__init__()
        self._storage = storage
        self._served = served

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Return the commands that update the status of changed ValidatingAdmissionPolicies."""
        kind = VALIDATING_ADMISSION_POLICY.kind
        names = dict.fromkeys(one.metadata.name for one, _ in changed if kind_name(one) == kind)
        return [command for name in names for command in self._sync(name)]

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a ValidatingAdmissionPolicy."""
        return target.kind == VALIDATING_ADMISSION_POLICY.kind

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the command that updates the policy `target`; [] if its status is up to date."""
        return self._sync(target.name)

    def _sync(self, name: str) -> list[Command]:
        policy = self._storage.find(VALIDATING_ADMISSION_POLICY, "", name)
        if policy is None:
            return []
        meta, observed = policy["metadata"], (policy.get("status") or {}).get("observedGeneration")
        if meta.get("generation", 0) <= (observed or 0):
            return []
        named = policy["spec"].get("paramKind") or {}
        param = self._served.of_type(named.get("apiVersion", ""), named.get("kind", ""))
        warnings = expression_warnings(policy, self._kinds(policy), param)
        status = {
            "observedGeneration": meta["generation"],
            "typeChecking": {"expressionWarnings": warnings} if warnings else {},
        }
        target = ObjectRef(VALIDATING_ADMISSION_POLICY.kind, "", name, meta["uid"])
        return [ApplyStatus(target, status, MANAGER)]

    def _kinds(self, policy: Json) -> list[Kind]:
        """Return the kinds that the policy's rules name, sorted.

        A rule adds at most TYPES_MAX kinds. After a rule that names TYPES_MAX kinds or more, the
        remaining rules are ignored.
        """
        found: dict[tuple[str, str, str], Kind] = {}
        for rule in (policy["spec"].get("matchConstraints") or {}).get("resourceRules") or ():
            kinds = [kind for kind in map(self._served_at, _places(rule)) if kind is not None]
            found |= {_order(kind): kind for kind in kinds[:TYPES_MAX]}
            if len(kinds) >= TYPES_MAX:
                break
        return [found[key] for key in sorted(found)]

    def _served_at(self, place: tuple[str, str, str]) -> Kind | None:
        return self._served.find(*place)


def _places(rule: Json) -> Iterator[tuple[str, str, str]]:
    """Yield each (group, version, resource) of `rule`.

    Subresources, and resources with a wildcard, are left out. If a group or version is a wildcard,
    nothing is yielded.
    """
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = [name for name in rule.get("resources") or () if not {"*", "/"} & {*name}]
    yield from product(sorted(groups), sorted(versions), sorted(resources))


def _order(kind: Kind) -> tuple[str, str, str]:
    return kind.group, kind.version, kind.kind
