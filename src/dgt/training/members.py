"""Trains the members of an ensemble, one after another."""

from dataclasses import replace
from typing import Any

from torch import nn

from dgt.config import TrainConfig
from dgt.nn.ensemble import members_of
from dgt.runs.folder import RunFolder
from dgt.training.loop import History, fit

# Between the seeds of two members: runs have seeds 0, 1, 2 and so on, and PyTorch's generator on
# the CPU only takes the lower 32 bits.
STRIDE = 1_000_003
SEEDS = 2**32


def member_seeds(config: TrainConfig) -> list[int]:
    """Returns the seed of each member. That of the first is the seed of the settings."""
    return [(config.seed + r * STRIDE) % SEEDS for r in range(config.members)]


def fit_members(
    model: nn.Module, config: TrainConfig, *, folder: RunFolder | None = None, **given: Any
) -> History:
    """Trains each member of an ensemble by itself, with another seed, or a single network.

    Args:
        model: The model.
        config: The settings.
        folder: The folder of the run.
        **given: The other arguments of :func:`dgt.training.loop.fit`, which trains a network.

    Returns:
        The history. That of an ensemble has the epochs of all members, with ``member`` from 1 on,
        and the best epoch of the first one.
    """
    members = members_of(model)
    histories = []
    pairs = zip(members, member_seeds(config), strict=True)
    for number, (member, seed) in enumerate(pairs, start=1):
        own = replace(config, seed=seed)
        title = "epochs" if len(members) == 1 else f"network {number} of {len(members)}: epochs"
        place = folder if folder is None or number == 1 else folder.of_member(number)
        histories.append(fit(member, config=own, folder=place, title=title, **given))
    first = histories[0]
    if len(members) == 1:
        return first
    rows = [
        {"member": number} | row
        for number, each in enumerate(histories, start=1)
        for row in each.epochs
    ]
    return History(rows, first.best_epoch, sum(each.seconds for each in histories))
