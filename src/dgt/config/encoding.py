"""The settings of the positional encoding."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dgt.config.checks import check_types, within
from dgt.config.choices import ENCODINGS, described
from dgt.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    EncodingChoice = str | Callable[[Data], Any]
else:  # the command line and files take names
    EncodingChoice = str


@dataclass(frozen=True, kw_only=True)
class EncodingConfig:
    """Positional encoding: the graph's structure, added to the features."""

    # The tuple comes first, so that the flag takes several names.
    encoding: tuple[EncodingChoice, ...] | EncodingChoice = field(
        default="katz",
        metadata=described(
            ENCODINGS,
            "Positional encoding that dgt, dgt-plus and transformer add to the features, or "
            "several, whose columns are put side by side.",
        ),
    )
    katz_order: int = 1
    """Longest path counted (the K of the Katz sum)."""
    katz_beta: float = 0.5
    """Factor of a path's weight for each further edge."""
    katz_scaling: Literal["sum", "l2", "none"] = "l2"
    """Divide each Katz row by its sum or its L2 norm, or do not scale it."""
    anchors: int | None = None
    """Number of anchors N', the nodes of highest degree. Unset: by anchor_rule."""
    anchor_rule: Literal["size", "budget"] = "size"
    """Number of anchors if it is unset. size: all nodes of a graph of up to 8192 nodes, 128 of a
    larger one. budget: up to 1048576, as many as give at most 128 values per node on average; for
    paths of one edge, that is all nodes of most graphs."""
    laplacian_columns: int = 16
    """Number of Laplacian eigenvectors, for encoding laplacian and for gt-full and gt-sparse."""
    node2vec_channels: int = 64
    """Size of the vectors of encoding node2vec."""
    node2vec_p: float = 1.0
    """Return parameter p of the walks of node2vec; above 1, they seldom step back."""
    node2vec_q: float = 1.0
    """In-out parameter q of the walks of node2vec; above 1, they stay near their start."""

    def __post_init__(self) -> None:
        check_types(self)
        names = [ENCODINGS.name(each) for each in self.encodings]
        if len(names) > 1 and (len(set(names)) < len(names) or "none" in names):
            expected = "different encodings" if "none" not in names else "none alone"
            raise InputError(f"encoding: got {', '.join(names)}, expected {expected}")
        within(
            self,
            {
                "katz_order": (1, 100),
                "anchors": (1, 2**31 - 1),
                "laplacian_columns": (1, 10_000),
                "node2vec_channels": (1, 10_000),
            },
        )
        positive = {"katz_beta": (0, 1000), "node2vec_p": (0, 1e6), "node2vec_q": (0, 1e6)}
        within(self, positive, above=True)

    @property
    def encodings(self) -> tuple[EncodingChoice, ...]:
        """The encodings in use. Without one, that is ``("none",)``."""
        return self.encoding if isinstance(self.encoding, tuple) else (self.encoding,)
