"""Devices and their random number generators."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor

from dgt.config import Config
from dgt.errors import InputError
from dgt.system.machine import available

log = logging.getLogger("dgt")

FUSED_DEVICES = ("cpu", "cuda")
"""The types of devices with fused operators."""
FUSED_ADAM = ("cpu", "cuda", "mps")


def resolve(name: str, double: bool = False) -> torch.device:
    """Returns the device for the setting ``device``.

    Args:
        name: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``. ``auto`` is a GPU if torch can use
            one on this machine, and the CPU otherwise. ``cuda`` is the first GPU or, with several
            ranks on a machine, one GPU per rank.
        double: Whether the device must support double precision.

    Raises:
        InputError: If the name is unknown or the device is not available.
    """
    if name == "auto":
        mps = _has_mps() and not double
        name = "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    if name == "mps" and double:
        raise InputError("device: mps does not support double precision; use single, or cpu")
    kind, colon, index = name.partition(":")
    if kind == "cuda" and (not colon or index.isdecimal()):
        return torch.device("cuda", _gpu(name, int(index or os.environ.get("LOCAL_RANK", "0"))))
    if name == "mps" and not _has_mps():
        raise InputError("device: mps: this machine or this build of torch has no Apple GPU")
    if name not in ("cpu", "mps"):
        raise InputError(f"device: got {name!r}, expected auto, cpu, cuda, cuda:N or mps")
    say_fallback(name)
    return torch.device(name)


def device_of(config: Config) -> torch.device:
    """Returns the device that the settings choose."""
    return resolve(config.train.device, double=config.model.precision == "double")


def _gpu(name: str, index: int) -> int:
    if not torch.backends.cuda.is_built():
        raise InputError(f"device: {name}: this build of torch has no CUDA")
    count = torch.cuda.device_count()
    if index >= count:
        raise InputError(f"device: {name}: no such GPU; torch finds {count} on this machine")
    return index


def _has_mps() -> bool:
    return torch.backends.mps.is_available()


def free_memory(device: torch.device) -> int | None:
    """Returns the number of free bytes on a device; None if PyTorch cannot tell."""
    if device.type == "cpu":
        return available()
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def move(x: Tensor, device: torch.device) -> Tensor:
    """Moves a tensor; to a GPU from pinned memory, so that the copy overlaps with other work."""
    if device.type != "cuda" or not x.is_cpu:
        return x.to(device)
    return pinned(x, device).to(device, non_blocking=True)


def pinned(x: Tensor, device: torch.device) -> Tensor:
    """Returns a tensor that stays on the CPU, in pinned memory if parts of it go to a GPU."""
    return x.pin_memory() if device.type == "cuda" and x.layout == torch.strided else x


@cache
def say_fallback(kind: str) -> None:
    """Says once that operators have no fused form for a type of device."""
    if kind not in FUSED_DEVICES:
        log.warning(
            "device %s: operators have no fused form for it and use plain PyTorch, which is slower "
            "and takes more memory than on cuda or cpu",
            kind,
        )


def supports_fused_adam(device: torch.device) -> bool:
    """Returns whether PyTorch has a fused Adam for the device."""
    return device.type in FUSED_ADAM


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seeds all random numbers inside the context, and restores the previous state afterwards."""
    gpus = [device] if device.type == "cuda" else []
    before = random_state(device) if device.type == "mps" else None  # fork_rng does not support mps
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed(seed)
        try:
            yield
        finally:
            if before is not None:
                set_random_state(before, device)


def random_state(device: torch.device) -> Tensor | None:
    """Returns the random number state of a GPU as a CPU tensor; None for the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.mps.get_rng_state() if device.type == "mps" else None


def set_random_state(state: Tensor, device: torch.device) -> None:
    """Restores a state from :func:`random_state`."""
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    elif device.type == "mps":
        torch.mps.set_rng_state(state)
