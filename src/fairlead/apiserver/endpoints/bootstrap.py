"""Objects that every API server creates at start: APIServices, priority levels and flow schemas.

These objects have no effect in Fairlead, because its server serves all groups itself and never
queues requests. The objects exist because clients and tools read and change them.

upstream: pkg/controlplane/apiserver/aggregator.go:DefaultGenericAPIServicePriorities,
cmd/kube-apiserver/app/aggregator.go; apiserver/pkg/apis/flowcontrol/bootstrap/default.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.auth.bootstrap_policy.objects import AUTOUPDATE, bootstrap_objects
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.kind import API_SERVICE, CLUSTER_ROLE, ROLE, kind_of
from fairlead.apiserver.kind_table import GATED_GROUP_VERSIONS, GROUP_VERSIONS
from fairlead.apiserver.registry.store import Store

# The field manager of the API server's own writes: the name of its program.
MANAGER: Final = "kube-apiserver"

_ON_START: Final = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io/v1"
# Priority levels: name, nominal shares, lendable percent, queues, hand size, queue length limit.
_LEVELS: Final = """
system          30 33  64 6 50
node-high       40 25  64 6 50
leader-election 10  0  16 4 50
workload-high   40 50 128 6 50
workload-low   100 90 128 6 50
global-default  20 50 128 6 50
"""
_ALL_USERS: Final = ("system:unauthenticated", "system:authenticated")
_USER: Final = "ByUser"
_NAMESPACE: Final = "ByNamespace"
_ALL: Final = ["*"]


def create_as_apiserver(store: Store, manifests: Iterable[Mapping[str, Any]], now: int) -> None:
    """Create the objects `manifests`, with the API server as field manager. Raises ApiError."""
    for manifest in manifests:
        note = track(kind_of(dict(manifest)), MANAGER, "Update", "", now)
        store.create(manifest, now, write=Write(track=note))


def reconcile_at_start(store: Store, gates: Collection[str], now: int) -> None:
    """Create, extend and delete objects in a `store` that an earlier start has filled.

    `gates` are the enabled feature gates. Missing objects are created. A role with the annotation
    autoupdate "true" gets its missing rules, and keeps the rules that users have added. APIServices
    of versions that are no longer served are deleted.

    upstream: component-helpers/auth/rbac/reconciliation/reconcile_role.go,
    kube-aggregator/pkg/controllers/autoregister/autoregister_controller.go:checkAPIService
    """
    wanted = [*bootstrap_objects(gates), *control_plane_objects(gates)]
    for manifest in wanted:
        kind, meta = kind_of(manifest), manifest["metadata"]
        stored = store.find(kind, meta.get("namespace", ""), meta["name"])
        if stored is None:
            create_as_apiserver(store, (manifest,), now)
        elif kind in (CLUSTER_ROLE, ROLE):
            _add_rules(store, stored, manifest["rules"], now)
    served = {one["metadata"]["name"] for one in wanted if one["kind"] == API_SERVICE.kind}
    for service in store.list(API_SERVICE):
        meta = service["metadata"]
        if _ON_START.items() <= (meta.get("labels") or {}).items() and meta["name"] not in served:
            store.delete(API_SERVICE, "", meta["name"], now)


def _add_rules(store: Store, stored: Json, rules: Iterable[Json], now: int) -> None:
    annotations = stored["metadata"].get("annotations") or {}
    kept = stored.get("rules") or []
    missing = [rule for rule in rules if rule not in kept]
    if not missing or not AUTOUPDATE.items() <= annotations.items():
        return
    kind = kind_of(stored)
    note = track(kind, MANAGER, "Update", "", now)
    store.update(kind, stored, {**stored, "rules": [*kept, *missing]}, now, write=Write(track=note))


def control_plane_objects(gates: Collection[str] = ()) -> Iterator[Json]:
    """Yield the APIServices, priority levels and flow schemas that a server creates at start.

    The objects have no status yet: post-start hooks write the status of APIServices and flow
    schemas. `gates` are the enabled feature gates; some gates add APIServices.
    """
    yield from _api_services(gates)
    yield from _priority_levels()
    yield from _flow_schemas()


def _api_services(gates: Collection[str]) -> Iterator[Json]:
    gated = (line.partition(" ") for line in GATED_GROUP_VERSIONS.strip().splitlines())
    more = [line for gate, _, line in gated if gate in gates]
    for line in (*GROUP_VERSIONS.strip().splitlines(), *more):
        group_version, group_priority, version_priority = line.split()
        if group_priority == "-":
            continue
        group, _, version = group_version.rpartition("/")
        yield {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{group}", "labels": dict(_ON_START)},
            "spec": {
                **({"group": group} if group else {}),
                "version": version,
                "groupPriorityMinimum": int(group_priority),
                "versionPriority": int(version_priority),
            },
        }


def _of_flow_control(kind: str, name: str, spec: Json) -> Json:
    annotations = {"apf.kubernetes.io/autoupdate-spec": "true"}
    meta = {"name": name, "annotations": annotations}
    return {"apiVersion": _FLOW_CONTROL, "kind": kind, "metadata": meta, "spec": spec}


def _priority_levels() -> Iterator[Json]:
    kind = "PriorityLevelConfiguration"
    exempt = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
    yield _of_flow_control(kind, "exempt", {"type": "Exempt", "exempt": exempt})
    rest = {"nominalConcurrencyShares": 5, "lendablePercent": 0}
    limited = {**rest, "limitResponse": {"type": "Reject"}}
    yield _of_flow_control(kind, "catch-all", {"type": "Limited", "limited": limited})
    for line in _LEVELS.split("\n")[1:-1]:
        name, *numbers = line.split()
        shares, lendable, queues, hand, length = map(int, numbers)
        queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": length}
        limited = {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": queuing},
        }
        yield _of_flow_control(kind, name, {"type": "Limited", "limited": limited})


def _flow_schemas() -> Iterator[Json]:
    controllers = _users("system:kube-controller-manager")
    scheduler = _users("system:kube-scheduler")
    accounts = _accounts("*")
    everything = {
        "resourceRules": [_rule(_ALL, _ALL, _ALL, _ALL, cluster=True)],
        "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
    }
    leases = _rules(_rule(["get", "create", "update"], ["coordination.k8s.io"], ["leases"], _ALL))
    endpoints = _rules(_rule(["get", "create", "update"], [""], ["endpoints"], _ALL))
    of_nodes = _rules(
        _rule(_ALL, [""], ["nodes", "nodes/status"], [], cluster=True),
        _rule(_ALL, ["coordination.k8s.io"], ["leases"], ["kube-node-lease"]),
    )
    health = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}
    yield _schema("exempt", "exempt", 1, "", _groups("system:masters"), everything)
    yield _schema("probes", "exempt", 2, "", _groups(*_ALL_USERS), {"nonResourceRules": [health]})
    yield _schema(
        "system-leader-election",
        "leader-election",
        100,
        _USER,
        controllers + scheduler + accounts,
        leases,
    )
    yield _schema(
        "endpoint-controller",
        "workload-high",
        150,
        _USER,
        controllers + _accounts("endpoint-controller", "endpointslicemirroring-controller"),
        endpoints,
    )
    yield _schema("workload-leader-election", "leader-election", 200, _USER, accounts, leases)
    nodes = _groups("system:nodes")
    yield _schema("system-node-high", "node-high", 400, _USER, nodes, of_nodes)
    yield _schema("system-nodes", "system", 500, _USER, nodes, everything)
    for name, subjects in (
        ("kube-controller-manager", controllers),
        ("kube-scheduler", scheduler),
    ):
        yield _schema(name, "workload-high", 800, _NAMESPACE, subjects, everything)
    name = "kube-system-service-accounts"
    yield _schema(name, "workload-high", 900, _NAMESPACE, accounts, everything)
    every_account = _groups("system:serviceaccounts")
    yield _schema("service-accounts", "workload-low", 9_000, _USER, every_account, everything)
    all_users = _groups(*_ALL_USERS)
    yield _schema("global-default", "global-default", 9_900, _USER, all_users, everything)
    yield _schema("catch-all", "catch-all", 10_000, _USER, all_users, everything)


def _schema(
    name: str, level: str, precedence: int, by: str, subjects: list[Json], rules: Json
) -> Json:
    spec: Json = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    if by:
        spec["distinguisherMethod"] = {"type": by}
    spec["rules"] = [{"subjects": subjects, **rules}]
    return _of_flow_control("FlowSchema", name, spec)


def _groups(*names: str) -> list[Json]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _users(*names: str) -> list[Json]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


def _accounts(*names: str) -> list[Json]:
    place = {"namespace": "kube-system"}
    return [{"kind": "ServiceAccount", "serviceAccount": {**place, "name": one}} for one in names]


def _rule(
    verbs: list[str],
    groups: list[str],
    resources: list[str],
    namespaces: list[str],
    *,
    cluster: bool = False,
) -> Json:
    rule: Json = {"verbs": verbs, "apiGroups": groups, "resources": resources}
    if cluster:
        rule["clusterScope"] = True
    return {**rule, "namespaces": namespaces} if namespaces else rule


def _rules(*rules: Json) -> Json:
    return {"resourceRules": list(rules)}
