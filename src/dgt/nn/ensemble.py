"""Several networks that are trained independently and predict together."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Ensemble(nn.Module):
    r"""The mean of the logits of several networks:

    .. math::
        f(\mathbf{x}) = \frac{1}{R} \sum_{r=1}^{R} f_r(\mathbf{x})

    The members differ in their initial weights and in what dropout draws. Their mistakes differ,
    too, and partly cancel out.

    Args:
        members: The networks, with the same inputs and outputs.
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members: Sequence[nn.Module] = nn.ModuleList(members)  # type: ignore[assignment]

    def forward(self, **inputs: Any) -> Tensor:
        """Returns the mean of the logits that all members return for the same inputs."""
        return torch.stack([member(**inputs) for member in self.members]).mean(dim=0)


def together(networks: Sequence[nn.Module]) -> nn.Module:
    """Returns an ensemble of the networks; a single one stays as it is."""
    return networks[0] if len(networks) == 1 else Ensemble(networks)


def members_of(model: nn.Module) -> Sequence[nn.Module]:
    """Returns the members of an ensemble; a single network is its own only member."""
    return list(model.members) if isinstance(model, Ensemble) else [model]
