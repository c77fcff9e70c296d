"""Table cells of objects that are not in the recordings."""

from __future__ import annotations

import pytest

from fairlead.apiserver.printers.table import printer_of

NOW = 1_767_226_000_000_000_000
TERM = {"key": "c", "operator": "In", "values": ["d", "e"]}
SHOWN_TERM = "LabelSelectorRequirement{Key:c,Operator:In,Values:[d e],}"


@pytest.mark.parametrize(
    ("kind", "fields", "column", "cell"),
    [
        ("Endpoints", {}, "Endpoints", "<none>"),
        ("Endpoints", {"subsets": [{"notReadyAddresses": [{"ip": "1.2.3.4"}]}]}, "Endpoints", ""),
        ("EndpointSlice", {"ports": [{"name": ""}]}, "Ports", "<unset>"),
        ("EndpointSlice", {"ports": [{}, {"name": "web"}]}, "Ports", "*,web"),
        (
            "Ingress",
            {"spec": {"rules": [{"host": "a"}, {}, {"host": "b"}, {"host": "c"}, {}]}},
            "Hosts",
            "a,b,c + 2 more...",
        ),
        ("Ingress", {"spec": {"rules": [{}, {}, {}, {"host": "b"}]}}, "Hosts", "b"),
        ("Event", {"involvedObject": {"name": "x"}}, "Object", "/x"),
        ("Event", {"involvedObject": {"kind": "Pod"}}, "Object", "pod"),
        (
            "ResourceQuota",
            {"status": {"hard": {"limits": "1", "limits.cpu": "2"}}},
            "Request",
            "limits: 0/1",
        ),
        (
            "PriorityLevelConfiguration",
            {"spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0}}},
            "NominalConcurrencyShares",
            "<none>",
        ),
        (
            "PriorityLevelConfiguration",
            {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 0}}},
            "NominalConcurrencyShares",
            0,
        ),
        (
            "MutatingAdmissionPolicyBinding",
            {"spec": {"paramRef": {"name": "p"}}},
            "ParamRef",
            "*/p",
        ),
        (
            "MutatingAdmissionPolicyBinding",
            {"spec": {"paramRef": {"name": "p", "namespace": "n"}}},
            "ParamRef",
            "n/p",
        ),
        (
            "ValidatingAdmissionPolicyBinding",
            {
                "spec": {
                    "paramRef": {
                        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [TERM]}
                    }
                }
            },
            "ParamRef",
            (
                "&LabelSelector{MatchLabels:map[string]string{a: b,},"
                f"MatchExpressions:[]LabelSelectorRequirement{{{SHOWN_TERM},}},}}"
            ),
        ),
    ],
)
def test_a_cell_is_printed_as_upstream_prints_it(kind, fields, column, cell):
    """The text of the cell equals upstream's."""
    found = printer_of(kind)
    place = [one.name for one in found.columns].index(column)
    assert found.cells({"metadata": {"name": "o"}, **fields}, NOW)[place] == cell
