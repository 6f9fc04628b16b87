"""The operators that the models are made of, one folder or file each.

Every operator is a ``torch.library`` operator (``torch.ops.dgt``) with two forms: a plain one in
PyTorch, which runs on any device (``reference.py``), and a fused one for the CPU (``cpu.py``).
Deformable attention has a third one for GPUs (``triton.py``). PyTorch's dispatcher chooses between
them; see :mod:`dgt.ops.define`. Backward passes are operators, too. All forms of an operator check
shapes, dtypes, devices and indices (:mod:`dgt.ops.checks`) before they access any memory, and raise
the same errors.
Modules that implement an equation of a paper live in :mod:`dgt.nn` and :mod:`dgt.baselines`.
"""

__all__ = [
    "deformable_attention",
    "distance_attention",
    "dropout",
    "edges",
    "linear",
    "memory",
    "norm",
    "softmax",
    "sparse",
]
