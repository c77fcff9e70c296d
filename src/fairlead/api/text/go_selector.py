"""go_selector: a label selector as Go prints a LabelSelector struct.

Events, error texts and tables contain this form.

upstream: apimachinery/pkg/apis/meta/v1/generated.pb.go:LabelSelector.String
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def go_selector(selector: Mapping[str, Any] | None) -> str:
    """Return the text of `selector`; "nil" if there is no selector."""
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    named = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    terms = "".join(map(_go_requirement, selector.get("matchExpressions") or ()))
    fields = f"MatchLabels:map[string]string{{{named}}},MatchExpressions:[]"
    return f"&LabelSelector{{{fields}LabelSelectorRequirement{{{terms}}},}}"


def _go_requirement(term: Mapping[str, Any]) -> str:
    values = " ".join(map(str, term.get("values") or ()))
    fields = f"Key:{term.get('key', '')},Operator:{term.get('operator', '')},Values:[{values}],"
    return f"LabelSelectorRequirement{{{fields}}},"
