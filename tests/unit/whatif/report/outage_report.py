"""Sample data of a report on an outage: a zone of forty nodes fails for twenty minutes."""

from __future__ import annotations

from fairlead.whatif.report import ReportData

NODES = 40
POD_COUNT = 3 * NODES
DARK_S, TAINTED_FROM_S, BACK_S = 0.0, 50.0, 1200.0


def outage_report() -> ReportData:
    """Every ten seconds a node is tainted, and loses its three pods five minutes later."""
    tainted = [TAINTED_FROM_S + 10 * number for number in range(NODES)]
    evicted = [at + 300 for at in tainted]
    return {
        "kind": "whatif",
        "title": "What if: --fail-zone a --for 20m",
        "virtual_seconds": 1260.0,
        "summary": {"nodes": 120, "pods": 360, "placed": 357, "pending": 3, "evicted": POD_COUNT},
        "summary_before": {"nodes": 120, "pods": 360, "placed": 360},
        "priorities": [{"priority": 0, "name": "usual"}],
        "timeline": {
            "t_s": [0, BACK_S],
            "series": [{"priority": 0, "running": [240, 357], "down": [120, 0]}],
        },
        "nodes": [
            {"name": f"node-{at:02d}", "zone": "abc"[at % 3], "allocatable": {"cpu": 4000}}
            for at in range(120)
        ],
        "drains": [
            {"node": "node-01", "begun_s": 0.0, "empty_s": 31.0, "back_s": 331.0},
            {"node": "node-04", "begun_s": 331.0, "held_up_by": "shop/web-1: would violate it"},
        ],
        "outage": {
            "figures": {
                "nodes": NODES,
                "concerned": POD_COUNT,
                "evicted": POD_COUNT - 6,
                "replaced": POD_COUNT - 9,
                "back_with_node": 6,
                "lost": 3,
                "preempted": 2,
                "first_eviction_s": evicted[0],
                "last_eviction_s": evicted[-1],
                "first_back_s": evicted[0] + 1,
                "last_back_s": BACK_S,
            },
            "nodes_over_time": {
                "t_s": [DARK_S, *tainted, BACK_S],
                "counts": {
                    "ready": [80] * (NODES + 1) + [120],
                    "unnoticed": [NODES] + [0] * (NODES + 1),
                    "unready": [0, *range(NODES - 1, -1, -1), 0],
                    "tainted": [0, *range(1, NODES + 1), 0],
                    "cordoned": [0] * (NODES + 2),
                },
            },
            "pods_over_time": {
                "t_s": [DARK_S, *evicted, BACK_S],
                "counts": {
                    "down": [POD_COUNT, *range(POD_COUNT - 3, -1, -3), 0],
                    "waiting": [0] * (NODES + 1) + [3],
                    "back": [0, *range(3, POD_COUNT + 1, 3), POD_COUNT - 3],
                    "evicted": [0, *range(3, POD_COUNT + 1, 3), POD_COUNT],
                },
            },
            "rates": [
                {
                    "zone": "a",
                    "t_s": tainted,
                    "tainted": list(range(1, NODES + 1)),
                    "allowed": [1 + number for number in range(NODES)],
                }
            ],
            "nodes": [
                {
                    "node": f"node-{3 * at:02d}",
                    "zone": "a",
                    "failures": 1,
                    "quiet_s": DARK_S,
                    "unready_s": TAINTED_FROM_S,
                    "tainted_s": tainted[at],
                    "first_eviction_s": evicted[at],
                    "back_s": BACK_S,
                    "pods": 3,
                    "evicted": 3,
                }
                for at in range(NODES)
            ],
            "lost": [
                {"pod": "shop/db-0", "node": "node-00", "cause": "StatefulSet waits"},
                {"pod": "shop/agent", "node": "node-00", "cause": "tolerates for ever"},
                {"pod": "shop/loyal", "node": "node-03", "cause": "tolerates for ever"},
            ],
            "preempted": [
                {"t_s": 351.0, "victim": "shop/low", "node": "node-01", "by": "shop/high"}
            ],
            "zones": [
                {"t_s": 0.0, "zone": "a", "state": "Normal", "unready": 0, "size": NODES},
                {"t_s": 50.0, "zone": "a", "state": "FullDisruption", "unready": NODES,
                 "size": NODES, "rate": "0.1 nodes/s"},
            ],
            "misconceptions": [
                {"belief": "They stop when a zone is dark.", "fact": "They go on: one in 10 s."}
            ],
        },
    }  # fmt: skip
