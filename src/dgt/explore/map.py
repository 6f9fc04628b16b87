"""A map of all nodes: their representations, projected onto two principal components."""

from typing import Any

import numpy as np
import torch

from dgt.explore.session import Session
from dgt.ops.memory import POOL
from dgt.system.machine import trim

MOST_POINTS = 20_000
SEED = 0
INSIDE = 0.995  # share of the nodes that the map shows without zooming out


class Map:
    """The map of a run.

    Args:
        session: The run.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.places, self.shares = principal_components(session.inside.representations())
        count = session.num_nodes
        self.sample = np.arange(count)
        if count > MOST_POINTS:
            chosen = np.random.default_rng(SEED).choice(count, MOST_POINTS, replace=False)
            self.sample = np.sort(chosen)
        # Only this passes over all nodes; the buffers for it are not needed any more.
        POOL.clear()
        trim(from_now_on=True)

    def points(self) -> dict[str, Any]:
        """Returns the nodes of the sample with their coordinates, label, prediction
        and the probability of the prediction."""
        s, session = self.sample, self.session
        return {
            "nodes": s.tolist(),
            "x": self.places[s, 0].round(4).tolist(),
            "y": self.places[s, 1].round(4).tolist(),
            "label": session.labels[s].tolist(),
            "prediction": session.predictions[s].tolist(),
            "probability": session.confidence[s].round(4).tolist(),
            "total": session.num_nodes,
            "shares": self.shares,
        }

    def place(self, node: int) -> list[float]:
        """Returns the coordinates of one node, which need not be in the sample."""
        return self.places[node].round(4).tolist()


def principal_components(z: torch.Tensor) -> tuple[np.ndarray, list[float]]:
    """Projects rows onto their first two principal components.

    Returns:
        Coordinates, float32 ``(N, 2)``, scaled such that all but a few outliers lie between -1 and
        1, and the share of the variance that each component explains. Signs are chosen such that
        the largest entry of a component is positive.
    """
    z = z.float()
    centered = z - z.mean(0)
    covariance = (centered.T @ centered).double() / max(len(z), 1)
    values, vectors = torch.linalg.eigh(covariance)
    two = vectors[:, -2:].flip(1)
    signs = two.gather(0, two.abs().argmax(0, keepdim=True)).sign()
    places = (centered @ (two * signs).float()).numpy()
    if places.shape[1] < 2:  # a single column
        places = np.concatenate([places, np.zeros_like(places)], axis=1)
    shares = (values.flip(0)[:2].clamp(min=0) / values.clamp(min=0).sum().clamp(min=1e-30)).tolist()
    low, high = np.quantile(places, [(1 - INSIDE) / 2, (1 + INSIDE) / 2], axis=0)
    places = places - ((low + high) / 2).astype(places.dtype)
    largest = np.quantile(np.abs(places).max(axis=1), INSIDE)
    return places / max(float(largest), 1e-12), shares
