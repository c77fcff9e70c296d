"""Replays recorded decisions of upstream binaries and compares them with Fairlead's decisions.

    run           reads case files and prints the result; used by `fairlead conformance`
    case_kind     the kinds of case files, and the replay of each kind
    comparison    the first mismatch between two JSON values

The sub-packages scheduling, timelines, nodelifecycle, kubebatch, autoscaler, karpenter and api each
replay one kind.
"""
