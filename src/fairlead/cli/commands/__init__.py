"""The commands of `fairlead`, one module or folder per command.

In a folder, `command` declares the options. `run` does the work, and is imported only when the
command is called.
"""
