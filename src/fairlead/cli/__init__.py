"""The command line: arguments, progress on a terminal, exit codes.

Law: nothing is decided here. A command reads its arguments, calls one function of the package
that does the work, and prints what comes back.
"""
