"""The commands of `fairlead`, one module or folder per command.

In a folder, the module `command` declares the options. The modules that do the work, in most
folders `run`, are imported only when the command is called.
"""
