"""The commands of `fairlead`, each in a module or folder of its own.

In a folder, `command` declares the options. `run` does the work, and is imported only when the
command is called.
"""
