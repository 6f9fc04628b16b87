"""What the scores of criteria mean to attention that sees them.

The closeness of a node is the logarithm of the weight that it starts with.
"""

import numpy as np

from dgt.config import SequenceConfig

# Logarithm of the least score, of which float32 can hold the exponential.
LEAST = -30.0


def of_shares(scores: np.ndarray, settings: SequenceConfig) -> np.ndarray:
    """For scores that are shares, such as PageRank: the weight is the score."""
    positive = np.maximum(scores, np.exp(LEAST))
    return np.log(positive, dtype=np.float32)


def of_cosines(scores: np.ndarray, settings: SequenceConfig) -> np.ndarray:
    r"""For cosine similarities :math:`s`: the weight is :math:`e^{a (s - 1)}` with the sharpness
    :math:`a`, so that nodes which are nearly the same stand out."""
    return (settings.sharpness * (scores - 1)).astype(np.float32)
