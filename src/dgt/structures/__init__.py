"""What models other than DGT take of a graph, computed once: matrices, distances, places."""

from dgt.structures.distances import shortest_paths
from dgt.structures.latent import latent_relations
from dgt.structures.matrices import joined, mean, normalized, two_hop
from dgt.structures.smoothing import smoothed, smoothed_neighbors

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
