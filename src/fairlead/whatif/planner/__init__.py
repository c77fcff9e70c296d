"""Planners: how many pods fit, which nodes can be removed, in which order, and how many are needed.

    cluster_model      places pods with the scheduler, in hypotheses that are reverted
    budget_room        what disruption budgets allow, now and at best
    drain              whether a node can be emptied, what blocks it, and where its pods go
    drain_run          the drains of a plan, run in a simulation
    answer             an answer as data, for text, JSON and Markdown

Law: every placement in a plan is a decision of the scheduler's own cycle; sums over columns only
exclude impossible plans. Plans are pure functions of their input: a search is limited by an amount
of work, not by time.
"""
