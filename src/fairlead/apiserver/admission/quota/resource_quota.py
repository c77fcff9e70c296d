"""ResourceQuota: refuses requests that exceed a quota; adds admitted requests to the usage.

The plugin enforces the limits in a quota's status. A quota limits nothing until the quota
controller has set `status.hard`. An admitted request is added to `status.used` immediately, so the
next request is checked against the higher usage. Only the quota controller lowers `status.used`.

The resources in `ResourceQuota.limited` can be used only if a quota covers them. Such a rule can
restrict, for example, who may use high priority classes.

upstream: apiserver/pkg/admission/plugin/resourcequota/controller.go:CheckRequest
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.quantity import canonical
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.quota.amounts import Amounts, add, amounts, amounts_text, subtract
from fairlead.apiserver.admission.quota.usage import (
    is_counted,
    is_in_scopes,
    missing_resources,
    usage,
)
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_QUOTA, SERVICE, Kind
from fairlead.apiserver.storage.storage import Storage

_CHARGED_ON_UPDATE: Final = (SERVICE, PERSISTENT_VOLUME_CLAIM)
# Quotas never limit events; upstream: pkg/quota/v1/install/registry.go:DefaultIgnoredResources
_NEVER_CHARGED: Final = frozenset(("events", "events.events.k8s.io"))

_AMOUNTS: Final = r"([^\s,=]+=[\w.]+(?:,[^\s,=]+=[\w.]+)*)"
_EXCESS: Final = re.compile(
    rf"exceeded quota: (\S+), requested: {_AMOUNTS}, used: {_AMOUNTS}, limited: {_AMOUNTS}"
)


class LimitedResource(Struct, frozen=True, kw_only=True):
    """A resource that can be used only if a quota covers it.

    `resource` names a kind, such as `pods` or `deployments.apps`. An object of the kind uses quota
    resources such as `requests.cpu`. If the name of a used quota resource contains one of the texts
    in `contains`, a quota must limit this quota resource.

    `scopes` are requirements as in the scopeSelector of a quota. If an object matches all `scopes`,
    each of them must be a scope of at least one quota that applies to the object.
    """

    resource: str
    contains: tuple[str, ...] = ()
    scopes: tuple[Json, ...] = ()


class _MatchedQuota(Struct, frozen=True):
    """A quota that applies to an object.

    `names` are the quota resources that the quota limits and the object uses.
    """

    quota: Json
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The quota's name."""
        found: str = self.quota["metadata"]["name"]
        return found

    @property
    def hard(self) -> Amounts:
        """The limits in the quota's status, by resource name."""
        return amounts(self.quota["status"]["hard"])

    @property
    def used(self) -> Amounts:
        """The usage in the quota's status, by resource name."""
        return amounts(self.quota["status"].get("used"))

    def without(self, pod: Json) -> _MatchedQuota:
        """Return this match; if the quota counts `pod`, the usage of `pod` is subtracted."""
        if not is_in_scopes(POD, pod, self.quota["spec"]):
            return self
        freed, used = usage(POD, pod), self.used
        less = subtract(used, {name: freed[name] for name in used if name in freed})
        texts = {name: canonical(amount) for name, amount in less.items()}
        status = self.quota["status"]
        quota = {**self.quota, "status": {**status, "used": {**status["used"], **texts}}}
        return _MatchedQuota(quota, self.names)


class ResourceQuota(Struct, frozen=True):
    """The admission plugin `ResourceQuota`."""

    CHECKS_ONLY: ClassVar[bool] = True

    limited: Sequence[LimitedResource] = ()

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse an object that exceeds a quota; otherwise, add the object's usage to the quotas.

        Raises ApiError 403 if the object is refused.
        """
        kind, obj = attributes.kind, attributes.obj
        if not _is_charged(attributes):
            return obj
        charge = _Charge(kind, obj, storage)
        matched_quotas = charge.matched_quotas()
        if not matched_quotas and not self.limited:
            return obj
        charge.require_constrained(matched_quotas)
        if attributes.write.replaced is not None:
            matched_quotas = [one.without(attributes.write.replaced) for one in matched_quotas]
        delta = charge.usage()
        costs = [
            charge.cost(delta, attributes.old, quota_match)
            for quota_match in matched_quotas or (None,)
        ]
        if not any(costs):
            return obj
        self._require_covered(kind, obj, delta, matched_quotas)
        charged = [
            charged
            for quota_match, cost in zip(matched_quotas, costs, strict=False)
            for charged in charge.charged(quota_match, cost)
        ]
        if not attributes.write.dry_run:
            for quota in charged:
                storage.put(RESOURCE_QUOTA, quota)
        return obj

    def _require_covered(
        self, kind: Kind, obj: Json, delta: Amounts, matched_quotas: list[_MatchedQuota]
    ) -> None:
        covered = {name for quota_match in matched_quotas for name in quota_match.names}
        for limited in self.limited:
            if limited.resource != kind.resource:
                continue
            if limited.scopes and is_in_scopes(kind, obj, _scope_selector(limited.scopes)):
                _require_scopes(kind, obj, limited, matched_quotas)
            names = [name for name in delta if any(part in name for part in limited.contains)]
            lacking = sorted(set(names) - covered)
            if lacking:
                raise _refused(kind, obj, f"insufficient quota to consume: {','.join(lacking)}")


class QuotaExcess(Struct, frozen=True):
    """The reason why a quota refuses an object: the resources whose limits would be exceeded.

    `requested` are amounts of the object, `used` are amounts of the objects that exist, and
    `limited` are the limits of `quota`. All three contain the same resources.
    """

    quota: str
    requested: Amounts
    used: Amounts
    limited: Amounts

    @property
    def message(self) -> str:
        """The reason as text."""
        requested, used, limited = (
            amounts_text(one, one) for one in (self.requested, self.used, self.limited)
        )
        return (
            f"exceeded quota: {self.quota}, requested: {requested}, used: {used}, "
            f"limited: {limited}"
        )

    @classmethod
    def read(cls, message: str) -> QuotaExcess | None:
        """Return the QuotaExcess that an error message describes; None for any other message."""
        found = _EXCESS.search(message)
        if found is None:
            return None
        lists = (
            amounts(dict(one.split("=") for one in text.split(","))) for text in found.groups()[1:]
        )
        return cls(found[1], *lists)


class _Charge(Struct, frozen=True):
    """An object whose usage is checked against quotas, and is added to their status.used."""

    kind: Kind
    obj: Json
    storage: Storage

    def matched_quotas(self) -> list[_MatchedQuota]:
        """Return the quotas that limit the object, sorted by name.

        Raises ApiError 403 if the usage of such a quota has not been computed yet.
        """
        namespace = self.obj["metadata"].get("namespace", "")
        return list(self._matched(self.storage.items(RESOURCE_QUOTA, namespace)))

    def _matched(self, quotas: Iterator[Json]) -> Iterator[_MatchedQuota]:
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
            yield _MatchedQuota(quota, names)

    def require_constrained(self, matched_quotas: list[_MatchedQuota]) -> None:
        """Refuse a pod if a container does not specify a resource that a quota limits."""
        if self.kind is not POD:
            return
        for quota_match in matched_quotas:
            missing = missing_resources(self.obj["spec"], quota_match.names)
            if missing:
                why = f"failed quota: {quota_match.name}: must specify {missing}"
                raise _refused(self.kind, self.obj, why)

    def usage(self) -> Amounts:
        """Return the positive amounts that the object uses."""
        return _positive(usage(self.kind, self.obj))

    def cost(self, delta: Amounts, old: Json | None, quota_match: _MatchedQuota | None) -> Amounts:
        """Return how much the new object adds to the usage of the quota.

        `delta` is the usage of the new object. If `old` is not None and matches the scopes of the
        quota, the usage of `old` is subtracted from `delta`.
        """
        if old is None or (
            quota_match is not None and not is_in_scopes(self.kind, old, quota_match.quota["spec"])
        ):
            return delta
        return _positive(subtract(delta, usage(self.kind, old)))

    def charged(self, quota_match: _MatchedQuota, cost: Amounts) -> Iterator[Json]:
        """Yield the quota with `cost` added to its usage, if the quota limits a resource in `cost`.

        Raises ApiError 403 if the quota's limit would be exceeded.
        """
        requested = {name: cost[name] for name in quota_match.names if name in cost}
        if not requested:
            return
        hard, used = quota_match.hard, quota_match.used
        total = {name: add(used, requested)[name] for name in requested}
        exceeded = [name for name in requested if total[name] > hard[name]]
        if exceeded:
            parts = ({name: one[name] for name in exceeded} for one in (requested, used, hard))
            excess = QuotaExcess(quota_match.name, *parts)
            raise _refused(self.kind, self.obj, excess.message)
        texts = {name: canonical(amount) for name, amount in total.items()}
        status = quota_match.quota["status"]
        yield {**quota_match.quota, "status": {**status, "used": {**status["used"], **texts}}}


def _positive(found: Amounts) -> Amounts:
    return {name: amount for name, amount in found.items() if amount.nano > 0}


def _is_charged(attributes: AdmissionAttributes) -> bool:
    # upstream: pkg/quota/v1/evaluator/*: Handles
    kind, operation = attributes.kind, attributes.operation
    if attributes.is_resize:
        return True
    if attributes.subresource or not kind.namespaced or kind.resource in _NEVER_CHARGED:
        return False
    return operation is Operation.CREATE or (
        operation is Operation.UPDATE and kind in _CHARGED_ON_UPDATE
    )


def _scope_selector(scopes: Sequence[Json]) -> Json:
    return {"scopeSelector": {"matchExpressions": list(scopes)}}


def _require_scopes(
    kind: Kind, obj: Json, limited: LimitedResource, matched_quotas: list[_MatchedQuota]
) -> None:
    """Raise ApiError 403 if a scope of `limited` is in none of the quotas `matched_quotas`."""
    for scope in limited.scopes:
        if not any(
            _has_scope(quota_match.quota["spec"], scope["scopeName"])
            for quota_match in matched_quotas
        ):
            raise _refused(kind, obj, f"insufficient quota to match these scopes: [{_text(scope)}]")


def _has_scope(spec: Json, name: str) -> bool:
    selector: list[Any] = (spec.get("scopeSelector") or {}).get("matchExpressions", [])
    return name in (spec.get("scopes") or ()) or any(
        requirement.get("scopeName") == name for requirement in selector
    )


def _text(scope: Json) -> str:
    """Return the text that Go prints for the scope requirement."""
    values = " ".join(scope.get("values") or ())
    return f"{{{scope['scopeName']} {scope['operator']} [{values}]}}"


def _refused(kind: Kind, obj: Json, why: str) -> ApiError:
    meta = obj["metadata"]
    return forbidden(kind, meta.get("namespace", ""), meta["name"], why)
