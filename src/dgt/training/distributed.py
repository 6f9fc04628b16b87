"""Processes that train together, on one or several machines; each owns a range of the nodes.

``torchrun`` starts the processes. They communicate by gloo on CPUs and by NCCL on GPUs.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from dgt.config import Config
from dgt.config.config import batching_models
from dgt.errors import InputError, RankError

# A process that ends is noticed at once. The timeout is for machines that stop responding, and for
# processes that wait for the first one to prepare the graph.
TIMEOUT = timedelta(minutes=30)

Result = TypeVar("Result")


def rank() -> int:
    """Returns the rank of this process, starting from 0."""
    return int(os.environ.get("RANK", "0")) if launched() else 0


def launched() -> bool:
    """Returns whether this process was started by torchrun."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def restarted() -> bool:
    """Returns whether torchrun has restarted the job after a failure."""
    return launched() and _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def job() -> Iterator[None]:
    """Connects the processes started by torchrun. Does nothing for a single process."""
    if not launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield
        return
    backend = choose_backend()
    try:
        store, number, count = next(dist.rendezvous("env://", timeout=TIMEOUT))
        # After a restart, the store must not return addresses of earlier processes.
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
            "has failed or cannot be reached; see its own message, if any. Use --resume to "
            f"continue from the last checkpoint ({reason})"
        ) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def choose_backend() -> str:
    """Returns gloo, and NCCL for tensors on GPUs if there are any, and chooses this rank's GPU."""
    if not torch.cuda.is_available():
        return "gloo"
    # NCCL uses the current GPU where no tensor tells which one.
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    return "cpu:gloo,cuda:nccl"


def _is_connection(error: Exception) -> bool:
    words = ("gloo", "connection", "peer", "socket", "timed out", "nccl", "store")
    return isinstance(error, dist.DistError) or any(w in str(error).lower() for w in words)


def size() -> int:
    """Returns the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def require_possible(config: Config) -> None:
    """Raises an error if the settings do not support several processes."""
    if size() > 1 and not config.record.batching:
        raise InputError(
            f"model: only {batching_models()} support several processes, got {config.model.model}"
        )
    if size() > 1 and config.train.batch_size is not None:
        raise InputError(
            "batch_size: not supported with several processes; use chunk_size to save memory"
        )
    if size() > 1 and config.train.compile:
        raise InputError("compile: not supported with several processes")
    if size() > 1 and config.model.norm == "batch":
        raise InputError("norm: a batch norm needs all nodes in one process; choose another norm")


def by_first(work: Callable[[], Result]) -> Result:
    """Calls ``work()`` on rank 0 only; returns its result, or raises its error, on every rank."""
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
    """Calls ``work()`` in one process per machine, then in the others, which find its results in
    the cache of the machine."""
    if size() == 1:
        return work()
    local = int(os.environ["LOCAL_RANK"])
    result = work() if local == 0 else None
    dist.barrier()
    return work() if local else result  # type: ignore[return-value]
