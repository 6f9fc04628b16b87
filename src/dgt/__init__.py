"""The Deformable Graph Transformer."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgt.config import Config as Config
    from dgt.errors import InputError as InputError
    from dgt.estimator import NodeClassifier as NodeClassifier

__version__ = version("deformable-graph-transformer")
__all__ = ["Config", "InputError", "NodeClassifier"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for, so that the command line can answer --help without loading torch.
    if name == "NodeClassifier":
        from dgt.estimator import NodeClassifier

        return NodeClassifier
    if name == "Config":
        from dgt.config import Config

        return Config
    if name == "InputError":
        from dgt.errors import InputError

        return InputError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
