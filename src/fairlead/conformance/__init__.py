"""Replays recorded decisions of upstream binaries and compares them with ours.

run            reads case files and prints the result; used by `fairlead conformance`
case_kind      the kinds of case files and how each is replayed
comparison     the first mismatch of two JSON values
scheduling/, timelines/, nodelifecycle/, kubebatch/, autoscaler/, karpenter/, api/    the kinds
"""
