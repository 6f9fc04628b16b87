"""The Deformable Graph Transformer for node classification.

Most programs only need the names below. They are imported on first use, so that ``import dgt`` and
``dgt --help`` do not load torch.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from dgt.system.deferred import lazy_names
from dgt.system.folders import use_writable_caches

if TYPE_CHECKING:
    from dgt.config import Config as Config
    from dgt.data import load as load
    from dgt.encodings import Katz as Katz
    from dgt.errors import InputError as InputError
    from dgt.estimator import NodeClassifier as NodeClassifier
    from dgt.estimator import NodeRegressor as NodeRegressor
    from dgt.nn import DGT as DGT
    from dgt.nn import DGTLight as DGTLight
    from dgt.sequences import NodeSort as NodeSort
    from dgt.sequences import current_sequences as current_sequences

__version__ = version("deformable-graph-transformer")
__all__ = [
    "DGT",
    "Config",
    "DGTLight",
    "InputError",
    "Katz",
    "NodeClassifier",
    "NodeRegressor",
    "NodeSort",
    "current_sequences",
    "load",
]

use_writable_caches()  # before numba compiles anything

__getattr__ = lazy_names(
    __name__,
    {
        "Config": "dgt.config",
        "DGT": "dgt.nn",
        "DGTLight": "dgt.nn",
        "InputError": "dgt.errors",
        "Katz": "dgt.encodings",
        "NodeClassifier": "dgt.estimator",
        "NodeRegressor": "dgt.estimator",
        "NodeSort": "dgt.sequences",
        "current_sequences": "dgt.sequences",
        "load": "dgt.data",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
