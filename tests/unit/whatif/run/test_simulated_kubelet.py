"""Startup times of pods in a what-if: by option, KWOK Stage, dump or default."""

from __future__ import annotations

import pytest
import yaml

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.run.experiment import QUIET
from fairlead.whatif.run.simulated_kubelet import simulated_kubelets
from fairlead.whatif.snapshot.manifest_reader import manifests

READY = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: slow}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {app: slow}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
  delay: {durationMilliseconds: 600000}
  next:
    statusTemplate: |
      phase: Running
"""


def stage():
    return yaml.safe_load(READY)


def running(make, app):
    """A pod that became ready five seconds after it was scheduled."""
    pod = make.pod(app, node_name="a", owner=app)
    pod["metadata"] |= {"labels": {"app": app}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    pod["status"]["conditions"] = [
        {"type": name, "status": "True", "lastTransitionTime": f"2026-01-01T00:00:0{second}Z"}
        for name, second in (("PodScheduled", 0), ("Ready", 5))
    ]
    return pod


def kubelets(*values, **given):
    found = manifests([Document("dump.yaml", list(values))])
    return simulated_kubelets(found, renews_leases=True, taken_at=0, **given), {
        one.ref.name: one.pod for one in found if one.ref.kind == "Pod"
    }


def test_a_pod_takes_the_time_of_its_stage_else_that_of_its_workload(make):
    found, pods = kubelets(running(make, "slow"), running(make, "quick"), stage())
    delays = found.config.start_delays
    assert delays(pods["slow"]) == seconds(600)
    assert delays(pods["quick"]) == seconds(5)
    assert found.quiet > seconds(600) > QUIET
    assert found.times.words == "Pods become ready 5s after they are scheduled, as in the dump."
    assert found.has_stages
    assert found.notes[0].endswith("the pods that they select take: slow.")


def test_an_option_takes_precedence_over_stages(make):
    found, _ = kubelets(running(make, "slow"), stage(), startup=seconds(9))
    assert (found.config.start_delay, found.config.start_delays) == (seconds(9), None)


@pytest.mark.parametrize("where", ["dump", "file"])
def test_a_what_if_follows_the_stages_of_its_dump_or_of_a_file(where, snapshot, make, write):
    nodes, pod = [make.node("a"), make.node("b")], running(make, "slow")
    web = make.workload("ReplicaSet", "slow")
    web["metadata"]["uid"] = "slow"
    web["spec"]["template"]["metadata"]["labels"] = {"app": "slow"}
    stages = [stage()] if where == "dump" else []
    files = (write("stages.json", stage()),) if where == "file" else ()
    answer = what_if(
        snapshot(*nodes, web, pod, *stages),
        ClusterChange(drain=("a",)),
        Conditions(kwok_stages=files),
    )
    assert answer.difference.recovered_after >= seconds(600)


def test_objects_of_other_kinds_are_not_stages(snapshot, make, write):
    file = write("stages.json", make.node("b"))
    with pytest.raises(InputError, match="Node b: is not a KWOK Stage, which --kwok-stages reads"):
        what_if(snapshot(make.node("a")), ClusterChange(), Conditions(kwok_stages=(file,)))
