"""The defaults that ``--help`` shows: those of the default model.

The defaults of the dataclasses, which are shown otherwise, are the paper's.
"""

from typing import TYPE_CHECKING

from dgt.config import Config

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions


def show_defaults(console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
    """Prints a group of flags, each with the default of the default model."""
    from cyclopts.help import DefaultFormatter

    entries = [_with_default(entry) for entry in panel.entries]
    DefaultFormatter()(console, options, panel.copy(entries=entries))


def _with_default(entry: "HelpEntry") -> "HelpEntry":
    name = entry.positive_names[0].removeprefix("--").replace("-", "_")
    default = Config().flat().get(name)
    return entry if default is None else entry.copy(default=str(default))
