"""Runs the forward pass of every model on a GPU that does not exist.

Fake tensors have shapes, types and a device, but no data. An operation on tensors of different
devices fails as on a real GPU. Unlike ``meta`` tensors, they are dispatched like tensors on a GPU.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from dgt.baselines.gcn import GCNLayer
from dgt.models import MODELS
from tests.test_devices import prepared

aten = torch.ops.aten


class WithoutGuard(TorchFunctionMode):
    """Replaces the two methods that ask CUDA itself for the device, which builds of torch for the
    CPU cannot answer, by operators."""

    def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if function is Tensor.__getitem__:
            return _indexed(*args)
        if function is Tensor.contiguous:
            return aten.clone(args[0], memory_format=torch.contiguous_format)
        return function(*args, **(kwargs or {}))


def _indexed(x: Tensor, index: Any) -> Tensor:
    index = index if isinstance(index, tuple) else (index,)
    if any(each is Ellipsis for each in index):
        place = next(i for i, each in enumerate(index) if each is Ellipsis)
        missing = x.dim() - sum(each is not None and each is not Ellipsis for each in index)
        index = (*index[:place], *[slice(None)] * missing, *index[place + 1 :])
    dim, tensors = 0, {}
    for each in index:
        if isinstance(each, int):
            x = aten.select(x, dim, each)
            continue
        if each is None:
            x = aten.unsqueeze(x, dim)
        elif isinstance(each, slice):
            x = aten.slice(x, dim, each.start, each.stop, each.step or 1)
        else:
            tensors[dim] = each
        dim += 1
    return aten.index(x, [tensors.get(i) for i in range(dim)]) if tensors else x


class Csr:
    """A sparse matrix of fake tensors, which sparse tensors do not support."""

    layout, requires_grad = torch.sparse_csr, False

    def __init__(self, shape: torch.Size, parts: list[Tensor]) -> None:
        self.shape, self.parts = shape, parts
        self.device, self.dtype = parts[2].device, parts[2].dtype

    def crow_indices(self) -> Tensor:
        return self.parts[0]

    def col_indices(self) -> Tensor:
        return self.parts[1]

    def values(self) -> Tensor:
        return self.parts[2]

    def size(self, dim: int) -> int:
        return self.shape[dim]

    def dim(self) -> int:
        return 2


def parts_of(x: Tensor | None) -> list[Tensor]:
    """Returns the dense tensors that an input consists of."""
    if x is None:
        return []
    return [x] if x.layout != torch.sparse_csr else [x.crow_indices(), x.col_indices(), x.values()]


def moved(shape: torch.Size, parts: list[Tensor], device: str) -> Any:
    fake = [torch.empty(x.shape, dtype=x.dtype, device=device) for x in parts]
    return Csr(shape, fake) if len(fake) > 1 else fake[0] if fake else None


def move_weights(model: nn.Module) -> None:
    for module in model.modules():
        for kept in (module._parameters, module._buffers):
            for name, x in kept.items():
                if x is not None:
                    empty = torch.empty(x.shape, dtype=x.dtype, device="cuda")
                    kept[name] = nn.Parameter(empty) if isinstance(x, nn.Parameter) else empty  # type: ignore[assignment]


def run(name: str, sparse: bool, left: str | None = None) -> torch.device:
    """Returns the device of the logits; the input ``left`` stays on the CPU."""
    model, inputs = prepared(name, sparse=sparse)
    shapes = {k: None if x is None else x.shape for k, x in inputs.items()}
    parts = {k: parts_of(x) for k, x in inputs.items()}
    with FakeTensorMode(), torch.no_grad(), WithoutGuard():
        move_weights(model)
        places = {k: "cpu" if k == left else "cuda" for k in inputs}
        given = {k: moved(shapes[k], parts[k], places[k]) for k in inputs}
        model.train()
        return model(**given, nodes=torch.empty(60, dtype=torch.int64, device="cuda")).device


@pytest.fixture(autouse=True)
def sparse_inputs_of_pyg(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyG only takes sparse tensors of PyTorch."""

    def propagate(self: GCNLayer, edges: Any, x: Tensor, **_: Any) -> Tensor:
        return self.message_and_aggregate(edges, x)

    monkeypatch.setattr(GCNLayer, "propagate", propagate)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense features", "sparse features"])
@pytest.mark.parametrize("name", MODELS)
def test_forward_pass_on_a_gpu(name: str, sparse: bool) -> None:
    assert run(name, sparse).type == "cuda"


@pytest.mark.parametrize("name", ["dgt", "mlp", "gat", "gt-sparse", "graphormer"])
def test_features_left_on_the_cpu_are_found(name: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match="device"):
        run(name, sparse=False, left="x")
