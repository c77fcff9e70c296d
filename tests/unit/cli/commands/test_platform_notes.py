"""The note about images that might not run on the new nodes of pods, in the answers of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli import exit_code
from fairlead.cli.main import run

NODE = """\
---
apiVersion: v1
kind: Node
metadata:
  name: {name}
  uid: {name}
  labels: {{kubernetes.io/os: {os}, kubernetes.io/arch: amd64}}
status:
  allocatable: {{cpu: "{cpu}", memory: 16Gi, pods: "110"}}
  conditions: [{{type: Ready, status: "True"}}]
"""
WEB = """\
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: shop, uid: web}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: &template {
  metadata: {labels: {app: web}},
  spec: {containers: [{name: c, image: "web:1", resources: {requests: {cpu: "1"}}}]}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  uid: web-1
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]
spec:
  nodeName: linux
  containers: [{name: c, image: "web:1", resources: {requests: {cpu: "1"}}}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
"""
SIZES = (("linux", 8), ("windows", 2))
LINUX = NODE.format(name="linux-3", os="linux", cpu=8)
DUMP = (
    NODE.format(name="linux", os="linux", cpu=2) + NODE.format(name="w", os="windows", cpu=8) + WEB
)
WINDOWS = NODE.format(name="w", os="windows", cpu=8)
_POD = WEB[WEB.rindex("---") :]
TWO_NODES = (  # with a pod on each of the nodes linux and linux-2; there is room only on node w
    DUMP.replace("replicas: 1", "replicas: 2")
    + NODE.format(name="linux-2", os="linux", cpu=1)
    + _POD.replace("web-1", "web-2").replace("nodeName: linux", "nodeName: linux-2")
)


@pytest.mark.parametrize(
    "command",
    [
        "whatif dump.yaml --drain linux --no-report",
        "fit dump.yaml --like rs/shop/web",
        "consolidate dump.yaml --nodes linux",
        "drain-plan dump.yaml --nodes linux",
    ],
)
def test_a_linux_pod_moves_to_a_windows_node(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each command notes that the image of the pod does not run on Windows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.yaml").write_text(DUMP)
    run(command.split())
    answer = " ".join(capsys.readouterr().out.split())
    assert "of rs/shop/web on windows/amd64" in answer


def test_no_drain_is_proposed_that_moves_a_linux_pod_to_a_windows_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the Windows node, the pod moves to a Linux node, and the drain is proposed."""
    monkeypatch.chdir(tmp_path)
    for text, is_proposed in ((TWO_NODES, False), (TWO_NODES.replace(WINDOWS, LINUX), True)):
        (tmp_path / "dump.yaml").write_text(text)
        run(["whatif", "dump.yaml", "--drain", "linux"])
        assert ("Next: drain the node" in capsys.readouterr().out) is is_proposed


def test_a_pod_moves_to_a_surge_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A surge node has the platform of its pool, so upgrade-check has no note about it."""
    monkeypatch.chdir(tmp_path)
    linux = "nodeSelector: {kubernetes.io/os: linux}"
    dump = DUMP.replace("spec: {containers", f"spec: {{{linux}, containers")
    (tmp_path / "dump.yaml").write_text(dump.replace("nodeName:", f"{linux}\n  nodeName:"))
    assert run(["upgrade-check", "dump.yaml"]) in (exit_code.SUCCESS, exit_code.NO)
    assert "images" not in capsys.readouterr().out


LISTED = """\
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
    {matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux, windows]}]}]}}}
  """


@pytest.mark.parametrize(
    ("dump", "cpu", "is_noted"),
    [
        pytest.param(WEB, 8, True, id="a pod stays on the system on which its image runs"),
        pytest.param(
            WEB.replace("nodeName", LISTED + "nodeName"), 2, False, id="its affinity lists both"
        ),
        pytest.param(
            WEB.replace("nodeName", "nodeSelector: {kubernetes.io/os: linux}\n  nodeName"),
            8,
            False,
            id="its nodeSelector states the system",
        ),
        pytest.param(
            WEB.replace("nodeName: linux", "nodeSelector: {pool: w}").replace("Running", "Pending"),
            2,
            False,
            id="its image runs nowhere, and its nodeSelector is for Windows nodes",
        ),
    ],
)
def test_size_chooses_nodes_on_which_images_run(
    dump: str, cpu: int, *, is_noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A Windows node is the cheapest. `cpu` is the size of the node that is chosen."""
    monkeypatch.chdir(tmp_path)
    linux, windows = (NODE.format(name=os, os=os, cpu=size) for os, size in SIZES)
    windows = windows.replace("labels: {", "labels: {pool: w, ")
    (tmp_path / "dump.yaml").write_text(linux + windows + dump)
    run(["size", "dump.yaml"])
    answer = " ".join(capsys.readouterr().out.split())
    assert f"1 {cpu}/16Gi" in answer
    assert ("placed only on nodes of a platform" in answer) is is_noted


def test_rebalance_proposes_no_move_of_a_linux_pod_to_a_windows_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the Windows node, the same move is proposed."""
    monkeypatch.chdir(tmp_path)
    for text, is_proposed in ((DUMP, False), (DUMP.replace(WINDOWS, LINUX), True)):
        (tmp_path / "dump.yaml").write_text(text)
        run(["rebalance", "dump.yaml"])
        answer = " ".join(capsys.readouterr().out.split())
        assert answer.startswith("1 move" if is_proposed else "No move")
        left_out = (
            "The images of rs/shop/web might not run on nodes with another operating system or "
            "architecture. Moves are left out if such a node would get these pods."
        )
        assert (left_out in answer) is not is_proposed
        assert "Note: The images" not in answer


RESERVATION = ", but images of evicted pods might not run on the pods' new nodes (see the note)."


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("drain-plan", f"linux can be drained in 30s{RESERVATION}"),
        ("consolidate", f"linux could be removed (33% of all nodes){RESERVATION}"),
    ],
)
def test_a_plan_that_moves_a_linux_pod_to_a_windows_node_has_no_command(
    command: str,
    verdict: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without the Windows node, the pods move to a Linux node, and the commands are proposed."""
    monkeypatch.chdir(tmp_path)
    for text, is_proposed in ((TWO_NODES, False), (TWO_NODES.replace(WINDOWS, LINUX), True)):
        (tmp_path / "dump.yaml").write_text(text)
        run([command, "dump.yaml", "--nodes", "linux"])
        answer = " ".join(capsys.readouterr().out.split())
        assert ("Next: drain the node" in answer) is is_proposed
        assert ("kubectl delete node" in answer) is (is_proposed and command == "consolidate")
        assert answer.startswith(verdict) is not is_proposed
        assert ("Because of these images, no command is proposed." in answer) is not is_proposed
        assert ("Note: The images of these pods" in answer) is not is_proposed


def test_images_are_not_the_reason_that_nodes_that_return_get_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --for, a plan has no commands, on whichever nodes the images run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.yaml").write_text(TWO_NODES)
    run(["drain-plan", "dump.yaml", "--nodes", "linux", "--for", "5m"])
    answer = " ".join(capsys.readouterr().out.split())
    assert answer.startswith("linux can be drained in ")
    assert RESERVATION in answer
    assert "no command is proposed" not in answer
