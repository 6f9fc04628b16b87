"""A trained model on graphs that it cannot be used on."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch_geometric.data import Data

from tests.campaign.case import Case
from tests.campaign.classes.attributes import predicted
from tests.campaign.classes.calls import OBJECTS, case, classifier, put
from tests.campaign.material import (
    NODES,
    graph,
    require_answer,
)


def cases() -> Iterator[Case]:
    """Yields graphs that a trained model must refuse."""

    def other(change: Callable[[Data], Any]) -> Data:
        data = graph()
        changed = change(data)
        return data if changed is None else changed

    changes: dict[str, Callable[[Data], Any]] = {
        "fewer features": lambda d: put(d, x=d.x[:, :3], feature_names=d.feature_names[:3]),
        "more features": lambda d: put(d, x=torch.cat([d.x, d.x], 1), feature_names=None),
        "other feature names": lambda d: put(d, feature_names=["a", "b", "c", "d"]),
        "feature names in another order": lambda d: put(d, feature_names=d.feature_names[::-1]),
        "an edge less": lambda d: put(d, edge_index=d.edge_index[:, 1:]),
        "an edge more": lambda d: put(d, edge_index=torch.cat([d.edge_index, _absent(d)], 1)),
        "other ids": lambda d: put(d, node_ids=[f"m{i}" for i in range(NODES)]),
        "shuffled ids": lambda d: put(d, node_ids=d.node_ids[::-1]),
        "no ids": lambda d: put(d, node_ids=None),
        "another graph": lambda d: graph(seed=1),
        "fewer nodes": lambda d: graph(nodes=20),
        "a subgraph": lambda d: Data(x=d.x, edge_index=d.edge_index, y=d.y).subgraph(
            torch.arange(20)
        ),
        "no graph": lambda d: Data(),
        "a HeteroData": lambda d: __import__("torch_geometric").data.HeteroData(),
    }
    for name, change in changes.items():
        for method in ("predict", "predict_proba", "score", "explain", "multiply_adds"):

            def act(change: Any = change, method: str = method) -> Any:
                arguments = {"explain": ("n3",)}.get(method, ())
                return getattr(classifier(), method)(*arguments, data=other(change))

            yield case(f"{method} on {name}", "refused", act, ("graph|features|nodes|Data",))
    for name, make in OBJECTS.items():
        if name != "None":
            yield case(
                f"predict({name})",
                "refused",
                lambda m=make: classifier().predict(m()),
                ("graph|Data",),
            )
    yield case(
        "predict without a graph", "refused", lambda: classifier().predict(), ("graph|data",)
    )
    yield case(
        "score of an unknown class",
        "refused",
        lambda: classifier().score(other(lambda d: put(d, class_names=["blue", "green", "pink"]))),
        ("pink",),
    )
    for name in ("predict", "predict_proba", "score", "save", "explain", "multiply_adds"):

        def unfitted(name: str = name) -> Any:
            from dgt import NodeClassifier

            arguments = {"save": ("x",), "explain": (3,)}.get(name, ())
            return getattr(NodeClassifier(), name)(*arguments)

        yield case(f"{name} before fit", "refused", unfitted, ("fit",))
    yield case(
        "control: predict on the graph",
        "accepted",
        lambda: predicted(classifier(), graph()),
        check=lambda found: require_answer(found, "arrays"),
    )
    yield case(
        "control: predict without labels",
        "accepted",
        lambda: predicted(classifier(), other(lambda d: put(d, y=None))),
        check=lambda found: require_answer(found, "arrays"),
    )
    yield case(
        "control: predict on a larger graph",
        "accepted",
        lambda: classifier().predict(_larger()),
        check=lambda y: len(y) == NODES + 1,
    )
    yield case(
        "control: no encoding, another graph",
        "accepted",
        lambda: classifier("plain").predict(graph(seed=1)),
        check=lambda y: len(y) == NODES,
    )
    yield case(
        "control: no encoding, fewer nodes",
        "accepted",
        lambda: classifier("plain").predict(graph(nodes=20)),
        check=lambda y: len(y) == 20,
    )


def _absent(data: Data) -> torch.Tensor:
    """Returns an edge that the graph lacks."""
    edges = {tuple(sorted(e)) for e in data.edge_index.t().tolist()}
    found = next((a, b) for a in range(NODES) for b in range(a + 1, NODES) if (a, b) not in edges)
    return torch.tensor(found)[:, None]


def _larger() -> Data:
    """Returns the graph with one node more, which is joined to the first."""
    data = graph()
    put(
        data,
        x=torch.cat([data.x, data.x[:1]]),
        y=torch.cat([data.y, data.y[-1:]]),
        edge_index=torch.cat([data.edge_index, torch.tensor([[0], [NODES]])], 1),
        node_ids=[*data.node_ids, "new"],
        train_mask=None,
        val_mask=None,
        test_mask=None,
    )
    return data
