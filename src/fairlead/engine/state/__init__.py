"""What we believe about the cluster: node columns, pods by node, assumptions, hypotheses.

Law: `Cluster.apply` (what happened) and the assume/forget pair (what we decided) are the only
writers; everyone else reads, or asks "what if" inside a `fork()`.
"""
