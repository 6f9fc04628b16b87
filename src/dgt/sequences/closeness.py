"""What the scores of criteria mean to attention that sees them.

The closeness of a node is the logarithm of the weight that it starts with.
"""

import numpy as np

# Of two nodes, the one that is more similar by 0.05 starts with e times the weight.
SHARPNESS = 20.0
# Logarithm of the least score, of which float32 can hold the exponential.
LEAST = -30.0


def of_shares(scores: np.ndarray) -> np.ndarray:
    """For scores that are shares, such as PageRank: the weight is the score."""
    positive = np.maximum(scores, np.exp(LEAST))
    return np.log(positive, dtype=np.float32)


def of_cosines(scores: np.ndarray) -> np.ndarray:
    r"""For cosine similarities :math:`s`: the weight is :math:`e^{20 (s - 1)}`, so that nodes which
    are nearly the same stand out."""
    return (SHARPNESS * (scores - 1)).astype(np.float32)
