"""Replays recorded decisions of upstream binaries and compares them with Fairlead's decisions.

    run           reads case files and prints the result; used by `fairlead conformance`
    case_kind     the kinds of case files, and the replay of each kind, except `api`
    comparison    the first mismatch between two JSON values, and the reader of case files

Each sub-package replays the kind with its name. `scheduling` also replays the kind `volumes`.
"""
