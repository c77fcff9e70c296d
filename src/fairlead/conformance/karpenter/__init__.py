"""Replays recorded decisions of Karpenter.

decision        the kinds of cases, and how a line is judged
case            a case as objects
scene           the controllers of a case
timeline        a case of several steps
provisioning, disruption, claim_status    one decision each
shown_claim, shown_command    NodeClaims and disruptions as the recordings print them
agreement       the rules of comparison
"""
