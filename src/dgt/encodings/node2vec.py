"""The Node2Vec encoding: vectors that tell which nodes a random walk meets together."""

import numpy as np
import torch
from numba import njit
from torch import Tensor

from dgt import threads
from dgt.graph import adjacency

WALKS = 10  # from each node
LENGTH = 40
WINDOW = 5
NEGATIVES = 5
LR = 0.025


def node2vec(
    edge_index: Tensor,
    num_nodes: int,
    *,
    channels: int = 64,
    p: float = 1.0,
    q: float = 1.0,
    seed: int = 0,
) -> Tensor:
    r"""The node vectors :math:`\mathbf{u}` of `"node2vec: Scalable Feature Learning for Networks"
    <https://arxiv.org/abs/1607.00653>`_: skip-gram with negative sampling over random walks, which
    for nodes :math:`c` near :math:`i` in a walk, and drawn nodes :math:`n`, minimises

    .. math::
        -\log \sigma(\mathbf{u}_i^\top \mathbf{v}_c) -
        \sum_n \log \sigma(-\mathbf{u}_i^\top \mathbf{v}_n)

    by stochastic gradient descent, on one thread: the same seed gives the same bits. The vectors
    belong to this graph; those of another are not in the same space.

    Args:
        edge_index: the edges, int64 [2, E]; taken as undirected, self-loops left out.
        num_nodes: number of nodes N.
        channels: size of a vector.
        p: how little walks like to step back: the weight of the last node is 1/p.
        q: how little they like to go on: the weight of a node that is no neighbour of the last one
            is 1/q.
        seed: seed of the walks and of training.

    Returns:
        float32 [N, channels], zero for a node without edges.
    """
    walks = random_walks(edge_index, num_nodes, p=p, q=q, seed=seed)
    met = np.bincount(walks.ravel(), minlength=num_nodes) if walks.size else np.zeros(num_nodes)
    generator = np.random.default_rng(seed)
    u = ((generator.random((num_nodes, channels)) - 0.5) / channels).astype(np.float32)
    v = np.zeros_like(u)
    if walks.size:
        drawn = np.cumsum(met**0.75)
        _train(generator.permutation(walks), drawn / drawn[-1], u, v, np.uint64(seed))
    u[met == 0] = 0
    return torch.from_numpy(u)


def random_walks(
    edge_index: Tensor, num_nodes: int, *, p: float, q: float, seed: int
) -> np.ndarray:
    """Biased walks, int32 [walks, LENGTH], WALKS of them from each node that has an edge."""
    A = adjacency(edge_index, num_nodes)
    starts = np.repeat(np.flatnonzero(np.diff(A.indptr)), WALKS)
    walks = np.empty((len(starts), LENGTH), np.int32)
    walks[:, 0] = starts
    arguments = (A.indptr, A.indices, 1 / p, 1 / q, np.uint64(seed), walks)
    threads.run(_walk, 1 + len(walks) // 1024, *arguments)
    return walks


@njit(cache=True, nogil=True)
def _random(state):  # type: ignore[no-untyped-def]
    """The next number of a sequence (SplitMix64), as a state and as a fraction of 1."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return state, (z >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def _walk(thread, threads, indptr, indices, back, away, seed, walks):  # type: ignore[no-untyped-def]
    highest = max(1.0, back, away)
    for w in range(thread, len(walks), threads):
        # Each walk starts at a random place of the sequence of all numbers.
        _, place = _random((seed << np.uint64(32)) + np.uint64(w))
        state = np.uint64(place * 2.0**53)
        node, last = walks[w, 0], -1
        for step in range(1, walks.shape[1]):
            begin, end = indptr[node], indptr[node + 1]
            while True:  # a neighbour is drawn until one is accepted, by its weight
                state, share = _random(state)
                following = indices[begin + int(share * (end - begin))]
                if last < 0:
                    break
                if following == last:
                    weight = back
                else:
                    near = indices[indptr[last] : indptr[last + 1]]
                    at = np.searchsorted(near, following)
                    weight = 1.0 if at < len(near) and near[at] == following else away
                state, share = _random(state)
                if share * highest < weight:
                    break
            last, node = node, following
            walks[w, step] = node


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _train(walks, drawn, u, v, seed):  # type: ignore[no-untyped-def]
    """One pass of gradient descent over all walks, its rate falling to zero."""
    channels = u.shape[1]
    step = np.empty(channels, np.float32)
    state = seed
    for w in range(len(walks)):
        rate = np.float32(LR * (1 - w / len(walks)))
        for at in range(walks.shape[1]):
            centre = u[walks[w, at]]
            state, share = _random(state)
            window = 1 + int(share * WINDOW)  # near nodes count more
            for near in range(max(0, at - window), min(walks.shape[1], at + window + 1)):
                if near == at:
                    continue
                step[:] = 0
                for n in range(NEGATIVES + 1):
                    other = walks[w, near]
                    if n > 0:
                        state, share = _random(state)
                        other = np.searchsorted(drawn, share, side="right")
                        if other == walks[w, near]:
                            continue
                    context = v[other]
                    score = np.float32(0)
                    for c in range(channels):
                        score += centre[c] * context[c]
                    wanted = 1.0 if n == 0 else 0.0
                    gradient = rate * np.float32(wanted - 1 / (1 + np.exp(-score)))
                    for c in range(channels):
                        step[c] += gradient * context[c]
                        context[c] += gradient * centre[c]
                for c in range(channels):
                    centre[c] += step[c]
