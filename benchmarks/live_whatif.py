"""Measures a what-if about a running cluster, and the same what-if about files.

    python benchmarks/live_whatif.py [--nodes 5000] [--pods 100000]

The API server is a `fairlead up` in its own process, with pods of 2.5 KB in ReplicaSets of 30. Four
what-ifs drain the same node: of the running cluster, of a file as kubectl prints it, of the same
file with one line for each object, and of a snapshot file. `fairlead snapshot` writes the last two
files, and is measured too. The figures are the user and system CPU time and the peak memory of each
`fairlead` process. The CPU time includes its forked processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from cluster_start import SINCE, node, pod, pod_spec

Json = dict[str, Any]
REPLICAS: Final = 30
# Without these components, nothing changes during the measurements.
WITHOUT: Final = "kubelet,workloads,volumes,provisioner,disruption,node-lifecycle,scheduler,metrics"
ANSWERED: Final = (0, 1)  # exit codes: no difference, a difference


def objects(nodes: int, pods: int) -> Iterator[Json]:
    """Yield nodes, bound pods, and the ReplicaSets of the pods."""
    for number in range(nodes):
        made = node(number)
        made["metadata"]["creationTimestamp"] = SINCE
        yield {"apiVersion": "v1", "kind": "Node", **made}
    for number in range(pods):
        app = number // REPLICAS
        made = pod(number, nodes)
        made["metadata"]["namespace"] = f"team-{app % 50}"
        made["spec"]["nodeName"] = f"node-{number % nodes}"
        if number % REPLICAS == 0:
            yield replica_set(app, made)
        yield {"apiVersion": "v1", "kind": "Pod", **made}


def replica_set(app: int, first: Json) -> Json:
    """Return the ReplicaSet with the number `app`, whose first pod is `first`."""
    meta = first["metadata"]
    owner = meta["ownerReferences"][0]
    spec = pod_spec(f"app-{app}")
    for assigned in ("priority", "tolerations", "volumes"):
        del spec[assigned]
    del spec["containers"][0]["volumeMounts"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": owner["name"],
            "namespace": meta["namespace"],
            "uid": owner["uid"],
            "creationTimestamp": SINCE,
        },
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": meta["labels"]},
            "template": {"metadata": {"labels": meta["labels"]}, "spec": spec},
        },
        "status": {"replicas": REPLICAS, "readyReplicas": REPLICAS, "observedGeneration": 1},
    }


def write(path: Path, nodes: int, pods: int) -> None:
    """Write the result of `objects` to `path` as one List."""
    with path.open("w") as file:
        file.write('{"apiVersion":"v1","kind":"List","metadata":{},"items":[')
        for number, made in enumerate(objects(nodes, pods)):
            file.write(",\n" * (number > 0) + json.dumps(made))
        file.write("]}\n")


@contextmanager
def serving(folder: Path, nodes: int, pods: int) -> Iterator[str]:
    """Serve the result of `objects` in another process; yield the path of its kubeconfig."""
    content, path = folder / "content.json", str(folder / "kubeconfig")
    write(content, nodes, pods)
    options = ["--snapshot", str(content), "--paused", "--without", WITHOUT, "--kubeconfig", path]
    command = [sys.executable, "-m", "fairlead.cli", "up", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        process.stdout.readline()
        content.unlink()
        try:
            yield path
        finally:
            process.terminate()


def indent(source: Path, path: Path) -> None:
    """Write the List in `source` to `path` with the indentation of kubectl.

    The objects are indented one by one, because indenting the whole List would need much memory.
    """
    with source.open("rb") as lines, path.open("wb") as file:
        head, start, first = next(lines).partition(b'"items":[')
        file.write(head + start)
        rest = first
        for line in lines:
            file.write(msgspec.json.format(rest.removesuffix(b",\n"), indent=4) + b",\n")
            rest = line
        file.write(msgspec.json.format(rest.removesuffix(b"]}\n"), indent=4) + b"]}\n")


def measure(what: str, *arguments: str) -> bytes:
    """Run `fairlead` with `arguments`, print a line with the cost, and return the output."""
    command = [sys.executable, "-m", "fairlead.cli", *arguments]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603 - ours
            command, stdout=output, stderr=subprocess.PIPE
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.stderr is not None
        with process.stderr:
            assert process.returncode in ANSWERED, process.stderr.read().decode()
        output.seek(0)
        answer = output.read()
    seconds = used.ru_utime + used.ru_stime
    memory = used.ru_maxrss / 1024
    print(f"{what:<32} {seconds:6.2f} s of CPU, {memory:6,.0f} MiB", flush=True)
    return answer


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    given = parser.parse_args()
    question = ("--drain", "node-1", "--output", "json")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        printed, listed, columns = (folder / f"{one}.json" for one in ("printed", "list", "small"))
        with serving(folder, given.nodes, given.pods) as kubeconfig:
            cluster = ("--kubeconfig", kubeconfig)
            print(f"{given.nodes:,} nodes and {given.pods:,} pods")
            measure("snapshot of the cluster", "snapshot", str(columns), *cluster)
            measure("snapshot --list of the cluster", "snapshot", str(listed), "--list", *cluster)
            measure("what-if about the cluster", "whatif", *cluster, *question)
        indent(listed, printed)
        measure("what-if about kubectl's JSON", "whatif", str(printed), *question)
        measure("what-if about JSON in few lines", "whatif", str(listed), *question)
        measure("what-if about the snapshot", "whatif", str(columns), *question)


if __name__ == "__main__":
    main()
