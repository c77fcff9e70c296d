"""What makes replacement pods, cleans up after owners, keeps disruption budgets and drains nodes.

Law: an owner's pods are counted, never remembered by promise: every decision follows from the
pods that exist, those whose creation or deletion is under way, and the owner's own words.
"""
