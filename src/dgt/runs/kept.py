"""Keeps the weights of a few epochs of a run, to look back at its training."""

import json
import re
from pathlib import Path

from torch import Tensor

from dgt.errors import InputError
from dgt.storage.tensors import read_tensors, write_tensors

FOLDER = "epochs"  # in the folder of a run
NAME = re.compile(r"epoch-(\d{7,})\.safetensors")


def kept_epochs(count: int, last: int) -> range:
    """Returns the epochs whose weights are kept when epoch ``last`` has ended.

    Epoch 0 holds the initial weights. The epochs are evenly spaced, by a power of two, and at most
    ``count``. They depend on nothing else, so a resumed run keeps the same ones.
    """
    stride = 1
    while last // stride + 1 > count:
        stride *= 2
    return range(0, last + 1, stride)


def keep(run: Path, count: int, epoch: int, weights: dict[str, Tensor]) -> None:
    """Keeps the weights of an epoch, if it is one of the :func:`kept_epochs`, and removes the
    epochs that no longer are."""
    wanted = kept_epochs(count, epoch)
    for other, path in find_kept(run).items():
        if other not in wanted:
            path.unlink(missing_ok=True)
    if epoch in wanted:
        path = run / FOLDER / f"epoch-{epoch:07d}.safetensors"
        path.parent.mkdir(exist_ok=True)
        tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
        write_tensors(path, tensors, {"dgt": json.dumps({"epoch": epoch})})


def find_kept(run: Path) -> dict[int, Path]:
    """Returns the files of the kept epochs of a run, in ascending order."""
    folder = run / FOLDER
    paths = folder.iterdir() if folder.is_dir() else ()
    named = ((NAME.fullmatch(path.name), path) for path in paths)
    return dict(sorted((int(match[1]), path) for match, path in named if match))


def read_kept(path: Path) -> dict[str, Tensor]:
    """Reads the weights of a kept epoch."""
    if not path.is_file():
        raise InputError(f"{path}: no such file, expected the weights of an epoch")
    return read_tensors(path)[0]


def clear_kept(run: Path) -> None:
    """Removes the kept epochs of a run. All other files are kept."""
    for path in find_kept(run).values():
        path.unlink(missing_ok=True)
    folder = run / FOLDER
    if folder.is_dir():
        for part in folder.glob(".*.part*"):  # leftovers of interrupted writes
            part.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
