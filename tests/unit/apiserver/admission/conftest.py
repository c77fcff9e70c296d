"""A gate that runs admission plugins over a storage, and objects to admit."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import run_to_end


class Gate:
    """Runs an admission plugin over a storage, and records its warnings and audit annotations."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.storage = Storage()
        self.warnings = []
        self.notes = {}

    def has(self, *objects):
        """Store `objects`; return this gate."""
        for obj in objects:
            self.storage.put(kind_of(obj), obj)
        return self

    def admits(self, obj, operation=Operation.CREATE, call=None, **about):
        """Return the admitted form of `obj`; `call` answers the calls of webhooks."""
        settings = {key: about.pop(key) for key in ("user", "dry_run", "rights") if key in about}
        annotate = self.notes.__setitem__
        write = Write(warn=self.warnings.append, annotate=annotate, **settings)
        attributes = AdmissionAttributes(operation, kind_of(obj), obj, write=write, **about)
        admitted = self.plugin.admit(attributes, self.storage)
        return admitted if isinstance(admitted, dict) else run_to_end(admitted, call)

    def refusal(self, obj, *arguments, **about):
        """Return the whole message with which the plugin refuses `obj`."""
        with pytest.raises(ApiError) as refused:
            self.admits(obj, *arguments, **about)
        return refused.value.message


@pytest.fixture
def gate():
    """The class Gate; call it with a plugin."""
    return Gate


def make(kind, name="x", namespace="n", version="v1", **fields):
    """Return an object of a kind; it has no namespace if `namespace` is ""."""
    meta = {"name": name, **fields.pop("metadata", {})}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


@pytest.fixture
def obj():
    """Makes objects."""
    return make


@pytest.fixture
def pod():
    """Makes pods of one container with these resources."""

    def made(requests=None, limits=None, **spec):
        named = (("requests", requests), ("limits", limits))
        resources = {key: value for key, value in named if value}
        container = {"name": "c", "image": "i", "resources": resources}
        return make("Pod", spec={"containers": [container], **spec})

    return made
