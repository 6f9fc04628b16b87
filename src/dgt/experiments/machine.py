"""What may change the digits of a run besides its code: the processor and the libraries."""

import platform
from importlib.metadata import version
from pathlib import Path

import torch

from dgt.experiments.record import Record

LIBRARIES = ("numba", "llvmlite", "scipy", "faiss-cpu")
"""Libraries that compute, besides those in :attr:`~dgt.experiments.record.Record.versions`."""
CPUINFO = Path("/proc/cpuinfo")


def machine() -> dict[str, str]:
    """Returns the processor of this machine, the instructions that PyTorch uses on it, and versions
    of libraries. The number of cores and threads does not change a result."""
    return {
        "processor": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        **{name: version(name) for name in LIBRARIES},
    }


def processor() -> str:
    """Returns the name of the processor. Virtual machines may shorten it, so that its family and
    model number are appended."""
    try:
        text = CPUINFO.read_text()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    pairs = (line.partition(":")[::2] for line in text.partition("\n\n")[0].splitlines())
    facts = {name.strip(): value.strip() for name, value in pairs}
    name = facts.get("model name", platform.machine())
    numbers = [f"{key} {facts[key]}" for key in ("cpu family", "model") if key in facts]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def differences(before: Record, now: Record) -> list[str]:
    """Returns what is known to differ between the machines of two records, as text."""
    old, new = (each.versions | each.machine for each in (before, now))
    return [
        f"{name} {old[name]}, now {new[name]}"
        for name in old
        if name != "dgt" and name in new and old[name] != new[name]
    ]
