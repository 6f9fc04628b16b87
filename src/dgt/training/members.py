"""Trains the members of an ensemble, one after another."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from dgt.config import TrainConfig
from dgt.nn.ensemble import members_of
from dgt.runs.folder import RunFolder
from dgt.training.batching import Whole
from dgt.training.loop import History, fit
from dgt.training.task import Task

# Between the seeds of two members: runs have seeds 0, 1, 2 and so on, and PyTorch's generator on
# the CPU only takes the lower 32 bits.
STRIDE = 1_000_003
SEEDS = 2**63


def member_seeds(config: TrainConfig) -> list[int]:
    """Returns the seed of each member. That of the first is the seed of the settings."""
    return [(config.seed + r * STRIDE) % SEEDS for r in range(config.members)]


def fit_members(
    model: nn.Module,
    steps: Whole,
    task: Task,
    y: Tensor,
    train_mask: Tensor,
    val_mask: Tensor,
    config: TrainConfig,
    *,
    folder: RunFolder | None = None,
    on_epoch: Callable[[int, float], None] | None = None,
    **how: Any,
) -> History:
    """Trains each member of an ensemble by itself, with another seed; arguments as for
    :func:`dgt.training.loop.fit`, which trains a single network.

    Returns:
        The history. That of an ensemble has the epochs of all members, with ``member`` from 1 on,
        and the best epoch of the first one.
    """
    members = members_of(model)
    histories = []
    each = zip(members, member_seeds(config), strict=True)
    for number, (member, seed) in enumerate(each, start=1):
        own = replace(config, seed=seed)
        title = "epochs" if len(members) == 1 else f"network {number} of {len(members)}: epochs"
        place = folder if folder is None or number == 1 else folder.of_member(number)
        histories.append(
            fit(
                member, steps, task, y, train_mask, val_mask, own,
                folder=place, on_epoch=on_epoch, title=title, **how,
            )
        )  # fmt: skip
    first = histories[0]
    if len(members) == 1:
        return first
    rows = [
        {"member": number} | row
        for number, each in enumerate(histories, start=1)
        for row in each.epochs
    ]
    return History(rows, first.best_epoch, sum(each.seconds for each in histories))
