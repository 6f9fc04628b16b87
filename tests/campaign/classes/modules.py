"""DGT as a module: its arguments, its inputs, and sequences that are stale."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import NeighborLoader

from tests.campaign.case import Case, Expect
from tests.campaign.classes.calls import OBJECTS, case
from tests.campaign.classes.transforms import NUMBERS, plain
from tests.campaign.material import NODES


def cases() -> Iterator[Case]:
    yield from _modules()
    yield from _forward()
    yield from _stale()


def _modules() -> Iterator[Case]:
    from dgt import DGT
    from dgt.nn import DeformableGraphAttention

    numbers = ("hidden_channels", "heads", "keys", "blocks", "dropout")
    for name in numbers:
        for title, value in NUMBERS.items():
            fine = title == "0" and name == "dropout"
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
            yield case(f"DGT({name} {title})", "either" if fine else "refused", act, (name,))
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
            yield case(f"DGT({name} {title})", "refused", act, (name,))
    yield case(
        "DGT(heads do not divide)", "refused", lambda: DGT(4, 8, 3, heads=3), ("heads|multiple",)
    )
    yield case(
        "control: DeformableGraphAttention",
        "accepted",
        lambda: DeformableGraphAttention(8, criteria=1, heads=2, keys=2),
    )


def _inputs() -> dict[str, Any]:
    from dgt import Katz, NodeSort

    data = Katz()(NodeSort(["bfs"], length=4)(plain()))
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
            yield case(f"DGT with {name} {title}", expect, act, (f"{name}|x|shape|tensor|dtype",))
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
        yield case(
            f"DGT with nodes {title}",
            "either" if title in ("a list",) else "refused",
            act,
            ("nodes",),
        )
    yield case(
        "control: DGT",
        "accepted",
        lambda: DGT(4, 8, 3, criteria=1, heads=2, keys=2, encoding_channels=NODES).eval()(
            **_inputs()
        ),
        check=_is_logits,
    )
    yield case("control: DGT of some nodes", "accepted", _some_nodes)


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
        return NodeSort(["bfs"], length=4)(plain())

    changes: dict[str, Callable[[], Data]] = {
        "subgraph": lambda: made().subgraph(torch.arange(20)),
        "a permuted subgraph": lambda: made().subgraph(torch.arange(NODES).flip(0)),
        "a batch": lambda: Batch.from_data_list([made(), made()]),
        "fewer edges": lambda: _fewer(made()),
        "an edge subgraph": lambda: made().edge_subgraph(torch.arange(5)),
        "other sequences": lambda: _other(made()),
        "no sequences": plain,
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

        yield case(f"stale sequences: {title}", expect, act, ("sequences",))
    yield case(
        "subgraph with its sequences",
        "refused",
        lambda: _straight(made().subgraph(torch.arange(20))),
        ("sequences|shape",),
    )
    yield case("control: current sequences", "accepted", lambda: current_sequences(made()))
    yield case("control: a copy", "accepted", lambda: current_sequences(made().clone()))
    for name, make in OBJECTS.items():
        yield case(
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
