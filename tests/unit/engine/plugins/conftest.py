"""A small cluster for tests of plugins, built from short descriptions."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.status import SKIP
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ROOM = {"cpu": "64", "memory": "64Gi", "pods": "110"}
SKIPPED = "skipped"


def node_json(name, zone=None, *, labels=None, taints=(), cordoned=False):
    """Return a Node with a hostname label, and with `zone` unless that is None."""
    own = {HOST: name} | ({} if zone is None else {ZONE: zone}) | (labels or {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {k: v for k, v in own.items() if v is not None}},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {"allocatable": ROOM},
    }


def pod_json(name, node="", *, namespace="default", labels=None, leaving=False, owner=None, **spec):
    """Return a Pod; `spec` has further fields by their JSON names."""
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}", "labels": labels or {}}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if owner:
        metadata["ownerReferences"] = [owner]
    whole = {"containers": [{"name": "c"}], **spec}
    if node:
        whole["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


class Scene:
    """A cluster, and the plugins of a profile that use its state."""

    def __init__(self, args=None):
        self.cluster = Cluster()
        self.nominator = Nominator()
        handle = PluginHandle(self.cluster, self.nominator)
        self.profile = build_profile(Profile(args=args or {}), handle, TieBreak(0))
        self.framework = self.profile.framework

    @property
    def table(self):
        return self.cluster.table

    def plugin(self, name):
        return self.framework.find(name)

    def put(self, obj):
        self.cluster.apply(ObjectChanged(decode(obj)))

    def tell(self, *views):
        """Add or replace these objects."""
        for view in views:
            self.cluster.apply(ObjectChanged(view))

    def untell(self, *views):
        """Delete these objects."""
        for view in views:
            self.cluster.apply(ObjectDeleted(view))

    def delete(self, obj):
        self.cluster.apply(ObjectDeleted(decode(obj)))

    def gone(self, pod):
        """Delete a pod from the cluster."""
        self.cluster.apply(ObjectDeleted(pod.pod))

    def node(self, name, zone=None, **more):
        self.put(node_json(name, zone, **more))

    def pod(self, name, node="", **more):
        """Add a pod; return the cluster's PodInfo of it."""
        obj = pod_json(name, node, **more)
        self.put(obj)
        return self.cluster.pods[f"{obj['metadata']['namespace']}/{name}"]

    def pods(self, node, count, **more):
        """Add `count` equal pods to a node."""
        known = len(self.cluster.pods)
        for number in range(known, known + count):
            self.pod(f"p{number}", node, **more)

    def incoming(self, name="incoming", **more):
        """Return a pod to be scheduled that is not in the cluster's state."""
        pod = decode(pod_json(name, **more))
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def rows(self, *names):
        """Return the rows of the named nodes, or of all, in ascending order."""
        nodes = [self.table.find(name) for name in names] if names else self.table.nodes()
        return np.array(sorted(node.row for node in nodes), np.int64)

    def started(self, plugin, pod):
        """Return the state after PreFilter, or None if PreFilter returns Skip."""
        state = CycleState()
        answer = plugin.pre_filter(state, pod)
        assert answer is None or answer is SKIP
        return None if answer is SKIP else state

    def verdicts(self, plugin, pod, state=None):
        """Return {node: reason or ""} by both forms of Filter; SKIPPED if the pod is skipped."""
        state = state or self.started(plugin, pod)
        if state is None:
            return SKIPPED
        rows = self.rows()
        found = plugin.filter_columns(state, pod, self.table, rows)
        result = {}
        for row, code in zip(rows.tolist(), found.codes.tolist(), strict=True):
            node = self.table.at(row)
            status = plugin.filter(state, pod, node)
            assert status == (found.statuses[code] if code else None)
            result[node.name] = status.message if status else ""
        return result

    def raw_scores(self, plugin, pod, *feasible):
        """Return {node: raw score} by both forms of Score; SKIPPED if the plugin skips the pod."""
        return self._scores(plugin, pod, feasible)[0]

    def scores(self, plugin, pod, *feasible):
        """Return {node: normalized score}; SKIPPED if the plugin skips the pod."""
        return self._scores(plugin, pod, feasible)[1]

    def _scores(self, plugin, pod, feasible):
        state, rows = CycleState(), self.rows(*feasible)
        answer = plugin.pre_score(state, pod, rows)
        if answer is SKIP:
            return SKIPPED, SKIPPED
        assert answer is None
        assert not plugin.scores_alike(pod)
        raw = plugin.score_columns(state, pod, self.table, rows)
        nodes = [self.table.at(row) for row in rows.tolist()]
        assert raw.tolist() == [plugin.score(state, pod, node) for node in nodes]
        normal = plugin.normalize_scores(state, pod, raw.copy()).tolist()
        names = [node.name for node in nodes]
        return dict(zip(names, raw.tolist(), strict=True)), dict(zip(names, normal, strict=True))


@pytest.fixture
def scene():
    """An empty cluster with the default profile."""
    return Scene()


@pytest.fixture(scope="session")
def new_scene():
    """Makes further clusters; takes pluginConfig by plugin name."""
    return Scene
