"""The command line: options, output on a terminal, and exit codes.

    commands/    one module or folder per command
    options/     options that several commands share
    output/      text, tables, progress bar and files

The command line decides nothing. A command reads its options, calls the package that does the work,
and prints the result.
"""
