"""Sample data of a report on batch queues: three queues for three hours, one starts late."""

from __future__ import annotations

from fairlead.whatif.report import ReportData
from fairlead.whatif.report.queue_section import QueueLine

MINUTES = 180
HOSTILE = "<img src=x onerror=document.body.dataset.pwned=1>"


def line(queue: str, weight: int, values: list[float]) -> QueueLine:
    """A queue whose allocation equals its deserved share."""
    return {"queue": queue, "weight": weight, "held": values, "deserved": values}


def queues_report() -> ReportData:
    """production begins after an hour and then gets half; a fourth queue has a hostile name."""
    t_s = [60.0 * minute for minute in range(MINUTES)]
    late = [min(50.0, max(0.0, minute - 60.0)) for minute in range(MINUTES)]
    return {
        "kind": "simulate",
        "title": "three queues",
        "virtual_seconds": 60.0 * MINUTES,
        "wall_seconds": 0.0,
        "summary": {"nodes": 2, "pods": 9, "placed": 6, "pending": 3},
        "verdict": [
            {"kind": "pending", "severity": "bad", "sentence": "3 of 9 pods are pending."},
            {"kind": "displaced", "severity": "good", "sentence": "1 pod is preempted."},
        ],
        "nodes": [{"name": "n1"}, {"name": "n2"}],
        "queues": {
            "resource": "openb/gpu-milli",
            "t_s": t_s,
            "lines": [
                line("production", 3, late),
                line("research", 2, [(100 - value) * 2 / 3 for value in late]),
                line("students", 1, [(100 - value) / 3 for value in late]),
                *(line(f"{HOSTILE}{n}", 1, [0.0] * MINUTES) for n in range(6)),
            ],
            "gangs": {
                "gangs": 460,
                "finished": 298,
                "broken": 0,
                "lost_hours": 812.4,
                "incomplete_hours": 0.136,
            },
        },
        "waiting_groups": [
            {
                "group": f"default/research-{n:04}",
                "queue": "research",
                "ready": "0 of 8",
                "why": "0/2 nodes are available: 2 Insufficient openb/gpu-milli.",
                "starts_s": None if n % 2 else 60.0 * (MINUTES + n),
            }
            for n in range(14)
        ],
    }
