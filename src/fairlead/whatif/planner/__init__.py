"""Planners: how many pods fit, which nodes can go, in which order, and how many nodes are needed.

    cluster_model      a cluster whose scheduler is asked, with hypotheses that are undone
    budget_room        what disruption budgets allow now, and could ever allow
    drain              whether a node can be emptied, what blocks it, and where its pods go
    drain_run          the drains of a plan, run in a simulation
    answer             an answer as data, for text, JSON and Markdown

Law: every placement in a plan is a decision of the scheduler's own cycle; sums over columns only
rule out what cannot fit. Plans are pure functions of their input: a search is bounded by an amount
of work, never by a clock.
"""
