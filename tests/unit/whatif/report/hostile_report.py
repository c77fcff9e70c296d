"""Report data with HTML, control characters and invalid values in names and messages."""

from __future__ import annotations

from fairlead.whatif.report import ReportData

MARKUP = "<script>document.body.dataset.pwned=1</script><img src=x onerror=alert(1)><!--"
LONG = "x" * 253
ODD = "日本語-ποδ-🚢-\u202e-\ud800-'\"&\u2028"
NAMES = (MARKUP, LONG, ODD)


def hostile_nodes():
    """Nodes with markup, long and odd names in all places, and quantities beyond 64 bits."""
    pods = list(zip(NAMES, (-(2**31), 2_000_000_000, None), strict=True))
    for at, name in enumerate(NAMES):
        yield {
            "name": name,
            "zone": NAMES[at - 1],
            "unschedulable": at == 0,
            "allocatable": {"cpu": 10**30, "memory": 2**63, MARKUP: 5, "c.d/gpu": 0},
            "requested": {"cpu": 2 * 10**30, "memory": 2**62, MARKUP: 3},
            "pods": [(pod, priority, {"cpu": 10**20, "__proto__": 4}) for pod, priority in pods],
        }
    yield {"name": "nothing-but-a-name"}


def hostile_report() -> ReportData:
    """Return data in which all texts are hostile, all numbers extreme, and many keys missing."""
    resources = ("cpu", "memory", MARKUP, "a.b/gpu", "c.d/gpu", LONG)
    return {
        "kind": "whatif",
        "title": MARKUP + LONG + ODD,
        "subtitle": f"{MARKUP}\n{ODD}",
        "seed": 2**70,
        "started_at": MARKUP,
        "virtual_seconds": 1e12,
        "wall_seconds": float("nan"),
        "summary": {
            "nodes": 10**15,
            "pods": 10**18,
            "placed": 10**17,
            "preempted": float("inf"),  # type: ignore[typeddict-item] # no count, but a number
        },
        "resources": [
            {"name": name, "unit": "", "allocatable": 10**30, "requested": 3 * 10**30}
            for name in resources
        ],
        "priorities": [
            {"priority": at, "name": name} for at, name in enumerate((*NAMES, ""), start=-2)
        ],
        "timeline": {
            "t_s": [0],
            "series": [{"priority": at, "pending": [at + 100]} for at in range(12)],
        },
        "nodes": list(hostile_nodes()),
        "verdict": [{"severity": "bad", "sentence": name} for name in NAMES],
        "next_steps": [{"words": f"Ask {name}:", "options": f"--like {name}"} for name in NAMES],
        "preemptions": [
            {"victim": MARKUP, "rule": MARKUP, "node": MARKUP, "by": LONG, "t_s": 1e9},
            {"victim": ODD},
            {"victim": LONG, "rule": LONG, "by_priority": 7, "candidates": 10**12},
        ],
        "evictions": [{"pod": MARKUP, "why": MARKUP}],
        "moved": [{"pod": LONG, "from": MARKUP, "to": LONG, "how": MARKUP}],
        "pdb_breaches": [{"pdb": MARKUP}],
        "drains": [{"node": MARKUP, "held_up_by": LONG}],
        "outage": {
            "figures": {"nodes": 10**15, "concerned": 10**18, "first_back_s": float("nan")},
            "nodes_over_time": {"t_s": [0], "counts": {"tainted": [10**15], MARKUP: [1]}},
            "pods_over_time": {"t_s": [1e9], "counts": {"down": [7], "evicted": [0]}},
            "rates": [
                {"zone": name, "t_s": [5.0], "tainted": [1], "allowed": [1.0]} for name in NAMES * 4
            ],
            "nodes": [{"node": name, "zone": LONG, "quiet_s": float("inf")} for name in NAMES],
            "lost": [{"pod": name, "why": name} for name in NAMES],
            "preempted": [{"victim": MARKUP, "by": LONG}],
            "zones": [{"zone": MARKUP, "state": ODD}],
            "misconceptions": [{"belief": MARKUP, "fact": LONG}],
        },
        "pending": [
            {"pod": MARKUP, "reason": MARKUP},
            {"pod": LONG, "reason": LONG * 4},
            {"pod": ODD},
        ],
    }
