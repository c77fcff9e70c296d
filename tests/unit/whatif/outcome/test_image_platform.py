"""The note about pods on nodes on which their images might not run."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.whatif.input.document import Document
from fairlead.whatif.outcome.image_platform import ImagePlatforms
from fairlead.whatif.snapshot.manifest_reader import manifests

LINUX = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
ARM = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
WINDOWS = {"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64"}
LABELS = {"linux": LINUX, "arm": ARM, "windows": WINDOWS}


def _pod(name: str, image: str, node: str = "", phase: str = "Running", **spec: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "main", "image": image}], "nodeName": node, **spec},
        "status": {"phase": phase},
    }


def _images(*pods: Any, nodes: tuple[str, ...] = ("linux", "arm", "windows")) -> ImagePlatforms:
    objects = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": LABELS[name]}}
        for name in nodes
    ]
    return ImagePlatforms.of(manifests(Document("dump", one) for one in (*objects, *pods)))


def _notes(images: ImagePlatforms, pod: Any, node: str) -> list[str]:
    return list(images.notes([(decode_as(Pod, pod), node, LABELS[node])]))


WEB = "reg.example.com:5000/shop/web"


@pytest.mark.parametrize("node", ["arm", "windows"])
def test_an_image_runs_only_on_another_platform(node: str) -> None:
    """A new tag of an image that runs only on linux/amd64 is noted on any other platform."""
    images = _images(_pod("web-1", f"{WEB}:1", "linux"))
    (note,) = _notes(images, _pod("web-2", f"{WEB}:2@sha256:ab"), node)
    platform = {"arm": "linux/arm64", "windows": "windows/amd64"}[node]
    assert f": 1 pod of pod/shop/web-2 on {platform}." in note


def test_an_image_that_runs_on_the_platform() -> None:
    """A platform on which the image runs in the dump is not noted."""
    images = _images(_pod("web-1", f"{WEB}:1", "linux"), _pod("web-2", f"{WEB}:1", "arm"))
    assert not _notes(images, _pod("web-3", f"{WEB}:1"), "arm")


def test_a_pod_that_does_not_run_proves_nothing() -> None:
    """A pod that waits for its image on a node does not show that the image exists there."""
    waiting = _pod("web-2", f"{WEB}:1", "windows", phase="Pending")
    images = _images(_pod("web-1", f"{WEB}:1", "linux"), waiting)
    assert _notes(images, _pod("web-3", f"{WEB}:1"), "windows")
    assert not _notes(images, waiting, "windows")  # it is already there in the dump


@pytest.mark.parametrize(("node", "count"), [("linux", 0), ("arm", 0), ("windows", 1)])
def test_an_unknown_image(node: str, count: int) -> None:
    """An image that the dump lacks is noted only on Windows."""
    assert len(_notes(_images(), _pod("new", "busybox"), node)) == count


def test_a_pod_that_selects_the_platform() -> None:
    """A pod whose node selector states the platform is not noted."""
    images = _images(_pod("web-1", f"{WEB}:1", "linux"))
    chosen = {"kubernetes.io/os": "windows"}
    moved = _pod("web-2", f"{WEB}:2", nodeSelector={**chosen, "kubernetes.io/arch": "amd64"})
    assert not _notes(images, moved, "windows")
    assert not _notes(_images(), _pod("iis", "iis", nodeSelector=chosen), "windows")
    deprecated = {"beta.kubernetes.io/os": "windows"}
    iis = decode_as(Pod, _pod("iis", "iis", nodeSelector=deprecated))
    assert not list(_images().notes([(iis, "windows", {**WINDOWS, **deprecated})]))


@pytest.mark.parametrize(
    ("operator", "node", "count"), [("In", "arm", 0), ("In", "windows", 1), ("Exists", "arm", 1)]
)
def test_a_pod_whose_affinity_lists_architectures(operator: str, node: str, count: int) -> None:
    """The images are assumed to run on the listed architectures, but on no other system."""
    images = _images(_pod("web-1", f"{WEB}:1", "linux"))
    values = ["amd64", "arm64"] if operator == "In" else []
    listed = {"key": "kubernetes.io/arch", "operator": operator, "values": values}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [listed]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert len(_notes(images, _pod("web-2", f"{WEB}:2", affinity=affinity), node)) == count


def test_nodes_of_one_platform() -> None:
    """Without a second platform, no pod is examined."""
    assert _images(_pod("web-1", WEB, "linux"), nodes=("linux",)).are_alike
