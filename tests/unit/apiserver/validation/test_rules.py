"""Validation rules by kind, and the messages of refusals."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.validation.validator import ApiValidator

CONTAINER = {"name": "c", "image": "i"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": {"a": "b"}}
ONCE = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}


def completed(api_version, kind, **content):
    meta = {"name": "x", "namespace": "default", **content.pop("metadata", {})}
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": meta, **content}
    known = kind_of(manifest)
    if not known.namespaced:
        del meta["namespace"]
    return known, API_SERVER.default(known, API_SERVER.decode(known, manifest))


def refusal(api_version, kind, **content):
    """Return the causes of the refusal as texts, or [] if the object is accepted."""
    known, obj = completed(api_version, kind, **content)
    try:
        ApiValidator().validate(known, API_SERVER.rules(known), obj)
    except ApiError as refused:
        return [str(cause) for cause in refused.causes]
    return []


def change(old, new):
    (kind, before), (_, after) = old, new
    try:
        ApiValidator().validate_update(kind, API_SERVER.rules(kind), before, after)
    except ApiError as refused:
        return [str(cause) for cause in refused.causes]
    return []


def pod(**spec):
    return refusal("v1", "Pod", spec={"containers": [CONTAINER], **spec})


def container(**fields):
    return pod(containers=[{**CONTAINER, **fields}])


def test_an_ordinary_pod_is_accepted():
    assert pod() == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"env": [{"name": ""}]},
            "env[0].name: Required value",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.foo"}}}]},
            (
                'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.foo": error converting '
                "fieldPath: field label not supported: spec.foo"
            ),
        ),
        (
            {"env": [{"name": "A", "valueFrom": {}}]},
            (
                'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
                "`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            ),
        ),
        (
            {"imagePullPolicy": "Sometimes"},
            (
                'imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", '
                '"IfNotPresent", "Never"'
            ),
        ),
        (
            {"ports": [{"containerPort": 1, "name": "123"}]},
            'ports[0].name: Invalid value: "123": must contain at least one letter (a-z)',
        ),
        (
            {"volumeMounts": [{"name": "zz", "mountPath": "/a"}]},
            'volumeMounts[0].name: Not found: "zz"',
        ),
        (
            {"livenessProbe": {"httpGet": {"port": 0}}},
            "livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            {"lifecycle": {"postStart": {}}},
            "lifecycle.postStart: Required value: must specify a handler type",
        ),
    ],
)
def test_an_invalid_container_is_refused(fields, problem):
    """The refusal has this cause."""
    assert container(**fields) == [f"spec.containers[0].{problem}"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"dnsPolicy": "None"},
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"subdomain": "a.b"},
            'spec.subdomain: Invalid value: "a.b": must not contain dots',
        ),
        (
            {"os": {"name": "beos"}},
            'spec.os: Unsupported value: "beos": supported values: "linux", "windows"',
        ),
        (
            {"hostAliases": [{"ip": "x"}]},
            (
                'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, '
                "(e.g. 10.9.8.7 or 2001:db8::ffff)"
            ),
        ),
        (
            {"securityContext": {"runAsUser": -1}},
            (
                "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and "
                "2147483647, inclusive"
            ),
        ),
        (
            {"ephemeralContainers": [CONTAINER]},
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
    ],
)
def test_an_invalid_pod_is_refused(spec, problem):
    """The refusal has this cause."""
    assert pod(**spec) == [problem]


@pytest.mark.parametrize(
    ("api_version", "kind", "content", "problems"),
    [
        (
            "v1",
            "ConfigMap",
            {"data": {"a": "x"}, "binaryData": {"a": "eA=="}},
            ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
        ),
        (
            "v1",
            "ConfigMap",
            {"data": {"a": "x" * (1 << 20) + "y"}},
            ["[]: Too long: may not be more than 1048576 bytes"],
        ),
        (
            "v1",
            "Secret",
            {"type": "kubernetes.io/tls"},
            ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
        ),
        (
            "v1",
            "ResourceQuota",
            {"spec": {"hard": {"pods": "1.5"}}},
            ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
        ),
        (
            "v1",
            "ResourceQuota",
            {"spec": {"hard": {"pods": "1"}, "scopes": ["X"]}},
            ['spec.scopes: Invalid value: ["X"]: unsupported scope'],
        ),
        (
            "v1",
            "LimitRange",
            {"spec": {"limits": [{"type": "Pod", "default": {"cpu": "1"}}]}},
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (
            "v1",
            "LimitRange",
            {
                "spec": {
                    "limits": [
                        {
                            "type": "PersistentVolumeClaim",
                            "min": {"storage": "1"},
                            "max": {"storage": "2"},
                            "maxLimitRequestRatio": {"storage": "4"},
                        }
                    ]
                }
            },
            [
                (
                    'spec.limits[0].maxLimitRequestRatio[storage]: Invalid value: "4": '
                    "ratio 4 is greater than max/min = 2.000000"
                )
            ],
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            {"spec": {"accessModes": ["ReadWriteOnce"]}},
            ["spec.resources[storage]: Required value"],
        ),
        (
            "v1",
            "PersistentVolume",
            {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}},
            ["spec: Required value: must specify a volume type"],
        ),
        (
            "v1",
            "Service",
            {"spec": {"ports": [{"port": 80}, {"port": 81}]}},
            ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
        ),
        (
            "v1",
            "Service",
            {"spec": {"ports": [{"port": 80}], "externalTrafficPolicy": "Local"}},
            [
                (
                    'spec.externalTrafficPolicy: Invalid value: "Local": '
                    "may only be set for externally-accessible services"
                )
            ],
        ),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            {"endpoints": [{"addresses": []}], "addressType": "IPv4"},
            ["endpoints[0].addresses: Required value: must contain at least 1 address"],
        ),
        (
            "apps/v1",
            "Deployment",
            {
                "spec": {
                    "selector": SELECTOR,
                    "template": TEMPLATE,
                    "strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
                }
            },
            [
                (
                    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy "
                    "`type` is 'Recreate'"
                )
            ],
        ),
        (
            "apps/v1",
            "DaemonSet",
            {
                "spec": {
                    "selector": SELECTOR,
                    "template": TEMPLATE,
                    "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}},
                }
            },
            [
                (
                    "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: "
                    "cannot be 0 when maxSurge is 0"
                )
            ],
        ),
        (
            "batch/v1",
            "Job",
            {"spec": {**ONCE, "backoffLimitPerIndex": 1}},
            ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
        (
            "batch/v1",
            "CronJob",
            {"spec": {"schedule": "99 * * * *", "jobTemplate": {"spec": ONCE}}},
            [
                (
                    'spec.schedule: Invalid value: "99 * * * *": '
                    "end of range (99) above maximum (59): 99"
                )
            ],
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            {"spec": {"leaseDurationSeconds": 0}},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "Role",
            {"rules": [{"verbs": ["get"]}]},
            [
                (
                    "rules[0].apiGroups: Required value: resource rules must supply at least one "
                    "api group"
                ),
                (
                    "rules[0].resources: Required value: resource rules must supply at least one "
                    "resource"
                ),
            ],
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            {
                "spec": {
                    "maxReplicas": 3,
                    "minReplicas": 9,
                    "scaleTargetRef": {"kind": "D", "name": "d"},
                }
            },
            ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
        ),
        (
            "resource.k8s.io/v1",
            "ResourceSlice",
            {"spec": {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1}}},
            [
                (
                    "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
                    "`perDeviceNodeSelection` is required"
                )
            ],
        ),
        (
            "v1",
            "Event",
            {"involvedObject": {"kind": "Pod", "namespace": "other", "name": "x"}},
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
        ),
        (
            "v1",
            "ConfigMap",
            {"metadata": {"annotations": {"a b": "x"}, "finalizers": ["nodomain"]}},
            [
                (
                    'metadata.annotations: Invalid value: "a b": name part must consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
                    "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    'metadata.finalizers[0]: Invalid value: "nodomain": name is neither a standard '
                    "finalizer name nor is it fully qualified"
                ),
            ],
        ),
    ],
)
def test_an_invalid_object_of_another_kind_is_refused(api_version, kind, content, problems):
    """The refusal has these causes."""
    assert refusal(api_version, kind, **content) == problems


def workload(kind, **spec):
    return completed("apps/v1", kind, spec={"selector": SELECTOR, "template": TEMPLATE, **spec})


def test_the_selector_of_a_workload_is_immutable():
    other = {"matchLabels": {"a": "b", "q": "z"}}
    template = {**TEMPLATE, "metadata": {"labels": other["matchLabels"]}}
    assert change(
        workload("Deployment"), workload("Deployment", selector=other, template=template)
    ) == ['spec.selector: Invalid value: {"matchLabels":{"a":"b","q":"z"}}: field is immutable']


def test_only_some_fields_of_a_stateful_set_can_be_changed():
    (said,) = change(workload("StatefulSet"), workload("StatefulSet", serviceName="other"))
    assert said.startswith("spec: Forbidden: updates to statefulset spec for fields other than")
    assert change(workload("StatefulSet"), workload("StatefulSet", replicas=5)) == []


def test_the_data_of_an_immutable_config_map_cannot_be_changed():
    def sealed(**data):
        return completed("v1", "ConfigMap", immutable=True, data=data)

    said = ["data: Forbidden: field is immutable when `immutable` is set"]
    assert change(sealed(a="1"), sealed(a="2")) == said
    assert change(sealed(a="1"), sealed(a="1")) == []


def test_the_request_of_a_claim_cannot_be_decreased():
    def claim(size):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return completed("v1", "PersistentVolumeClaim", spec=spec)

    (said,) = change(claim("1Gi"), claim("500Mi"))
    assert said.startswith("spec: Forbidden: spec is immutable after creation except")


def test_a_part_of_an_image_volume_can_be_mounted():
    """Since 1.33 (KEP-4639)."""
    mount = {"name": "models", "mountPath": "/models", "subPath": "small"}
    volume = {"name": "models", "image": {"reference": "registry.example.com/models:1"}}
    spec = {"containers": [{**CONTAINER, "volumeMounts": [mount]}], "volumes": [volume]}
    assert refusal("v1", "Pod", spec=spec) == []
