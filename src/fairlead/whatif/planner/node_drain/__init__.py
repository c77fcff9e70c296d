"""Emptying nodes: whether a node can be emptied, its blockers, the order of drains, and their time.

    drain_planner           empties one node in a model, or names the blockers
    unplaced_pod            all pods that prevent a drain of a node, and changes that would help
    autoscaler_rule         the pods that autoscalers do not move
    blocker_table           the tables of blockers, and of the changes that would help
    drain_plan              the order of several drains (`fairlead drain-plan`)
    single_drain            whether each node can be drained alone
    upgrade_check           drains with surge nodes (`fairlead upgrade-check`)
    drain_run               the drains of a plan, run in a simulation
    job_room                whether the Job of an evicted pod replaces the pod
    replacement_admission   whether the API server admits the replacement of an evicted pod

No drain breaks a disruption budget.
"""
