"""The CRDs of NodePools, NodeClaims and NodeOverlays (Karpenter), and of NodeClasses (Fairlead).

Fairlead's NodeClass has no settings. Fairlead's NodeClass takes the place of a cloud provider's
NodeClass, such as EC2NodeClass. A nodeClassRef may also name any other group and kind.

upstream: pkg/apis/crds for the fields, their defaults and the columns
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import KINDS, Kind
from fairlead.engine.autoscaling.karpenter.apis import DEFAULT_EXPIRE_AFTER

NODE_CLASS: Final = {
    "apiVersion": "fairlead.dev/v1",
    "kind": "NodeClass",
    "metadata": {"name": "default"},
    "spec": {},
}
DEFAULT_POOL: Final = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
                ],
                "nodeClassRef": {"group": "fairlead.dev", "kind": "NodeClass", "name": "default"},
                "expireAfter": DEFAULT_EXPIRE_AFTER,
            }
        },
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "30s",
            "budgets": [{"nodes": "10%"}],
        },
    },
}
_GROUPS: Final = ("karpenter.sh", "fairlead.dev")


def karpenter_kinds() -> tuple[Json, ...]:
    """Return the CustomResourceDefinitions of Karpenter's kinds and of Fairlead's NodeClass."""
    return tuple(_definition(kind) for kind in KINDS if kind.is_custom and kind.group in _GROUPS)


def _definition(kind: Kind) -> Json:
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": _SCHEMAS[kind.kind]},
        "additionalPrinterColumns": _COLUMNS[kind.kind],
    }
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
        "categories": ["karpenter"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": "Cluster", "versions": [version]},
    }


# --- schemas -------------------------------------------------------------------------------------


def _text(description: str = "", **more: object) -> Json:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _object(description: str, properties: Json, required: tuple[str, ...] = ()) -> Json:
    found: Json = {"type": "object", "description": description, "properties": properties}
    return {**found, "required": list(required)} if required else found


def _list(of: Json, description: str = "", **more: object) -> Json:
    return {"type": "array", "description": description, "items": of, **more}


def _map(of: Json, description: str = "") -> Json:
    return {"type": "object", "description": description, "additionalProperties": of}


_QUANTITY: Final = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}
_DURATION: Final = r"^(([0-9]+(s|m|h))+|Never)$"
_RESOURCES: Final = _map(_QUANTITY, "Amounts by resource.")
_TAINT: Final = _object(
    "A taint.",
    {"key": _text(), "value": _text(), "effect": _text(), "timeAdded": _text(format="date-time")},
    ("key", "effect"),
)
_OPERATORS: Final = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
_REQUIREMENT: Final = _object(
    "A requirement on a label of nodes.",
    {
        "key": _text("The label."),
        "operator": _text("How values are compared.", enum=_OPERATORS),
        "values": _list(_text(), "The values."),
        "minValues": {
            "type": "integer",
            "minimum": 1,
            "maximum": 50,
            "description": "How many distinct values the instance types must offer.",
        },
    },
    ("key", "operator"),
)
_NODE_CLASS_REF: Final = _object(
    "The provider's description of machines; any group and kind is accepted and taken as Ready.",
    {"group": _text(), "kind": _text(), "name": _text()},
    ("group", "kind", "name"),
)
_CLAIM_PROPERTIES: Final[Json] = {
    "requirements": _list(_REQUIREMENT, "What nodes must have.", maxItems=100),
    "taints": _list(_TAINT, "Taints of the nodes."),
    "startupTaints": _list(_TAINT, "Taints that a daemon removes once a node has started."),
    "nodeClassRef": _NODE_CLASS_REF,
    "expireAfter": _text(
        "The age at which a node is replaced.", pattern=_DURATION, default=DEFAULT_EXPIRE_AFTER
    ),
    "terminationGracePeriod": _text("How long a drain may take.", pattern=r"^([0-9]+(s|m|h))+$"),
}
_CLAIM_SPEC: Final = _object(
    "The requirements on the node, and its settings.",
    {
        **_CLAIM_PROPERTIES,
        "resources": _object("What the pods need.", {"requests": _RESOURCES}),
    },
    ("nodeClassRef", "requirements"),
)
_CONDITIONS: Final = _list(
    _object(
        "A condition.",
        {
            "type": _text(),
            "status": _text(enum=["True", "False", "Unknown"]),
            "reason": _text(),
            "message": _text(),
            "lastTransitionTime": _text(format="date-time"),
            "observedGeneration": {"type": "integer", "format": "int64"},
        },
        ("type", "status"),
    ),
    "Conditions.",
)
_TEMPLATE: Final = _object(
    "The template of the pool's NodeClaims.",
    {
        "metadata": _object(
            "Labels and annotations of the nodes.",
            {"labels": _map(_text()), "annotations": _map(_text())},
        ),
        "spec": _object("", _CLAIM_PROPERTIES, ("nodeClassRef", "requirements")),
    },
    ("spec",),
)
_BUDGET: Final = _object(
    "How many nodes may be disrupted at once.",
    {
        "nodes": _text(
            "A number or a percentage.", pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$", default="10%"
        ),
        "schedule": _text("The times at which the budget starts to apply, in cron syntax."),
        "duration": _text(
            "How long the budget applies after each of these times.",
            pattern=r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$",
        ),
        "reasons": _list(
            _text(enum=["Underutilized", "Empty", "Drifted"]),
            "The reasons of disruptions that the budget limits.",
        ),
    },
    ("nodes",),
)
_DISRUPTION: Final = {
    **_object(
        "When nodes are removed or replaced.",
        {
            "consolidateAfter": _text(
                "Time without pod changes before consolidation.", pattern=_DURATION
            ),
            "consolidationPolicy": _text(
                "Which nodes are considered.",
                enum=["WhenEmpty", "WhenEmptyOrUnderutilized"],
                default="WhenEmptyOrUnderutilized",
            ),
            "budgets": _list(_BUDGET, "Limits.", maxItems=50, default=[{"nodes": "10%"}]),
        },
        ("consolidateAfter",),
    ),
    "default": {"consolidateAfter": "0s"},
}
_SCHEMAS: Final[dict[str, Json]] = {
    "NodePool": _object(
        "What nodes Karpenter may create, and when it may remove them.",
        {
            "spec": _object(
                "The desired state.",
                {
                    "template": _TEMPLATE,
                    "disruption": _DISRUPTION,
                    "limits": _RESOURCES,
                    "weight": {
                        "type": "integer",
                        "format": "int32",
                        "minimum": 1,
                        "maximum": 100,
                        "description": "Pools with a higher weight are tried first.",
                    },
                    "replicas": {
                        "type": "integer",
                        "format": "int64",
                        "minimum": 0,
                        "description": "The fixed number of nodes of a static pool.",
                    },
                },
                ("template",),
            ),
            "status": _object(
                "The observed state.", {"resources": _RESOURCES, "conditions": _CONDITIONS}
            ),
        },
        ("spec",),
    ),
    "NodeClaim": _object(
        "A node that Karpenter requested from its provider.",
        {
            "spec": _CLAIM_SPEC,
            "status": _object(
                "The observed state.",
                {
                    "nodeName": _text(),
                    "providerID": _text(),
                    "imageID": _text(),
                    "capacity": _RESOURCES,
                    "allocatable": _RESOURCES,
                    "lastPodEventTime": _text(format="date-time"),
                    "conditions": _CONDITIONS,
                },
            ),
        },
        ("spec",),
    ),
    "NodeOverlay": _object(
        "Corrects prices and capacity of instance types.",
        {
            "spec": _object(
                "The correction.",
                {
                    "requirements": _list(_REQUIREMENT, "The instance types.", maxItems=100),
                    "price": _text("The price per hour.", pattern=r"^\d+(\.\d+)?$"),
                    "priceAdjustment": _text(
                        "A change of the price.", pattern=r"^[+-]\d+(\.\d+)?%?$"
                    ),
                    "capacity": _RESOURCES,
                    "weight": {
                        "type": "integer", "format": "int32", "minimum": 1, "maximum": 10_000,
                    },
                },
                ("requirements",),
            ),
            "status": _object("The observed state.", {"conditions": _CONDITIONS}),
        },
        ("spec",),
    ),
    "NodeClass": _object(
        "The machines of Fairlead's simulated provider; it has no settings.",
        {
            "spec": {"type": "object", "description": "Without fields."},
            "status": _object("The observed state.", {"conditions": _CONDITIONS}),
        },
    ),
}  # fmt: skip


# --- columns -------------------------------------------------------------------------------------


def _column(name: str, path: str, of: str = "string", priority: int = 0) -> Json:
    found: Json = {"name": name, "type": of, "jsonPath": path}
    return {**found, "priority": priority} if priority else found


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "date")
_READY: Final = _column("Ready", '.status.conditions[?(@.type=="Ready")].status')
_COLUMNS: Final[dict[str, list[Json]]] = {
    "NodePool": [
        _column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
        _column("Nodes", ".status.resources.nodes"),
        _READY,
        _AGE,
        _column("Weight", ".spec.weight", "integer", 1),
        _column("CPU", ".status.resources.cpu", priority=1),
        _column("Memory", ".status.resources.memory", priority=1),
    ],
    "NodeClaim": [
        _column("Type", r".metadata.labels.node\.kubernetes\.io/instance-type"),
        _column("Capacity", r".metadata.labels.karpenter\.sh/capacity-type"),
        _column("Zone", r".metadata.labels.topology\.kubernetes\.io/zone"),
        _column("Node", ".status.nodeName"),
        _READY,
        _AGE,
        _column("ID", ".status.providerID", priority=1),
        _column("NodePool", r".metadata.labels.karpenter\.sh/nodepool", priority=1),
        _column("NodeClass", ".spec.nodeClassRef.name", priority=1),
        _column("Drifted", '.status.conditions[?(@.type=="Drifted")].status', priority=1),
    ],
    "NodeOverlay": [_READY, _AGE, _column("Weight", ".spec.weight", "integer", 1)],
    "NodeClass": [_AGE],
}
