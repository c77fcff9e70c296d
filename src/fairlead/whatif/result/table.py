"""The tables of an answer: a title and column headings for every list of its JSON.

All outputs made from the JSON, such as Markdown, use TABLES or SIMULATION_TABLES.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.quantity import amount_text
from fairlead.whatif.outcome.run_outcome import unit_of

_GIB: Final = 1 << 30
RESIZED: Final = "(resized in place)"  # for an entry of `updated` whose `instead_of` is null


class AnswerTable(Struct, frozen=True):
    """Describes how the list `name` of a result is shown as a table.

    The name `outage.lost` means the list `lost` in the object `outage`. `columns` are pairs (field,
    heading).
    """

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]

    def rows(self, result: Json) -> Sequence[Mapping[str, Any]]:
        """Return the entries of the list in `result`."""
        found: Any = result
        for part in self.name.split("."):
            found = (found or {}).get(part)
        return [one if isinstance(one, dict) else {"note": one} for one in found or ()]


def _table(name: str, title: str, **columns: str) -> AnswerTable:
    renamed = {"from_": "from"}
    return AnswerTable(
        name, title, tuple((renamed.get(field, field), text) for field, text in columns.items())
    )


TABLES: Final = (
    _table("workloads", "Workloads", workload="workload", wanted="wanted", lowest="lowest ready",
           lowest_for="for", at_end="at end", budget_what="budget", what="what happened"),
    _table("packing", "Packing", measure="measure", today="in the dump",
           without="without the change", changed="with the change"),
    _table("certainty", "Certainty over seeds", subject="subject", what="what", seeds="seeds",
           total="of", least="least", median="median", p90="90%", most="most", certain="certain?"),
    _table("node_pools", "Node pools", pool="pool", nodes_without="nodes before", nodes="nodes",
           not_ready="not ready", cordoned="cordoned", pods_without="pods before", pods="pods",
           resources="requested"),
    _table("budgets", "Disruption budgets", pdb="budget", rule="rule", allowed="allowed",
           lowest_healthy="lowest healthy", needed="needed", what="result"),
    _table("drain_refused", "Refused by kubectl drain", node="node", message="error"),
    _table("drain_flags", "Flags that kubectl drain needs", flag="flag", needed_for="number",
           pods="pods"),
    _table("undrained", "Not drained", pod="pod", node="node", why="why"),
    _table("pending", "Pending", pod="pod", priority="priority", reason="why"),
    _table("still_pending", "Pending with and without the change", pod="pod", priority="priority",
           reason="why"),
    _table("waited", "Waited a minute or longer for a node", pod="pod", node="node",
           waited_s="waited", reason="why"),
    _table("gone", "Gone for good", pod="pod", node="node"),
    _table("not_created", "Not created again", pod="pod", node="node", waits_for="waits for"),
    _table("start_times", "Start times", subject="waiting", kind="kind", pods="pods",
           p10_s="10%", p50_s="median", p90_s="90%",
           started="simulations that start it"),
    _table("preempted", "Preempted", pod="pod", node="node", by="by", rule="decided by",
           at_s="after"),
    _table("evicted", "Evicted", pod="pod", node="node", why="why", at_s="after"),
    _table("moved", "Moved", pod="pod", from_="from", to="to"),
    _table("returned", "Returned", pod="pod", node="node"),
    _table("updated", "Updated", pod="pod", node="node", instead_of="instead of"),
    _table("placed", "Newly placed", pod="pod", node="node"),
    _table("completed", "Completed", pod="pod", node="node", phase="phase",
           at_s="after"),
    _table("removed", "Removed", pod="pod", node="node"),
    _table("deleted_claims", "Deleted claims", claim="claim", volume="volume",
           reclaim_policy="reclaim policy", at_s="after", in_use="still used by a pod"),
    _table("refused_workloads", "New pods refused", workload="workload",
           replacements_refused="replacements, too", message="why"),
    _table("pdb_breaches", "Disruption budgets breached", pdb="budget", pod="pod", by="by",
           at_s="after"),
    _table("outage.nodes", "Failed nodes", node="node", zone="zone", failures="failures",
           unready_s="not ready", tainted_s="tainted", back_s="back", pods="pods",
           evicted="evicted"),
    _table("outage.lost", "Pods not back from failed nodes", pod="pod", node="node", why="why"),
    _table("outage.preempted", "Preempted for pods of failed nodes", pod="pod", node="node",
           by="by"),
    _table("outage.zones", "Zones of failed nodes", zone="zone", at_s="after", state="state",
           unready="not ready", size="nodes"),
    _table("outage.misconceptions", "Misconceptions", belief="belief", fact="fact"),
    _table("drains", "Rolling drain", node="node", begun_s="begun", empty_s="empty",
           back_s="back", held_up_by="held up by"),
    _table("autoscaling.groups", "Nodes by the autoscaler", group="group", nodes_before="before",
           nodes_after="after", added="added", removed="removed", node_hours="node hours",
           cost_per_hour="cost per hour", cost="cost"),
    _table("autoscaling.nodes", "Nodes added and removed", at_s="after", event="event",
           node="node", group="group", reason="why"),
    _table("waiting_times.by_workload", "How long pods waited for a node", workload="workload",
           bound="pods", median_s="median", p95_s="95%", longest_s="longest",
           longest_pod="which", still_waiting="still waiting"),
    _table("pod_autoscalers", "HorizontalPodAutoscalers", autoscaler="autoscaler", target="target",
           replicas_before="replicas before", replicas="replicas", lowest="lowest",
           highest="highest", inactive_message="why it does nothing"),
    _table("autoscaling.insufficient_capacity", "Not delivered for lack of capacity",
           group="group", machines="machines"),
    _table("autoscaling.no_scale_up", "Pods that trigger no scale-up", pod="pod", why="why"),
    _table("autoscaling.no_scale_down", "Nodes that are not removed", node="node", why="why"),
    _table("skipped", "Events without effect", event="event", at_s="after", why="why"),
    _table("errors", "Errors", object="object", missing="pods missing", message="message",
           also_without="also without the change"),
    _table("notes", "Notes", note="note"),
    _table("recurrences", "Repeatedly displaced", kind="kind", message="what", at_s="after"),
    _table("waiting_groups", "Waiting groups", group="group", queue="queue", ready="ready",
           min_member="needed", why="why"),
    _table("queues", "Queues", queue="queue", weight="weight", deserved="deserved",
           allocated="allocated", share="share"),
    _table("allocation", "Requested and allocatable", resource="resource",
           allocatable_without="allocatable before", allocatable="allocatable",
           requested_without="requested before", requested="requested"),
    _table("rest.under_way", "Under way before the change", workload="workload", what="what"),
    _table("fail_on", "Conditions of --fail-on", condition="condition", holds="holds",
           evidence="evidence"),
)  # fmt: skip


SIMULATION_TABLES: Final = (
    # The list of all placed pods is long, and says little: most of them are not affected.
    *(one for one in TABLES if one.name not in ("placed", "allocation")),
    _table("allocation", "Requested and allocatable", resource="resource",
           allocatable_before="allocatable at the start", allocatable="allocatable",
           requested_before="requested at the start", requested="requested"),
)  # fmt: skip
"""The tables of the result of `fairlead simulate`."""


def amount_cell(resource: str, amount: int) -> str:
    """Return the text of a table cell for an amount; cores and Gi are shown with up to six digits.

    `amount` is in millicores for cpu and in whole units for other resources. Examples: `2,000.5`
    cores, `63.5Gi` of memory, `512Mi`, `1,320` pods.
    """
    match unit_of(resource):
        case "milli":
            return f"{amount / 1000:,.6g}"
        case "bytes" if amount >= _GIB:
            return f"{amount / _GIB:,.6g}Gi"
        case "bytes":
            return amount_text(resource, amount)
        case _:
            return f"{amount:,}"


def cell_text(value: Any) -> str:
    """Return the text of a table cell for `value` of a result; "" for null."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}"
        case list():
            return "; ".join(map(cell_text, value))
        case dict():
            return ", ".join(f"{name} {cell_text(item)}" for name, item in value.items())
        case _:
            return str(value)
