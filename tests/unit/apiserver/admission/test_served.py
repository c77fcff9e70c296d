"""The admission plugins of a server with external clients, each by itself."""

from __future__ import annotations

from functools import partial

import pytest

from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from fairlead.apiserver.admission.plugins.node_restriction import NodeRestriction
from fairlead.apiserver.admission.plugins.pod_security import PodSecurity
from fairlead.apiserver.admission.plugins.pod_topology_labels import PodTopologyLabels
from fairlead.apiserver.admission.plugins.rbac_escalation import RbacEscalation
from fairlead.apiserver.admission.plugins.service_account import MOUNT_PATH, ServiceAccount
from fairlead.apiserver.admission.plugins.storage import (
    DefaultStorageClass,
    StorageObjectInUseProtection,
)
from fairlead.apiserver.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.kind import POD
from fairlead.apiserver.request import ADMIN
from fairlead.apiserver.suspension import PAUSE, WebhookAnswer

NODE_1 = authenticated("system:node:node-1", ("system:nodes",))
ALICE = authenticated("alice", ("dev",))


@pytest.fixture
def namespace(obj):
    """Makes Namespaces with the name n."""
    return lambda **more: obj("Namespace", "n", "", **more)


# --- namespaces ----------------------------------------------------------------------------


def test_an_object_in_a_missing_namespace_is_refused(gate, obj):
    assert gate(NamespaceLifecycle()).refusal(obj("ConfigMap")) == 'namespaces "n" not found'


def test_an_object_in_a_terminating_namespace_is_refused(gate, obj, namespace):
    found = gate(NamespaceLifecycle()).has(namespace(status={"phase": "Terminating"}))
    assert found.refusal(obj("ConfigMap")) == (
        'configmaps "x" is forbidden: unable to create new content in namespace n because it is '
        "being terminated"
    )
    found.admits(obj("ConfigMap"), Operation.UPDATE)
    found.admits(obj("ConfigMap"), Operation.DELETE)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_system_namespaces_cannot_be_deleted(gate, obj, name):
    refusal = gate(NamespaceLifecycle()).refusal(obj("Namespace", name, ""), Operation.DELETE)
    assert refusal == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


# --- accounts ------------------------------------------------------------------------------


@pytest.fixture
def accounts(gate, obj):
    """A gate with a ServiceAccount `default`."""
    plugin = ServiceAccount(lambda: "abcde")
    return lambda **fields: gate(plugin).has(obj("ServiceAccount", "default", **fields))


def test_a_pod_gets_the_default_service_account_and_its_token(accounts, pod):
    spec = accounts().admits(pod())["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert [volume["name"] for volume in spec["volumes"]] == ["kube-api-access-abcde"]
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert mount == {"name": "kube-api-access-abcde", "readOnly": True, "mountPath": MOUNT_PATH}


def test_a_pod_waits_for_the_default_account_of_a_new_namespace(gate, obj, pod):
    """A controller creates the account `default` after the namespace."""
    new = gate(ServiceAccount(lambda: "abcde"))
    attributes = AdmissionAttributes(Operation.CREATE, POD, pod(), write=Write(user=ADMIN))
    steps = new.plugin.admit(attributes, new.storage)
    assert next(steps) is PAUSE
    assert steps.send(WebhookAnswer()) is PAUSE
    new.has(obj("ServiceAccount", "default"))
    with pytest.raises(StopIteration) as admitted:
        steps.send(WebhookAnswer())
    assert admitted.value.value["spec"]["serviceAccountName"] == "default"


def test_a_pod_without_a_default_account_is_refused_in_the_end(gate, pod):
    refusal = gate(ServiceAccount(lambda: "abcde")).refusal(pod(), user=ADMIN)
    assert refusal.endswith('n/default: serviceaccount "default" not found')


def test_a_missing_service_account_is_refused(accounts, pod):
    assert accounts().refusal(pod(serviceAccountName="nope")) == (
        'pods "x" is forbidden: error looking up service account n/nope: serviceaccount "nope" '
        "not found"
    )


@pytest.mark.parametrize(
    ("account", "spec", "mounted"),
    [
        ({"automountServiceAccountToken": False}, {}, False),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True),
        ({}, {"automountServiceAccountToken": False}, False),
    ],
)
def test_no_token_is_mounted_if_automount_is_disabled(accounts, pod, account, spec, mounted):
    assert ("volumes" in accounts(**account).admits(pod(**spec))["spec"]) is mounted


def test_a_volume_mount_at_the_token_path_is_kept(accounts, pod):
    requested = pod()
    mount = {"name": "mine", "mountPath": MOUNT_PATH}
    requested["spec"]["containers"][0]["volumeMounts"] = [mount]
    assert "volumes" not in accounts().admits(requested)["spec"]


def test_a_pod_gets_the_image_pull_secrets_of_its_service_account(accounts, pod):
    found = accounts(imagePullSecrets=[{"name": "s"}])
    assert found.admits(pod())["spec"]["imagePullSecrets"] == [{"name": "s"}]


# --- nodes ---------------------------------------------------------------------------------


def test_a_new_node_gets_the_not_ready_taint(gate, obj):
    found = gate(TaintNodesByCondition())
    tainted = found.admits(obj("Node", namespace=""))
    assert tainted["spec"]["taints"] == [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    ]
    assert found.admits(tainted) == tainted


def test_a_binding_gets_the_topology_labels_of_the_node(gate, obj, pod):
    labels = {"topology.kubernetes.io/zone": "z", "other": "x"}
    node = obj("Node", "node-1", "", metadata={"labels": labels})
    found = gate(PodTopologyLabels()).has(node)
    binding = {**obj("Pod"), "target": {"kind": "Node", "name": "node-1"}}
    zone = {"topology.kubernetes.io/zone": "z"}
    assert found.admits(binding, subresource="binding")["metadata"]["labels"] == zone
    assert found.admits(pod(nodeName="node-1"))["metadata"]["labels"] == zone
    assert "labels" not in found.admits(pod())["metadata"]


@pytest.mark.parametrize(
    ("kind", "version", "name", "namespace", "why"),
    [
        ("Node", "v1", "node-2", "", 'node "node-1" is not allowed to modify node "node-2"'),
        (
            "Lease",
            "coordination.k8s.io/v1",
            "node-2",
            "kube-node-lease",
            "can only access node lease with the same name as the requesting node",
        ),
        (
            "CSINode",
            "storage.k8s.io/v1",
            "node-2",
            "",
            "can only access CSINode with the same name as the requesting node",
        ),
        (
            "Pod",
            "v1",
            "p",
            "n",
            (
                'pod does not have "kubernetes.io/config.mirror" annotation, node "node-1" can only '  # noqa: E501
                "create mirror pods"
            ),
        ),
    ],
)
def test_a_kubelet_can_write_only_its_own_node_lease_and_csi_node(  # noqa: PLR0917
    gate, obj, kind, version, name, namespace, why
):
    requested = obj(kind, name, namespace, version)
    found = gate(NodeRestriction())
    assert found.refusal(requested, user=NODE_1).endswith(f"is forbidden: {why}")
    assert found.admits(requested, user=ALICE) == requested


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.DELETE])
def test_a_kubelet_can_write_only_resource_slices_of_its_own_node(gate, obj, operation):
    own, other = (
        obj("ResourceSlice", "s", "", "resource.k8s.io/v1", spec={"nodeName": node})
        for node in ("node-1", "node-2")
    )
    found = gate(NodeRestriction())
    found.admits(own, operation, user=NODE_1)
    assert found.refusal(other, operation, user=NODE_1).endswith(
        f"can only {operation.lower()} ResourceSlice with the same NodeName as the requesting node"
    )


def test_a_kubelet_must_not_set_restricted_labels_of_its_node(gate, obj):
    old = obj("Node", "node-1", "")
    new = obj("Node", "node-1", "", metadata={"labels": {"node-restriction.kubernetes.io/x": "y"}})
    refusal = gate(NodeRestriction()).refusal(new, Operation.UPDATE, user=NODE_1, old=old)
    assert refusal.endswith("is not allowed to modify labels: node-restriction.kubernetes.io/x")


def test_a_kubelet_must_not_register_its_node_with_restricted_labels(gate, obj):
    """Otherwise, the kubelet could attract pods that are meant for other nodes."""
    labels = {"kubernetes.io/hostname": "node-1", "rack": "r"}
    found = gate(NodeRestriction())
    node = obj("Node", "node-1", "", metadata={"labels": labels})
    assert found.admits(node, user=NODE_1) == node
    labels |= {"node-restriction.kubernetes.io/x": "y", "foo.k8s.io/z": ""}
    assert found.refusal(node, user=NODE_1).endswith(
        'node "node-1" is not allowed to set the following labels: foo.k8s.io/z, '
        "node-restriction.kubernetes.io/x"
    )


def test_a_kubelet_can_evict_only_pods_of_its_own_node(gate, obj, pod):
    own, other = pod(nodeName="node-1"), pod(nodeName="node-2")
    other["metadata"] = {**other["metadata"], "name": "other"}
    found = gate(NodeRestriction()).has(own, other)
    evicting = {"user": NODE_1, "subresource": "eviction"}
    assert found.admits(obj("Pod"), **evicting)
    for name in ("other", "none"):
        assert found.refusal(obj("Pod", name), **evicting).endswith(
            "node node-1 can only evict pods with spec.nodeName set to itself"
        )


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        (None, "not bound to a pod"),
        ({"kind": "Secret"}, "not bound to a pod"),
        ({"uid": ""}, "with a pod binding without a uid"),
        ({"name": "none"}, 'pods "none" not found'),
        ({"uid": "2"}, "does not match the UID in record"),
        ({"name": "other"}, "bound to a pod scheduled on a different node"),
        ({}, ""),
    ],
)
def test_a_kubelet_can_request_tokens_only_for_pods_of_its_own_node(gate, obj, pod, reference, why):
    own, other = pod(nodeName="node-1"), pod(nodeName="node-2")
    own["metadata"] = {**own["metadata"], "uid": "1"}
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "1"}
    found = gate(NodeRestriction()).has(own, other)
    if reference is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1", **reference}
    request = obj("ServiceAccount", spec={"boundObjectRef": reference})
    about = {"user": NODE_1, "subresource": "token"}
    if why:
        assert why in found.refusal(request, **about)
    else:
        assert found.admits(request, **about) == request


# --- rights --------------------------------------------------------------------------------


RBAC = "rbac.authorization.k8s.io/v1"
ALL = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
GATHERING = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}


@pytest.fixture
def rights(gate, obj):
    """Makes (admit, refuse) functions for writes by alice, who has only these rights."""

    def made(*rules):
        found = gate(RbacEscalation())
        subject = {"kind": "User", "name": "alice"}
        reference = {"kind": "ClusterRole", "name": "own"}
        bound = obj("ClusterRoleBinding", "b", "", RBAC, roleRef=reference, subjects=[subject])
        found.has(obj("ClusterRole", "own", "", RBAC, rules=list(rules)), bound)
        alone = {"user": ALICE, "rights": Rbac(found.storage)}
        return partial(found.admits, **alone), partial(found.refusal, **alone)

    return made


def test_a_user_cannot_grant_rights_that_the_user_does_not_have(rights, obj):
    wanted = {"verbs": ["*"], "apiGroups": ["x.io"], "resources": ["*"]}
    role = obj("Role", version=RBAC, rules=[wanted])
    _, refusal = rights()
    assert refusal(role) == (
        'roles.rbac.authorization.k8s.io "x" is forbidden: user "alice" '
        '(groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not '
        'currently held:\n{APIGroups:["x.io"], Resources:["*"], Verbs:["*"]}'
    )
    admits, _ = rights(wanted)
    assert admits(role) == role


@pytest.mark.parametrize("gathers", [{"old": {}, "new": GATHERING}, {"old": GATHERING, "new": {}}])
def test_changing_an_aggregation_rule_requires_all_rights(rights, obj, gathers):
    """Removing the rule also requires them: the role then loses its aggregated rules."""
    old = obj("ClusterRole", "x", "", RBAC, aggregationRule=gathers["old"])
    new = obj("ClusterRole", "x", "", RBAC, aggregationRule=gathers["new"])
    _, refusal = rights({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]})
    assert refusal(new, Operation.UPDATE, old=old) == (
        'clusterroles.rbac.authorization.k8s.io "x" is forbidden: must have cluster-admin '
        "privileges to use the aggregationRule"
    )
    admits, _ = rights(*ALL)
    assert admits(new, Operation.UPDATE, old=old) == new


@pytest.mark.parametrize(
    ("kind", "namespace", "role"),
    [
        ("RoleBinding", "n", "Role"),
        ("RoleBinding", "n", "ClusterRole"),
        ("ClusterRoleBinding", "", "ClusterRole"),
    ],
)
def test_a_missing_role_cannot_be_bound_without_the_verb_bind(rights, obj, kind, namespace, role):
    """The role may get any rules later. With the verb bind, it can be bound."""
    binding = obj(kind, "y", namespace, RBAC, roleRef={"kind": role, "name": "later"})
    _, refusal = rights(*ALL[1:])
    plural = f"{role.lower()}s"
    assert refusal(binding) == f'{plural}.rbac.authorization.k8s.io "later" not found'
    group = RBAC.partition("/")[0]
    admits, _ = rights({"verbs": ["bind"], "apiGroups": [group], "resources": [plural]})
    assert admits(binding) == binding


def test_the_garbage_collector_can_remove_finalizers_of_any_role(rights, obj):
    old = obj("ClusterRole", "x", "", RBAC, rules=ALL, metadata={"finalizers": ["a.io/b"]})
    new = obj("ClusterRole", "x", "", RBAC, rules=ALL)
    admits, refusal = rights()
    assert admits(new, Operation.UPDATE, old=old) == new
    labelled = obj("ClusterRole", "x", "", RBAC, rules=ALL, metadata={"labels": {"a": "b"}})
    assert "not currently held" in refusal(labelled, Operation.UPDATE, old=old)


# --- volumes -------------------------------------------------------------------------------


def test_a_claim_gets_the_newest_default_class(gate, obj):
    def storage_class(name, created):
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        meta = {"annotations": default, "creationTimestamp": created}
        return obj("StorageClass", name, "", "storage.k8s.io/v1", metadata=meta)

    classes = [storage_class("a", "2026-01-01"), storage_class("b", "2026-01-02")]
    found = gate(DefaultStorageClass()).has(*classes)
    assert found.admits(obj("PersistentVolumeClaim", spec={}))["spec"]["storageClassName"] == "b"
    named = obj("PersistentVolumeClaim", spec={"storageClassName": ""})
    assert found.admits(named) == named


def test_claims_and_volumes_get_protection_finalizers(gate, obj):
    found = gate(StorageObjectInUseProtection())
    for kind, namespace, finalizer in (
        ("PersistentVolumeClaim", "n", "kubernetes.io/pvc-protection"),
        ("PersistentVolume", "", "kubernetes.io/pv-protection"),
    ):
        assert found.admits(obj(kind, "x", namespace))["metadata"]["finalizers"] == [finalizer]


# --- security ------------------------------------------------------------------------------

SAFE = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def secured(namespace, **modes):
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode, level in modes.items()}
    return namespace(metadata={"labels": labels})


@pytest.mark.parametrize(
    ("spec", "context", "details"),
    [
        ({"hostNetwork": True, "hostPID": True}, {}, "host namespaces (hostNetwork=true, hostPID=true)"),  # noqa: E501
        ({}, {"privileged": True}, 'privileged (container "c" must not set securityContext.privileged=true)'),  # noqa: E501
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
            {},
            'hostPath volumes (volume "v")',
        ),
        (
            {},
            {"capabilities": {"add": ["NET_ADMIN"]}},
            ('non-default capabilities (container "c" must not include "NET_ADMIN" in '
            "securityContext.capabilities.add)"),
        ),
    ],
)  # fmt: skip
def test_the_baseline_level_refuses_privileged_pods(gate, namespace, pod, spec, context, details):
    found = gate(PodSecurity()).has(secured(namespace, enforce="baseline"))
    requested = pod(**spec)
    requested["spec"]["containers"][0]["securityContext"] = context
    prefix = 'pods "x" is forbidden: violates PodSecurity "baseline:latest": '
    assert found.refusal(requested) == prefix + details


def test_unknown_pod_security_levels_and_versions_are_refused(gate, namespace):
    """The labels of a namespace must contain known levels and versions."""
    refused = gate(PodSecurity()).refusal(secured(namespace, enforce="x", **{"warn-version": "v2"}))
    assert '[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of' in refused
    assert 'warn-version]: Invalid value: "v2": must be "latest" or "v1.x"' in refused


def test_the_restricted_level_requires_a_safe_security_context(gate, namespace, pod):
    found = gate(PodSecurity()).has(secured(namespace, enforce="restricted"))
    assert "runAsNonRoot != true" in found.refusal(pod())
    safe = pod()
    safe["spec"]["containers"][0]["securityContext"] = SAFE
    assert found.admits(safe) == safe


@pytest.fixture
def secured_pod(namespace, pod):
    """Returns a function: (a namespace that enforces a version of a level, a pod)."""

    def made(level, version, spec, context):
        labels = {"enforce": level, "enforce-version": version}
        requested = pod(**spec)
        requested["spec"]["containers"][0]["securityContext"] = context
        return secured(namespace, **labels), requested

    return made


@pytest.mark.parametrize(
    ("level", "spec", "context", "change"),
    [
        pytest.param(
            "restricted",
            {},
            SAFE | {"capabilities": {}},
            (None, "v1.22", "unrestricted capabilities"),
            id="restricted drops all capabilities since 1.22",
        ),
        pytest.param(
            "restricted",
            {},
            SAFE | {"capabilities": {"add": ["NET_ADMIN"]}},
            ("non-default capabilities", "v1.22", "unrestricted capabilities"),
            id="the stricter check of capabilities replaces that of baseline",
        ),
        pytest.param(
            "restricted",
            {},
            SAFE | {"allowPrivilegeEscalation": None},
            (None, "v1.8", "allowPrivilegeEscalation != false"),
            id="allowPrivilegeEscalation exists since 1.8",
        ),
        pytest.param(
            "restricted",
            {},
            SAFE | {"runAsUser": 0},
            (None, "v1.23", "runAsUser=0"),
            id="root is refused by its number since 1.23",
        ),
        pytest.param(
            "restricted",
            {},
            SAFE | {"seccompProfile": None},
            (None, "v1.19", "seccompProfile"),
            id="seccomp profiles are fields since 1.19",
        ),
        pytest.param(
            "baseline",
            {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}},
            {},
            ("forbidden sysctls (net.ipv4.tcp_rmem)", "v1.32", None),
            id="tcp_rmem is safe since 1.32",
        ),
        pytest.param(
            "baseline",
            {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
            {},
            ("forbidden sysctls (kernel.msgmax)", "v1.4000", "forbidden sysctls (kernel.msgmax)"),
            id="an unsafe sysctl is unsafe in every version",
        ),
        pytest.param(
            "baseline",
            {},
            {"seLinuxOptions": {"type": "container_engine_t"}},
            ("seLinuxOptions", "v1.31", None),
            id="container_engine_t is allowed since 1.31",
        ),
        pytest.param(
            "restricted",
            {"os": {"name": "windows"}},
            {"runAsNonRoot": True},
            ("allowPrivilegeEscalation != false", "v1.25", None),
            id="Windows pods have no Linux fields since 1.25",
        ),
        pytest.param(
            "baseline",
            {},
            {"windowsOptions": {"hostProcess": True}},
            (
                'hostProcess (container "c" must not set securityContext.windowsOptions.host',
                "latest",
                "hostProcess",
            ),
            id="host processes are refused in every version",
        ),
    ],
)
def test_a_version_of_the_pod_security_standards_can_be_selected(
    gate, secured_pod, level, spec, context, change
):
    """`change` is (violation before the version, version, violation since)."""
    before, version, after = change
    minor = 100 if version == "latest" else int(version.removeprefix("v1."))
    for one, violated in ((f"v1.{minor - 1}", before), (version, after)):
        namespace, requested = secured_pod(level, one, spec, context)
        found = gate(PodSecurity()).has(namespace)
        if violated is None:
            assert found.admits(requested) == requested
        else:
            assert f'violates PodSecurity "{level}:{one}": {violated}' in found.refusal(requested)


UNCONFINED = {"seccompProfile": {"type": "Unconfined"}}


@pytest.mark.parametrize(
    ("level", "pod_context", "contexts", "details"),
    [
        pytest.param(
            "baseline", UNCONFINED, [UNCONFINED, {}],
            'seccompProfile (pod and container "a" must not set '
            'securityContext.seccompProfile.type to "Unconfined")',
            id="the pod and a container set a profile",
        ),
        pytest.param(
            "restricted", UNCONFINED, [SAFE, SAFE],
            'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
            id="a wrong profile is reported before missing ones",
        ),
        pytest.param(
            "restricted", {"runAsNonRoot": False}, [SAFE | {"runAsNonRoot": False}, SAFE],
            'runAsNonRoot != true (pod and container "a" must not set '
            "securityContext.runAsNonRoot=false)",
            id="the pod and a container may run as root",
        ),
        pytest.param(
            "restricted", {"runAsUser": 0}, [SAFE, SAFE | {"runAsUser": 0}],
            'runAsUser=0 (pod and container "b" must not set runAsUser=0)',
            id="the pod and a container run as root",
        ),
        pytest.param(
            "baseline",
            {"seLinuxOptions": {"type": "foo", "user": "u"}},
            [{"seLinuxOptions": {"type": "bar"}}, {"seLinuxOptions": {"role": "r"}}],
            'seLinuxOptions (pod and containers "a", "b" set forbidden '
            'securityContext.seLinuxOptions: types "bar", "foo"; user may not be set; '
            "role may not be set)",
            id="SELinux options of the pod and of containers are one sentence",
        ),
    ],
)  # fmt: skip
def test_a_violation_names_the_pod_and_the_containers_that_set_the_field(
    gate, secured_pod, level, pod_context, contexts, details
):
    """The pod and its containers are named in one sentence, as upstream does."""
    namespace, requested = secured_pod(level, "latest", {"securityContext": pod_context}, {})
    found = gate(PodSecurity()).has(namespace)
    requested["spec"]["containers"] = [
        {"name": name, "securityContext": context}
        for name, context in zip("ab", contexts, strict=True)
    ]
    assert found.refusal(requested).endswith(f'"{level}:latest": {details}')


def test_restricted_volume_types_and_host_ports_are_refused(gate, namespace, pod):
    found = gate(PodSecurity()).has(secured(namespace, enforce="restricted"))
    requested = pod(volumes=[{"name": "v", "nfs": {}}, {"name": "w", "hostPath": {"path": "/"}}])
    requested["spec"]["containers"][0] |= {
        "securityContext": SAFE,
        "ports": [{"hostPort": port} for port in (80, 443)],
    }
    assert found.refusal(requested).endswith(
        ': hostPath volumes (volume "w"), hostPort (container "c" uses hostPorts 443, 80), '
        'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")'
    )


def test_hosts_in_probes_and_lifecycle_handlers_are_refused(gate, namespace, pod):
    """Probes and lifecycle handlers may not name a host since 1.34."""
    requested = pod()
    requested["spec"]["containers"][0] |= {
        "livenessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}},
        "lifecycle": {"preStop": {"tcpSocket": {"host": "db", "port": 1}}},
    }
    details = (
        'probe or lifecycle host (container "c" uses probe or lifecycle hosts "10.0.0.1", "db")'
    )
    found = gate(PodSecurity()).has(secured(namespace, enforce="baseline"))
    assert found.refusal(requested).endswith(f'"baseline:latest": {details}')
    labels = {"enforce": "baseline", "enforce-version": "v1.33"}
    assert gate(PodSecurity()).has(secured(namespace, **labels)).admits(requested) == requested


def test_the_level_of_warnings_has_its_own_version(gate, namespace, pod):
    """The level of warnings can be the enforced one, in a newer version."""
    labels = {"enforce": "restricted", "enforce-version": "v1.21", "warn-version": "v1.22"}
    found = gate(PodSecurity()).has(secured(namespace, **labels))
    requested = pod()
    requested["spec"]["containers"][0]["securityContext"] = SAFE | {"capabilities": {}}
    found.admits(requested)
    (warning,) = found.warnings
    assert warning.startswith('would violate PodSecurity "restricted:v1.22": unrestricted cap')


def test_violating_pod_templates_of_workloads_get_warnings(gate, namespace, obj):
    found = gate(PodSecurity()).has(secured(namespace, warn="baseline"))
    template = {"spec": {"containers": [], "hostNetwork": True}}
    found.admits(obj("Deployment", version="apps/v1", spec={"template": template}))
    assert found.warnings == [
        'would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    ]


def test_a_new_enforced_level_warns_about_existing_pods_that_violate_it(gate, namespace, pod):
    found = gate(PodSecurity()).has(pod(hostNetwork=True))
    found.admits(secured(namespace, enforce="baseline"), Operation.UPDATE, old=namespace())
    assert found.warnings == [
        'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"',  # noqa: E501
        "x: host namespaces",
    ]


def test_resource_quota_is_the_last_plugin(gate):
    names = [type(plugin).__name__ for plugin in served_admission(lambda: "abcde")]
    assert (names[0], names[-1]) == ("NamespaceLifecycle", "ResourceQuota")
