"""Replays recorded decisions of upstream binaries and compares them with Fairlead's decisions.

run            reads case files and prints the result; used by `fairlead conformance`
case_kind      the kinds of case files, and how to replay each
comparison     the first mismatch of two JSON values
scheduling/, timelines/, nodelifecycle/, kubebatch/, autoscaler/, karpenter/, api/    the kinds
"""
