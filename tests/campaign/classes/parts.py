"""The parts of the model in Python: NodeSort, Katz, DGT and their functions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import NeighborLoader

from tests.campaign.case import Case, Expect
from tests.campaign.classes.calls import OBJECTS
from tests.campaign.judge import call
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
    yield from _modules()
    yield from _forward()
    yield from _stale()


def _case(
    name: str,
    expect: Expect,
    act: Callable[[], Any],
    names: tuple[str, ...] = (),
    check: Callable[[Any], object] = lambda _: None,
) -> Case:
    return Case(name, expect, call(act), names=names, check=check, repeat=name)


def _plain() -> Data:
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
            act = lambda n=name, v=value: NodeSort(**{n: v})(_plain())
            yield _case(f"NodeSort({name} {title})", expect, act, (name,))
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
        yield _case(
            f"NodeSort(criteria {title})",
            expect,
            lambda v=value: NodeSort(v)(_plain()),
            ("criteri|int",),
        )
    changes: dict[str, Callable[[Data], Any]] = {
        "no edges": lambda d: _set(d, edge_index=None),
        "edges out of range": lambda d: _set(d, edge_index=torch.tensor([[0], [NODES]])),
        "negative edges": lambda d: _set(d, edge_index=torch.tensor([[0], [-1]])),
        "edges of floats": lambda d: _set(d, edge_index=d.edge_index.float()),
        "edges of three rows": lambda d: _set(d, edge_index=torch.zeros(3, 4).long()),
        "edges of one axis": lambda d: _set(d, edge_index=torch.zeros(4).long()),
        "sparse edges": lambda d: _set(d, edge_index=d.edge_index.to_sparse()),
        "meta edges": lambda d: _set(d, edge_index=d.edge_index.to("meta")),
        "NaN features": lambda d: _set(d, x=torch.full((NODES, 4), float("nan"))),
        "features of one axis": lambda d: _set(d, x=torch.ones(NODES)),
        "features of text": lambda d: _set(d, x="abc"),
        "no features": lambda d: _set(d, x=None),
        "no nodes": lambda d: Data(x=torch.ones(0, 4), edge_index=torch.zeros(2, 0).long()),
        "not a graph": lambda d: "cora",
        "a list": lambda d: [d],
    }
    for title, change in changes.items():
        for criterion in ("bfs", "ppr", "similarity", "absolute-random"):

            def act(change: Any = change, criterion: str = criterion) -> Any:
                data = _plain()
                changed = change(data)
                return NodeSort([criterion], length=4)(data if changed is None else changed)

            needless = ("features" in title and criterion != "similarity") or title in (
                "no features",
                "sparse edges",
                "no nodes",
            )
            yield _case(
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
        yield _case(
            f"control: NodeSort([{criterion}])",
            "accepted",
            lambda c=criterion: NodeSort([c], length=4)(_plain()),
            check=_is_sorted,
        )
    for length in (1, 2, NODES, 3 * NODES):
        yield _case(
            f"control: NodeSort(length={length})",
            "accepted",
            lambda n=length: NodeSort(length=n)(_plain()),
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


def _set(data: Data, **values: Any) -> None:
    for name, value in values.items():
        data[name] = value


def _katz() -> Iterator[Case]:
    from dgt import Katz
    from dgt.encodings.katz import katz

    for name in ("order", "beta", "scaling", "anchors"):
        for title, value in NUMBERS.items():
            if name == "anchors" and value is None:
                continue
            expect: Expect = "either" if (name, title) == ("beta", "1.5") else "refused"
            act = lambda n=name, v=value: Katz(**{n: v})(_plain())
            yield _case(f"Katz({name} {title})", expect, act, (name,))
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
        yield _case(
            f"katz(anchors {title})",
            expect,
            lambda v=value: katz(_plain().edge_index, NODES, anchors=v),
            ("anchors",),
        )
    for title, value in NUMBERS.items():
        yield _case(
            f"katz(num_nodes {title})",
            "refused",
            lambda v=value: katz(_plain().edge_index, v, anchors=torch.arange(3)),
            ("num_nodes|edge_index|anchors|nodes",),
        )
    for order in (1, 2, 3):
        yield _case(
            f"control: Katz(order={order})",
            "accepted",
            lambda o=order: Katz(order=o, beta=0.5, scaling="none")(_plain()),
            check=lambda d, o=order: _is_katz(d, o),
        )


def _is_katz(data: Data, order: int) -> None:
    """The columns must be those of the dense formula."""
    A = np.zeros((NODES, NODES))
    A[tuple(data.edge_index.numpy())] = 1
    A = np.maximum(A, A.T)
    expected = sum(0.5 ** (k - 1) * np.linalg.matrix_power(A, k) for k in range(1, order + 1))
    assert np.allclose(data.katz.to_dense().numpy(), expected)


def _modules() -> Iterator[Case]:
    from dgt import DGT
    from dgt.nn import DeformableGraphAttention

    numbers = ("hidden_channels", "heads", "keys", "blocks", "dropout", "gamma", "epsilon")
    for name in numbers:
        for title, value in NUMBERS.items():
            fine = (title == "1.5" and name in ("gamma", "epsilon")) or (
                title == "0" and name == "dropout"
            )
            act = lambda n=name, v=value: DGT(
                **(
                    {
                        "in_channels": 4,
                        "hidden_channels": 8,
                        "out_channels": 3,
                        "heads": 2,
                        "keys": 2,
                    }
                    | {n: v}
                )
            )
            yield _case(f"DGT({name} {title})", "either" if fine else "refused", act, (name,))
    for name in ("in_channels", "out_channels"):
        for title, value in NUMBERS.items():
            act = lambda n=name, v=value: DGT(
                **(
                    {
                        "in_channels": 4,
                        "hidden_channels": 8,
                        "out_channels": 3,
                        "heads": 2,
                        "keys": 2,
                    }
                    | {n: v}
                )
            )
            yield _case(f"DGT({name} {title})", "refused", act, (name,))
    yield _case(
        "DGT(heads do not divide)", "refused", lambda: DGT(4, 8, 3, heads=3), ("heads|multiple",)
    )
    yield _case(
        "control: DeformableGraphAttention",
        "accepted",
        lambda: DeformableGraphAttention(8, criteria=1, heads=2, keys=2),
    )


def _inputs() -> dict[str, Any]:
    from dgt import Katz, NodeSort

    data = Katz()(NodeSort(["bfs"], length=4)(_plain()))
    return {"x": data.x, "sequences": data.sequences, "encoding": data.katz.to_dense()}


def _forward() -> Iterator[Case]:
    from dgt import DGT

    changes: dict[str, Callable[[torch.Tensor], Any]] = {
        "a row less": lambda v: v[..., :-1, :] if v.dim() > 1 else v[:-1],
        "a row more": lambda v: torch.cat([v, v[..., :1, :]], dim=-2),
        "a column less": lambda v: v[..., :-1],
        "no rows": lambda v: v[..., :0, :],
        "an axis more": lambda v: v[None],
        "an axis less": lambda v: v[0],
        "complex": lambda v: v.to(torch.complex64),
        "bool": lambda v: v.bool(),
        "float16": lambda v: v.half(),
        "double": lambda v: v.double(),
        "uint8": lambda v: v.to(torch.uint8),
        "meta": lambda v: v.to("meta"),
        "sparse": lambda v: v.to_sparse(),
        "nested": lambda v: torch.nested.nested_tensor(list(v.float())),
        "an array": lambda v: v.numpy(),
        "None": lambda v: None,
        "text": lambda v: "abc",
        "out of range": lambda v: v.clone().fill_(10**6),
        "below -1": lambda v: v.clone().fill_(-2),
        "transposed": lambda v: v.transpose(-1, -2),
        "expanded": lambda v: v[..., :1].expand_as(v),
    }
    for name in ("x", "sequences", "encoding"):
        for title, change in changes.items():

            def act(name: str = name, change: Any = change) -> Any:
                inputs = _inputs()
                model = DGT(4, 8, 3, criteria=1, heads=2, keys=2, encoding_channels=NODES).eval()
                inputs[name] = change(inputs[name])
                return model(**inputs)

            wrong = {
                "x": ("out of range", "below -1", "expanded", "sparse"),
                "encoding": ("out of range", "below -1", "expanded", "sparse", "transposed"),
                "sequences": ("a column less", "expanded", "sparse"),
            }[name]
            expect: Expect = "either" if title in wrong else "refused"
            if name == "sequences" and title in ("bool", "uint8", "double"):
                expect = "either" if title == "uint8" else "refused"
            yield _case(f"DGT with {name} {title}", expect, act, (f"{name}|x|shape|tensor|dtype",))
    nodes: dict[str, Any] = {
        "out of range": torch.tensor([NODES]),
        "negative": torch.tensor([-1]),
        "floats": torch.ones(2),
        "a mask": torch.ones(NODES).bool(),
        "a matrix": torch.zeros(2, 2).long(),
        "a list": [1, 2],
        "text": "n3",
        "meta": torch.zeros(2, device="meta").long(),
    }
    for title, value in nodes.items():
        act = lambda v=value: DGT(4, 8, 3, criteria=1, heads=2, keys=2, encoding_channels=NODES)(
            **_inputs(), nodes=v
        )
        yield _case(
            f"DGT with nodes {title}",
            "either" if title in ("a list",) else "refused",
            act,
            ("nodes",),
        )
    yield _case(
        "control: DGT",
        "accepted",
        lambda: DGT(4, 8, 3, criteria=1, heads=2, keys=2, encoding_channels=NODES).eval()(
            **_inputs()
        ),
        check=_is_logits,
    )
    yield _case("control: DGT of some nodes", "accepted", _some_nodes)


def _is_logits(found: torch.Tensor) -> None:
    assert found.shape == (NODES, 3)
    assert bool(found.isfinite().all())


def _some_nodes() -> None:
    from dgt import DGT

    model = DGT(4, 8, 3, criteria=1, heads=2, keys=2, encoding_channels=NODES).eval()
    nodes = torch.tensor([3, 1, 7])
    torch.testing.assert_close(model(**_inputs(), nodes=nodes), model(**_inputs())[nodes])


def _stale() -> Iterator[Case]:
    """Yields graphs whose sequences PyG's own operations have made stale."""
    from dgt import DGT, NodeSort
    from dgt.sequences import current_sequences

    def made() -> Data:
        return NodeSort(["bfs"], length=4)(_plain())

    changes: dict[str, Callable[[], Data]] = {
        "subgraph": lambda: made().subgraph(torch.arange(20)),
        "a permuted subgraph": lambda: made().subgraph(torch.arange(NODES).flip(0)),
        "a batch": lambda: Batch.from_data_list([made(), made()]),
        "fewer edges": lambda: _fewer(made()),
        "an edge subgraph": lambda: made().edge_subgraph(torch.arange(5)),
        "other sequences": lambda: _other(made()),
        "no sequences": _plain,
        "a loader": lambda: next(iter(NeighborLoader(made(), [2], batch_size=5))),
    }
    for title, change in changes.items():
        expect: Expect = "either" if title in ("a permuted subgraph", "a loader") else "refused"

        def act(change: Any = change) -> Any:
            try:
                data = change()
            except ImportError as error:  # a loader needs pyg-lib or torch-sparse
                raise ValueError(f"data.sequences: {error}") from None
            return DGT(4, 8, 3, criteria=1, heads=2, keys=2).eval()(data.x, current_sequences(data))

        yield _case(f"stale sequences: {title}", expect, act, ("sequences",))
    yield _case(
        "subgraph with its sequences",
        "refused",
        lambda: _straight(made().subgraph(torch.arange(20))),
        ("sequences|shape",),
    )
    yield _case("control: current sequences", "accepted", lambda: current_sequences(made()))
    yield _case("control: a copy", "accepted", lambda: current_sequences(made().clone()))
    for name, make in OBJECTS.items():
        yield _case(
            f"current_sequences({name})",
            "refused",
            lambda m=make: current_sequences(m()),
            ("sequences|data|graph",),
        )


def _straight(data: Data) -> Any:
    from dgt import DGT

    return DGT(4, 8, 3, criteria=1, heads=2, keys=2).eval()(data.x, data.sequences)


def _fewer(data: Data) -> Data:
    data.edge_index = data.edge_index[:, 1:]
    return data


def _other(data: Data) -> Data:
    data.sequences = data.sequences[:, :5]
    return data
