"""A small simulated cluster: objects in a dict, and commands that are performed immediately."""

from __future__ import annotations

from collections import deque

import pytest

from fairlead.api.codec import decode
from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import (
    Bind,
    Condition,
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.environment import served_environment

T0 = seconds(1_000_000)
SETTLE_MAX = 100_000


def merged(target, patch):
    """Return `target` after a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


_NO_GRACE = {"deletionGracePeriodSeconds": 0}


def _is_let_go(made):
    meta = made["metadata"]
    is_over = meta.get("deletionGracePeriodSeconds") == 0
    return is_over and "deletionTimestamp" in meta and not meta.get("finalizers")


class World:
    """Performs the commands of `controllers`; `place` binds pods, and `refuse` rejects commands.

    With `runs`, a bound pod is ready immediately.
    """

    def __init__(self, *controllers, place=None, refuse=None, runs=False):
        self.runs = runs
        self.controllers = controllers
        self.place = place or (lambda pod: None)
        self.refuse = refuse or (lambda command: None)
        self.now = T0
        self.objects = {}
        self.log = []
        self.events = []
        self.stimuli = deque()
        self.uids = 0

    # --- actions and queries of tests ------------------------------------------------------

    def load(self, *manifests):
        """Load these objects together at the start."""
        for manifest in manifests:
            self._store(manifest)
        self.stimuli.append(ObjectsLoaded([decode(one) for one in self.objects.values()]))
        self.settle()
        return self

    def create(self, manifest):
        self._do(CreateObject(manifest))

    def set_image(self, image):
        """Change the image of the Deployment `web`."""
        self.patch("Deployment", "web", {"spec": {"template": Build.template(image)}})

    def patch(self, kind, name, patch, namespace="ns"):
        self._do(PatchObject(ObjectRef(kind, namespace, name), patch))

    def patch_status(self, kind, name, fields, namespace="ns"):
        self._do(PatchStatus(ObjectRef(kind, namespace, name), fields))

    def start(self, name, namespace="ns", *, ready=True):
        """Start the pod; it is ready if `ready` is set."""
        condition = Condition("Ready", "True" if ready else "False")
        target = ObjectRef("Pod", namespace, name)
        self._perform(PatchStatus(target, {"phase": "Running"}, (condition,)))

    def delete(self, kind, name, *, namespace="ns", grace=None):
        self._do(DeleteObject(ObjectRef(kind, namespace, name), grace))

    def pods(self, *, alive=True):
        """Return the pods by name; `alive` leaves out terminating and finished pods."""
        found = {key[2]: one for key, one in self.objects.items() if key[0] == "Pod"}
        if not alive:
            return found
        return {
            name: pod
            for name, pod in found.items()
            if "deletionTimestamp" not in pod["metadata"]
            and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        }

    def get(self, kind, name, namespace="ns"):
        return self.objects.get((kind, namespace, name))

    def replaces(self):
        """Return the original pod's name for each live replacement, by the replacement's name."""
        return {
            name: pod["metadata"]["annotations"]["fairlead.dev/replaces"]
            for name, pod in self.pods().items()
            if "fairlead.dev/replaces" in pod["metadata"].get("annotations", {})
        }

    def evict(self, name, namespace="ns"):
        """Request an eviction; return whether it was allowed."""
        granted = self._attempt(EvictPod(ObjectRef("Pod", namespace, name))) is None
        self.settle()
        return granted

    def sent(self, kind):
        return [command for command in self.log if isinstance(command, kind)]

    # --- time ------------------------------------------------------------------------------

    def settle(self):
        """Deliver all events, and perform all commands that follow from them."""
        for _ in range(SETTLE_MAX):
            if self.stimuli:
                self._deliver(self.stimuli.popleft())
            elif not self._follow_up() and not self._place_one():
                return
        raise AssertionError("the world does not come to rest")

    def _follow_up(self):
        """Let the first controller with immediate work act; return whether one acted."""
        for one in self.controllers:
            if (deadline := one.next_deadline()) is not None and deadline < T0:
                self._perform_all(one.handle_deadline(self.now))
                return True
        return False

    def run(self, duration):
        """Run for `duration`."""
        end = self.now + duration
        for _ in range(SETTLE_MAX):
            dues = [one.next_deadline() for one in self.controllers]
            due = min((one for one in dues if one is not None), default=end + 1)
            if due > end:
                self.now = end
                return
            self.now = max(self.now, due)
            for one in self.controllers:
                if (deadline := one.next_deadline()) is not None and deadline <= self.now:
                    self._perform_all(one.handle_deadline(self.now))
                    self.settle()
        raise AssertionError("time does not pass")

    # --- how it works ----------------------------------------------------------------------

    def _do(self, command):
        self._perform(command)
        self.settle()

    def _deliver(self, stimulus):
        commands = []
        for one in self.controllers:
            commands += one.handle(stimulus, self.now)
        self._perform_all(commands)

    def _perform_all(self, commands):
        for command in commands:
            self.log.append(command)
            self._perform(command)

    def _perform(self, command):
        if isinstance(command, RecordEvent):
            self.events.append(command)
            return
        reason = self.refuse(command)
        if reason is None:
            reason = self._attempt(command)
        outcome = (
            CommandSucceeded(command)
            if reason is None
            else CommandFailed(command, reason, "refused by the test")
        )
        self.stimuli.append(outcome)

    def _attempt(self, command):
        match command:
            case CreateObject(manifest):
                if self._key(command.target) in self.objects:
                    return FailureReason.ALREADY_EXISTS
                self._store(manifest)
                self._changed(command.target)
                return None
            case Bind(pod):
                self._update(pod, {"spec": {"nodeName": command.node}} | self._scheduled(pod))
            case EvictPod(pod):
                return self._evict(pod)
            case PatchObject(target, patch):
                return self._update(target, patch)
            case PatchStatus(target, fields, conditions):
                return self._update_status(target, fields, conditions)
            case DeleteObject(target):
                return self._delete(target, command.grace_period_s)
        return None

    def _key(self, target):
        return (target.kind, target.namespace, target.name)

    def _store(self, manifest):
        self.uids += 1
        meta = {"uid": f"uid-{self.uids}", "creationTimestamp": format_timestamp(self.now)}
        meta |= manifest["metadata"]
        manifest = manifest | {"metadata": meta}
        self.objects[manifest["kind"], meta.get("namespace", ""), meta["name"]] = manifest

    def _changed(self, target):
        self.stimuli.append(ObjectChanged(decode(self.objects[self._key(target)])))

    def _find(self, target):
        found = self.objects.get(self._key(target))
        if found is None:
            return None, FailureReason.NOT_FOUND
        if target.uid and found["metadata"]["uid"] != target.uid:
            return None, FailureReason.CONFLICT
        return found, None

    def _update(self, target, patch):
        found, reason = self._find(target)
        if found is not None:
            made = self.objects[self._key(target)] = merged(found, patch)
            self._changed(target)
            if _is_let_go(made):
                del self.objects[self._key(target)]
                self.stimuli.append(ObjectDeleted(decode(made)))
        return reason

    def _update_status(self, target, fields, conditions):
        found, reason = self._find(target)
        if found is None:
            return reason
        status = merged(found.get("status", {}), dict(fields))
        by_type = {one["type"]: one for one in status.get("conditions", [])}
        for one in conditions:
            before = by_type.get(one.type, {})
            since = before.get("lastTransitionTime", format_timestamp(self.now))
            if before.get("status") != one.status:
                since = format_timestamp(self.now)
            by_type[one.type] = {
                "type": one.type,
                "status": one.status,
                "reason": one.reason,
                "lastTransitionTime": since,
            }
        if by_type:
            status["conditions"] = list(by_type.values())
        self.objects[self._key(target)] = found | {"status": status}
        self._changed(target)
        return None

    def _scheduled(self, pod):
        """Return a patch that adds the condition PodScheduled, as the API server does."""
        status = self.objects.get(self._key(pod), {}).get("status", {})
        kept = [one for one in status.get("conditions", []) if one["type"] != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True"}
        return {"status": {"conditions": [*kept, scheduled]}}

    def _delete(self, target, grace_s):
        found, reason = self._find(target)
        if found is None:
            return reason
        meta = found["metadata"]
        is_over = found.get("status", {}).get("phase") in ("Succeeded", "Failed")
        is_bound = bool(found.get("spec", {}).get("nodeName"))
        if target.kind == "Pod" and is_bound and not is_over and grace_s != 0:
            if "deletionTimestamp" not in meta:
                grace = 30 if grace_s is None else grace_s
                stamp = format_timestamp(self.now + seconds(grace))
                change = {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": grace}
                self.objects[self._key(target)] = found | {"metadata": meta | change}
                self._changed(target)
            return None
        if meta.get("finalizers"):
            change = {
                "deletionTimestamp": meta.get("deletionTimestamp", format_timestamp(self.now))
            }
            self.objects[self._key(target)] = found | {"metadata": meta | change | _NO_GRACE}
            self._changed(target)
            return None
        del self.objects[self._key(target)]
        self.stimuli.append(ObjectDeleted(decode(found)))
        return None

    def _evict(self, pod):
        found, reason = self._find(pod)
        if found is None:
            return reason
        for key, one in list(self.objects.items()):
            view = decode(one)
            if (
                not isinstance(view, PodDisruptionBudget)
                or key[1] != pod.namespace
                or not selector_matches(view.spec.selector, found["metadata"].get("labels", {}))
                or "deletionTimestamp" in found["metadata"]
            ):
                continue
            if view.status.disruptions_allowed <= 0:
                return FailureReason.TOO_MANY_REQUESTS
            status = one["status"] | {
                "disruptionsAllowed": view.status.disruptions_allowed - 1,
                "disruptedPods": view.status.disrupted_pods
                | {pod.name: format_timestamp(self.now)},
            }
            self.objects[key] = one | {"status": status}
            self.stimuli.append(ObjectChanged(decode(self.objects[key])))
        return self._delete(pod, None)

    def _place_one(self):
        for key, one in list(self.objects.items()):
            spec, meta = one.get("spec", {}), one["metadata"]
            if key[0] != "Pod" or spec.get("nodeName") or "deletionTimestamp" in meta:
                continue
            node = self.place(one)
            if node is not None:
                self._perform(Bind(ObjectRef("Pod", key[1], key[2]), node))
                if self.runs:
                    self.start(key[2], key[1])
                return True
        return False


@pytest.fixture(scope="session")
def new_world():
    """The class of worlds; a property test makes several of them."""
    return World


@pytest.fixture
def observed_world():
    """A world whose pods run at once and whose controllers write everything that clients read."""
    controller = Workloads(environment=served_environment())
    return World(controller, place=lambda pod: "n1", runs=True).load()


@pytest.fixture
def paced_world():
    """Make a world like `observed_world`, whose controllers combine changes within an interval."""

    def made(interval):
        config = WorkloadsConfig(serves_clients=True, follow_up_interval=interval)
        return World(Workloads(config, served_environment())).load()

    return made


class Build:
    """Builders of short manifests."""

    @staticmethod
    def template(image="web:1", *, labels=None, **spec):
        return {
            "metadata": {"labels": labels or {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}], **spec},
        }

    @staticmethod
    def owned(kind, name, replicas=None, *, template=None, uid="", version="apps/v1", **spec):
        body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
        body["template"] = template or Build.template()
        if replicas is not None:
            body["replicas"] = replicas
        metadata = {"name": name, "namespace": "ns", **({"uid": uid} if uid else {})}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": body}

    @staticmethod
    def deployment(replicas=2, **fields):
        return Build.owned("Deployment", "web", replicas, uid="dep", **fields)

    @staticmethod
    def pod(name, owner=None, *, node="n1", phase="Running", labels=None, meta=None, **spec):
        """Return a Pod; `owner` is (kind, name, uid)."""
        metadata = {"name": name, "namespace": "ns", "labels": labels or {"app": "web"}}
        metadata |= meta or {}
        if owner is not None:
            reference = dict(zip(("kind", "name", "uid"), owner, strict=True))
            reference |= {"apiVersion": "apps/v1", "controller": True}
            metadata["ownerReferences"] = [reference]
        body = {"containers": [{"name": "c", "image": "web:1"}], **spec}
        if node:
            body["nodeName"] = node
        status = {"phase": phase}
        if phase == "Running":
            status["conditions"] = [{"type": "Ready", "status": "True"}]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": body,
            "status": status,
        }

    @staticmethod
    def node(name, *, labels=None, annotations=None, taints=()):
        metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
        spec = {"taints": list(taints)} if taints else {}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}

    @staticmethod
    def budget(name="pdb", *, labels=None, status=None, **spec):
        spec = {"selector": {"matchLabels": labels or {"app": "web"}}, **spec}
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "ns", "generation": 1},
            "spec": spec,
            "status": status or {},
        }


@pytest.fixture(scope="session")
def build():
    return Build
