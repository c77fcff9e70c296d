"""Sample data for reports: a shop of 12 nodes, and a cluster of openb's size.

`python sample_report.py FOLDER` writes both reports there, to be looked at. The figures come from
a crude placement that only has to look like a cluster; nothing here is random.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

from fairlead.cli.output.report_file import write_report
from fairlead.whatif.report import ReportData
from fairlead.whatif.report.data import Summary

GIB = 1 << 30
ONLINE, BATCH = 100_000, 100
# (nodes, cpu milli, memory GiB, GPUs), after the most frequent shapes of openb.
LARGE_SHAPES = [
    (549, 96_000, 384, 8),
    (387, 104_000, 512, 2),
    (129, 32_000, 256, 0),
    (107, 16_000, 120, 2),
    (151, 96_000, 512, 0),
    (100, 64_000, 256, 2),
    (100, 96_000, 768, 8),
]
# (priority, cpu milli, memory GiB, gpu milli); pods use these in rotation.
LARGE_PODS = [
    (BATCH, 3_152, 5, 810),
    (ONLINE, 11_300, 48, 1000),
    (ONLINE, 11_400, 47, 1000),
    (BATCH, 3_152, 5, 1000),
    (ONLINE, 24_000, 110, 2000),
    (BATCH, 8_000, 30, 0),
    (ONLINE, 12_000, 60, 2000),
    (BATCH, 6_000, 12, 460),
    (BATCH, 4_000, 16, 0),
]
# (application, priority, pods, cpu milli, memory GiB, GPUs)
SHOP = [
    ("training", 0, 3, 6_000, 24, 1),
    ("checkout", 900_000, 4, 2_000, 4, 0),
    ("web", 500_000, 22, 1_000, 2, 0),
    ("search", 500_000, 8, 3_000, 12, 0),
    ("reports", 10_000, 14, 500, 3, 0),
    ("thumbnails", 0, 30, 500, 1, 0),
]
SHOP_CLASSES = {900_000: "checkout-critical", 500_000: "customer-facing", 10_000: "internal", 0: ""}
RULES = [
    "only candidate",
    "min-num-pdb-violations",
    "min-highest-priority",
    "min-sum-priorities",
    "min-num-victims",
    "latest-start-time",
]
LARGE_GPU, SHOP_GPU = "openb/gpu-milli", "nvidia.com/gpu"
HELPLESS = "No preemption victims found for incoming pod"


def number(*key):
    """Return a number that looks random, and is always the same for the same key."""
    return zlib.crc32("/".join(map(str, key)).encode())


def pick(choices, *key):
    return choices[number(*key) % len(choices)]


def node_of(name, zone, cpu, memory_gib, extra=None):
    allocatable = {"cpu": cpu, "memory": memory_gib * GIB, **(extra or {})}
    return {
        "name": name,
        "zone": zone,
        "unschedulable": False,
        "allocatable": allocatable,
        "requested": dict.fromkeys(allocatable, 0),
        "pods": [],
    }


def placed(node, pod, priority, requests):
    """Place `pod` on `node` if it fits; return whether it does."""
    allocatable, requested = node["allocatable"], node["requested"]
    fits = all(
        want <= allocatable.get(name, 0) - requested.get(name, 0) for name, want in requests.items()
    )
    if node["unschedulable"] or not fits:
        return False
    for name, want in requests.items():
        requested[name] += want
    node["pods"].append((pod, priority, requests))
    return True


def totals(nodes, units, before=None):
    """Return the cluster's resources; `before` is the fraction used without the change."""

    def total(kind, name):
        return sum(node[kind].get(name, 0) for node in nodes)

    rows = [
        {
            "name": name,
            "unit": unit,
            "allocatable": total("allocatable", name),
            "requested": total("requested", name),
        }
        for name, unit in units.items()
    ]
    if before:
        rows = [
            {
                **row,
                "before": int(row["requested"] * before),
                "allocatable_before": row["allocatable"],
            }
            for row in rows
        ]
    return rows


class Times:
    """When pods of each priority were created, became pending, and were preempted."""

    def __init__(self, priorities):
        self.priorities = sorted(priorities, reverse=True)
        self.came, self.stuck, self.gone = ({p: [] for p in self.priorities} for _ in range(3))

    def timeline(self, instants):
        return {"t_s": instants, "series": [self._one(p, instants) for p in self.priorities]}

    def _one(self, priority, instants):
        came, stuck, gone = (times[priority] for times in (self.came, self.stuck, self.gone))
        total = [sum(at <= t for at in came) for t in instants]
        lost = [sum(at <= t for at in gone) for t in instants]
        new = [sum(at <= t < at + 3 for at in came) for t in instants]
        pending = [sum(at <= t for at in stuck) + n for t, n in zip(instants, new, strict=True)]
        here = zip(total, lost, pending, strict=True)
        running = [max(0, pods - gone - waiting) for pods, gone, waiting in here]
        return {"priority": priority, "pending": pending, "running": running, "preempted": lost}


def large_report() -> ReportData:
    """1,523 nodes, 8,152 pods, 300 preemptions, more than 900 pods pending."""
    nodes = list(large_nodes())
    times, pending = Times([ONLINE, BATCH]), []
    for at in range(8152):
        priority, cpu, memory_gib, gpu = pick(LARGE_PODS, "pod", at)
        name, second = f"openb/openb-pod-{at:04d}", at * 3600 / 8152
        requests = {"cpu": cpu, "memory": memory_gib * GIB}
        if gpu:
            requests[LARGE_GPU] = gpu
        times.came[priority].append(second)
        tries = (pick(nodes, name, attempt) for attempt in range(250 if at % 12 else 1))
        if not any(placed(node, name, priority, requests) for node in tries):
            times.stuck[priority].append(second)
            pending.append(pending_row(name, priority, second, gpu, cpu))
    preemptions = [preemption_row(nodes, at) for at in range(300)]
    times.gone[BATCH] = [row["t_s"] for row in preemptions]
    return {
        "kind": "simulate",
        "title": "openb: 8,152 pods arrive at 1,523 nodes within an hour",
        "subtitle": "Latency-sensitive, guaranteed and burstable pods at priority 100,000; "
        "best-effort pods at 100. Three zones.",
        "seed": 42,
        "started_at": "2023-07-01T00:00:00Z",
        "virtual_seconds": 3600.0,
        "wall_seconds": 9.84,
        "summary": {
            "nodes": len(nodes),
            "pods": 8152,
            "placed": 8152 - len(pending),
            "pending": len(pending),
            "preempted": 300,
            "evicted": 0,
            "completed": 0,
            "choices_among_equals": 5121,
        },
        "resources": totals(nodes, {"cpu": "milli", "memory": "bytes", LARGE_GPU: "milli"}),
        "priorities": [
            {"priority": ONLINE, "name": "online"},
            {"priority": BATCH, "name": "best-effort"},
        ],
        "timeline": times.timeline([float(t) for t in range(0, 3601, 10)]),
        "nodes": nodes,
        "preemptions": preemptions,
        "evictions": [],
        "pending": pending,
        "moved": [],
        "pdb_breaches": [],
    }


def large_nodes():
    at = 0
    for amount, cpu, memory_gib, gpus in LARGE_SHAPES:
        for _ in range(amount):
            extra = {LARGE_GPU: gpus * 1000} if gpus else {}
            name = f"openb-node-{at:04d}"
            node = node_of(name, f"zone-{'abc'[at % 3]}", cpu, memory_gib, extra)
            yield {**node, "unschedulable": at < 600 and at % 19 == 0}
            at += 1


def pending_row(name, priority, second, gpu, cpu):
    unfit = 400 + int(second) % 90
    short = LARGE_GPU if gpu else "memory"
    causes = [f"{unfit} Insufficient {short}", "32 node(s) were unschedulable"]
    if cpu > 10_000:
        causes.append(f"{1491 - unfit} Insufficient cpu")
    reason = (
        f"0/1523 nodes are available: {', '.join(sorted(causes))}. preemption: 0/1523 nodes are "
        f"available: 1491 {HELPLESS}, 32 Preemption is not helpful for scheduling."
    )
    return {"pod": name, "priority": priority, "since_s": round(second, 1), "reason": reason}


def preemption_row(nodes, at):
    return {
        "t_s": 1200 + at * 7.75,
        "victim": f"openb/openb-pod-{(at * 13) % 8152:04d}",
        "victim_priority": BATCH,
        "node": pick(nodes, "node", at)["name"],
        "by": f"openb/openb-pod-{(at * 17 + 5) % 8152:04d}",
        "by_priority": ONLINE,
        "rule": pick(RULES, "rule", at),
        "candidates": number("candidates", at) % 340 + 1,
    }


def wide_report(amount) -> ReportData:
    """Return any number of nodes in three zones, each with a pod, with different utilizations."""
    nodes = [node_of(f"node-{at}", f"zone-{at % 3}", 8_000, 32) for at in range(amount)]
    for at, node in enumerate(nodes):
        placed(node, f"default/busy-{at}", 0, {"cpu": number(at) % 8_000, "memory": GIB})
    resources = totals(nodes, {"cpu": "milli", "memory": "bytes"})
    title = f"{amount} nodes"
    return {"kind": "simulate", "title": title, "nodes": nodes, "resources": resources}


def shop_pod(app, at):
    return f"shop/{app}-7c9d8b6f5-{number(app, at) % 99999:05d}"


def small_report() -> ReportData:
    """Return a what-if on 12 nodes that uses every part of the page."""
    nodes = list(shop_nodes())
    times, pending = Times(SHOP_CLASSES), []
    for app, priority, amount, cpu, memory_gib, gpus in SHOP:
        requests = {"cpu": cpu, "memory": memory_gib * GIB} | ({SHOP_GPU: gpus} if gpus else {})
        for at in range(amount):
            times.came[priority].append(at * 9.0)
            tries = (nodes[(at + offset) % 12] for offset in range(12))
            if not any(placed(node, shop_pod(app, at), priority, requests) for node in tries):
                times.stuck[priority].append(60 + at)
                pending.append(shop_pending_row(app, at, priority))
    preemptions = [shop_preemption_row(nodes, at) for at in range(7)]
    times.gone[0] = [row["t_s"] for row in preemptions]
    timeline = times.timeline([float(t) for t in range(0, 601, 4)])
    timeline["series"][-1]["evicted"] = [min(3, int(t // 120)) for t in timeline["t_s"]]
    summary: Summary = {"nodes": 12, "pods": 81, "completed": 6}
    return {
        "kind": "whatif",
        "title": "Drain shop-a-1 and shop-a-2",
        "subtitle": "What happens on the store's cluster when two of twelve nodes are drained?",
        "seed": 7,
        "started_at": "2026-03-02T12:00:00Z",
        "virtual_seconds": 600,
        "wall_seconds": 0.41,
        "all_running_after_s": None,
        "summary": summary
        | {"placed": 81 - len(pending), "pending": len(pending)}
        | {"preempted": 7, "evicted": 3, "choices_among_equals": 19},
        "summary_before": summary
        | {"placed": 79, "pending": 2}
        | {"preempted": 0, "evicted": 0, "choices_among_equals": 12},
        "resources": totals(nodes, {"cpu": "milli", "memory": "bytes", SHOP_GPU: ""}, 0.93),
        "priorities": [{"priority": p, "name": name} for p, name in SHOP_CLASSES.items()],
        "timeline": timeline,
        "nodes": nodes,
        "preemptions": preemptions,
        "evictions": [
            {"t_s": 120.0 * at, "pod": shop_pod("web", at), "node": "shop-a-1", "why": "drained"}
            for at in range(1, 4)
        ],
        "pending": pending,
        "moved": [
            {
                "pod": shop_pod("web", at),
                "from": "shop-a-1",
                "to": nodes[at]["name"],
                "how": "displaced" if at < 5 else "placed elsewhere",
            }
            for at in range(6)  # three of them were evicted, and are in both tables
        ],
        "pdb_breaches": [
            {
                "pdb": "shop/web",
                "t_s": 64.5,
                "pod": shop_pod("web", 1),
                "by": shop_pod("checkout", 2),
            }
        ],
    }


def shop_nodes():
    for at in range(12):
        zone = "abc"[at % 3]
        extra = {SHOP_GPU: 1} if at % 4 == 0 else {}
        node = node_of(f"shop-{zone}-{at // 3}", f"eu-1{zone}", 8_000, 32, extra)
        yield {**node, "unschedulable": at in {3, 6}}


def shop_pending_row(app, at, priority):
    reason = (
        f"0/12 nodes are available: {4 + at % 3} Insufficient cpu, 2 node(s) were unschedulable, "
        f"{6 - at % 3} Insufficient memory. "
        f"no new claims to deallocate, preemption: 0/12 nodes are available: 12 {HELPLESS}."
    )
    pod = shop_pod(app, at)
    return {"pod": pod, "priority": priority, "since_s": 60.0 + at, "reason": reason}


def shop_preemption_row(nodes, at):
    return {
        "t_s": 64.5 + at * 11,
        "victim": shop_pod("thumbnails", at),
        "victim_priority": 0,
        "node": nodes[(at * 5) % 12]["name"],
        "by": shop_pod("web", at),
        "by_priority": 500_000,
        "rule": RULES[at % 4],
        "candidates": 9 - at,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write_report(folder / "small.html", small_report())
    write_report(folder / "large.html", large_report())
