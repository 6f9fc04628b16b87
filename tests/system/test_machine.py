"""The free memory of the machine, with and without containers."""

from collections.abc import Callable

import numpy as np
import psutil
import pyarrow as pa
import pytest
import torch

from dgt.errors import MemoryNeeded
from dgt.system import machine


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    (tmp_path / "limit").write_text("3000000\n")
    (tmp_path / "usage").write_text("1000000\n")
    files = [str(tmp_path / name) for name in ("limit", "usage")]
    monkeypatch.setattr(machine, "CGROUPS", [files])
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert machine.available() == 2_000_000
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # ranks of this machine share it
    assert machine.available() == 1_000_000
    (tmp_path / "limit").write_text("max\n")
    assert machine.available() > 2_000_000


def test_without_cgroups_and_glibc(tmp_path, monkeypatch):
    """As on macOS."""
    monkeypatch.setattr(machine, "CGROUPS", [[str(tmp_path / "a"), str(tmp_path / "b")]])
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda name: object())
    assert machine.available() > 0
    machine.trim(from_now_on=True)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (999_999, "1.0 MB"), (2.5e9, "2.5 GB"),
     (8e12, "8.0 TB"), (4e21, "4,000.0 EB")],
)  # fmt: skip
def test_sizes(count: float, text: str):
    assert machine.size(count) == text


def allocate_torch() -> None:
    torch.empty(2**60, dtype=torch.uint8)


def allocate_torch_overflow() -> None:
    torch.empty(2**40, 2**40)


def allocate_numpy() -> None:
    np.empty(2**50, dtype=np.uint8)


def allocate_numpy_overflow() -> None:
    np.empty((2**40, 2**40))


def allocate_arrow() -> None:
    pa.allocate_buffer(2**60)


def allocate_python() -> None:
    bytearray(2**62)


@pytest.mark.parametrize(
    ("allocate", "asked"),
    [
        (allocate_torch, "could not allocate 1.2 EB"),
        (allocate_torch_overflow, ""),
        (allocate_numpy, "could not allocate 1.1 PB"),
        (allocate_numpy_overflow, ""),
        (allocate_arrow, "could not allocate 1.2 EB"),
        (allocate_python, ""),
    ],
)
def test_failures_to_allocate_are_recognized(allocate: Callable[[], None], asked: str):
    with pytest.raises((MemoryError, RuntimeError, ValueError)) as caught:
        allocate()
    message = machine.out_of_memory(caught.value)
    assert message is not None
    assert message.startswith(f"out of memory: {asked}")
    assert "this machine has" in message


@pytest.mark.parametrize(
    "error",
    [ValueError("wrong"), RuntimeError("size mismatch"), OSError(2, "no such file"), KeyError(1)],
)
def test_other_errors_are_not_a_lack_of_memory(error: Exception):
    assert machine.out_of_memory(error) is None
    assert machine.out_of_memory(OSError(12, "Cannot allocate memory")) is not None


def test_the_limit_of_the_address_space_counts(monkeypatch):
    used = psutil.Process().memory_info().vms
    monkeypatch.setattr(machine, "address_space", lambda: used + 50_000_000)
    assert machine.available() <= 50_000_000
    monkeypatch.setattr(machine, "address_space", lambda: used // 2)
    assert machine.available() == 0
    monkeypatch.setattr(machine, "address_space", lambda: 1_500_000_000)
    with pytest.raises(MemoryNeeded, match=r"needs 2\.0 GB of address space .* to 1\.5 GB"):
        machine.require_address_space()
    monkeypatch.setattr(machine, "address_space", lambda: None)
    machine.require_address_space()


def test_what_does_not_fit_is_refused():
    machine.require(1000, "this", free=1000)
    message = "that needs 8.0 TB of memory, but this machine has 1.0 kB available"
    with pytest.raises(MemoryNeeded, match=message):
        machine.require(8e12, "that", free=1000)
