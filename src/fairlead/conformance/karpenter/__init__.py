"""Replays recorded decisions of Karpenter.

decision        the kinds of cases, and how a line is judged case            a case as objects;
scene: its controllers; timeline: several steps provisioning, disruption, claim_status    one
decision each shown_claim     NodeClaims as the recordings print them agreement       the rules of
comparison
"""
