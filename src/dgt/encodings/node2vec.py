"""The Node2Vec encoding: vectors that are similar for nodes on the same random walks."""

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import EncodingConfig
from dgt.data.matrices import adjacency
from dgt.encodings.encoding import Encoding
from dgt.storage import segments
from dgt.storage.files import cache_folder
from dgt.storage.fingerprint import fingerprint
from dgt.system import threads
from dgt.system.progress import progress_bar

WALKS = 10  # from each node
LENGTH = 40
WINDOW = 5
NEGATIVES = 5
LR = 0.025
CHUNK = 2**13  # walks between two steps of the progress bar


def node2vec(
    edge_index: Tensor,
    num_nodes: int,
    *,
    channels: int = EncodingConfig.node2vec_channels,
    p: float = EncodingConfig.node2vec_p,
    q: float = EncodingConfig.node2vec_q,
    seed: int = 0,
) -> Tensor:
    r"""Computes the node vectors :math:`\mathbf{u}` of `"node2vec: Scalable Feature Learning for
    Networks" <https://arxiv.org/abs/1607.00653>`_: skip-gram with negative sampling over random
    walks. For nodes :math:`c` near :math:`i` on a walk and negative samples :math:`n`, it minimizes

    .. math::
        -\log \sigma(\mathbf{u}_i^\top \mathbf{v}_c) -
        \sum_n \log \sigma(-\mathbf{u}_i^\top \mathbf{v}_n)

    by stochastic gradient descent on a single thread, so that the same seed gives the same bits.
    Vectors of different graphs cannot be compared.

    Args:
        edge_index: Edges, int64 ``(2, E)``. They are treated as undirected, and self-loops are
            ignored.
        num_nodes: Number of nodes N.
        channels: Size of the vectors.
        p: Return parameter: the previous node of a walk has weight 1/p.
        q: In-out parameter: a node that is not a neighbor of the previous node has weight 1/q.
        seed: Random seed of the walks and of training.

    Returns:
        float32 ``(N, channels)``, zero for nodes without edges.
    """
    walks = random_walks(edge_index, num_nodes, p=p, q=q, seed=seed)
    visits = np.bincount(walks.ravel(), minlength=num_nodes) if walks.size else np.zeros(num_nodes)
    generator = np.random.default_rng(seed)
    u = ((generator.random((num_nodes, channels)) - 0.5) / channels).astype(np.float32)
    v = np.zeros_like(u)
    if walks.size:
        negatives = np.cumsum(visits**0.75)
        negatives /= negatives[-1]
        walks, state = generator.permutation(walks), seed
        with progress_bar("Training node vectors", len(walks)) as advance:
            for at in range(0, len(walks), CHUNK):
                part = range(at, min(at + CHUNK, len(walks)))
                state = _train(walks, part.start, part.stop, negatives, u, v, np.uint64(state))
                advance(len(part))
    u[visits == 0] = 0
    return torch.from_numpy(u)


def random_walks(
    edge_index: Tensor, num_nodes: int, *, p: float, q: float, seed: int
) -> np.ndarray:
    """Samples biased random walks, ``WALKS`` from each node with an edge.

    Returns:
        int32 ``(walks, LENGTH)``.
    """
    A = adjacency(edge_index, num_nodes)
    starts = np.repeat(np.flatnonzero(np.diff(A.indptr)), WALKS)
    walks = np.empty((len(starts), LENGTH), np.int32)
    walks[:, 0] = starts
    arguments = (A.indptr, A.indices, 1 / p, 1 / q, np.uint64(seed), walks)
    threads.run(_walk, 1 + len(walks) // 1024, *arguments)
    return walks


@njit(cache=True, nogil=True)
def _random(state):  # type: ignore[no-untyped-def]
    """Returns the next state and a random number in [0, 1) (SplitMix64)."""
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
        # Each walk has a random state of its own, so that threads do not change the result.
        _, place = _random((seed << np.uint64(32)) + np.uint64(w))
        state = np.uint64(place * 2.0**53)
        node, last = walks[w, 0], -1
        for step in range(1, walks.shape[1]):
            begin, end = indptr[node], indptr[node + 1]
            while True:  # rejection sampling
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
def _train(walks, first, stop, negatives, u, v, state):  # type: ignore[no-untyped-def]
    """Trains with some walks of an epoch, in which the learning rate decays linearly. Updates ``u``
    and ``v`` in place; ``negatives`` is the cumulative distribution of the negative samples.

    Returns:
        The state of the random numbers.
    """
    channels = u.shape[1]
    step = np.empty(channels, np.float32)
    for w in range(first, stop):
        rate = np.float32(LR * (1 - w / len(walks)))
        for at in range(walks.shape[1]):
            center = u[walks[w, at]]
            state, share = _random(state)
            window = 1 + int(share * WINDOW)  # random, so that closer nodes weigh more
            for near in range(max(0, at - window), min(walks.shape[1], at + window + 1)):
                if near == at:
                    continue
                step[:] = 0
                for n in range(NEGATIVES + 1):
                    other = walks[w, near]
                    if n > 0:
                        state, share = _random(state)
                        other = np.searchsorted(negatives, share, side="right")
                        if other == walks[w, near]:
                            continue
                    context = v[other]
                    score = np.float32(0)
                    for c in range(channels):
                        score += center[c] * context[c]
                    wanted = 1.0 if n == 0 else 0.0
                    gradient = rate * np.float32(wanted - 1 / (1 + np.exp(-score)))
                    for c in range(channels):
                        step[c] += gradient * context[c]
                        context[c] += gradient * center[c]
                for c in range(channels):
                    center[c] += step[c]
    return state


def _cached(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> Tensor:
    """Returns the vectors from the cache, or trains them, which takes some seconds."""
    channels, p, q = settings.node2vec_channels, settings.node2vec_p, settings.node2vec_q
    shape = (data.num_nodes, channels)
    name = fingerprint([data.edge_index], ("node2vec", *shape, p, q))

    def make() -> np.ndarray:
        return node2vec(data.edge_index, data.num_nodes, channels=channels, p=p, q=q).numpy()

    path = cache_folder() / "encodings" / f"{name}.npy"
    kept = segments.mapped(path, shape, np.float32, lambda: [make()])
    return torch.from_numpy(make() if kept is None else kept)


NODE2VEC = Encoding(columns=_cached, carries_over="edges")
