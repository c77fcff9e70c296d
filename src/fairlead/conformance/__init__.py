"""Replays recorded decisions of upstream binaries and compares them with Fairlead's decisions.

    run           reads case files and prints the result; used by `fairlead conformance`
    case_kind     the kinds of case files, except `api`, and how each kind is replayed
    comparison    finds the first mismatch between two JSON values, and reads case files

Each sub-package has the name of the kind that it replays. `scheduling` also replays the kind
`volumes`.
"""
