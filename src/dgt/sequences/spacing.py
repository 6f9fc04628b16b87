"""Spacing of sequences: the number of positions that each node takes."""

import numpy as np
from numba import njit

from dgt.system import threads


def space_by_score(sequences: np.ndarray, scores: np.ndarray) -> np.ndarray:
    r"""Gives each node a share of the positions of its sequence in proportion to its score:

    .. math::
        S'[i] = S[j] \quad \text{for the first } j \text{ with} \quad
        \sum_{k \leq j} s_k \geq \frac{i + 1/2}{L} \sum_k s_k

    Evenly spread keys then read each node in proportion to its score. A node with a low score may
    have no position at all.

    Args:
        sequences: Nodes, int32 ``(N, L)``, padded with -1.
        scores: Their scores, float32 ``(N, L)``, positive except in the padding.

    Returns:
        int32 ``(N, L)``, without padding.
    """
    spaced = np.empty_like(sequences)
    threads.run(_space, len(sequences), sequences, scores, spaced)
    return spaced


@njit(cache=True, nogil=True)
def _space(thread, threads, sequences, scores, spaced):  # type: ignore[no-untyped-def]
    length = sequences.shape[1]
    for row in range(thread, len(sequences), threads):
        total = 0.0
        last = 0
        for j in range(length):
            if sequences[row, j] >= 0:
                total += scores[row, j]
                last = j
        j, passed = 0, np.float64(scores[row, 0])
        for i in range(length):
            while j < last and passed < total * (i + 0.5) / length:
                j += 1
                passed += scores[row, j]
            spaced[row, i] = sequences[row, j]
