"""Sample data of a report on an autoscaler: nine groups in an hour, one with HTML in its name."""

from __future__ import annotations

from fairlead.whatif.report import ReportData

HOSTILE = "<img src=x onerror=document.body.dataset.pwned=1>"
MINUTES = 60


def autoscaling_report() -> ReportData:
    """The change doubles the nodes; there are two types, and prices are known."""
    groups = [HOSTILE, *(f"group-{number}" for number in range(6))]
    rising = [1 + minute // 10 for minute in range(MINUTES + 1)]
    total = [len(groups) * nodes for nodes in rising]
    spent = [sum(total[:minute]) * 0.5 / 60 for minute in range(MINUTES + 1)]
    figures = {
        "nodes_after": total[-1], "most": max(total), "added": 42, "removed": 0,
        "node_hours": 24.5, "cost": spent[-1], "cost_per_month": 17_885.0,
        "bound": 40, "still_waiting": 1, "median_s": 61.0, "p95_s": 118.0, "longest_s": 240.0,
    }  # fmt: skip
    return {
        "kind": "whatif",
        "title": "an hour of growth",
        "virtual_seconds": 60.0 * MINUTES,
        "summary": {"nodes": 1, "pods": 41, "placed": 40, "pending": 1},
        "nodes": [{"name": "n1"}, {"name": "n2"}],
        "autoscaling": {
            "autoscaler": "karpenter",
            "figures": figures,
            "figures_without": {**figures, "nodes_after": 7, "most": 7, "cost": 3.5},
            "t_s": [60.0 * minute for minute in range(MINUTES + 1)],
            "by_group": [{"name": name, "nodes": rising} for name in groups],
            "by_type": [
                {"name": "m5.large", "nodes": [5 * nodes for nodes in rising]},
                {"name": "c5.large", "nodes": [2 * nodes for nodes in rising]},
            ],
            "nodes_without": [7] * (MINUTES + 1),
            "cost": [0.5 * nodes for nodes in total],
            "cost_without": [3.5] * (MINUTES + 1),
            "spent": spent,
            "spent_without": [3.5 * minute / 60 for minute in range(MINUTES + 1)],
            "waiting": [
                {"workload": f"deploy/shop/{HOSTILE}", "bound": 40, "median_s": 61.0,
                 "p95_s": 118.0, "longest_s": 240.0, "longest_pod": "shop/web-1",
                 "still_waiting": 1}
            ],
            "groups": [
                {"group": name, "instance_type": "m5.large", "nodes_before": 1, "nodes_after": 7,
                 "added": 6, "removed": 0, "node_hours": 3.5, "cost": 1.75}
                for name in groups
            ],
            "nodes": [
                {"at_s": 600.0, "event": "added", "node": f"{name}-1", "group": name,
                 "reason": "Provisioned"}
                for name in groups
            ],
            "no_scale_up": [{"pod": "shop/web-9", "why": HOSTILE}],
            "no_scale_down": [{"node": "n1", "why": "NotUnderutilized"}],
        },
    }  # fmt: skip
