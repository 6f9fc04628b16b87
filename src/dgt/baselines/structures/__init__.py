"""Inputs that only baselines take, computed from the graph once before training.

Adjacency matrices, shortest paths, embeddings in the plane and smoothed features live here; node
sequences and positional encodings, which DGT takes, in :mod:`dgt.sequences` and
:mod:`dgt.encodings`.
"""

from dgt.baselines.structures.distances import shortest_paths
from dgt.baselines.structures.latent import latent_relations
from dgt.baselines.structures.matrices import joined, mean, normalized, two_hop
from dgt.baselines.structures.smoothing import smoothed, smoothed_neighbors

__all__ = [
    "joined",
    "latent_relations",
    "mean",
    "normalized",
    "shortest_paths",
    "smoothed",
    "smoothed_neighbors",
    "two_hop",
]
