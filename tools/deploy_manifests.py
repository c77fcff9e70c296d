"""Writes the manifests and the Helm chart in deploy/ from the templates there.

    python tools/deploy_manifests.py

The templates are template.yaml and monitoring.yaml. A placeholder such as ${image} is replaced by
its default value in the manifests, and by a Helm value in the chart. The rules of the roles come
from `fairlead.worlds.cluster.rbac`.
"""

from __future__ import annotations

import json
from pathlib import Path
from string import Template
from typing import Any

from fairlead import __version__
from fairlead.worlds.cluster.rbac import cluster_rules, election_rules
from fairlead.worlds.cluster.resource import SCHEDULER

DEPLOY = Path(__file__).parents[1] / "deploy"
# (placeholder, default, name of the value in values.yaml, Helm expression). The name is "" if
# values.yaml does not contain the value.
VALUES = (
    ("image", f"fairlead:{__version__}", "image", "{{ .Values.image }}"),
    ("replicas", 2, "replicas", "{{ .Values.replicas }}"),
    ("scheduler_name", "fairlead", "schedulerName", "{{ .Values.schedulerName }}"),
    ("namespace", "fairlead", "", "{{ .Release.Namespace }}"),
)
WRITTEN = "# Written by tools/deploy_manifests.py from deploy/{}.\n"
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: fairlead
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
"""


def rules(found: list[dict[str, Any]]) -> str:
    """Return the RBAC rules `found` as YAML in flow style, one rule on each line."""
    return "".join(f"\n  - {json.dumps(one)}" for one in found)


def rendered(source: str, *, is_chart: bool) -> str:
    """Return the text of the file `source` in deploy/ with its placeholders replaced."""
    texts = {name: helm if is_chart else str(default) for name, default, _, helm in VALUES}
    texts["cluster_rules"] = rules(cluster_rules((SCHEDULER,)))
    texts["election_rules"] = rules(election_rules("fairlead"))
    return Template((DEPLOY / source).read_text()).substitute(texts)


def values_yaml() -> str:
    """Return the content of the chart's values.yaml."""
    rows = [f"{helm}: {json.dumps(default)}" for _, default, helm, _ in VALUES if helm]
    return "\n".join([*rows, "serviceMonitor: false", ""])


def values_schema() -> str:
    """Return the content of the chart's values.schema.json; Helm refuses other values."""
    name = {"type": "string", "minLength": 1}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "image": name,
            "replicas": {"type": "integer", "minimum": 0},
            "schedulerName": name,
            "serviceMonitor": {"type": "boolean"},
            "global": {"type": "object"},  # Helm sets this value if the chart is a subchart.
        },
    }
    return json.dumps(schema, indent=2) + "\n"


def files() -> dict[str, str]:
    """Return the content of each file to write, keyed by its path in deploy/."""
    chart = (
        "apiVersion: v2\nname: fairlead\ndescription: A scheduler that is compatible with "
        f"kube-scheduler\nversion: {__version__}\nappVersion: {__version__}\n"
    )
    monitor = rendered("monitoring.yaml", is_chart=True)
    head, chart_head = WRITTEN.format("template.yaml"), WRITTEN.format("monitoring.yaml")
    return {
        "manifests/fairlead.yaml": head + NAMESPACE + rendered("template.yaml", is_chart=False),
        "manifests/monitoring.yaml": chart_head + rendered("monitoring.yaml", is_chart=False),
        "helm/fairlead/Chart.yaml": head + chart,
        "helm/fairlead/values.yaml": head + values_yaml(),
        "helm/fairlead/values.schema.json": values_schema(),
        "helm/fairlead/templates/fairlead.yaml": head + rendered("template.yaml", is_chart=True),
        "helm/fairlead/templates/monitoring.yaml": (
            f"{chart_head}{{{{- if .Values.serviceMonitor }}}}\n{monitor}{{{{- end }}}}\n"
        ),
    }


def main() -> None:
    """Write all files."""
    for path, content in files().items():
        (DEPLOY / path).write_text(content)


if __name__ == "__main__":
    main()
