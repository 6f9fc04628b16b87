"""Postpones imports that most commands do not need.

``import torch_geometric`` imports all of its packages and ``torch._dynamo``, which takes twice as
long as ``import torch``. Most commands need its graphs only.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

DEFERRED = frozenset(
    {
        "faiss",
        "scipy.sparse.csgraph",
        "scipy.sparse.linalg",
        "torch._dynamo",
        "torch_geometric.datasets",
        "torch_geometric.explain",
        "torch_geometric.nn",
        "torch_geometric.profile",
        "torch_geometric.transforms",
    }
)
_KNOWN = frozenset(
    {"__class__", "__file__", "__loader__", "__name__", "__package__", "__spec__"}
)  # before a module is executed
_lock = RLock()


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a ``__getattr__`` for a package that imports names on first use.

    Args:
        package: Name of the package.
        homes: The module that each name is imported from.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get


def defer_imports() -> None:
    """Makes this process execute the modules of ``DEFERRED`` when they are first used.

    For processes that belong to dgt: the command line calls it, ``import dgt`` does not.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    """Finds the modules of ``DEFERRED``, with a loader that does not execute them."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in DEFERRED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Deferring(spec.loader)
        return spec


class _Deferring(Loader):
    """Creates a module with another loader and postpones its execution."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        module.__class__ = _Deferred


class _Deferred(ModuleType):
    """A module that is executed when an attribute or a submodule is first accessed.

    ``importlib.util.LazyLoader`` also executes a module when its name or file is read. PyTorch
    does that with all modules whenever it registers an operator.
    """

    def __getattribute__(self, name: str) -> Any:
        if name not in _KNOWN:
            _execute(self)
        return ModuleType.__getattribute__(self, name)


_executing: set[ModuleType] = set()


def _execute(module: ModuleType) -> None:
    """Executes a module once. Other threads wait; imports in a circle see what there is so far."""
    with _lock:
        if type(module) is not _Deferred or module in _executing:
            return
        _executing.add(module)
        try:
            module.__loader__.exec_module(module)  # type: ignore[union-attr]
            module.__class__ = ModuleType  # type: ignore[assignment]
        finally:
            _executing.remove(module)
