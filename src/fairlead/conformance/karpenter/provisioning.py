"""Replays a recorded provisioning pass."""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.conformance.karpenter.case import (
    CaseTypes,
    read_cluster,
    read_options,
    shown_key,
    shown_pod,
)
from fairlead.conformance.karpenter.shown_claim import shown_claim, shown_text
from fairlead.engine.autoscaling.karpenter.overlay import OverlaidTypes
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import (
    Provisioner,
    ProvisioningResult,
)


def decide_provisioning(case: Json) -> Json:
    """Return the result of a provisioning pass over the case's cluster, in the recorded form."""
    cluster, now = read_cluster(case)
    options = read_options(case)
    types = OverlaidTypes(cluster, CaseTypes(case).table, options)
    found = shown_pass(Provisioner(cluster, types.table, options).provision(now))
    if options.node_overlay:
        found["overlays"] = types.validation()
    return found


def shown_pass(result: ProvisioningResult) -> Json:
    """Return the result of a provisioning pass, in the form of the recordings."""
    found: Json = {
        "queue": [shown_key(pod.metadata) for pod in result.queue],
        "newNodeClaims": [shown_claim(one) for one in result.requests],
        "existing": {
            node.state.name: [shown_pod(one.key) for one in node.pods]
            for node in result.existing
            if node.pods
        },
        "errors": {shown_pod(key): shown_text(text) for key, text in result.errors.items()},
    }
    ignored = {shown_pod(key): text for key, text in result.ignored.items() if text}
    if ignored:
        found["ignored"] = ignored
    if result.relaxations:
        found["relaxations"] = [
            {"pod": shown_pod(one.pod), "reason": one.reason} for one in result.relaxations
        ]
    if result.dropped_pools:
        found["poolEvents"] = [
            {
                "kind": "NodePool",
                "name": name,
                "reason": "NoCompatibleInstanceTypes",
                "message": message,
            }
            for name, message in result.dropped_pools.items()
        ]
    if not result.has_pools:
        found["noNodePools"] = True
    return found
