"""The record of a positional encoding."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor
from torch_geometric.data import Data

from dgt.config import EncodingConfig
from dgt.errors import InputError
from dgt.storage.segments import CachedRows

CarriesOver = Literal["anchors", "edges", "always"]


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How an encoding is computed, and on which graphs a trained model can use it."""

    columns: Callable[[Data, EncodingConfig, Tensor | None], Tensor | None]
    """Returns the columns, float32 ``(N, N')``, dense or sparse (CSR), or None for no encoding.
    The last argument is for encodings with one column per anchor: the anchors, int64 ``(N',)``,
    with -1 for an anchor that is not in the graph, or None to choose them."""
    carries_over: CarriesOver = "always"
    """What another graph must share so that a trained model can use it. ``"anchors"``: all nodes,
    by id, and all edges between them; it may have further nodes. ``"edges"``: all nodes and edges,
    since the columns have no meaning on another graph. ``"always"``: nothing."""
    direction: Literal["unused", "used", "needed"] = "unused"
    """Whether the columns depend on the direction of the edges: never, where it is known, or so
    that it must be known."""
    rows: Callable[[Data, EncodingConfig], list[CachedRows]] | None = None
    """The rows that ``dgt prepare`` caches, for each edge table, if the encoding is expensive."""
    tuned: bool = False
    """Whether ``dgt tune`` tries the encoding."""

    def __post_init__(self) -> None:
        if not callable(self.columns) or not (self.rows is None or callable(self.rows)):
            raise InputError("Encoding: columns and rows: expected functions")
        choices = get_args(CarriesOver)
        if self.carries_over not in choices:
            raise InputError(
                f"Encoding: carries_over: got {self.carries_over!r}, expected one of "
                f"{', '.join(choices)}"
            )


NONE = Encoding(columns=lambda data, settings, anchors: None, tuned=True)
