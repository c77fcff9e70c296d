"""Replays recorded decisions of upstream binaries and compares them with Fairlead's decisions.

<<<<<<< .merge_file_loVqPl
run            reads case files and prints the result; used by `fairlead conformance`
case_kind      the kinds of case files, and how to replay each
comparison     the first mismatch of two JSON values
scheduling/, timelines/, nodelifecycle/, kubebatch/, autoscaler/, karpenter/, api/    the kinds
=======
    run           reads case files and prints the result; used by `fairlead conformance`
    case_kind     the kinds of case files, and how to replay each
    comparison    the first mismatch of two JSON values

The sub-packages scheduling, timelines, nodelifecycle, kubebatch, autoscaler, karpenter and api each
replay one kind.
>>>>>>> .merge_file_LfJ5wL
"""
