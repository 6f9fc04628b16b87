"""Synthetic graphs of any size: ``synthetic:arxiv``, ``synthetic:nodes=1e6,edges=1e7``."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from dgt.errors import InputError, nearest
from dgt.system import machine

PREFIX = "synthetic:"
# Norm of the class centers; the features have standard deviation 1 around them.
SIGNAL = 2.0
# Rounds of weighted sampling. The hubs are saturated then, and the rest is sampled uniformly.
WEIGHTED_ROUNDS = 8


def _require(name: str, value: object, met: bool, expected: str) -> None:
    if not met:
        raise InputError(f"{name}: got {value}, expected {expected}")


def _class_sizes(nodes: int, classes: int) -> np.ndarray:
    return nodes // classes + (np.arange(classes) < nodes % classes)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Parameters of a synthetic graph."""

    nodes: int = 10_000
    edges: int = 100_000
    """Exact number of undirected edges."""
    features: int = 128
    classes: int = 10
    homophily: float = 0.6
    """Fraction of edges inside a class, exact up to rounding."""
    exponent: float = 2.5
    """Exponent of the power law of the degrees."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("nodes", 6), ("edges", 1), ("features", 1), ("classes", 2)):
            _require(name, getattr(self, name), getattr(self, name) >= least, f"at least {least}")
        for name, most in (("nodes", 2**31 - 1), ("edges", 2**40), ("features", 2**24)):
            _require(name, getattr(self, name), getattr(self, name) <= most, f"at most {most}")
        most = self.nodes // 3
        _require(
            "classes", self.classes, self.classes <= most, f"at most {most}, a third of the nodes"
        )
        _require("homophily", self.homophily, 0 <= self.homophily <= 1, "from 0 to 1")
        _require("exponent", self.exponent, 1 < self.exponent <= 100, "above 1 and at most 100")
        _require("seed", self.seed, 0 <= self.seed < 2**63, "at least 0 and below 2**63")
        sizes = _class_sizes(self.nodes, self.classes)
        inside = int((sizes * (sizes - 1) // 2).sum())
        across = self.nodes * (self.nodes - 1) // 2 - inside
        for wanted, room, where in (
            (self.edges_inside, inside, "inside the classes"),
            (self.edges - self.edges_inside, across, "between the classes"),
        ):
            if wanted > room:
                raise InputError(
                    f"edges: got {self.edges}, of which {wanted} {where}, expected at most "
                    f"{room} there with {self.nodes} nodes and {self.classes} classes"
                )

    @property
    def edges_inside(self) -> int:
        """Number of edges inside a class."""
        return round(self.homophily * self.edges)

    @property
    def memory(self) -> int:
        """Bytes that the features, the edges in both directions and the labels take at least."""
        floats = (self.nodes + self.classes) * self.features
        return 4 * floats + 32 * self.edges + 16 * self.nodes


# Sizes of the three large benchmarks, as given in the paper.
SIZES = {
    "arxiv": Recipe(nodes=169_343, edges=1_166_243, features=128, classes=40, homophily=0.66),
    "twitch": Recipe(nodes=168_114, edges=6_797_557, features=27, classes=2, homophily=0.55),
    "reddit": Recipe(nodes=232_965, edges=11_606_919, features=602, classes=41, homophily=0.76),
}


def parse(graph: str) -> Recipe:
    """Parses the name of a synthetic graph.

    Args:
        graph: ``synthetic:``, followed by the size of a benchmark (a key of :obj:`SIZES`),
            parameters of a :class:`Recipe` (``nodes=1e6,edges=1e7``), or both (``arxiv,seed=1``).
    """
    try:
        return _parse(graph.removeprefix(PREFIX))
    except InputError as error:
        raise InputError(f"{graph}: {error}") from None


def _parse(text: str) -> Recipe:
    recipe = Recipe()
    given: dict[str, Any] = {}
    types = {field.name: field.type for field in dataclasses.fields(Recipe)}
    for place, item in enumerate(text.split(",")):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            if place > 0 or name not in SIZES:
                wanted = f"one of {', '.join(SIZES)}, or parameters such as nodes=1e6,edges=1e7"
                raise InputError(f"got {name!r}, expected {wanted}")
            recipe = SIZES[name]
            continue
        if name not in types:
            raise InputError(f"unknown parameter {name!r}; {nearest(name, types)}")
        if name in given:
            raise InputError(f"{name}: given twice")
        given[name] = _number(name, value, whole=types[name] is int)
    return dataclasses.replace(recipe, **given)


def _number(name: str, text: str, whole: bool) -> int | float:
    try:
        number = int(text) if whole and text.isdecimal() else float(text)
    except ValueError:
        number = math.nan
    fits = math.isfinite(number) and (not whole or number == int(number))
    kind = "whole number such as 1000000 or 1e6" if whole else "number"
    _require(name, text, fits, f"a {kind}")
    return int(number) if whole else number


def synthetic(recipe: Recipe) -> Data:
    """Generates a graph from a degree-corrected stochastic block model.

    Expected degrees follow a power law, and features are normally distributed around a center for
    each class. The graph is undirected, without self-loops and duplicate edges. It depends only on
    the recipe.
    """
    machine.require(recipe.memory, f"a synthetic graph of {recipe.nodes:,} nodes")
    random = np.random.Generator(np.random.PCG64(recipe.seed))
    N, C = recipe.nodes, recipe.classes
    sizes = _class_sizes(N, C)
    # Nodes are numbered class by class until they are shuffled at the end.
    label = np.repeat(np.arange(C), sizes)
    weights = random.permutation(np.arange(1, N + 1) ** (-1 / (recipe.exponent - 1)))
    bounds = np.concatenate([[0], np.cumsum(sizes)])

    def draw_inside(count: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        times = random.multinomial(count, weights / weights.sum())
        source = np.repeat(np.arange(N), times)
        parts = []
        for start, stop in pairwise(bounds):
            own = weights[start:stop]
            drawn = random.multinomial(times[start:stop].sum(), own / own.sum())
            parts.append(random.permutation(np.repeat(np.arange(start, stop), drawn)))
        return source, np.concatenate(parts)

    def draw_across(count: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        share = weights / weights.sum()
        source, target = (np.repeat(np.arange(N), random.multinomial(count, share)) for _ in "st")
        target = random.permutation(target)
        apart = label[source] != label[target]
        return source[apart], target[apart]

    inside = recipe.edges_inside
    edges = np.concatenate(
        [
            _distinct(draw_inside, inside, weights, random),
            _distinct(draw_across, recipe.edges - inside, weights, random),
        ]
    )
    names = random.permutation(N)
    low, high = names[edges // N], names[edges % N]
    directed = np.concatenate([low * N + high, high * N + low])
    directed.sort()
    y = np.empty(N, dtype=np.int64)
    y[names] = label
    centers = random.standard_normal((C, recipe.features), dtype=np.float32)
    centers *= SIGNAL / np.linalg.norm(centers, axis=1, keepdims=True)
    x = random.standard_normal((N, recipe.features), dtype=np.float32)
    x += centers[y]
    return Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(np.stack(np.divmod(directed, N))),
        y=torch.from_numpy(y),
        class_names=[str(c) for c in range(C)],
    )


def _distinct(
    draw: Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]],
    count: int,
    weights: np.ndarray,
    random: np.random.Generator,
) -> np.ndarray:
    """Samples ``count`` distinct edges, each encoded as its smaller end times N plus its larger."""
    N = len(weights)
    found = np.empty(0, dtype=np.int64)
    rounds = 0
    while len(found) < count:
        by = weights if rounds < WEIGHTED_ROUNDS else np.ones(N)
        wanted = max(int(1.1 * (count - len(found))), count // 20) + 16
        source, target = draw(wanted, by)
        other = source != target
        low, high = np.minimum(source, target)[other], np.maximum(source, target)[other]
        found = _merge(found, low * N + high)
        rounds += 1
    return np.delete(found, random.choice(len(found), len(found) - count, replace=False))


def _merge(found: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Returns the sorted union."""
    keys = np.concatenate([found, keys])
    keys.sort()
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]
