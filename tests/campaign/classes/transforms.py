"""NodeSort and Katz: their arguments, and graphs that they cannot be computed on."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tests.campaign.case import Case, Expect
from tests.campaign.classes.calls import case, put
from tests.campaign.material import NODES, graph

NUMBERS = {
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "NaN": float("nan"),
    "10**30": 10**30,
    "text": "x",
    "None": None,
    "a list": [1],
    "infinite": float("inf"),
    "a tensor": torch.ones(2),
}


def cases() -> Iterator[Case]:
    yield from _node_sort()
    yield from _katz()


def plain() -> Data:
    data = graph()
    return Data(x=data.x, edge_index=data.edge_index, y=data.y)


def _node_sort() -> Iterator[Case]:
    from dgt import NodeSort

    for name in ("length", "ppr_alpha", "ppr_tolerance", "spacing"):
        for title, value in NUMBERS.items():
            if name == "ppr_tolerance" and value is None:
                continue
            expect: Expect = (
                "either" if title in ("1.5",) and name == "ppr_tolerance" else "refused"
            )
            act = lambda n=name, v=value: NodeSort(**{n: v})(plain())
            yield case(f"NodeSort({name} {title})", expect, act, (name,))
    for title, value in {
        "text": "bfs",
        "unknown": ["no-such"],
        "empty": [],
        "a number": 3,
        "None inside": [None],
        "nested": [["bfs"]],
        "an object": [object()],
        "a class": [int],
    }.items():
        expect = "either" if title == "text" else "refused"
        yield case(
            f"NodeSort(criteria {title})",
            expect,
            lambda v=value: NodeSort(v)(plain()),
            ("criteri|int",),
        )
    changes: dict[str, Callable[[Data], Any]] = {
        "no edges": lambda d: put(d, edge_index=None),
        "edges out of range": lambda d: put(d, edge_index=torch.tensor([[0], [NODES]])),
        "negative edges": lambda d: put(d, edge_index=torch.tensor([[0], [-1]])),
        "edges of floats": lambda d: put(d, edge_index=d.edge_index.float()),
        "edges of three rows": lambda d: put(d, edge_index=torch.zeros(3, 4).long()),
        "edges of one axis": lambda d: put(d, edge_index=torch.zeros(4).long()),
        "sparse edges": lambda d: put(d, edge_index=d.edge_index.to_sparse()),
        "meta edges": lambda d: put(d, edge_index=d.edge_index.to("meta")),
        "NaN features": lambda d: put(d, x=torch.full((NODES, 4), float("nan"))),
        "features of one axis": lambda d: put(d, x=torch.ones(NODES)),
        "features of text": lambda d: put(d, x="abc"),
        "no features": lambda d: put(d, x=None),
        "no nodes": lambda d: Data(x=torch.ones(0, 4), edge_index=torch.zeros(2, 0).long()),
        "not a graph": lambda d: "cora",
        "a list": lambda d: [d],
    }
    for title, change in changes.items():
        for criterion in ("bfs", "ppr", "similarity", "absolute-random"):

            def act(change: Any = change, criterion: str = criterion) -> Any:
                data = plain()
                changed = change(data)
                return NodeSort([criterion], length=4)(data if changed is None else changed)

            needless = ("features" in title and criterion != "similarity") or title in (
                "no features",
                "sparse edges",
                "no nodes",
            )
            yield case(
                f"NodeSort([{criterion}]) of {title}",
                "either" if needless else "refused",
                act,
                ("edge_index|x|graph|data|feature|node|Data",),
            )
    for criterion in (
        "bfs",
        "ppr",
        "similarity",
        "absolute-bfs",
        "absolute-ppr",
        "absolute-similarity",
        "absolute-random",
    ):
        yield case(
            f"control: NodeSort([{criterion}])",
            "accepted",
            lambda c=criterion: NodeSort([c], length=4)(plain()),
            check=_is_sorted,
        )
    for length in (1, 2, NODES, 3 * NODES):
        yield case(
            f"control: NodeSort(length={length})",
            "accepted",
            lambda n=length: NodeSort(length=n)(plain()),
            check=_is_sorted,
        )


def _is_sorted(data: Data) -> None:
    """Sequences start with the base node or are one order for all, and name no node twice."""
    for sequences in data.sequences.tolist():
        for row in sequences:
            nodes = [node for node in row if node >= 0]
            assert len(set(nodes)) == len(nodes), row
            assert all(node < NODES for node in nodes), row
        relative = all(row[0] == base for base, row in enumerate(sequences))
        assert relative or all(row == sequences[0] for row in sequences)


def _katz() -> Iterator[Case]:
    from dgt import Katz
    from dgt.encodings.katz import katz

    for name in ("order", "beta", "scaling", "anchors"):
        for title, value in NUMBERS.items():
            if name == "anchors" and value is None:
                continue
            expect: Expect = "either" if (name, title) == ("beta", "1.5") else "refused"
            act = lambda n=name, v=value: Katz(**{n: v})(plain())
            yield case(f"Katz({name} {title})", expect, act, (name,))
    for title, value in {
        "out of range": torch.tensor([NODES]),
        "below -1": torch.tensor([-2]),
        "floats": torch.ones(3),
        "a matrix": torch.zeros(2, 2).long(),
        "bool": torch.ones(NODES).bool(),
        "a list": [1, 2],
        "meta": torch.zeros(2, device="meta").long(),
        "empty": torch.zeros(0).long(),
        "int32": torch.zeros(2, dtype=torch.int32),
        "twice": torch.tensor([1, 1]),
    }.items():
        expect = "either" if title in ("int32", "a list", "empty", "twice") else "refused"
        yield case(
            f"katz(anchors {title})",
            expect,
            lambda v=value: katz(plain().edge_index, NODES, anchors=v),
            ("anchors",),
        )
    for title, value in NUMBERS.items():
        yield case(
            f"katz(num_nodes {title})",
            "refused",
            lambda v=value: katz(plain().edge_index, v, anchors=torch.arange(3)),
            ("num_nodes|edge_index|anchors|nodes",),
        )
    for order in (1, 2, 3):
        yield case(
            f"control: Katz(order={order})",
            "accepted",
            lambda o=order: Katz(order=o, beta=0.5, scaling="none")(plain()),
            check=lambda d, o=order: _is_katz(d, o),
        )


def _is_katz(data: Data, order: int) -> None:
    """The columns must be those of the dense formula."""
    A = np.zeros((NODES, NODES))
    A[tuple(data.edge_index.numpy())] = 1
    A = np.maximum(A, A.T)
    expected = sum(0.5 ** (k - 1) * np.linalg.matrix_power(A, k) for k in range(1, order + 1))
    assert np.allclose(data.katz.to_dense().numpy(), expected)
