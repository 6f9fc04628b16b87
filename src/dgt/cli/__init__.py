"""The command line ``dgt``.

One module per command: it parses its arguments, calls the library and prints the result. ``app``
puts the commands together and maps errors to exit codes; ``settings`` combines flags, settings
files and presets; ``options`` declares the options that several commands share. Nothing is
computed here. The commands import torch when they are called, so that ``--help`` stays fast.
"""

from dgt.cli.app import main

__all__ = ["main"]
