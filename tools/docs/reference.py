"""Griffe extension for the API reference: docstrings as Markdown, defaults with their values.

A default that names a setting, such as ``SequenceConfig.length``, is shown as its value.
"""

import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from rst import markdown


class Reference(griffe.Extension):
    """Translates each docstring and evaluates each default when its object is loaded."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value, obj.path)

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        for parameter in func.parameters:
            if isinstance(parameter.default, griffe.ExprAttribute | griffe.ExprName):
                value = _value(str(parameter.default), func.module.canonical_path)
                if value is None or isinstance(value, bool | int | float | str | tuple):
                    parameter.default = repr(value)


def _value(name: str, module: str) -> Any:
    """Returns the value of a dotted name in a module, or Ellipsis for a name of a local scope."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of imported libraries
        value = import_module(module)
    for part in name.split("."):
        value = getattr(value, part, ...)
    return value
