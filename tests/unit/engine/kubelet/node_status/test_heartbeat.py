"""The heartbeats of nodes: leases with announced renewals, and changes of conditions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.lease import RENEWED_EVERY, renewals_of
from fairlead.api.nodes.readiness import READY_AFTER, starting_condition
from fairlead.api.objects import Lease, Node, NodeCondition
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.engine.core.command import (
    CreateObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.controller import Kubelets

T0 = seconds(1_000_000)
LEASE = ObjectRef("Lease", "kube-node-lease", "n1", "ul")


def at(after_s):
    return T0 + seconds(after_s)


def node(annotation=None, *, ready="True", uid="u1", name="n1", runtime="", **others):
    """Return a node; `others` are further conditions; `ready` None omits Ready."""
    statuses = ({"Ready": ready} if ready is not None else {}) | others
    annotations = {} if annotation is None else {"fairlead.dev/kubelet": annotation}
    conditions = [{"type": kind, "status": status} for kind, status in statuses.items()]
    return decode_as(
        Node,
        {
            "metadata": {"name": name, "uid": uid, "annotations": annotations},
            "status": {
                "conditions": conditions,
                "nodeInfo": {"containerRuntimeVersion": runtime},
            },
        },
    )


def lease(renewed_s, every="10s"):
    annotations = {RENEWED_EVERY: every} if every else {}
    return decode_as(
        Lease,
        {
            "metadata": {
                "namespace": "kube-node-lease",
                "name": "n1",
                "uid": "ul",
                "annotations": annotations,
            },
            "spec": {"renewTime": format_micro_time(at(renewed_s))},
        },
    )


class Cluster:
    """A node whose lease is updated by its commands."""

    def __init__(self, *objects, **options):
        self.machine = Kubelets(KubeletConfig(**options))
        self.lease = None
        self.events = []
        self.said = self._follow(self.machine.handle(ObjectsLoaded(objects), T0), T0)

    def tell(self, stimulus, after_s):
        if isinstance(stimulus, Node | Lease):
            stimulus = ObjectChanged(stimulus)
        return self._follow(self.machine.handle(stimulus, at(after_s)), at(after_s))

    def wait(self, until_s):
        """Return the (seconds, command) of all commands until `until_s`."""
        done = []
        while (due := self.machine.next_deadline()) is not None and due <= at(until_s):
            commands = self._follow(self.machine.handle_deadline(due), due)
            done += [((due - T0) / seconds(1), command) for command in commands]
        return done

    def _follow(self, commands, now):
        for command in commands:
            written = command.manifest if isinstance(command, CreateObject) else {}
            if isinstance(command, PatchObject):
                assert command.target == LEASE
                written = command.patch
            if written:
                annotations = written.get("metadata", {}).get("annotations", {})
                renewed = written["spec"]["renewTime"]
                self.lease = decode_as(
                    Lease,
                    {
                        "metadata": {
                            "namespace": "kube-node-lease",
                            "name": "n1",
                            "uid": "ul",
                            "annotations": {k: v for k, v in annotations.items() if v},
                        },
                        "spec": {"renewTime": renewed},
                    },
                )
                self.machine.handle(ObjectChanged(self.lease), now)
        self.events += [
            (one.reason, one.type, one.note)
            for one in commands
            if isinstance(one, RecordEvent) and one.reason.startswith("Node")
        ]
        return [
            one
            for one in commands
            if not (isinstance(one, RecordEvent) and one.reason.startswith("Node"))
        ]

    @property
    def renewals(self):
        """Return the (first renewal, interval) in seconds."""
        found = renewals_of(self.lease)
        return (found.first - T0) / seconds(1), found.every / seconds(1)


def posted(command):
    assert isinstance(command, PatchStatus)
    assert command.target == ObjectRef("Node", "", "n1", "u1")
    return {one.type: one.status for one in command.conditions}


WELL = {
    "MemoryPressure": "False",
    "DiskPressure": "False",
    "PIDPressure": "False",
    "Ready": "True",
}


def test_a_ready_node_gets_a_lease_and_sends_no_further_writes():
    """Its last renewal was within the last period; the next ones follow every ten seconds."""
    cluster = Cluster(node())
    (created,) = cluster.said
    first, every = cluster.renewals
    assert (-10 < first <= 0, every) == (True, 10)
    assert created.manifest["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert created.manifest["spec"]["holderIdentity"] == "n1"
    assert cluster.wait(86_400) == []


def test_nodes_renew_at_different_instants():
    machine = Kubelets()
    nodes = [node(name=f"n{i}") for i in range(50)]
    created = machine.handle(ObjectsLoaded(nodes), T0)
    assert len({one.manifest["spec"]["renewTime"] for one in created}) > 45


def test_an_existing_lease_is_continued():
    """Only the annotation for its renewal interval is added."""
    cluster = Cluster(lease(-4, every=""), node())
    (patch,) = cluster.said
    assert isinstance(patch, PatchObject)
    assert cluster.renewals == (-4, 10)
    assert Cluster(lease(-4), node()).said == []


def test_a_node_without_conditions_registers():
    """It posts Ready and the pressures, with a heartbeat."""
    _, post = Cluster(node(ready=None)).said
    assert posted(post) == WELL
    assert {one.last_heartbeat_time for one in post.conditions} == {format_timestamp(T0)}


@pytest.mark.parametrize("annotation", ["stopped", "paused", "flap 60s/120s"])
def test_a_stopped_node_sends_no_heartbeats(annotation):
    """The lease keeps the last renewal, and no condition is posted."""
    cluster = Cluster(lease(-4), node())
    (patch,) = cluster.tell(node(annotation), 27)
    assert patch.patch["metadata"]["annotations"] == {RENEWED_EVERY: None}
    assert cluster.renewals == (26, 0)


@pytest.mark.parametrize("first", [None, "stopped"])
def test_a_node_that_stops_before_its_lease_is_seen_sends_no_heartbeats(first):
    """Either its kubelet created the lease before it stopped, or another client created it."""
    machine = Kubelets()
    for annotation in (first, "stopped"):
        machine.handle(ObjectChanged(node(annotation)), at(1))
    (patch,) = machine.handle(ObjectChanged(lease(-4)), at(1))
    assert patch.target == LEASE
    assert patch.patch["metadata"]["annotations"] == {RENEWED_EVERY: None}
    assert machine.handle(ObjectChanged(lease(-4, every="")), at(1)) == []


@pytest.mark.parametrize(("renewed_s", "every"), [(-4, ""), (-1000, ""), (-1000, "10s")])
def test_a_kubelet_renews_a_lease_that_another_client_has_changed(renewed_s, every):
    """It does so at its next renewal, as a real kubelet would, and then no longer writes."""
    cluster = Cluster(lease(-4), node())
    assert cluster.tell(lease(renewed_s, every), 27) == []
    ((after_s, _),) = cluster.wait(10_000)
    assert after_s == 36
    assert cluster.renewals == (-4, 10)


@pytest.mark.parametrize("back", [None, "running"])
def test_a_recovered_node_sends_heartbeats_at_once(back):
    """It renews its lease at that instant, and posts its conditions."""
    cluster = Cluster(lease(-4), node())
    cluster.tell(node("stopped"), 27)
    cluster.tell(node("stopped", ready="Unknown", MemoryPressure="Unknown"), 80)
    renewal, post = cluster.tell(node(back, ready="Unknown", MemoryPressure="Unknown"), 100)
    assert isinstance(renewal, PatchObject)
    assert cluster.renewals == (100, 10)
    assert posted(post) == WELL
    assert {one.last_heartbeat_time for one in post.conditions} == {format_timestamp(at(100))}


def test_each_changed_condition_has_an_event():
    """New conditions and unchanged conditions have no event."""
    cluster = Cluster(node(DiskPressure="False"))
    cluster.tell(node("disk-pressure", DiskPressure="False"), 10)
    status = "Node n1 status is now:"
    assert cluster.events == [
        ("NodeHasDiskPressure", "Normal", f"{status} NodeHasDiskPressure"),
    ]
    cluster.tell(node("stopped", DiskPressure="True"), 20)
    cluster.tell(node("running", ready="Unknown", DiskPressure="Unknown"), 100)
    assert cluster.events[1:] == [
        ("NodeHasNoDiskPressure", "Normal", f"{status} NodeHasNoDiskPressure"),
        ("NodeReady", "Normal", f"{status} NodeReady"),
    ]


def test_a_flapping_node_alternates_between_down_and_up():
    """The node is down for one minute and up for two, starting at the annotation."""
    cluster = Cluster(lease(-4), node())
    cluster.tell(node("flap 60s/120s"), 30)
    patches = [(after, one) for after, one in cluster.wait(400) if isinstance(one, PatchObject)]
    assert [after for after, _ in patches] == [90, 210, 270, 390]
    silences = [one.patch["metadata"]["annotations"][RENEWED_EVERY] is None for _, one in patches]
    assert silences == [False, True, False, True]
    assert cluster.tell(node(), 395)
    assert cluster.wait(1_000) == []


def test_a_slow_node_renews_its_lease_at_its_own_interval():
    """It corrects an Unknown condition at the next renewal."""
    cluster = Cluster(lease(-4), node())
    cluster.tell(node("slow 70s"), 27)
    assert cluster.renewals == (26, 70)
    assert cluster.tell(node("slow 70s", ready="Unknown"), 80) == []
    ((after, post),) = cluster.wait(300)
    assert (after, posted(post)) == (96, WELL)
    cluster.tell(node(), 300)
    assert cluster.renewals == (236, 10)


@pytest.mark.parametrize(
    ("annotation", "changed"),
    [
        ("not-ready", {"Ready": "False"}),
        ("memory-pressure", {"MemoryPressure": "True"}),
        ("disk-pressure,pid-pressure", {"DiskPressure": "True", "PIDPressure": "True"}),
    ],
)
def test_a_node_posts_the_conditions_of_its_annotation(annotation, changed):
    """The condition is set with one write, and reset with another."""
    cluster = Cluster(lease(-4), node())
    (post,) = cluster.tell(node(annotation), 27)
    assert posted(post) == WELL | changed
    (post,) = cluster.tell(node(**({"ready": "True"} | changed_of(changed))), 30)
    assert posted(post) == WELL


def changed_of(changed):
    return {kind if kind != "Ready" else "ready": status for kind, status in changed.items()}


def test_a_slow_node_posts_conditions_at_its_next_renewal():
    cluster = Cluster(lease(-4), node())
    cluster.tell(node("slow 70s,not-ready"), 27)
    ((after, post),) = cluster.wait(300)
    assert (after, posted(post)["Ready"]) == (96, "False")


def test_conditions_of_other_clients_are_corrected_at_the_next_renewal():
    cluster = Cluster(lease(-4), node())
    assert cluster.tell(node(ready="False"), 27) == []
    ((after, post),) = cluster.wait(60)
    assert (after, posted(post)["Ready"]) == (36, "True")
    assert cluster.tell(node(), 36) == []


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_starting_node_becomes_ready_after_a_delay(is_loaded):
    """Also if the node is loaded after a restart."""
    made = node()
    condition = decode_as(NodeCondition, starting_condition(format_timestamp(T0)))
    starting = replace(made, status=replace(made.status, conditions=(condition,)))
    scene = Cluster(starting) if is_loaded else Cluster()
    if not is_loaded:
        scene.said = scene.tell(starting, 0)
    assert not [one for one in scene.said if isinstance(one, PatchStatus)]
    [(after_s, command)] = scene.wait(60)
    assert after_s == READY_AFTER / seconds(1)
    assert posted(command) == WELL
    assert scene.events == [("NodeReady", "Normal", "Node n1 status is now: NodeReady")]


@pytest.mark.parametrize(("annotation", "ready"), [("paused", "False"), ("stopped", "True")])
def test_a_loaded_node_that_is_not_ready_stays_so_until_its_machine_restarts(annotation, ready):
    """It sends heartbeats, and keeps the reason for not being ready."""
    cluster = Cluster(lease(-4), node(ready="False"))
    assert cluster.said == []
    cluster.tell(node(annotation, ready="False"), 10)
    _, post = cluster.tell(node(ready="Unknown"), 100)
    assert posted(post)["Ready"] == ready


def test_the_annotation_makes_a_loaded_node_ready():
    cluster = Cluster(lease(-4), node(ready="False"))
    [post] = cluster.tell(node("ready", ready="False"), 10)
    assert posted(post)["Ready"] == "True"


@pytest.mark.parametrize("back", [node("running", ready="Unknown"), node()])
def test_a_loaded_unknown_node_is_silent_until_a_client_changes_the_node(back):
    """The client sets the annotation, or posts the node as ready."""
    cluster = Cluster(lease(-4, every=""), node(ready="Unknown"))
    assert cluster.said == []
    assert cluster.tell(node(ready="Unknown", MemoryPressure="False"), 5) == []
    renewal, _ = cluster.tell(back, 10)
    assert isinstance(renewal, PatchObject)
    assert cluster.renewals == (10, 10)


def test_an_invalid_annotation_is_reported_once():
    """The node behaves as before."""
    cluster = Cluster(lease(-4), node())
    (event,) = cluster.tell(node("dead"), 5)
    assert isinstance(event, RecordEvent)
    assert event.note.startswith("metadata.annotations[fairlead.dev/kubelet]: 'dead' is no")
    assert cluster.tell(node("dead", MemoryPressure="False"), 6) == []
    assert cluster.lease is None


@pytest.mark.parametrize("runtime", ["fairlead://simulated", ""])
def test_a_condition_of_the_annotation_ends_with_it_after_a_restart(runtime):
    loaded = node("not-ready, disk-pressure", ready="False", DiskPressure="True", runtime=runtime)
    cluster = Cluster(lease(-4), loaded)
    assert cluster.said == []
    (command,) = cluster.tell(replace(loaded, metadata=node().metadata), 20)
    assert posted(command) == WELL


@pytest.mark.parametrize(("runtime", "ends"), [("fairlead://simulated", True), ("", False)])
def test_a_pressure_that_was_measured_ends_with_a_restart(runtime, ends):
    """The kubelet of another cluster's node may have measured anything, so its pressure stays."""
    cluster = Cluster(lease(-4), node(MemoryPressure="True", runtime=runtime))
    assert [posted(command) for command in cluster.said] == [WELL] * ends


def test_a_deleted_lease_is_created_again():
    cluster = Cluster(lease(-4), node())
    (created,) = cluster.tell(ObjectDeleted(lease(-4)), 27)
    assert isinstance(created, CreateObject)
    cluster.tell(node("stopped"), 30)
    assert cluster.tell(ObjectDeleted(cluster.lease), 31) == []


def refused_until(machine, command, until_s):
    """Refuse `command` whenever `machine` sends it; return the seconds between the attempts."""
    gaps, now = [], T0
    while now < at(until_s):
        machine.handle(CommandFailed(command, FailureReason.INTERNAL_ERROR, "no"), now)
        due = machine.next_deadline()
        assert machine.handle_deadline(due) == [command]
        gaps.append((due - now) / seconds(1))
        now = due
    return gaps


def test_the_refused_creation_of_a_lease_is_repeated_with_exponential_backoff():
    """The source is upstream's lease/controller.go: backoffEnsureLease."""
    machine = Kubelets()
    (created,) = machine.handle(ObjectsLoaded([node()]), T0)
    gaps = refused_until(machine, created, 30)
    assert gaps == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7, 7, 7]
    machine.handle(ObjectChanged(lease(30)), at(34))
    machine.handle(ObjectDeleted(lease(30)), at(35))
    assert refused_until(machine, created, 0.5)[:2] == [0.2, 0.4]


def test_a_refused_renewal_is_repeated_by_the_next_renewal():
    machine = Kubelets()
    (patch,) = machine.handle(ObjectsLoaded([lease(-4, every=""), node()]), T0)
    assert refused_until(machine, patch, 30) == [6, 10, 10, 10]


def test_the_refused_end_of_renewals_is_repeated():
    machine = Kubelets()
    machine.handle(ObjectsLoaded([lease(-4), node()]), T0)
    (patch,) = machine.handle(ObjectChanged(node("stopped")), T0)
    assert refused_until(machine, patch, 3) == [0.2, 0.4, 0.8, 1.6]


def test_a_deleted_node_sends_no_heartbeats():
    """A new node with its name takes over the lease."""
    cluster = Cluster(lease(-4), node("flap 60s/120s"))
    cluster.tell(ObjectDeleted(node()), 5)
    assert cluster.wait(500) == []
    (patch,) = cluster.tell(node(uid="u2"), 600)
    assert cluster.renewals == (-4, 10)
    assert isinstance(patch, PatchObject)


def test_each_renewal_may_be_written():
    """Controllers that do not read the annotation see an ordinary lease."""
    cluster = Cluster(lease(-4, every=""), node(), annotates_renewals=False)
    assert cluster.said == []
    assert [after for after, _ in cluster.wait(40)] == [6, 16, 26, 36]
    assert cluster.renewals == (36, 0)
    cluster.tell(node("slow 30s"), 47)
    assert [after for after, _ in cluster.wait(120)] == [76, 106]
    cluster.tell(node("stopped"), 121)
    assert cluster.wait(1_000) == []
    assert cluster.renewals == (106, 0)
    cluster.tell(node(), 1_003)
    assert [after for after, _ in cluster.wait(1_025)] == [1_013, 1_023]


def test_a_lease_whose_renewals_are_written_has_no_annotation():
    cluster = Cluster(node(), annotates_renewals=False)
    (created,) = cluster.said
    assert "annotations" not in created.manifest["metadata"]
    assert len(cluster.wait(100)) == 10
