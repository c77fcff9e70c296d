"""The command line: options, output on a terminal, exit codes.

    commands/    one module or folder per command
    options/     options that several commands share
    output/      text, tables, progress bar and files

Law: nothing is decided here. A command reads its options, calls the package that does the work, and
prints the result.
"""
