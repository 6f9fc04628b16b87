"""Training runs on disk.

``folder`` writes the files of a run, ``modelfile`` the trained model among them
with ``facts`` about its graph. ``plan`` chooses
the split and seed of each of several runs, and ``many`` trains them. Training itself is defined in
:mod:`dgt.training`.
"""

__all__ = ["folder", "many", "modelfile", "plan"]
