"""Validation rules without recordings: the contents of snapshots, and changes of pods."""

from __future__ import annotations

from copy import deepcopy

import pytest

from fairlead.apiserver.error import ApiError, Cause
from fairlead.apiserver.kind import NODE, POD, kind_of
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.apiserver.validation.scaling_policy import TO_ZERO
from fairlead.apiserver.validation.validator import validated_stored

NO_CREATE = "Forbidden: cannot be set on create"
NO_DEBUG = "Forbidden: ephemeral containers not allowed in pod template"
QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


WRITE_ONCE = ["ReadWriteOnce"]


def validated_new(kind, obj):
    """Return `obj` with its defaults, or raise the refusal of it as a new object."""
    obj = API_SERVER.default(kind, API_SERVER.decode(kind, obj))
    API_SERVER.validator.validate(kind, API_SERVER.rules(kind), obj)
    return obj


def loaded(kind, obj):
    """Return `obj` as an object of a snapshot."""
    return validated_stored(kind, API_SERVER.rules(kind), obj)


def refusal_of(act, obj):
    with pytest.raises(ApiError) as refusal:
        act(kind_of(obj), obj)
    return refusal.value


def obj(kind, api_version="v1", *, name="x", namespace="n", **parts):
    meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}


def pod_asking(**resources):
    return obj("Pod", spec={"containers": [{"name": "c", "image": "i", "resources": resources}]})


WORKLOADS = [
    (
        "Deployment",
        {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        "spec.strategy.rollingUpdate",
    ),
    ("Deployment", {"strategy": {"type": "Other"}}, "spec.strategy"),
    (
        "Deployment",
        {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    (
        "StatefulSet",
        {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
        "spec.updateStrategy.rollingUpdate",
    ),
    (
        "DaemonSet",
        {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}},
        "spec.updateStrategy.rollingUpdate.maxSurge",
    ),
    ("StatefulSet", {"minReadySeconds": -1}, "spec.minReadySeconds"),
    ("Deployment", {"minReadySeconds": 700}, "spec.progressDeadlineSeconds"),
]


@pytest.mark.parametrize(("kind", "spec", "field"), WORKLOADS)
def test_the_rollout_settings_of_a_workload_are_checked_with_their_defaults(kind, spec, field):
    causes = refusal_of(loaded, obj(kind, "apps/v1", spec=spec)).causes
    assert [cause.field for cause in causes] == [field]


@pytest.mark.parametrize(
    "strategy",
    [{}, {"type": "Recreate"}, {"rollingUpdate": {"maxUnavailable": 0}}, {"rollingUpdate": {}}],
)
def test_an_update_strategy_may_lack_fields_that_have_defaults(strategy):
    stored = obj("Deployment", "apps/v1", spec={"strategy": strategy})
    loaded(kind_of(stored), stored)


@pytest.mark.parametrize(
    ("stored", "field", "problem"),
    [
        (
            pod_asking(requests={"cpu": "1x"}),
            "spec.containers[0].resources.requests[cpu]",
            f'Invalid value: "1x": {QUANTITY}',
        ),
        (
            obj("Pod", status={"containerStatuses": [{"resources": {"requests": {"cpu": "x"}}}]}),
            "status.containerStatuses[0].resources.requests[cpu]",
            f'Invalid value: "x": {QUANTITY}',
        ),
        (
            obj("Pod", status={"initContainerStatuses": [{"allocatedResources": {"cpu": "x"}}]}),
            "status.initContainerStatuses[0].allocatedResources[cpu]",
            f'Invalid value: "x": {QUANTITY}',
        ),
        (
            obj("Pod", status={"resources": {"limits": {"cpu": "x"}}}),
            "status.resources.limits[cpu]",
            f'Invalid value: "x": {QUANTITY}',
        ),
        (
            obj("ResourceQuota", spec={"scopes": ["Terminating", "NotTerminating"]}),
            "spec.scopes",
            'Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
        ),
        (
            pod_asking(requests={"cpu": "-1"}),
            "spec.containers[0].resources.requests[cpu]",
            'Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            pod_asking(limits={"memory": "-2Gi"}),
            "spec.containers[0].resources.limits[memory]",
            'Invalid value: "-2Gi": must be greater than or equal to 0',
        ),
        (
            pod_asking(requests={"cpu": "2"}, limits={"cpu": "1500m"}),
            "spec.containers[0].resources.requests",
            'Invalid value: "2": must be less than or equal to cpu limit of 1500m',
        ),
        (
            pod_asking(requests={"x.io/gpu": "1"}, limits={"x.io/gpu": "2"}),
            "spec.containers[0].resources.requests",
            'Invalid value: "1": must be equal to x.io/gpu limit of 2',
        ),
        (
            obj("Pod", spec={"overhead": {"cpu": "?"}}),
            "spec.overhead[cpu]",
            f'Invalid value: "?": {QUANTITY}',
        ),
        (
            obj("PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOncePod", *WRITE_ONCE]}),
            "spec.accessModes",
            "Forbidden: may not use ReadWriteOncePod with other access modes",
        ),
        (
            obj("PersistentVolume", spec={"accessModes": [*WRITE_ONCE, "ReadWriteOncePod"]}),
            "spec.accessModes",
            "Forbidden: may not use ReadWriteOncePod with other access modes",
        ),
        (
            obj("CSIStorageCapacity", "storage.k8s.io/v1", storageClassName="s", capacity="1x"),
            "capacity",
            f'Invalid value: "1x": {QUANTITY}',
        ),
        (
            obj(
                "ResourceSlice",
                "resource.k8s.io/v1",
                namespace="",
                spec={
                    "driver": "x.io",
                    "pool": {"name": "n", "resourceSliceCount": 1},
                    "nodeName": "n",
                    "devices": [{"name": "d", "capacity": {"memory": {"value": "1x"}}}],
                },
            ),
            "spec.devices[0].capacity[memory].value",
            f'Invalid value: "1x": {QUANTITY}',
        ),
        (
            obj(
                "ResourceClaim",
                "resource.k8s.io/v1",
                spec={
                    "devices": {
                        "requests": [{"exactly": {"capacity": {"requests": {"memory": "1x"}}}}]
                    }
                },
            ),
            "spec.devices.requests[0].exactly.capacity.requests[memory]",
            f'Invalid value: "1x": {QUANTITY}',
        ),
        *(
            (
                obj(
                    "HorizontalPodAutoscaler",
                    "autoscaling/v2",
                    spec={
                        "maxReplicas": 3,
                        "behavior": {
                            "scaleDown": {
                                "policies": [
                                    {"type": "Pods", "value": 1, "periodSeconds": period_s}
                                ]
                            }
                        },
                    },
                ),
                "spec.behavior.scaleDown.policies[0].periodSeconds",
                f"Invalid value: {period_s}: must be {rule}",
            )
            for period_s, rule in (
                (0, "greater than zero"),
                (1801, "less than or equal to 1800"),
            )
        ),
        (
            obj(
                "HorizontalPodAutoscaler",
                "autoscaling/v2",
                spec={"minReplicas": 0, "maxReplicas": 3, "metrics": [{"type": "Resource"}]},
            ),
            "spec.metrics",
            f"Forbidden: {TO_ZERO}",
        ),
        (
            obj(
                "HorizontalPodAutoscaler",
                "autoscaling/v2",
                spec={
                    "maxReplicas": 3,
                    "metrics": [{"pods": {"target": {"averageValue": "1x"}}}],
                },
            ),
            "spec.metrics[0].pods.target.averageValue",
            f'Invalid value: "1x": {QUANTITY}',
        ),
        (
            obj("Pod", spec={"resources": {"requests": {"x.io/gpu": "1"}}}),
            "spec.resources.requests[x.io/gpu]",
            'Unsupported value: "x.io/gpu": supported values: "cpu", "memory"',
        ),
        (
            obj("Pod", spec={"resources": {"limits": {"cpu": "one"}}}),
            "spec.resources.limits[cpu]",
            f'Invalid value: "one": {QUANTITY}',
        ),
        (
            obj("Pod", spec={"priority": 2**31}),
            "spec.priority",
            "Invalid value: 2147483648: must be between -2147483648 and 2147483647, inclusive",
        ),
        (
            obj("Pod", spec={"preemptionPolicy": "Maybe"}),
            "spec.preemptionPolicy",
            'Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"',
        ),
        (
            obj("Pod", spec={"tolerations": [{"key": "a", "effect": "NoWay"}]}),
            "spec.tolerations[0].effect",
            (
                'Unsupported value: "NoWay": supported values: "NoSchedule", "PreferNoSchedule", '
                '"NoExecute"'
            ),
        ),
        (
            obj("Pod", spec={"schedulingGates": [{"name": "a"}, {"name": "a"}]}),
            "spec.schedulingGates[1]",
            'Duplicate value: "a"',
        ),
        (
            obj("Pod", status={"startTime": "soon"}),
            "status.startTime",
            (
                "Invalid value: \"soon\": 'soon' is not an RFC 3339 timestamp such as "
                "2026-01-01T00:00:00Z"
            ),
        ),
        (
            obj("Pod", namespace="Bad"),
            "metadata.namespace",
            (
                'Invalid value: "Bad": a lowercase RFC 1123 label must consist of lower case '
                "alphanumeric characters or '-', and must start and end with an alphanumeric "
                "character "
                "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ),
        ),
        (
            obj("Node", namespace="", status={"allocatable": {"cpu": "-1"}}),
            "status.allocatable.cpu",
            'Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            obj("Node", namespace="", status={"capacity": {"pods": "1.5"}}),
            "status.capacity.pods",
            'Invalid value: "1500m": must be an integer',
        ),
        (
            obj("Node", namespace="", spec={"taints": [{"key": "a", "effect": "NoExecute"}] * 2}),
            "spec.taints[1]",
            (
                'Duplicate value: {"Key":"a","Value":"","Effect":"NoExecute","TimeAdded":null}: '
                "taints must be unique by key and effect pair"
            ),
        ),
        (
            obj("ReplicaSet", "apps/v1", spec={"replicas": -2}),
            "spec.replicas",
            "Invalid value: -2: must be greater than or equal to 0",
        ),
        (
            obj(
                "Deployment",
                "apps/v1",
                spec={
                    "template": {
                        "spec": {
                            "containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]
                        }
                    }
                },
            ),
            "spec.template.spec.containers[0].resources.requests[cpu]",
            f'Invalid value: "x": {QUANTITY}',
        ),
        (
            obj("StatefulSet", "apps/v1", spec={"template": {"spec": {"containers": 5}}}),
            "spec.template.spec.containers",
            'Invalid value: "": Expected `array`, got `int`',
        ),
        (
            obj("Job", "batch/v1", spec={"completions": -1}),
            "spec.completions",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            obj("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1, "maxUnavailable": 1}),
            "spec",
            (
                'Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
                '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be '
                "both set"
            ),
        ),
        (
            obj(
                "PodDisruptionBudget",
                "policy/v1",
                spec={"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            ),
            "spec.selector.matchExpressions[0].operator",
            'Invalid value: "Like": not a valid selector operator',
        ),
        (obj("Widget", name="a/b"), "metadata.name", "Invalid value: \"a/b\": may not contain '/'"),
        (obj("Widget", name=".."), "metadata.name", "Invalid value: \"..\": may not be '..'"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)
def test_an_invalid_stored_object_is_refused(stored, field, problem):
    """Only the first cause is compared; defaults may copy the value and repeat the cause."""
    first = refusal_of(loaded, stored).causes[0]
    assert (first.field, first.message) == (field, problem)


def test_a_refusal_names_the_object_and_all_errors():
    bad = obj("Pod", spec={"priority": 2**40, "preemptionPolicy": "No"})
    refused = refusal_of(loaded, bad)
    assert (refused.kind, refused.namespace, refused.name) == (POD, "n", "x")
    assert [cause.field for cause in refused.causes] == ["spec.priority", "spec.preemptionPolicy"]
    assert refused.message == f'Pod "x" is invalid: [{refused.causes[0]}, {refused.causes[1]}]'


def test_the_number_of_reported_errors_is_limited():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    with pytest.raises(ApiError) as refused:
        validated_new(POD, {**pod, "spec": {"containers": [{}] * 40_000}})
    assert len(refused.value.causes) < 40_000


def test_a_wrong_type_names_the_field():
    refused = refusal_of(loaded, obj("Pod", spec={"nodeSelector": ["a"]}))
    assert (refused.reason, refused.code) == ("BadRequest", 400)
    assert refused.causes == (
        Cause("FieldValueInvalid", "Expected `object`, got `array`", "spec.nodeSelector"),
    )


@pytest.mark.parametrize("name", ["no class", "Ünï", "High", "a/b"])
def test_the_class_of_a_pod_is_a_possible_name_of_a_priority_class(name):
    causes = refusal_of(loaded, obj("Pod", spec={"priorityClassName": name})).causes
    assert [cause.field for cause in causes] == ["spec.priorityClassName"]


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Pod", {}, "spec.containers"),
        ("Deployment", {"template": {}}, "spec.selector"),
        (
            "Job",
            {"template": {"spec": {"restartPolicy": "Always"}}},
            "spec.template.spec.restartPolicy",
        ),
    ],
)
def test_fields_that_are_required_only_of_new_objects(kind, spec, field):
    versions = {"Pod": "v1", "Deployment": "apps/v1", "Job": "batch/v1"}
    bare = obj(kind, versions[kind], spec=spec)
    loaded(kind_of(bare), bare)
    assert field in [cause.field for cause in refusal_of(validated_new, bare).causes]


DEBUG = [{"name": "debug", "image": "i"}]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"ephemeralContainers": DEBUG}}
SELECTOR = {"matchLabels": {"a": "b"}}


def cron_job(schedule="@daily", **fields):
    """A CronJob whose pods have the fields in `fields`, apart from timeZone."""
    zone = {"timeZone": fields.pop("timeZone")} if "timeZone" in fields else {}
    template = {"spec": {"restartPolicy": "Never", **fields}}
    spec = {"schedule": schedule, **zone, "jobTemplate": {"spec": {"template": template}}}
    return obj("CronJob", "batch/v1", spec=spec)


def limit_range(**limit):
    return obj("LimitRange", spec={"limits": [{"type": "Container", **limit}]})


REFUSED_IF_NEW = [
    pytest.param(
        limit_range(min={"cpu": "2"}, max={"cpu": "1"}),
        "spec.limits[0].min[cpu]",
        'Invalid value: "2": min value 2 is greater than max value 1',
        id="limits that no container fulfils",
    ),
    pytest.param(
        cron_job(schedule="99 * * * *"),
        "spec.schedule",
        'Invalid value: "99 * * * *": end of range (99) above maximum (59): 99',
        id="a schedule with a wrong minute",
    ),
    pytest.param(cron_job(schedule=""), "spec.schedule", "Required value", id="no schedule"),
    pytest.param(
        cron_job(timeZone="Mars/One"),
        "spec.timeZone",
        'Invalid value: "Mars/One": unknown time zone Mars/One',
        id="an unknown time zone",
    ),
    pytest.param(
        cron_job(timeZone=""),
        "spec.timeZone",
        'Invalid value: "": timeZone must be nil or non-empty string',
        id="an empty time zone",
    ),
    pytest.param(
        cron_job(ephemeralContainers=DEBUG),
        "spec.jobTemplate.spec.template.spec.ephemeralContainers",
        NO_DEBUG,
        id="a job template with ephemeral containers",
    ),
    pytest.param(
        cron_job(restartPolicy="Always"),
        "spec.jobTemplate.spec.template.spec.restartPolicy",
        'Required value: valid values: "OnFailure", "Never"',
        id="a job template whose pods always restart",
    ),
    pytest.param(
        obj("Pod", spec={"containers": [], "ephemeralContainers": DEBUG}),
        "spec.ephemeralContainers",
        NO_CREATE,
        id="a pod with ephemeral containers",
    ),
    pytest.param(
        obj("Deployment", "apps/v1", spec={"selector": SELECTOR, "template": TEMPLATE}),
        "spec.template.spec.ephemeralContainers",
        NO_DEBUG,
        id="a template with ephemeral containers",
    ),
]


@pytest.mark.parametrize(("refused", "field", "message"), REFUSED_IF_NEW)
def test_a_simulation_refuses_new_objects_as_an_api_server_does(refused, field, message):
    """Stored objects with the same errors are accepted, and can be updated."""
    kind = kind_of(refused)
    rules = SIMULATION.rules(kind)
    new = SIMULATION.default(kind, refused)
    with pytest.raises(ApiError) as refusal:
        SIMULATION.validator.validate(kind, rules, new)
    assert [(one.field, one.message) for one in refusal.value.causes] == [(field, message)]
    loaded(kind, refused)
    changed = {**new, "metadata": {**new["metadata"], "labels": {"a": "b"}}}
    SIMULATION.validator.validate_update(kind, rules, new, changed)


def test_the_amounts_of_a_limit_range_are_compared_only_if_all_are_valid():
    found = limit_range(min={"cpu": "x"}, max={"cpu": "1"})
    with pytest.raises(ApiError) as refusal:
        SIMULATION.validator.validate(kind_of(found), SIMULATION.rules(kind_of(found)), found)
    assert [one.field for one in refusal.value.causes] == ["spec.limits[0].min[cpu]"]


NODE_STATUS = {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"unschedulable": True},
        {"unschedulable": "yes"},
        {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2},
        {"taints": [{"key": "a b", "effect": "Never"}]},
        {"taints": [{"key": "a"}]},
        {"taints": "a"},
    ],
)
@pytest.mark.parametrize("labels", [{}, {"a": "b"}, {"a": "b c"}, {"a": 1}])
def test_an_update_that_keeps_the_status_of_a_node_is_checked_as_any_other(spec, labels):
    """The kept status itself is not checked again."""
    before = obj("Node", namespace="", spec={}, status=NODE_STATUS)

    def outcome(status):
        after = obj("Node", namespace="", spec=spec, status=status)
        after["metadata"]["labels"] = labels
        try:
            made = SIMULATION.default_update(NODE, before, after)
            SIMULATION.validator.validate_update(NODE, SIMULATION.rules(NODE), before, made)
        except ApiError as refusal:
            return refusal.message, refusal.causes
        return made["spec"], made["metadata"]

    assert outcome(NODE_STATUS) == outcome(deepcopy(NODE_STATUS))


def test_the_name_of_a_device_driver_may_have_capital_letters():
    """Format k8s-long-name-caseless of the field in k8s.io/api/resource/v1."""
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": "gpu.Example.com", "nodeName": "n1", "pool": pool},
    }
    kind = kind_of(obj)
    assert validated_new(kind, deepcopy(obj))["spec"]["driver"] == "gpu.Example.com"
    loaded(kind, obj)
