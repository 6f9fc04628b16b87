"""Defines each setting once. Flags, TOML files, saved runs and the defaults of the modules follow.

The docstring of a setting, or the ``help`` in the metadata of its field, is also the help of its
flag.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dgt.config.checks import check_types, require, within
from dgt.config.choices import CRITERIA, METRICS, MODELS, described
from dgt.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    CriterionChoice = str | Callable[[Data, int], Any]
else:  # the command line and files take names
    CriterionChoice = str

DEFAULT_CRITERIA = ("bfs", "ppr", "similarity")


@dataclass(frozen=True, kw_only=True)
class SequenceConfig:
    """NodeSort: how the nodes are sorted into sequences."""

    criteria: tuple[CriterionChoice, ...] | None = field(
        default=None,
        metadata=described(
            CRITERIA,
            "Sorting criteria. The absolute ones have one order for all nodes. With several edge "
            "tables, bfs:follows sorts by the edges of the table follows only. Unset: bfs, ppr and "
            "similarity for dgt, bfs for dgt-light; alike, neighbors, ppr and similarity for "
            "dgt-plus, or what it chooses for directed edges and few features; dgt and dgt-plus "
            "sort by each edge table.",
        ),
    )
    length: int = 16
    """Length L of the sequences, including the base node."""
    spacing: Literal["rank", "score"] = "rank"
    """rank: each node of a sequence takes one position. score: each node takes a share of the
    positions in proportion to its score, so that keys find important nodes more often."""
    sharpness: float = 20.0
    """How much the attention of dgt-plus prefers the most similar nodes at the start: a node with a
    cosine similarity that is lower by 1 / sharpness has a weight that is smaller by a factor of
    e."""
    ppr_alpha: float = 0.15
    """Teleport probability of the personalized PageRank."""
    ppr_tolerance: float | None = None
    """Residual per edge at which the PageRank push stops. Smaller values are more exact and slower.
    Unset: 0.00032 / length; 0.0012 / length in undirected graphs of more than 12,000 nodes, where
    more is known of the residuals."""

    def __post_init__(self) -> None:
        check_types(self)
        within(self, {"length": (1, 100_000)})
        within(self, {"sharpness": (0, 1000)})
        require("ppr_alpha", self.ppr_alpha, 0 < self.ppr_alpha < 1, "between 0 and 1")
        within(self, {"ppr_tolerance": (0, 1)}, above=True)
        own = [criterion for criterion in self.criteria or () if not isinstance(criterion, str)]
        for number, criterion in enumerate(own):
            name = CRITERIA.name(criterion)
            if any(name == CRITERIA.name(each) and criterion != each for each in own[:number]):
                raise InputError(f"criteria: two functions are named {name!r}; rename one of them")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The network."""

    model: str = field(
        default="dgt",
        metadata=described(
            MODELS,
            "dgt-plus goes beyond the paper; of the paper's models, dgt attends over several "
            "criteria and dgt-light over one; the others are baselines. Some defaults depend on "
            "the model: those shown here are of dgt-plus, which replaces some on graphs with few "
            "features or many nodes. Unset: dgt-plus.",
        ),
    )
    feature_scaling: Literal["sum", "l2", "none"] = "none"
    """Divide the features of each node by their absolute sum or their L2 norm, or do not scale
    them."""
    feature_layers: int = 2
    """Linear layers that embed the features."""
    hidden_channels: int = 64
    """Hidden channels C."""
    blocks: int = 1
    """Number of blocks, for dgt, dgt-plus, deformable-gcn, transformer, graphormer and gt."""
    layers: int = 2
    """Number of layers, for mlp, gcn, gat, graphsage, jknet, gatv2 and mixhop; steps K of sgc;
    rounds K of h2gcn."""
    neighbors: int = 10
    """Neighbors of each node in the latent graphs of deformable-gcn."""
    heads: int = 4
    """Attention heads M; for dgt, per criterion."""
    keys: int = 4
    """Keys K per head."""
    interpolation: Literal["rbf", "bilinear"] = "rbf"
    """Interpolation kernel that reads a sequence at a fractional position."""
    gamma: float = 4.0
    """Bandwidth of the rbf kernel."""
    epsilon: float = 4.0
    """Distance at which the rbf kernel is cut off."""
    normalize: bool = True
    """Divide the kernel's weights by their sum."""
    norm: Literal["layer", "batch", "none"] = "layer"
    """Normalization before each attention and each MLP, and inside the MLP of the encoding. For
    mlp, gcn, gat, graphsage, jknet, gatv2 and mixhop, of each layer's output; none by default."""
    skip: bool = False
    """Add a linear function of each layer's input to its output, for gcn, gat, graphsage, jknet,
    gatv2 and mixhop."""
    mlp_ratio: float = 1.0
    """Width of a block's MLP, as a multiple of the hidden channels."""
    dropout: float = 0.7
    """Dropout of hidden channels."""
    input_dropout: float = 0.7
    """Dropout of the features."""
    encoding_dropout: float = 0.7
    """Dropout of the positional encoding's columns."""
    node_dropout: float = 0.5
    """Dropout of whole nodes among those that attention reads."""
    value_dropout: float = 0.0
    """Dropout of the channels that attention reads, drawn for each node."""
    labels: Literal["none", "read", "hide"] = "none"
    """How dgt-plus uses the labels of training nodes as input. read: the last block reads those of
    other nodes, never a node's own. hide: all blocks read labels, and each step hides those of the
    nodes that it learns from."""
    precision: Literal["single", "double", "bfloat16"] = "single"
    """Floating-point precision. Double takes twice the time and memory; one process and several
    then train the same model to many more digits. bfloat16 stores activations in 2 bytes, about
    half the memory; weights, sums and logits stay in single precision."""

    def __post_init__(self) -> None:
        check_types(self)
        MODELS.check(self.model, "model")
        within(
            self,
            {
                "feature_layers": (1, 1000),
                "hidden_channels": (1, 65_536),
                "blocks": (1, 1000),
                "layers": (1, 1000),
                "neighbors": (1, 10_000),
                "heads": (1, 1024),
                "keys": (1, 1024),
                "gamma": (0.1, 1e6),
                "epsilon": (1, 1e6),
            },
        )
        within(self, {"mlp_ratio": (0, 100)}, above=True)
        require(
            "hidden_channels",
            self.hidden_channels,
            self.hidden_channels % self.heads == 0,
            f"a multiple of heads ({self.heads})",
        )
        for kind in ("", "input_", "encoding_", "node_", "value_"):
            name = f"{kind}dropout"
            value = getattr(self, name)
            require(name, value, 0 <= value < 1, "at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The training loop and the split."""

    lr: float = 0.01
    """Learning rate of Adam."""
    weight_decay: float = 5e-4
    """Weight decay. For dgt and dgt-plus, of the blocks without their queries, and of the head; for
    the other models, of all weights."""
    feature_weight_decay: float = 5e-4
    """Weight decay of the layers of dgt and dgt-plus that embed the features."""
    encoding_weight_decay: float = 2e-3
    """Weight decay of the layers of dgt and dgt-plus that embed the positional encoding."""
    key_weight_decay: float = 5e-4
    """Weight decay of the queries of dgt and dgt-plus, which place and weigh the keys, and of the
    probes of dgt-plus. A large value keeps the keys evenly spread."""
    average: float = 0.0
    """Decay per epoch of the exponential moving average of the weights, which is what is validated
    and saved. 0: no average."""
    epochs: int = 1000
    """Maximum number of epochs."""
    patience: int = 100
    """Epochs without a better one on the validation nodes, after which training stops."""
    select_by: Literal["metric", "loss"] = "metric"
    """What makes an epoch better on the validation nodes. metric: the value of the metric; among
    equal values, the loss. loss: the loss, which varies less if there are few validation nodes."""
    task: Literal["classification", "multilabel", "regression"] = "classification"
    """What is predicted: one class per node, several labels per node (in a table, separated by
    semicolons), or a number per node."""
    metric: str | None = field(
        default=None,
        metadata=described(
            METRICS,
            "Metric on the validation nodes that selects the best epoch and settings. Unset: that "
            "of the benchmark; for other graphs accuracy or, if a class is rare, average-precision "
            "for two classes and macro-f1 for more; f1 for multilabel, mae for regression.",
        ),
    )
    class_weight: Literal["none", "balanced"] = "none"
    """balanced: weigh the classes in the loss inversely to their numbers of training nodes."""
    threshold: float | None = None
    """Probability from which on the positive one of two classes is predicted. Unset: 0.5 or, if a
    class is rare, the threshold with the best F1 score on the validation nodes."""
    device: str = "auto"
    """Device to train and predict on: cpu, cuda, cuda:N or mps. auto: a GPU if there is one,
    otherwise the CPU."""
    batch_size: int | None = None
    """Training nodes per step, with the nodes that they can reach. Unset: all, in one step per
    epoch."""
    chunk_size: int | None = None
    """Nodes that a step processes at a time: less memory and more time for the same result, except
    that dgt-plus then chooses no batch norm. Unset: all at once."""
    compile: bool = False
    """Compile the training step of dgt, dgt-light or dgt-plus with torch.compile; this takes a
    minute."""
    seed: int = 0
    """Random seed of the initial weights and of dropout."""
    members: int = 1
    """Networks to train one after another, with different seeds. The prediction is that of the mean
    of their logits, usually more accurate, in as many times the time."""
    keep_checkpoints: int = 0
    """Maximum number of epochs, evenly spaced, whose weights are kept in the output folder, for dgt
    explore. 0: none. The result does not depend on it."""
    splits: Literal["auto", "given", "published", "random"] = "auto"
    """Where the train, val and test nodes come from. auto: the graph's own or published splits if
    there are any, otherwise random ones, with 48/32/20 percent of each class."""
    split: int | None = None
    """Number of the published split, or seed of the random one. Unset: the seed."""

    def __post_init__(self) -> None:
        check_types(self)
        within(self, {"lr": (0, 1000)}, above=True)
        within(
            self,
            {
                **{f"{of}weight_decay": (0, 1e6) for of in ("", "feature_", "encoding_", "key_")},
                "epochs": (1, 10_000_000),
                "patience": (1, 10_000_000),
                "batch_size": (1, 2**31 - 1),
                "chunk_size": (1, 2**31 - 1),
                "members": (1, 1000),
                "keep_checkpoints": (0, 1000),
            },
        )
        if callable(self.metric):
            raise InputError(
                "metric: expected a name; register the function first: "
                "dgt.evaluate.METRICS['name'] = function"
            )
        if self.metric is not None:
            METRICS.check(self.metric, "metric")
        if self.threshold is not None:
            require("threshold", self.threshold, 0 < self.threshold < 1, "above 0 and below 1")
        known = re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", self.device)
        require("device", self.device, known is not None, "auto, cpu, cuda, cuda:N or mps")
        # PyTorch's generator on the CPU only takes the lower 32 bits.
        require("seed", self.seed, 0 <= self.seed < 2**32, "at least 0 and below 2**32")
        require("average", self.average, 0 <= self.average < 1, "at least 0 and below 1")
        if self.split is not None:
            require("split", self.split, 0 <= self.split < 2**63, "at least 0 and below 2**63")
        if self.members > 1 and self.keep_checkpoints:
            raise InputError("keep_checkpoints: not supported with several members")
        if self.batch_size is not None and self.chunk_size is not None:
            raise InputError("batch_size and chunk_size: choose one of them")

    @property
    def split_index(self) -> int:
        """The split in use: the given one, or that of the seed."""
        return self.seed if self.split is None else self.split
