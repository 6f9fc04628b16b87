"""What the cases of the API share: a trained classifier, and objects of every kind."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tests.campaign.case import Case, Expect
from tests.campaign.judge import call
from tests.campaign.material import (
    QUICK,
    graph,
    place,
)

Make = Callable[[], Any]


def classifier(run: str = "arrays") -> Any:
    """Returns the trained classifier of the material."""
    from dgt import NodeClassifier

    return NodeClassifier.load(place() / run)


def case(
    name: str,
    expect: Expect,
    act: Make,
    names: tuple[str, ...] = (),
    check: Callable[[Any], object] = lambda _: None,
    prepare: Callable[[], object] = lambda: None,
) -> Case:
    return Case(name, expect, call(act), prepare, names, check, name)


# Objects of every kind, for arguments of another kind.
OBJECTS: dict[str, Make] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1.5": lambda: 1.5,
    "10**30": lambda: 10**30,
    "NaN": lambda: float("nan"),
    "text": lambda: "no-such-thing",
    "empty text": lambda: "",
    "bytes": lambda: b"n3",
    "a list": lambda: [1],
    "a dict": dict,
    "an object": object,
    "a type": lambda: int,
    "a tensor": lambda: torch.tensor([1.0, 2.0]),
    "an array": lambda: np.arange(3),
    "a function": lambda: len,
}


def fitted(**settings: Any) -> Any:
    from dgt import NodeClassifier

    return NodeClassifier(**QUICK, **settings).fit(graph())


def put(data: Data, **values: Any) -> None:
    for name, value in values.items():
        data[name] = value
