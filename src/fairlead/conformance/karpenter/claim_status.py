"""Replays recorded reconciliations of NodeClaims and of static NodePools."""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.conformance.karpenter.scene import Scene
from fairlead.conformance.karpenter.shown_claim import shown_requirements
from fairlead.engine.autoscaling.karpenter.apis import CONSOLIDATABLE, DRIFTED, NodeClaim
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifetime import expires_at
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import static_request
from fairlead.engine.autoscaling.karpenter.state.pool_count import pool_count
from fairlead.engine.autoscaling.karpenter.static.replicas import (
    REQUEUE_S,
    missing_claims,
    requeue_s,
    surplus_claims,
)
from fairlead.engine.core.instant import to_seconds


def decide_claim_status(case: Json) -> Json:
    """Return the conditions and the expiry of each NodeClaim after one reconciliation."""
    scene = Scene(case)
    claims = scene.cluster.node_claims
    return {"nodeClaims": {name: _shown(scene, one) for name, one in claims.items()}}


def _shown(scene: Scene, claim: NodeClaim) -> Json:
    pool = scene.cluster.node_pools.get(claim.node_pool)
    updated, requeue = scene.conditions.updated(claim, pool, scene.now)
    found: Json = {"expired": False}
    if updated.is_true(CONSOLIDATABLE):
        found["Consolidatable"] = "True"
    drifted = updated.condition(DRIFTED)
    if drifted is not None and drifted.status == "True":
        found["Drifted"] = f"{drifted.status}/{drifted.reason}"
    if requeue is not None:
        found["requeueAfterSeconds"] = to_seconds(requeue)
    expiry = expires_at(claim)
    if expiry is not None and scene.now >= expiry:
        found["expired"] = True
    elif expiry is not None:
        found["expiresInSeconds"] = to_seconds(expiry - scene.now)
    return found


def decide_static(case: Json) -> Json:
    """Reconcile each static NodePool once; return the decisions, in the form of the recordings."""
    scene = Scene(case)
    found: Json = {}
    for name, pool in scene.cluster.node_pools.items():
        if not pool.is_static:
            continue
        count = pool_count(scene.cluster, pool, frozenset(), scene.now)
        created = missing_claims(pool, count)
        surplus = surplus_claims(scene.cluster, pool, frozenset(), scene.now)
        shown: Json = {
            "active": count.active,
            "deleting": count.deleting,
            "pendingDisruption": count.pending_disruption,
            "created": created,
            "deleted": sorted(one.name for one in surplus),
            "provisionRequeueSeconds": requeue_s(pool, count),
            "deprovisionRequeueSeconds": REQUEUE_S,
        }
        if created:
            request = static_request(pool, scene.options.well_known_labels)
            shown["createdRequirements"] = shown_requirements(request.stored_requirements)
        found[name] = shown
    return {"pools": found}
