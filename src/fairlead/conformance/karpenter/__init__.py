"""Replays recorded decisions of Karpenter.

- `decision`: the kinds of cases, and the replay of one case
- `case`: a case converted to objects
- `scene`: the cluster and the controllers of a case
- `timeline`: a case of several steps
- `provisioning`, `disruption`, `claim_status`: the other kinds of cases
- `shown_claim`, `shown_command`: NodeClaims and disruptions as the recordings print them
- `agreement`: the rules of comparison
"""
