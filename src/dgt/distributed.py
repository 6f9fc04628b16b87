"""Training by several processes, on one machine or more, each of which owns a range of the nodes.

``torchrun`` starts the processes; gloo carries what they exchange on CPUs, NCCL on GPUs.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from dgt.config import Config
from dgt.errors import InputError, RankError
from dgt.nn.bounded import Chunks
from dgt.nn.sparse import Rows, take_rows
from dgt.steps import Whole

# A process that ends is noticed at once; this is for one whose machine falls silent. Others also
# wait this long for the first one to prepare the graph.
TIMEOUT = timedelta(minutes=30)
# Rows that work apart from the attention is done for at a time.
CHUNK = 16_384

# PyTorch has given them these names; before 2.13 they had the others.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

Result = TypeVar("Result")


def rank() -> int:
    """This process's number, from 0 on."""
    return int(os.environ.get("RANK", "0")) if launched() else 0


def launched() -> bool:
    """Whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def restarted() -> bool:
    """Whether torchrun has started the job anew after a failure."""
    return launched() and _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def job() -> Iterator[None]:
    """Connects the processes that torchrun has started; alone, does nothing."""
    if not launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        store, number, count = next(dist.rendezvous("env://", timeout=TIMEOUT))
        # A restart must not find the addresses of the processes before it.
        store = dist.PrefixStore(f"restart-{_restarts()}", store)
        dist.init_process_group(
            backend, store=store, rank=number, world_size=count, timeout=TIMEOUT
        )
        yield
    except (dist.DistError, RuntimeError) as error:
        if not _is_connection(error):
            raise
        reason = str(error).strip().splitlines()[-1]
        raise RankError(
            f"rank {rank()} of {os.environ['WORLD_SIZE']} has lost another rank, which was killed, "
            "has failed or cannot be reached; its own message, if any, says why. The run goes on "
            f"from its last checkpoint with --resume ({reason})"
        ) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _is_connection(error: Exception) -> bool:
    words = ("gloo", "connection", "peer", "socket", "timed out", "nccl", "store")
    return isinstance(error, dist.DistError) or any(w in str(error).lower() for w in words)


def size() -> int:
    """Number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def require_possible(config: Config) -> None:
    """Refuses settings that several processes cannot share."""
    if size() > 1 and not config.is_dgt:
        raise InputError(f"model: {config.model.model} trains in one process; dgt in several")
    if size() > 1 and config.train.batch_size is not None:
        raise InputError(
            "batch_size: several processes share a step; use chunk_size for less memory"
        )
    if size() > 1 and config.model.norm == "batch":
        raise InputError("norm: a batch norm needs all nodes in one process; choose another norm")


def by_first(work: Callable[[], Result]) -> Result:
    """What ``work()`` returns, or raises, on rank 0, which alone does it; on every rank."""
    if size() == 1:
        return work()
    answer: list[Any] = [None, None]
    if rank() == 0:
        try:
            answer[0] = work()
        except InputError as error:
            answer[1] = error
    dist.broadcast_object_list(answer)
    if answer[1] is not None:
        raise answer[1]
    return answer[0]


def first_of_machine_first(work: Callable[[], Result]) -> Result:
    """``work()`` by one process of each machine, then by the others: what the one leaves in the
    machine's cache, the others find."""
    if size() == 1:
        return work()
    local = int(os.environ["LOCAL_RANK"])
    result = work() if local == 0 else None
    dist.barrier()
    return work() if local else result  # type: ignore[return-value]


class Ranks(Whole):
    """The nodes of one process among several: its own rows of all inputs. Values of other nodes
    are exchanged in each block, a criterion at a time.

    Args:
        inputs: What the model takes for the whole graph, by name.
        chunk: Nodes in a chunk.
    """

    def __init__(self, inputs: Mapping[str, Any], chunk: int | None = None) -> None:
        self._identity = by_first(Whole(inputs).identity)
        N = inputs["sequences"].size(1)
        self.nodes = N
        self.share = -(-N // size())
        self.start, self.stop = rank() * self.share, min(N, (rank() + 1) * self.share)
        if (size() - 1) * self.share >= N:
            raise InputError(f"{size()} processes are too many for a graph of {N} nodes")
        own = {
            name: None if inputs[name] is None else _copy(inputs[name], self.start, self.stop)
            for name in ("x", "encoding")
        }
        sequences = inputs["sequences"][:, self.start : self.stop].clone()
        super().__init__({**own, "sequences": sequences})
        self.chunk = chunk

    def inputs(self, nodes: Tensor | None) -> dict[str, Any]:
        before = self.start if nodes is None else int((nodes < self.start).sum())
        sizes = (CHUNK, self.share) if self.chunk is None else (self.chunk, self.chunk)
        way = Chunks(sizes[0], self, self.start, before, queries=sizes[1])
        own = None if nodes is None else self.own(nodes) - self.start
        return {**self.given, "nodes": own, "way": way}

    def own(self, nodes: Tensor) -> Tensor:
        return nodes[(nodes >= self.start) & (nodes < self.stop)]

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        tensors = list(tensors)
        flat = torch.cat([t.flatten() for t in tensors])
        dist.all_reduce(flat)
        for tensor, total in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def predict(self, model: nn.Module) -> Tensor:
        return self.gather(super().predict(model))[: self.nodes]

    def identity(self) -> str:
        return self._identity

    def gather(self, own: Tensor) -> Tensor:
        """The rows of all nodes, and padding, from each process's own."""
        everything = own.new_empty(size() * self.share, own.size(1))
        if len(own) < self.share:
            own = torch.cat([own, own.new_zeros(self.share - len(own), own.size(1))])
        _all_gather(everything, own.contiguous())
        return everything

    def sum_own(self, rows: Tensor) -> Tensor:
        """The sum over the processes of the rows of each one's own nodes."""
        own = rows.new_empty(self.share, rows.size(1))
        _reduce_scatter(own, rows.contiguous())
        return own[: self.stop - self.start]


def _copy(x: Tensor, start: int, stop: int) -> Rows:
    """The rows alone, so that the rest can go from memory."""
    rows = take_rows(x, start, stop)
    return rows._replace(matrix=rows.matrix.clone())
