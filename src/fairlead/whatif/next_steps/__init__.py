"""The next steps of an answer: what-ifs to ask next, and commands to run.

    next_steps             the table of steps by kind of outcome, and the steps of every answer
    step_context           the answer, and the means to try a step in another simulation
    drain                  steps of drains that are blocked, unfinished or harmless
    breached_budget        more replicas, so that a budget is not breached
    more_replicas          trials and steps with more replicas, created before nodes fail
    pending_pod            more nodes for pending pods: how many (new_nodes), and whether their
                           volumes reach the new nodes (volume_reach)
    topology_spread        other topology spread constraints, and the rules that keep pods off nodes
                           with room (spread_rule)
    absent_label           labels that pending pods need and no node has
    autoscaler_limit       higher limits of NodePools and node groups
    quota                  higher limits of quotas that refuse pods
    unavailable_workload   remedies for workloads without a ready pod, and for StatefulSets whose
                           pods wait for failed nodes

Requests and budgets do not always show whether a step helps. For example, other pods may take the
room of new nodes first, or new replicas may be placed on nodes that fail. A step with such an
uncertain effect is tried in another simulation. If the step does not help, it is left out.
"""
