"""Training: the loop, and everything that it works with.

``loop`` is the only training loop; ``steps`` has a single step. ``task`` defines the loss, metrics
and predictions, ``problem`` what a model is trained on, and ``results`` the metrics of a run.
``batching`` bounds memory by chunks and batches, ``ranks`` and ``distributed`` train with several
processes, ``budget`` predicts the memory, and ``checkpoint`` saves the state of training. The files
of a run are written by :mod:`dgt.runs`, the models are defined in :mod:`dgt.nn` and
:mod:`dgt.baselines`.
"""

__all__ = [
    "batching",
    "budget",
    "checkpoint",
    "distributed",
    "loop",
    "problem",
    "ranks",
    "results",
    "steps",
    "task",
]
