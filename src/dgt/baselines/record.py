"""Defaults, grids and memory estimates that several baselines share.

The records and the arguments of the modules take their defaults from here and from
:class:`~dgt.config.ModelConfig`.
"""

from typing import Any

from dgt.config import Config

DEFAULTS: dict[str, Any] = {"encoding": "none", "dropout": 0.5, "input_dropout": 0.5}
# Graph neural networks; norm and skip are those of dgt.baselines.normed.
GNN: dict[str, Any] = DEFAULTS | {"norm": "none"}
GNN_SETTINGS = ("layers", "dropout", "norm", "skip")
# In full attention, one head takes about half the time of four and is as accurate.
ONE_HEAD: dict[str, Any] = DEFAULTS | {"heads": 1}

LAYERS: dict[str, tuple[Any, ...]] = {"layers": (1, 2, 3, 4)}
HEADS: dict[str, tuple[Any, ...]] = {"heads": (1, 4)}
BLOCKS: dict[str, tuple[Any, ...]] = {"blocks": (1, 2, 3)}

# Fused full attention keeps no (N, N) matrix, and up to this many nodes it is fast enough. On
# larger graphs, the attention weights of all heads and blocks and their gradients are counted.
FUSED_NODES = 10_000


def full_attention(config: Config, nodes: int) -> float:
    """Returns the number of bytes that full attention needs."""
    if nodes <= FUSED_NODES:
        return 0.0
    size = {"single": 4, "double": 8, "bfloat16": 2}[config.model.precision]
    return 2 * size * config.model.heads * config.model.blocks * nodes**2
