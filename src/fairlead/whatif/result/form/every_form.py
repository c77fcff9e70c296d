"""EveryForm: the form of any answer, told apart by the field `kind`."""

from __future__ import annotations

from fairlead.whatif.result.form.comparison_form import DumpComparisonForm, WhatIfComparisonForm
from fairlead.whatif.result.form.drain_form import (
    ConsolidationForm,
    DrainPlanForm,
    SingleDrainsForm,
    UpgradeCheckForm,
)
from fairlead.whatif.result.form.explain_form import (
    AutoscalerExplanationForm,
    BudgetExplanationForm,
    NodeExplanationForm,
    NodesExplanationForm,
    PodsExplanationForm,
    WorkloadExplanationForm,
)
from fairlead.whatif.result.form.fit_form import FitForm, GangFitForm
from fairlead.whatif.result.form.group_form import GroupExplanationForm
from fairlead.whatif.result.form.pod_form import ExplanationForm
from fairlead.whatif.result.form.queue_form import (
    KueueQueueExplanationForm,
    KueueQueuesExplanationForm,
    PriorityClassesExplanationForm,
    PriorityClassExplanationForm,
    QueueExplanationForm,
    QueuesExplanationForm,
    QuotaExplanationForm,
    QuotasExplanationForm,
)
from fairlead.whatif.result.form.rebalance_form import RebalanceForm
from fairlead.whatif.result.form.replay_form import ReplayForm
from fairlead.whatif.result.form.size_form import SizeForm
from fairlead.whatif.result.form.sweep_form import SweepResultForm

EveryForm = (
    FitForm
    | GangFitForm
    | SizeForm
    | ConsolidationForm
    | DrainPlanForm
    | SingleDrainsForm
    | UpgradeCheckForm
    | RebalanceForm
    | WhatIfComparisonForm
    | DumpComparisonForm
    | SweepResultForm
    | ReplayForm
    | PodsExplanationForm
    | ExplanationForm
    | WorkloadExplanationForm
    | GroupExplanationForm
    | NodesExplanationForm
    | NodeExplanationForm
    | BudgetExplanationForm
    | AutoscalerExplanationForm
    | QuotasExplanationForm
    | QuotaExplanationForm
    | PriorityClassesExplanationForm
    | PriorityClassExplanationForm
    | QueuesExplanationForm
    | QueueExplanationForm
    | KueueQueuesExplanationForm
    | KueueQueueExplanationForm
)
