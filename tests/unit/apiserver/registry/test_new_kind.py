"""The walk-through "Add an API kind" of CONTRIBUTING.md, executed for a made-up kind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.apiserver.kind import KINDS
from fairlead.apiserver.registry.served_kinds import BUILT_IN
from fairlead.apiserver.registry.strategies.scheduling import BATCH_STRATEGIES
from fairlead.apiserver.registry.strategies.table import STRATEGIES

ROOT = Path(__file__).parents[4]
TYPE = "io.k8s.api.example.v1"
META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1"
GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
# The output of `kubectl get --raw`, with the fields in the order of the Go type.
DOCUMENT = {
    "components": {
        "schemas": {
            f"{TYPE}.Gadget": {
                "description": "Gadget is a made-up kind.",
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"default": {}, "allOf": [{"$ref": f"{META}.ObjectMeta"}]},
                    "spec": {
                        "default": {},
                        "allOf": [{"$ref": f"#/components/schemas/{TYPE}.GadgetSpec"}],
                    },
                },
                GROUP_VERSION_KIND: [
                    {"group": "example.k8s.io", "kind": "Gadget", "version": "v1"}
                ],
            },
            f"{TYPE}.GadgetList": {
                "type": "object",
                "required": ["items"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"default": {}, "allOf": [{"$ref": f"{META}.ListMeta"}]},
                    "items": {
                        "type": "array",
                        "items": {"$ref": f"#/components/schemas/{TYPE}.Gadget"},
                    },
                },
                GROUP_VERSION_KIND: [
                    {"group": "example.k8s.io", "kind": "GadgetList", "version": "v1"}
                ],
            },
            f"{TYPE}.GadgetSpec": {
                "description": "GadgetSpec is what users want.",
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"description": "Size in inches.", "type": "integer",
                             "format": "int32", "default": 0},
                    "wheels": {
                        "type": "array",
                        "items": {"$ref": f"#/components/schemas/{TYPE}.Wheel"},
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "x-kubernetes-patch-merge-key": "name",
                        "x-kubernetes-patch-strategy": "merge",
                    },
                    "isLoud": {"type": "boolean", "x-go-zero": "drop"},
                },
            },
            f"{TYPE}.Wheel": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "default": ""},
                    "radius": {"type": "integer", "format": "int32", "x-protobuf-number": 7},
                },
            },
        }
    }
}  # fmt: skip
# Sends requests to a server that runs from the changed source, and prints the responses.
QUESTIONS = """
import json
from fairlead.apiserver.protobuf.decoder import decode, numbers
from tests.unit.apiserver.endpoints.conftest import Api

GADGETS = "/apis/example.k8s.io/v1/namespaces/default/gadgets"
STRATEGIC = "application/strategic-merge-patch+json"
api = Api()
spec = {"size": 3, "isLoud": False, "wheels": [{"name": "left"}]}
made = api.post(GADGETS, {"metadata": {"name": "a"}, "spec": spec})
print(json.dumps({
    "created": (made.status, made.json["spec"], made.json["metadata"]["generation"]),
    "refused": api.post(GADGETS, {"metadata": {"name": "b"}, "spec": {"size": "x"}}).message,
    "patched": api.patch(
        f"{GADGETS}/a", {"spec": {"wheels": [{"name": "right"}]}}, STRATEGIC
    ).json["spec"]["wheels"],
    "fields": api.get(f"{GADGETS}/a").json["metadata"]["managedFields"][0]["fieldsV1"],
    "discovered": [one["name"] for one in api.get("/apis/example.k8s.io/v1").json["resources"]],
    "described": api.get("/openapi/v3/apis/example.k8s.io/v1").json["components"]["schemas"]
        ["io.k8s.api.example.v1.GadgetSpec"]["properties"]["size"],
    "numbers": numbers()["io.k8s.api.example.v1.Wheel"],
    "deleted": api.delete(f"{GADGETS}/a").status,
    "listed": api.get(GADGETS).json["items"],
}))
"""


def walk_through(root):
    """Apply the walk-through of CONTRIBUTING.md to a copy of the source."""
    table = root / "src/fairlead/apiserver/kind_table.py"
    text = table.read_text()
    text = text.replace('STORED: Final = """\n', 'STORED: Final = """\nGADGET\n', 1)
    text = text.replace("GADGET", "example.k8s.io/v1 Gadget gadgets gd ng - -")
    text = re.sub(r'"""\n$', 'example.k8s.io/v1 15000 15\n"""\n', text)
    table.write_text(text)
    documents = root / "src/fairlead/apiserver/schema/data/openapi"
    (documents / "example.k8s.io_v1.json").write_text(json.dumps(DOCUMENT))
    run(root, str(root / "tools/api_table.py"), str(root / "COMPATIBILITY.md"))


def run(root, *arguments):
    """Run Python with the source in `root`; return its output."""
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{ROOT}"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(root):
    """Return the contents of all files of a copy, except compiled ones."""
    paths = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Return a copy of the source with an additional kind, and the changed files."""
    root = tmp_path_factory.mktemp("source")
    for folder in ("src/fairlead", "tools"):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "COMPATIBILITY.md", root)
    before = contents(root)
    walk_through(root)
    after = contents(root)
    return root, sorted(name for name in after if after[name] != before.get(name))


def test_a_new_kind_changes_three_files(changed):
    root, files = changed
    assert files == [
        "COMPATIBILITY.md",
        "src/fairlead/apiserver/kind_table.py",
        "src/fairlead/apiserver/schema/data/openapi/example.k8s.io_v1.json",
    ]
    assert "| example.k8s.io/v1 Gadget | supported | all verbs;" in (
        root / "COMPATIBILITY.md"
    ).read_text()  # fmt: skip


def test_a_new_kind_is_served_as_any_other_kind(changed):
    root, _ = changed
    found = json.loads(run(root, "-c", QUESTIONS))
    assert found["created"] == [201, {"size": 3, "wheels": [{"name": "left"}]}, 1]
    assert found["refused"] == (
        'Gadget in version "v1" cannot be handled as a Gadget: json: cannot unmarshal string '
        "into Go struct field GadgetSpec.spec.size of type int32"
    )
    assert found["patched"] == [{"name": "right"}, {"name": "left"}]
    assert 'k:{"name":"left"}' in found["fields"]["f:spec"]["f:wheels"]
    assert found["discovered"] == ["gadgets"]
    assert found["described"] == {
        "description": "Size in inches.", "default": 0, "type": "integer", "format": "int32",
    }  # fmt: skip
    assert found["numbers"] == {"1": "name", "7": "radius"}
    assert found["deleted"] == 200
    assert found["listed"] == []


def test_every_strategy_belongs_to_a_kind_in_the_table():
    assert STRATEGIES.keys() - BATCH_STRATEGIES.keys() <= {
        kind.resource for kind in (*BUILT_IN, *KINDS)
    }
