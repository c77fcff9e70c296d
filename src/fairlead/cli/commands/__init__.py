"""The commands of `fairlead`, one module or folder per command.

In a folder, the module `command` declares the options. Other modules do the work, in most folders
the module `run`; they are imported only when the command is called.
"""
