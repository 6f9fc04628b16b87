"""The numbers and names in a PyG ``Data``, and graphs that are none."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data, HeteroData

from tests.campaign.case import Case
from tests.campaign.classes.attributes import case, plausible, put, some_rows
from tests.campaign.material import NAMES


def cases() -> Iterator[Case]:
    yield from _values()
    yield from _graphs()
    yield from _names()


def _values() -> Iterator[Case]:
    def entry(key: str, at: tuple[int, ...], value: float) -> Callable[[Data], None]:
        def change(data: Data) -> None:
            data[key] = data[key].clone()
            data[key][at] = value

        return change

    for value in (float("nan"), float("inf"), -float("inf")):
        yield case(
            f"x[4, 2] is {value}", "refused", entry("x", (4, 2), value), ("x", "node 4|4, 2")
        )
    big = lambda data: put(data, "x", data.x.double() * 1e300)
    yield case("x above the range of float32", "refused", big, ("x",))
    for value in (3e38, 1e30, 1e20):
        yield case(
            f"x[4, 2] is {value:g}",
            "either",
            entry("x", (4, 2), value),
            ("x|feature|loss",),
            plausible,
        )
    for value in (-1, 30, 10**6, 2**40, -(2**62), 2**63 - 1):
        yield case(
            f"edge_index[1, 3] is {value}",
            "refused",
            entry("edge_index", (1, 3), value),
            ("edge_index", str(value)),
        )
    for value in (-2, -(2**63), -100):
        yield case(f"y[3] is {value}", "refused", entry("y", (3,), value), ("y", "node 3|3"))
    for value in (3, 10, 2**62):
        yield case(f"y[3] is {value}", "refused", entry("y", (3,), value), ("class_names|y",))
    for value in (0.5, -1.5, 1e300, float("inf")):

        def halved(data: Data, value: float = value) -> None:
            data.y = data.y.double()
            data.y[3] = value

        yield case(f"y[3] is {value}", "refused", halved, ("y",))
    for key in ("train_mask", "val_mask", "test_mask"):
        for value in (2, -1):

            def counted(data: Data, key: str = key, value: int = value) -> None:
                data[key] = data[key].long()
                data[key][0] = value

            yield case(f"{key}[0] is {value}", "refused", counted, (key,))
        yield case(
            f"{key} empty",
            "refused",
            lambda data, k=key: put(data, k, torch.zeros(30).bool()),
            (key.split("_")[0],),
        )
        yield case(
            f"{key} full",
            "refused",
            lambda data, k=key: put(data, k, torch.ones(30).bool()),
            ("split|mask|label",),
        )
        yield case(
            f"{key} missing", "refused", lambda data, k=key: data.__delitem__(k), ("split|mask",)
        )


def _graphs() -> Iterator[Case]:
    others: dict[str, Callable[[Data], Any]] = {
        "a HeteroData": lambda data: HeteroData(),
        "None": lambda data: (),
        "a dict": lambda data: data.to_dict(),
        "a list of graphs": lambda data: [data],
        "a string": lambda data: "cora",
        "a path": lambda data: __import__("pathlib").Path("cora"),
        "a tensor": lambda data: data.x,
        "a class": lambda data: Data,
        "an empty Data": lambda data: Data(),
        "a module": lambda data: torch.nn.Linear(2, 2),
        "no labels": lambda data: Data(x=data.x, edge_index=data.edge_index),
        "no edges": lambda data: Data(x=data.x, y=data.y, edge_index=data.edge_index[:, :0]),
        "num_nodes negative": lambda data: Data(edge_index=data.edge_index, num_nodes=-1),
        "num_nodes huge": lambda data: Data(edge_index=data.edge_index, num_nodes=10**12),
        "num_nodes a text": lambda data: Data(edge_index=data.edge_index, num_nodes="many"),
        "num_nodes a fraction": lambda data: Data(edge_index=data.edge_index, num_nodes=30.5),
    }
    for name, change in others.items():
        yield case(f"graph: {name}", "refused", change, ("graph|data|nodes|edge|label|Data",))
    yield case(
        "graph: a batch",
        "either",
        lambda data: Batch.from_data_list([_bare(data), _bare(data)]),
        ("graph|batch",),
        some_rows,
    )
    yield case("control: graph: a copy", "accepted", lambda data: data.clone())
    yield case("control: graph: other attributes", "accepted", _decorated)
    yield case(
        "control: graph: shuffled edges",
        "accepted",
        lambda data: put(
            data,
            "edge_index",
            data.edge_index[
                :,
                torch.randperm(data.edge_index.size(1), generator=torch.Generator().manual_seed(0)),
            ],
        ),
    )
    yield case("control: graph: no features", "accepted", _without_features, check=plausible)
    yield case("control: y as a column", "accepted", lambda data: put(data, "y", data.y[:, None]))


def _without_features(data: Data) -> None:
    del data.x, data.feature_names


def _bare(data: Data) -> Data:
    return Data(x=data.x, y=data.y, edge_index=data.edge_index)


def _decorated(data: Data) -> None:
    data.note = "text"
    data.weights = torch.rand(30)
    data.matrix = torch.rand(7, 7)
    data.thing = {"a": object()}


def _names() -> Iterator[Case]:
    wrong: dict[str, tuple[str, Callable[[], Any]]] = {
        "too few ids": ("node_ids", lambda: ["a"]),
        "too many ids": ("node_ids", lambda: [f"n{i}" for i in range(31)]),
        "equal ids": ("node_ids", lambda: ["a"] * 30),
        "ids equal as text": ("node_ids", lambda: [1, "1", *range(2, 30)]),
        "ids a number": ("node_ids", lambda: 3),
        "ids a matrix": ("node_ids", lambda: torch.zeros(30, 2)),
        "ids None inside": ("node_ids", lambda: [None] * 30),
        "ids a dict": ("node_ids", lambda: dict.fromkeys(range(29))),
        "too few class names": ("class_names", lambda: ["red"]),
        "equal class names": ("class_names", lambda: ["red", "red", "blue"]),
        "class names a number": ("class_names", lambda: 3),
        "too few feature names": ("feature_names", lambda: ["f0"]),
        "feature names a number": ("feature_names", lambda: 3),
    }
    for name, (key, value) in wrong.items():
        yield case(name, "refused", lambda data, k=key, v=value: put(data, k, v()), (key,))
    yield case(
        "control: ids as a tensor",
        "accepted",
        lambda data: put(data, "node_ids", torch.arange(100, 130)),
    )
    yield case(
        "control: ids as an array", "accepted", lambda data: put(data, "node_ids", np.arange(30))
    )
    yield case(
        "control: class names as a tuple", "accepted", lambda data: put(data, "class_names", NAMES)
    )
    yield case(
        "control: a class without nodes",
        "accepted",
        lambda data: put(data, "class_names", [*NAMES, "none"]),
        check=plausible,
    )
