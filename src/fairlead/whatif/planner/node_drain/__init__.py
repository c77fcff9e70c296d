"""Emptying nodes: whether a node can be emptied, what blocks it, in which order, and how long.

    drain_planner      empties one node in a model, or names what blocks it
    budget_room        what disruption budgets allow, now and at best
    autoscaler_rule    which pods autoscalers do not move
    drain_plan         the order of several drains (`fairlead drain-plan`)
    upgrade_check      drains with surge nodes (`fairlead upgrade-check`)
    drain_run          the drains of a plan, run in a simulation

Law: no drain breaks a disruption budget.
"""
