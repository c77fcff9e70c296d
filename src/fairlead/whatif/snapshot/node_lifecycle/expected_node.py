"""Nodes that Karpenter had requested when the dump was taken, but that did not exist yet.

Each of these nodes has a NodeClaim that is not registered and to which no Node belongs.

upstream: karpenter pkg/controllers/nodeclaim/lifecycle/registration.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.apis import REGISTERED_CONDITION
from fairlead.engine.autoscaling.karpenter.labels import GROUP
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_CLAIM: Final = "NodeClaim"
_NAMED_MAX: Final = 3


class _ConditionForm(msgspec.Struct):
    type: str = ""
    status: str = ""


class _StatusForm(msgspec.Struct, rename={"node_name": "nodeName", "provider_id": "providerID"}):
    node_name: str = ""
    provider_id: str = ""
    conditions: list[_ConditionForm] | None = None

    @property
    def is_registered(self) -> bool:
        """Whether the NodeClaim has had a Node."""
        conditions = self.conditions or ()
        return any(one.type == REGISTERED_CONDITION and one.status == "True" for one in conditions)


def expected_nodes(manifests: Iterable[Manifest]) -> list[str]:
    """Return the names of the NodeClaims in `manifests` whose nodes do not exist yet.

    NodeClaims that are being deleted, or that are malformed, are left out.
    """
    every = samples(manifests)
    claims = [one for one in every if one.kind.kind == _CLAIM and one.kind.group == GROUP]
    if not claims:
        return []
    known = {""}
    for one in every:
        if one.kind is NODE:
            spec = one.value.get("spec")
            known |= {one.ref.name, str(spec.get("providerID") if isinstance(spec, dict) else "")}
    return [
        one.ref.name
        for one in claims
        if not one.value["metadata"].get("deletionTimestamp") and _is_expected(one, known)
    ]


def _is_expected(claim: Manifest, known: Iterable[str]) -> bool:
    """Return whether no Node belongs to `claim`; `known` are names and provider IDs of Nodes."""
    try:
        status = msgspec.convert(claim.value.get("status") or {}, _StatusForm)
    except msgspec.ValidationError:  # refused later, if Karpenter is simulated
        return False
    names = {status.node_name, status.provider_id} - {""}
    return not status.is_registered and names.isdisjoint(known)


def expected_nodes_note(manifests: Iterable[Manifest], remedy: str) -> tuple[str, ...]:
    """Return a note about NodeClaims whose nodes do not exist yet; () if there are none.

    The note says that the answer lacks these nodes (see `expected_nodes`). `remedy` is the end of
    the note, which says how to include the nodes.
    """
    names = expected_nodes(manifests)
    if not names:
        return ()
    subject = "NodeClaim {} has" if len(names) == 1 else "NodeClaims {} have"
    subject = subject.format(listed(names, _NAMED_MAX))
    note = f"{subject} no Node yet, so this capacity is missing in the answer; {remedy}"
    return (note,)
