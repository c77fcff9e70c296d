"""ResourceQuota: how much of everything a namespace may have, or only pods of some priority.

A quota is enforced by its status: before a controller has filled `status.hard` it limits nothing.
What is let in is charged to `status.used` here and now, so that the next request sees it; nothing
is given back but by that controller, which counts again.

With `limited`, resources that nobody may use unless some quota allows it: the documented remedy
against users who give themselves the highest priority.

upstream: apiserver/pkg/admission/plugin/resourcequota/controller.go:CheckRequest
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.quantity import canonical
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.admission.quota.amounts import Amounts, amounts, listed, minus, plus
from fairlead.apiserver.admission.quota.usage import is_counted, is_in_scopes, unsaid, usage
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_QUOTA, SERVICE, Kind
from fairlead.apiserver.storage.storage import Storage

_CHANGING: Final = (SERVICE, PERSISTENT_VOLUME_CLAIM)
# upstream: resourcequota/apis/resourcequota, ignored by default: what only tells
_FREE: Final = frozenset(("events", "events.events.k8s.io"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedResource:
    """Objects of `resource` in `scopes` need a quota that covers what contains a name given.

    `scopes` are requirements as in a quota's scopeSelector.
    """

    resource: str
    contains: tuple[str, ...] = ()
    scopes: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class _Matching:
    """A quota that is about an object; `names` are the resources it limits of it."""

    quota: Json
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The quota's."""
        found: str = self.quota["metadata"]["name"]
        return found

    @property
    def hard(self) -> Amounts:
        """How much there may be."""
        return amounts(self.quota["status"]["hard"])

    @property
    def used(self) -> Amounts:
        """How much is taken."""
        return amounts(self.quota["status"].get("used"))


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """The admission plugin."""

    CHECKS_ONLY: ClassVar[bool] = True

    limited: Sequence[LimitedResource] = ()

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse what exceeds a quota (ApiError 403); charge what does not."""
        kind, obj = asked.kind, asked.obj
        if not _is_charged(asked):
            return obj
        charge = _Charge(kind, obj, storage)
        matching = charge.matching()
        if not matching and not self.limited:
            return obj
        charge.require_said(matching)
        wanted = charge.usage()
        costs = [charge.cost(wanted, asked.about.old, one) for one in matching or (None,)]
        if not any(costs):
            return obj
        self._require_covered(kind, obj, wanted, matching)
        charged = [
            charged
            for one, cost in zip(matching, costs, strict=False)
            for charged in charge.charged(one, cost)
        ]
        if not asked.about.write.dry_run:
            for quota in charged:
                storage.put(RESOURCE_QUOTA, quota)
        return obj

    def _require_covered(
        self, kind: Kind, obj: Json, asked: Amounts, matching: list[_Matching]
    ) -> None:
        covered = {name for one in matching for name in one.names}
        for limited in self.limited:
            if limited.resource != kind.resource:
                continue
            if limited.scopes and is_in_scopes(kind, obj, _selecting(limited.scopes)):
                _require_scopes(kind, obj, limited, matching)
            names = [name for name in asked if any(part in name for part in limited.contains)]
            lacking = sorted(set(names) - covered)
            if lacking:
                raise _refused(kind, obj, f"insufficient quota to consume: {','.join(lacking)}")


@dataclass(frozen=True, slots=True)
class _Charge:
    """One object and what it costs."""

    kind: Kind
    obj: Json
    storage: Storage

    def matching(self) -> list[_Matching]:
        """The quotas that have a say, by name."""
        namespace = self.obj["metadata"].get("namespace", "")
        return list(self._matching(self.storage.items(RESOURCE_QUOTA, namespace)))

    def _matching(self, quotas: Iterator[Json]) -> Iterator[_Matching]:
        for quota in quotas:
            hard = (quota.get("status") or {}).get("hard") or {}
            names = tuple(name for name in sorted(hard) if is_counted(self.kind, name))
            if not names or not is_in_scopes(self.kind, self.obj, quota["spec"]):
                continue
            used = quota["status"].get("used") or {}
            if any(name not in used for name in names):
                named = ",".join(names)
                why = f"status unknown for quota: {quota['metadata']['name']}, resources: {named}"
                raise _refused(self.kind, self.obj, why)
            yield _Matching(quota, names)

    def require_said(self, matching: list[_Matching]) -> None:
        """Refuse a pod whose containers do not say how much they want of what is limited."""
        if self.kind is not POD:
            return
        for one in matching:
            missing = unsaid(self.obj["spec"], one.names)
            if missing:
                why = f"failed quota: {one.name}: must specify {missing}"
                raise _refused(self.kind, self.obj, why)

    def usage(self) -> Amounts:
        """What it uses."""
        return _some(usage(self.kind, self.obj))

    def cost(self, wanted: Amounts, old: Json | None, one: _Matching | None) -> Amounts:
        """What that is more than before; all of it where a quota was not about it before."""
        if old is None or (one is not None and not is_in_scopes(self.kind, old, one.quota["spec"])):
            return wanted
        return _some(minus(wanted, usage(self.kind, old)))

    def charged(self, one: _Matching, asked: Amounts) -> Iterator[Json]:
        """The quota with the object in it, if it is charged at all. Raises ApiError 403."""
        requested = {name: asked[name] for name in one.names if name in asked}
        if not requested:
            return
        hard, used = one.hard, one.used
        total = {name: plus(used, requested)[name] for name in requested}
        exceeded = [name for name in requested if total[name] > hard[name]]
        if exceeded:
            why = (
                f"exceeded quota: {one.name}, requested: {listed(requested, exceeded)}, "
                f"used: {listed(used, exceeded)}, limited: {listed(hard, exceeded)}"
            )
            raise _refused(self.kind, self.obj, why)
        texts = {name: canonical(amount) for name, amount in total.items()}
        status = one.quota["status"]
        yield {**one.quota, "status": {**status, "used": {**status["used"], **texts}}}


def _some(found: Amounts) -> Amounts:
    return {name: amount for name, amount in found.items() if amount.nano > 0}


def _is_charged(asked: Asked) -> bool:
    # upstream: pkg/quota/v1/evaluator/*: Handles
    kind, operation = asked.kind, asked.operation
    if asked.is_resized:
        return True
    if asked.about.subresource or not kind.namespaced or kind.resource in _FREE:
        return False
    return operation is Operation.CREATE or (operation is Operation.UPDATE and kind in _CHANGING)


def _selecting(scopes: Sequence[Json]) -> Json:
    return {"scopeSelector": {"matchExpressions": list(scopes)}}


def _require_scopes(
    kind: Kind, obj: Json, limited: LimitedResource, matching: list[_Matching]
) -> None:
    """Some quota must be about each scope that is limited."""
    for scope in limited.scopes:
        if not any(_speaks_of(one.quota["spec"], scope["scopeName"]) for one in matching):
            raise _refused(kind, obj, f"insufficient quota to match these scopes: [{_text(scope)}]")


def _speaks_of(spec: Json, name: str) -> bool:
    selector: list[Any] = (spec.get("scopeSelector") or {}).get("matchExpressions", [])
    return name in (spec.get("scopes") or ()) or any(
        one.get("scopeName") == name for one in selector
    )


def _text(scope: Json) -> str:
    """As Go prints the requirement."""
    values = " ".join(scope.get("values") or ())
    return f"{{{scope['scopeName']} {scope['operator']} [{values}]}}"


def _refused(kind: Kind, obj: Json, why: str) -> ApiError:
    meta = obj["metadata"]
    return forbidden(kind, meta.get("namespace", ""), meta["name"], why)
