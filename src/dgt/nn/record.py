"""The record by which the rest of the package knows a model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import nn

from dgt.config import Config, CriterionChoice

Build = Callable[[Config, int, int, Any], nn.Module]

# Settings that every network uses, since it has features and hidden channels.
OF_ALL = ("model", "feature_scaling", "hidden_channels", "input_dropout", "precision")


def no_memory(config: Config, nodes: int) -> float:
    """The memory of models whose memory does not grow quadratically with the number of nodes."""
    return 0.0


class Sizes(NamedTuple):
    """What a rule for defaults may depend on."""

    nodes: int
    training_nodes: int
    minority: int
    """Training nodes that are not of the most frequent class; all of them if there are no
    classes."""
    features: int
    classes: int
    directed: bool
    """Whether edges are directed."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """The record of a model.

    The model is a module for which ``model(**inputs, nodes=nodes)`` returns the logits of
    ``nodes``.
    """

    build: Build
    """Builds the module from the settings and the numbers of features, classes and encoding
    columns."""
    inputs: tuple[str, ...]
    """The inputs of its ``forward``: keys of ``dgt.prepare.INPUTS``."""
    grid: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """The settings, with their values, that a grid search varies besides lr and weight decay."""
    memory: Callable[[Config, int], float] = no_memory
    """Returns the bytes for training on a number of nodes, if they grow quadratically with it."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Settings whose defaults differ from :class:`~dgt.config.Config`."""
    criteria: tuple[CriterionChoice, ...] = ()
    """Default criteria, for models that take sequences."""
    directed_criteria: tuple[CriterionChoice, ...] = ()
    """Default criteria on graphs with directed edges (default: :attr:`criteria`)."""
    rule: Callable[[Sizes], dict[str, Any]] | None = None
    """Returns settings that follow from the sizes of a graph, unless they are set."""
    rule_encodings: tuple[str, ...] = ()
    """Encodings that :attr:`rule` may choose in place of the default."""
    settings: tuple[str, ...] = ()
    """Settings that the network, its inputs or its weight decay depend on, besides those that
    :func:`builder` is given. If neither names any, the model may use all settings."""
    single_criterion: bool = False
    """Whether it supports only one criterion."""
    several_encodings: bool = False
    """Whether :attr:`build` is given the number of columns of each positional encoding, as a tuple,
    in place of their sum."""
    batching: bool = False
    """Whether it supports training in batches, in chunks and with several ranks."""

    def uses(self, name: str) -> bool:
        """Returns whether the network or its weight decay may depend on a setting."""
        built = self.build.settings if isinstance(self.build, Builder) else ()
        return not (built or self.settings) or name in (*OF_ALL, *built, *self.settings)


@dataclass(frozen=True)
class Builder:
    """Builds a module from the settings, see :func:`builder`."""

    kind: Callable[..., nn.Module]
    settings: tuple[str, ...]

    def __call__(
        self, config: Config, in_channels: int, classes: int, encoding_channels: int
    ) -> nn.Module:
        known = config.flat() | {"encoding_channels": encoding_channels}
        chosen = {name: known[name] for name in ("input_dropout", *self.settings)}
        return self.kind(in_channels, config.model.hidden_channels, classes, **chosen)


def builder(kind: type[nn.Module], *settings: str) -> Builder:
    """Returns a function that builds a module from the settings.

    Args:
        kind: Class of the module. Its positional arguments are the numbers of features, hidden
            channels and classes.
        *settings: Names of the settings that it takes as keyword arguments, besides
            ``input_dropout``. ``encoding_channels`` is the number of columns of the positional
            encoding.
    """
    return Builder(kind, settings)
