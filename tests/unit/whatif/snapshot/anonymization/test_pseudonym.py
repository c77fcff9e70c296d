"""Pseudonyms keep order and structure, and can be revealed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.whatif.snapshot.anonymization.anonymizer import anonymised
from fairlead.whatif.snapshot.anonymization.pseudonym import KEPT, Pseudonyms, SegmentCollector

segments = st.from_regex(r"[a-z0-9]([a-z0-9]{0,5})", fullmatch=True) | st.sampled_from(KEPT)
names = st.lists(segments, min_size=1, max_size=4).map("-".join)


def made(found):
    collector = SegmentCollector()
    for name in found:
        collector.replace(name)
    return Pseudonyms(collector.segments)


@given(st.lists(names, min_size=1, max_size=30))
def test_pseudonyms_sort_as_the_names_do(found):
    pseudonyms = made(found)
    assert sorted(found) == sorted(found, key=pseudonyms.replace)


@given(st.lists(names, min_size=1, max_size=30))
def test_pseudonyms_are_revealed_in_any_text(found):
    pseudonyms = made(found)
    text = " | ".join(map(pseudonyms.replace, found))
    assert pseudonyms.reveal(text) == " | ".join(found)


@pytest.mark.parametrize("text", ["0.001", "12.01", "2026-01-02", "2026-01-02T00:01:02Z", "01:00"])
@pytest.mark.parametrize("count", [2, 20], ids=["few segments", "many segments"])
def test_numbers_in_an_answer_are_not_revealed(text, count):
    """Pseudonyms of segments that begin with a digit begin with 0."""
    pseudonyms = made([str(number) for number in range(count)])
    answer = f'{{"hours": {text}, "node": "{pseudonyms.replace("1.0")}"}}'
    assert pseudonyms.reveal(answer) == f'{{"hours": {text}, "node": "1.0"}}'
    assert pseudonyms.recognizes(answer)


def test_shared_segments_stay_shared():
    pseudonyms = made(["web", "web-6f7c", "web-6f7c-x2x9"])
    short, middle, long = map(pseudonyms.replace, ["web", "web-6f7c", "web-6f7c-x2x9"])
    assert middle.startswith(f"{short}-")
    assert long.startswith(f"{middle}-")


def test_names_of_system_objects_are_kept():
    pseudonyms = made(["kube-system", "kube-ops"])
    assert pseudonyms.replace("kube-system") == "kube-system"
    assert pseudonyms.replace("kube-ops").startswith("kube-o")


def obj(kind, name, spec=None, **metadata):
    meta = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec or {}}


def test_ordinals_of_stateful_sets_are_kept():
    owner = {"kind": "StatefulSet", "name": "db", "uid": "u"}
    claim = {"persistentVolumeClaim": {"claimName": "data-db-7"}}
    pod = obj("Pod", "db-7", {"volumes": [claim]}, ownerReferences=[owner])
    found = anonymised([pod, obj("PersistentVolumeClaim", "data-db-7")])
    first, second = found.objects
    assert first["metadata"]["name"].endswith("-7")
    claimed = first["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claimed == second["metadata"]["name"]
    assert claimed.endswith(f"-{first['metadata']['name']}")


def test_claims_of_ephemeral_volumes_have_the_name_that_their_pod_expects():
    owner = {"kind": "StatefulSet", "name": "db", "uid": "u"}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}
    pod = obj("Pod", "db-7", {"volumes": [volume]}, ownerReferences=[owner])
    first, claim = anonymised([pod, obj("PersistentVolumeClaim", "db-7-scratch")]).objects
    expected = f"{first['metadata']['name']}-{first['spec']['volumes'][0]['name']}"
    assert claim["metadata"]["name"] == expected


def test_claims_without_their_pod_keep_the_ordinal():
    """A StatefulSet that is scaled up uses the claim again."""
    spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}
    owner = obj("StatefulSet", "db", spec) | {"apiVersion": "apps/v1"}
    claims = [obj("PersistentVolumeClaim", name) for name in ("data-db-7", "data-db-x", "old-db-1")]
    found, claim, *others = anonymised([owner, *claims]).objects
    template = found["spec"]["volumeClaimTemplates"][0]["metadata"]["name"]
    assert claim["metadata"]["name"] == f"{template}-{found['metadata']['name']}-7"
    assert not any(one["metadata"]["name"].endswith("-1") for one in others)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"kubernetes.io/arch": "arm64"}, {"kubernetes.io/arch": "arm64"}),
        ({"topology.kubernetes.io/zone": "eu-1a"}, {"topology.kubernetes.io/zone": "eu-1a"}),
        ({"fairlead.dev/run-duration": "5s"}, {"fairlead.dev/run-duration": "5s"}),
        ({"node.kubernetes.io/slot": "4"}, {"node.kubernetes.io/slot": "4"}),
    ],
)
def test_well_known_labels_are_kept(labels, expected):
    (found,) = anonymised([obj("Node", "n", labels=labels)]).objects
    assert found["metadata"]["labels"] == expected


def test_host_name_labels_are_replaced_by_the_pseudonym_of_the_node():
    labels = {"kubernetes.io/hostname": "worker-1"}
    (found,) = anonymised([obj("Node", "worker-1", labels=labels)]).objects
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == found["metadata"]["name"]
    assert "worker" not in found["metadata"]["name"]


def test_numbers_that_are_compared_are_kept():
    term = {"matchExpressions": [{"key": "team/size", "operator": "Gt", "values": ["5"]}]}
    pod = obj("Pod", "p", {"affinity": {"nodeAffinity": {"terms": [term]}}})
    node = obj("Node", "n", labels={"team/size": "7", "team/name": "7"})
    found, other = anonymised([pod, node]).objects
    (expression,) = found["spec"]["affinity"]["nodeAffinity"]["terms"][0]["matchExpressions"]
    assert expression["values"] == ["5"]
    assert other["metadata"]["labels"][expression["key"]] == "7"
    assert list(other["metadata"]["labels"].values()).count("7") == 1


def test_fields_of_custom_resources_are_kept_only_if_they_are_quantities_or_about_devices():
    """These fields are named like fields of built-in kinds, but contain a user's own texts."""
    spec = {"default": {"owner": "alice"}, "attributes": {"owner": "alice"}, "selectors": ["alice"]}
    device = {
        "attributes": {"model": {"string": "h200"}},
        "selectors": [{"cel": {"expression": "true"}}],
        "limits": {"cpu": "500m", "memory": "1.5Gi"},
    }
    queue = obj("Queue", "w", spec) | {"apiVersion": "scheduling.volcano.sh/v1beta1"}
    custom, known = anonymised([queue, obj("Pod", "p", device)]).objects
    assert "alice" not in str(custom)
    assert known["spec"] == device


def test_images_of_nodes_still_match_those_of_pods():
    pod = obj("Pod", "p", {"containers": [{"name": "c", "image": "shop/web"}]})
    node = obj("Node", "n") | {"status": {"images": [{"names": ["shop/web:latest"]}]}}
    found, other = anonymised([pod, node]).objects
    assert found["spec"]["containers"][0]["image"] == other["status"]["images"][0]["names"][0]


def test_fields_that_no_command_reads_are_dropped():
    container = {"name": "c", "image": "i", "env": [{"name": "PASSWORD"}], "args": ["--x"]}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    pod = obj("Pod", "p", {"containers": [container]}, annotations=annotations)
    result = anonymised([pod, obj("Secret", "s"), obj("Event", "e")])
    (found,) = result.objects
    assert sorted(found["spec"]["containers"][0]) == ["image", "name"]
    assert found["metadata"]["annotations"] == {}
    assert result.dropped == {"Secret": 1, "Event": 1}


def test_strings_of_a_wrong_type_are_unchanged():
    """Kinds without a typed view are not checked before they are anonymised."""
    finalizers = {"metadata": {"name": "a", "finalizers": [3]}}
    requirement = {"key": "a", "operator": "In", "values": [3]}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    (found,) = anonymised([{**kind, **finalizers, "spec": [requirement]}]).objects
    assert found["metadata"]["finalizers"] == [3]
    assert found["spec"][0]["values"] == [3]


def test_autoscalers_keep_their_metrics():
    """The resource and the policy are kept; names of targets and containers are replaced."""
    target = {"type": "Utilization", "averageUtilization": 50}
    metric = {"name": "cpu", "container": "app", "target": target}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "metrics": [{"type": "ContainerResource", "containerResource": metric}],
            "behavior": {"scaleUp": {"selectPolicy": "Min"}},
        },
    }
    (found,) = anonymised([scaler]).objects
    spec = found["spec"]
    source = spec["metrics"][0]["containerResource"]
    assert (source["name"], source["target"]) == ("cpu", target)
    assert source["container"] != "app"
    assert spec["scaleTargetRef"]["name"] == found["metadata"]["name"] != "web"
    assert spec["behavior"]["scaleUp"]["selectPolicy"] == "Min"


@pytest.mark.parametrize(
    ("text", "is_recognized", "unknown"),
    [
        pytest.param("pods on {0} and {1}", True, [], id="two names"),
        pytest.param("pods on {0}, {1} and m9", True, ["m9"], id="two names and a word"),
        pytest.param("pods on {0} and m9", False, ["m9"], id="as many words as names"),
        pytest.param("pods on q8 and x9", False, ["q8", "x9"], id="another snapshot"),
        pytest.param("no pods", False, [], id="nothing"),
        pytest.param("pods on q08 and x09", False, [], id="a larger snapshot"),
    ],
)
def test_a_text_about_another_snapshot_is_not_recognized(text, is_recognized, unknown):
    pseudonyms = Pseudonyms(["eu", "shop", "web"])
    names = [pseudonyms.replace(name) for name in ("shop", "web")]
    about = text.format(*names)
    assert (pseudonyms.recognizes(about), pseudonyms.unknown_in(about)) == (is_recognized, unknown)
    assert pseudonyms.has_none(about) == (text == "no pods")
