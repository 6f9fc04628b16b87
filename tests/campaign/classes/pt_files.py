"""Graphs saved with ``torch.save``: damaged, hostile, and with values of every kind."""

import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.classes.training import some, train
from tests.campaign.hostile import Hostile
from tests.campaign.material import (
    graph,
    tensors,
)

FILE = "graph.pt"


def cases() -> Iterator[Case]:
    content = _pt(tensors())
    for name, changed in mutations.damaged(content, "pt", 16):
        yield _case(name, "either", lambda p, c=changed: p.write_bytes(c))
    others: dict[str, Callable[[], Any]] = {
        "None": lambda: None,
        "a number": lambda: 3,
        "text": lambda: "abc",
        "a list": lambda: [torch.ones(2)],
        "a tensor": lambda: torch.ones(30, 4),
        "an empty dict": dict,
        "a dict of numbers": lambda: {1: 2},
        "a nested dict": lambda: {"x": {"x": {}}},
        "an empty Data": Data,
        "a tuple": lambda: (1, 2),
        "a dict with an unknown key": lambda: tensors() | {"surplus": torch.ones(3)},
        "a dict with a None": lambda: tensors() | {"x": None},
        "a Data without edges": lambda: Data(x=torch.ones(30, 4)),
        "a Data with text for x": lambda: Data(x="abc", edge_index=torch.zeros(2, 1).long()),
    }
    for name, value in others.items():
        yield _case(f"holds {name}", "refused", lambda p, v=value: torch.save(v(), p))
    for key in ("x", "y", "edge_index", "train_mask", "node_ids", "class_names"):
        for number, value in enumerate(mutations.REPLACEMENTS):
            expect: Expect = (
                "refused" if key in ("x", "y", "edge_index", "train_mask") else "either"
            )
            if value is None:
                expect = "either"
            write = lambda p, k=key, v=value: torch.save(tensors() | {k: v}, p)
            yield _case(
                f"{key} is {mutations.short(value)} {number}",
                expect,
                write,
                check=lambda _: some(),
            )
    for where in ("alone", "in a dict", "in a list of ids", "in a Data"):
        for protocol in (2, 4):
            yield _case(
                f"hostile pickle {where}, protocol {protocol}",
                "refused",
                _hostile(where, protocol),
            )
    yield _case(
        "a plain hostile pickle",
        "refused",
        lambda p: p.write_bytes(pickle.dumps(Hostile())),
    )
    yield _case(
        "hostile code in a module",
        "refused",
        lambda p: torch.save(torch.nn.Linear(2, 2), p),
    )
    yield _case("control: a dict", "accepted", lambda p: torch.save(tensors(), p))
    yield _case("control: a Data", "accepted", lambda p: torch.save(graph(), p))
    yield _case(
        "control: the old format",
        "accepted",
        lambda p: torch.save(tensors(), p, _use_new_zipfile_serialization=False),
    )
    yield _case(
        "control: double features",
        "accepted",
        lambda p: torch.save(tensors() | {"x": graph().x.double()}, p),
    )
    yield _case(
        "control: sparse features",
        "accepted",
        lambda p: torch.save(tensors() | {"x": graph().x.to_sparse()}, p),
    )
    yield _case(
        "control: NumPy inside",
        "either",
        lambda p: torch.save(tensors() | {"x": graph().x.numpy()}, p),
    )


def _case(
    name: str,
    expect: Expect,
    write: Callable[[Path], object],
    check: Callable[[Any], object] | None = None,
) -> Case:
    return train(name, expect, lambda: write(Path(FILE)), (FILE,), check, FILE)


def _hostile(where: str, protocol: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        content: Any = Hostile()
        if where == "in a dict":
            content = tensors() | {"x": Hostile()}
        elif where == "in a list of ids":
            content = tensors() | {"node_ids": [Hostile()]}
        elif where == "in a Data":
            content = graph()
            content.note = Hostile()
        torch.save(content, path, pickle_protocol=protocol)

    return write


def _pt(content: Any) -> bytes:
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()
