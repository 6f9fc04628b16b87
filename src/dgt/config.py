"""All settings, once: flags, TOML files and saved runs come from these dataclasses."""

import dataclasses
import json
import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from dgt.errors import InputError, nearest

CRITERIA = ("bfs", "ppr", "similarity")
ABSOLUTE = ("absolute-random", "absolute-bfs", "absolute-ppr", "absolute-similarity")
DGTS = ("dgt", "dgt-light")


def check_criterion(name: str) -> None:
    if name not in CRITERIA + ABSOLUTE:
        raise InputError(
            f"criteria: unknown criterion {name!r}; {nearest(name, CRITERIA + ABSOLUTE)}"
        )


@dataclass(frozen=True, kw_only=True)
class SequenceConfig:
    """NodeSort: how each node's sequences of other nodes are made."""

    criteria: tuple[str, ...] | None = None
    """Sorting criteria, from bfs, ppr and similarity; or, for one order that is the same for all
    nodes, absolute-random, absolute-bfs, absolute-ppr and absolute-similarity. Unset: bfs, ppr and
    similarity for dgt, bfs for dgt-light."""
    length: int = 16
    """Nodes kept of each sequence (L), the base node first."""
    spacing: Literal["rank", "score"] = "rank"
    """rank: each node of a sequence takes one position; score: a share of the positions in
    proportion to its score, so that keys find the important nodes more often."""
    ppr_alpha: float = 0.15
    """Teleport probability of the personalized PageRank."""
    ppr_tolerance: float | None = None
    """Residual per edge at which the PageRank push stops; smaller is more exact and slower. Unset:
    0.00032 / length."""

    def __post_init__(self) -> None:
        _require("length", self.length, self.length >= 1, "at least 1")
        _require("ppr_alpha", self.ppr_alpha, 0 < self.ppr_alpha < 1, "between 0 and 1")
        if self.ppr_tolerance is not None:
            _require("ppr_tolerance", self.ppr_tolerance, self.ppr_tolerance > 0, "above 0")
        if self.criteria is not None:
            _require("criteria", self.criteria, len(self.criteria) > 0, "at least one criterion")
            for criterion in self.criteria:
                check_criterion(criterion)


@dataclass(frozen=True, kw_only=True)
class EncodingConfig:
    """Positional encoding: the graph's structure, added to the features."""

    encoding: Literal["katz", "laplacian", "node2vec", "none"] = "katz"
    """Positional encoding that is added to the features, of dgt and transformer."""
    katz_order: int = 1
    """Longest path counted (the K of the Katz sum)."""
    katz_beta: float = 0.5
    """Weight of a path for each further edge."""
    katz_scaling: Literal["sum", "l2", "none"] = "l2"
    """Each Katz row is divided by its sum, its L2 norm, or not."""
    anchors: int | None = None
    """Anchors N', the nodes of highest degree. Unset: all nodes of a graph of up to 8192 nodes, 128
    of a larger one."""
    laplacian_columns: int = 16
    """Eigenvectors of the graph's Laplacian, for encoding laplacian and for gt-full and
    gt-sparse."""
    node2vec_channels: int = 64
    """Size of a node's vector, for encoding node2vec."""
    node2vec_p: float = 1.0
    """Return parameter p of its walks: above 1, they seldom step back."""
    node2vec_q: float = 1.0
    """In-out parameter q of its walks: above 1, they stay near where they came from."""

    def __post_init__(self) -> None:
        _require("katz_order", self.katz_order, self.katz_order >= 1, "at least 1")
        _require("katz_beta", self.katz_beta, self.katz_beta > 0, "above 0")
        columns = self.laplacian_columns
        _require("laplacian_columns", columns, columns >= 1, "at least 1")
        channels = self.node2vec_channels
        _require("node2vec_channels", channels, channels >= 1, "at least 1")
        for name in ("node2vec_p", "node2vec_q"):
            value = getattr(self, name)
            _require(name, value, value > 0, "above 0")
        if self.anchors is not None:
            _require("anchors", self.anchors, self.anchors >= 1, "at least 1")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The network."""

    model: Literal[
        "mlp",
        "gcn",
        "gat",
        "graphsage",
        "jknet",
        "sgc",
        "gatv2",
        "mixhop",
        "geom-gcn",
        "h2gcn",
        "deformable-gcn",
        "transformer",
        "graphormer",
        "gt-full",
        "gt-sparse",
        "dgt-light",
        "dgt",
    ] = "dgt"
    """dgt attends over several criteria, dgt-light over one; the others are the models that the
    paper compares with. Some settings have another default for these."""
    feature_scaling: Literal["sum", "l2", "none"] = "none"
    """Each node's features are divided by their absolute sum, their L2 norm, or not."""
    feature_layers: int = 2
    """Layers of the network that takes the features in."""
    hidden_channels: int = 64
    """Channels C of every node."""
    blocks: int = 1
    """Blocks of dgt, deformable-gcn, transformer, graphormer and gt."""
    layers: int = 2
    """Layers of mlp, gcn, gat, graphsage, jknet, gatv2 and mixhop; steps K of sgc; rounds K of
    h2gcn."""
    neighbors: int = 10
    """Neighbours of each node in the latent graphs of deformable-gcn."""
    heads: int = 4
    """Attention heads M, of dgt for each criterion."""
    keys: int = 4
    """Keys K for each head."""
    interpolation: Literal["rbf", "bilinear"] = "rbf"
    """Kernel that reads a sequence at a fractional position."""
    gamma: float = 4.0
    """Bandwidth of the rbf kernel."""
    epsilon: float = 4.0
    """Half width at which the rbf kernel is cut off."""
    normalize: bool = True
    """Divide the kernel's weights by their sum."""
    norm: Literal["layer", "batch", "none"] = "layer"
    """Norm before each attention and each MLP, and inside the Katz MLP."""
    mlp_ratio: float = 1.0
    """Width of a block's MLP, as a multiple of the hidden channels."""
    dropout: float = 0.7
    """Dropout of hidden channels."""
    input_dropout: float = 0.7
    """Dropout of the features."""
    encoding_dropout: float = 0.7
    """Dropout of the positional encoding's columns."""
    node_dropout: float = 0.5
    """Dropout of whole nodes among those that are read."""
    value_dropout: float = 0.0
    """Dropout of the channels that are read, for each node anew."""
    precision: Literal["single", "double"] = "single"
    """Numbers of 32 or of 64 bits. In double precision, which takes twice the time and memory, one
    process and several train the same model to many more digits."""

    def __post_init__(self) -> None:
        for name in (
            "feature_layers", "hidden_channels", "blocks", "layers", "neighbors", "heads", "keys",
        ):  # fmt: skip
            value = getattr(self, name)
            _require(name, value, value >= 1, "at least 1")
        _require(
            "hidden_channels",
            self.hidden_channels,
            self.hidden_channels % self.heads == 0,
            f"a multiple of heads ({self.heads})",
        )
        _require("gamma", self.gamma, self.gamma >= 0.1, "at least 0.1")
        _require("epsilon", self.epsilon, self.epsilon >= 1, "at least 1")
        _require("mlp_ratio", self.mlp_ratio, self.mlp_ratio > 0, "above 0")
        for name in (
            "dropout",
            "input_dropout",
            "encoding_dropout",
            "node_dropout",
            "value_dropout",
        ):
            value = getattr(self, name)
            _require(name, value, 0 <= value < 1, "at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The training loop and the split it trains on."""

    lr: float = 0.01
    """Learning rate of Adam."""
    weight_decay: float = 5e-4
    """Weight decay: of dgt's blocks, but for their queries, and head; of all weights of the other
    models."""
    feature_weight_decay: float = 5e-4
    """Weight decay of dgt's layers that take the features in."""
    encoding_weight_decay: float = 2e-3
    """Weight decay of the layers of dgt's positional encoding."""
    key_weight_decay: float = 5e-4
    """Weight decay of dgt's queries, which place and weigh the keys; much of it keeps the keys
    spread evenly."""
    average: float = 0.0
    """Weights are averaged over epochs: how much of the average each epoch keeps. The average is
    what is validated and saved. 0: the last weights themselves."""
    epochs: int = 1000
    """Epochs at most."""
    patience: int = 100
    """Epochs without a better validation accuracy (or an equal one at a lower loss) after which
    training stops."""
    batch_size: int | None = None
    """Training nodes in a step, with those that they can reach. Unset: all, one step an epoch."""
    chunk_size: int | None = None
    """Nodes that a step works on at a time, with less memory and more time for the same result.
    Unset: all at once."""
    seed: int = 0
    """Seed of the initial weights and of dropout."""
    splits: Literal["auto", "given", "published", "random"] = "auto"
    """Where train, val and test nodes come from. auto: the graph's own or published ones, if any,
    else random: 48/32/20 per cent of each class."""
    split: int | None = None
    """Which published split, or the seed of the random one. Unset: follows the seed."""

    def __post_init__(self) -> None:
        _require("lr", self.lr, self.lr > 0, "above 0")
        for name in (
            "weight_decay",
            "feature_weight_decay",
            "encoding_weight_decay",
            "key_weight_decay",
        ):
            value = getattr(self, name)
            _require(name, value, value >= 0, "at least 0")
        for name in ("epochs", "patience"):
            value = getattr(self, name)
            _require(name, value, value >= 1, "at least 1")
        _require("seed", self.seed, 0 <= self.seed < 2**63, "at least 0 and below 2**63")
        _require("average", self.average, 0 <= self.average < 1, "at least 0 and below 1")
        if self.split is not None:
            _require("split", self.split, self.split >= 0, "at least 0")
        for name in ("batch_size", "chunk_size"):
            value = getattr(self, name)
            if value is not None:
                _require(name, value, value >= 1, "at least 1")
        if self.batch_size is not None and self.chunk_size is not None:
            raise InputError("batch_size and chunk_size: choose one of them")

    @property
    def split_index(self) -> int:
        """The split in use: the one given, or the seed's."""
        return self.seed if self.split is None else self.split


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that, with a graph, decides a run."""

    sequences: SequenceConfig = field(default_factory=SequenceConfig)
    encoding: EncodingConfig = field(default_factory=EncodingConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        given = self.sequences.criteria
        if self.model.model == "dgt-light" and given is not None and len(given) != 1:
            raise InputError(f"criteria: dgt-light takes one criterion, got {', '.join(given)}")
        for name in ("batch_size", "chunk_size"):
            if getattr(self.train, name) is None:
                continue
            if not self.is_dgt:
                raise InputError(f"{name}: dgt and dgt-light have it, {self.model.model} has not")
            if self.model.norm == "batch":
                raise InputError(
                    f"{name}: a batch norm needs all nodes at once; choose another norm"
                )

    @property
    def is_dgt(self) -> bool:
        """Whether the model is one of ours, not one of those that the paper compares with."""
        return self.model.model in DGTS

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria in use: those given, or the model's own."""
        if self.sequences.criteria is not None:
            return self.sequences.criteria
        return CRITERIA[:1] if self.model.model == "dgt-light" else CRITERIA

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """One table a dataclass, settings that are unset left out."""
        return {
            table: {k: v for k, v in values.items() if v is not None}
            for table, values in dataclasses.asdict(self).items()
        }

    def to_toml(self) -> str:
        tables = (
            [f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items()), ""]
            for table, values in self.to_dict().items()
        )
        return "\n".join(line for lines in tables for line in lines)

    @classmethod
    def from_dict(cls, tables: dict[str, Any], place: str = "settings") -> "Config":
        """The reverse of :meth:`to_dict`; ``place`` names the source in error messages. What is not
        there has the default of the model that is."""
        checked = check_tables(tables, place)
        for name, value in own_defaults(checked.get("model", {}).get("model")).items():
            checked.setdefault(TABLES[name], {}).setdefault(name, value)
        made = {}
        for table, values in checked.items():
            try:
                made[table] = PARTS[table](**values)
            except InputError as error:
                raise InputError(f"{place}: [{table}] {error}") from None
        return cls(**made)

    @classmethod
    def of(cls, model: str) -> "Config":
        """The defaults of a model."""
        return cls.from_dict({"model": {"model": model}})

    def replace(self, **settings: Any) -> "Config":
        """A copy with other values for some settings, whichever part they belong to."""
        tables: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            if name not in TABLES:
                raise InputError(f"unknown setting {name!r}; {nearest(name, TABLES)}")
            part = PARTS[TABLES[name]]
            tables.setdefault(TABLES[name], {})[name] = _typed(_types(part)[name], value, name)
        parts = {t: dataclasses.replace(getattr(self, t), **v) for t, v in tables.items()}
        return dataclasses.replace(self, **parts)


PARTS: dict[str, Any] = {
    "sequences": SequenceConfig,
    "encoding": EncodingConfig,
    "model": ModelConfig,
    "train": TrainConfig,
}
TABLES = {f.name: table for table, part in PARTS.items() for f in dataclasses.fields(part)}
MODELS: tuple[str, ...] = get_args(ModelConfig.__annotations__["model"])

# Where the defaults of the models that the paper compares with are others than DGT's.
_BASELINE: dict[str, Any] = {"encoding": "none", "dropout": 0.5, "input_dropout": 0.5}
_OWN: dict[str, dict[str, Any]] = {
    "sgc": {"input_dropout": 0.0},
    "h2gcn": {"input_dropout": 0.0},
    # One head: over all nodes it takes about half the time of four, and is as accurate.
    "transformer": {"heads": 1},
    "graphormer": {"heads": 1},
    "gt-full": {"heads": 1, "norm": "batch"},
    "gt-sparse": {"norm": "batch"},
}


def own_defaults(model: str | None) -> dict[str, Any]:
    """The defaults of a model that are not those of the dataclasses."""
    if model is None or model in DGTS:
        return {}
    return _BASELINE | _OWN.get(model, {})


def check_tables(tables: dict[str, Any], place: str) -> dict[str, dict[str, Any]]:
    """The settings of a TOML file, each known by name and of its field's type."""
    checked: dict[str, dict[str, Any]] = {}
    for table, values in tables.items():
        if table not in PARTS:
            raise InputError(f"{place}: unknown table [{table}]; {nearest(table, PARTS)}")
        if not isinstance(values, dict):
            raise InputError(f"{place}: [{table}] must be a table, got {values!r}")
        types = _types(PARTS[table])
        checked[table] = {}
        for name, value in values.items():
            if name not in types:
                raise InputError(
                    f"{place}: [{table}] unknown setting {name!r}; {_like(name, table)}"
                )
            checked[table][name] = _typed(types[name], value, f"{place}: [{table}] {name}")
    return checked


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file of settings."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a TOML file: {error}") from None


def presets() -> dict[str, Path]:
    """The files of settings that come with the package, one for a benchmark and a model:
    ``chameleon-dgt``."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "presets").glob("*.toml"))}


def read_preset(graph: str, model: str) -> dict[str, Any]:
    """The tables of the settings found for a benchmark and a model."""
    files = presets()
    if f"{graph}-{model}" not in files:
        near = [name for name in files if name.startswith(f"{graph}-")] or files
        raise InputError(
            f"preset: there is none for {model} on {graph}; there are {', '.join(near)}"
        )
    return read_toml(files[f"{graph}-{model}"])


def _types(part: Any) -> dict[str, Any]:
    return {f.name: f.type for f in dataclasses.fields(part)}


def _like(name: str, table: str) -> str:
    """Where a setting that is not of this table belongs, or what it may have been meant to be."""
    if name in TABLES:
        return f"it belongs to [{TABLES[name]}]"
    return nearest(name, _types(PARTS[table]))


def _typed(kind: Any, value: Any, place: str) -> Any:
    """``value`` as the field type ``kind`` has it: a Literal, or types, perhaps None among them."""
    choices = get_args(kind) or (kind,)
    if get_origin(kind) is Literal:
        if value not in choices:
            raise InputError(f"{place}: {value!r} is not one of {', '.join(choices)}")
        return value
    if value is None and type(None) in choices:
        return None
    wanted = choices[0]
    if get_origin(wanted) is tuple:
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise InputError(f"{place}: expected a list of names, got {value!r}")
        return tuple(value)
    # Python takes True for the number 1; a setting does not.
    accepted = (int, float) if wanted is float else wanted
    if not isinstance(value, accepted) or (isinstance(value, bool) and wanted is not bool):
        raise InputError(f"{place}: expected {wanted.__name__}, got {value!r}")
    return wanted(value)


def _require(name: str, value: Any, met: bool, expected: str) -> None:
    if not met or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{name}: got {value!r}, expected {expected}")
