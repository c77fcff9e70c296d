"""A custom resource with a conversion webhook, and a webhook that converts it.

In v1, which is stored, a widget has a host, a port and replicas. In v1beta1, it has an address and
a size.
"""

from __future__ import annotations

import json

GROUP = "example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OLD = f"/apis/{GROUP}/v1beta1/namespaces/default/widgets"
NEW = f"/apis/{GROUP}/v1/namespaces/default/widgets"


def _version(name, *, replicas, storage, **spec):
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    counted = {**status["properties"], replicas: {"type": "integer"}}
    properties = {
        "spec": {"type": "object", "properties": {**spec, replicas: {"type": "integer"}}},
        "status": {**status, "properties": counted},
    }
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": f".spec.{replicas}",
                "statusReplicasPath": f".status.{replicas}",
            },
        },
        "selectableFields": [{"jsonPath": f".spec.{next(iter(spec))}"}],
        "additionalPrinterColumns": [
            {"name": "Where", "type": "string", "jsonPath": f".spec.{next(iter(spec))}"}
        ],
    }


TEXT = {"type": "string"}
PORT = {"type": "integer", "default": 80}
ADDRESS = {"type": "string", "pattern": "^[a-z]+(:[0-9]+)?$", "default": "any:1"}


def definition(url="https://127.0.0.1:9/convert", *, ca="", reviews=("v1",), strategy="Webhook"):
    """Return the CustomResourceDefinition of widgets, converted at `url`."""
    client = {"url": url, **({"caBundle": ca} if ca else {})}
    webhook = {"clientConfig": client, "conversionReviewVersions": list(reviews)}
    conversion = {"strategy": strategy, **({"webhook": webhook} if strategy == "Webhook" else {})}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
            },
            "versions": [
                _version("v1", replicas="replicas", storage=True, host=TEXT, port=PORT),
                _version("v1beta1", replicas="size", storage=False, address=ADDRESS),
            ],
            "conversion": conversion,
        },
    }


def old(name="w", address="a:1", **spec):
    """Return a widget in v1beta1."""
    return _widget("v1beta1", name, {"address": address, **spec})


def new(name="w", host="a", port=1, **spec):
    """Return a widget in v1."""
    return _widget("v1", name, {"host": host, "port": port, **spec})


def _widget(version, name, spec):
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Widget",
        "metadata": meta,
        "spec": spec,
    }


def converted(obj, api_version):
    """Return a widget in another version."""
    made = {**obj, "apiVersion": api_version}
    names = {"replicas": "size"} if api_version.endswith("v1beta1") else {"size": "replicas"}
    for part in ("spec", "status"):
        if part in obj:
            made[part] = {names.get(key, key): value for key, value in obj[part].items()}
    spec = made.get("spec", {})
    if api_version.endswith("v1beta1") and "host" in spec:
        spec["address"] = f"{spec.pop('host')}:{spec.pop('port')}"
    elif "address" in spec:
        spec["host"], _, port = spec.pop("address").partition(":")
        spec["port"] = int(port or 80)
    return made


class Webhook:
    """A webhook that converts widgets, and records its reviews."""

    def __init__(self):
        self.reviews = []
        self.failure = ""

    def answer(self, review):
        """Return the ConversionReview with the response."""
        self.reviews.append(review)
        request = review["request"]
        if self.failure:
            result = {"status": "Failure", "message": self.failure}
            return {**review, "response": {"uid": request["uid"], "result": result}}
        found = [converted(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
        response = {
            "uid": request["uid"],
            "result": {"status": "Success"},
            "convertedObjects": found,
        }
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    def answer_text(self, body):
        """Return the answer to the text `body` as text."""
        return json.dumps(self.answer(json.loads(body))).encode()

    @property
    def names(self):
        """(desired version, names of the objects) of each review."""
        return [
            (
                review["request"]["desiredAPIVersion"].partition("/")[2],
                [obj["metadata"]["name"] for obj in review["request"]["objects"]],
            )
            for review in self.reviews
        ]
