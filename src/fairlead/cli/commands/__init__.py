"""The commands of `fairlead`, one module or folder per command.

In a folder, the module `command` declares the options. The other modules, such as `run`, do the
work. They are imported only when the command is called.
"""
