"""A training step with several processes, each of which owns a range of the nodes."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from dgt.errors import InputError
from dgt.nn.precision import is_mixed
from dgt.nn.rows import Shared, using
from dgt.ops import sums
from dgt.ops.half import statistics_type
from dgt.ops.sparse import Rows, take_rows
from dgt.system.devices import move
from dgt.training.batching import Forward, Whole
from dgt.training.distributed import by_first, rank, size

# Default number of nodes per chunk. Attention then takes a small part of the memory.
CHUNK = 16_384

# PyTorch 2.13 renamed both functions.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class Ranks(Whole):
    """The nodes of one process among several, with its own rows of all inputs.

    In each block, the processes exchange the values of their nodes, one criterion at a time.

    Args:
        inputs: The model's keyword arguments for the whole graph, except for ``nodes``.
        chunk: Nodes per chunk.
        device: Device that the rows of this process are moved to (default: where they are).
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        chunk: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        device = device or inputs["sequences"].device
        self._identity = by_first(Whole(inputs).identity)
        N = inputs["sequences"].size(1)
        self.total = N
        self.share = share_of(N, size())
        self.start, self.stop = rank() * self.share, min(N, (rank() + 1) * self.share)
        if (size() - 1) * self.share >= N:
            raise InputError(f"{size()} processes are too many for a graph with {N} nodes")
        own = slice(self.start, self.stop)
        rows: dict[str, Any] = {}
        for name, x in inputs.items():
            if x is None:
                rows[name] = None
            elif name in ("sequences", "closeness"):
                rows[name] = move(x[:, own].clone(), device)
            else:
                copied = _copy(x, self.start, self.stop, device)
                rows[name] = copied.matrix if name == "labels" else copied
        super().__init__(rows)
        self.chunk = chunk or CHUNK

    @property
    def num_nodes(self) -> int:
        return self.total

    def rows_of(self, nodes: Tensor) -> Tensor:
        return self.own(nodes) - self.start

    def logits(self, model: Forward, nodes: Tensor | None = None) -> Tensor:
        before = self.start if nodes is None else int((nodes < self.start).sum())
        own = None if nodes is None else self.rows_of(nodes)
        with using(Shared(self.chunk, self, first=self.start, before=before)):
            return model(**self.given, nodes=own)

    def predict(self, model: Forward) -> Tensor:
        return self.gather(self.logits(model))[: self.num_nodes]

    def own(self, nodes: Tensor) -> Tensor:
        return nodes[(nodes >= self.start) & (nodes < self.stop)]

    def all_of(self, rows: Tensor, nodes: Tensor) -> Tensor:
        owner = nodes // self.share
        counts = owner.bincount(minlength=size())
        most = int(counts.max())
        everything = self._gather(rows, most)
        # The rows of each process are in the order of ``nodes``.
        order = owner.argsort(stable=True)
        before = (counts.cumsum(0) - counts)[owner[order]]
        index = torch.empty_like(nodes)
        index[order] = owner[order] * most + torch.arange(len(nodes), device=nodes.device) - before
        return everything[index]

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        tensors = list(tensors)
        flat = torch.cat([t.flatten() for t in tensors])
        dist.all_reduce(flat)
        for tensor, total in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    @contextmanager
    def gradients(self, model: nn.Module) -> Iterator[None]:
        # The weights are in double precision for a while, with the same values. So are their
        # gradients, which are rounded only after they were added up.
        weights = list(model.parameters())
        kept = [weight.data for weight in weights]
        for weight in weights:
            if weight.is_cpu and not is_mixed(model):
                weight.grad, weight.data = None, weight.data.double()
        try:
            yield
            self.add_up(w.grad for w in weights if w.grad is not None)
        finally:
            for weight, data in zip(weights, kept, strict=True):
                grad, weight.grad = weight.grad, None
                weight.data = data
                weight.grad = None if grad is None else grad.to(data.dtype)

    def identity(self) -> str:
        return self._identity

    def gather(self, own: Tensor) -> Tensor:
        """Collects the rows of all nodes, followed by padding."""
        return self._gather(own, self.share)

    def sum_own(self, rows: Tensor) -> Tensor:
        """Returns the rows of this process's own nodes, summed over all processes."""
        exact = rows.to(statistics_type(rows))  # half precision would round every partial sum
        own = exact.new_empty(self.share, rows.size(1))
        _reduce_scatter(own, exact.contiguous())
        return own[: self.stop - self.start].to(rows.dtype)

    def _gather(self, rows: Tensor, count: int) -> Tensor:
        """Concatenates the rows of all processes, each padded to ``count`` rows."""
        everything = rows.new_empty(size() * count, rows.size(1))
        if len(rows) < count:
            rows = torch.cat([rows, rows.new_zeros(count - len(rows), rows.size(1))])
        _all_gather(everything, rows.contiguous())
        return everything


def share_of(nodes: int, ranks: int) -> int:
    """Returns the number of nodes per rank: whole blocks of nodes, if there are enough."""
    share = -(-nodes // (ranks * sums.BLOCK)) * sums.BLOCK
    return share if (ranks - 1) * share < nodes else -(-nodes // ranks)


def _copy(x: Tensor, start: int, stop: int, device: torch.device) -> Rows:
    """Copies rows to a device, so that the whole matrix can be freed."""
    rows = take_rows(x, start, stop)
    return rows._replace(matrix=move(rows.matrix.clone(), device))
