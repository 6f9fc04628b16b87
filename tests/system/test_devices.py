"""Devices by name, and their random numbers."""

import pytest
import torch

from dgt import Config, InputError
from dgt.system.devices import free_memory, resolve, say_fallback, seeded


def test_cpu_and_auto():
    assert resolve("cpu") == torch.device("cpu")
    found = resolve("auto").type
    assert found == ("cuda" if torch.cuda.is_available() else found)
    assert found in ("cpu", "cuda", "mps")


def test_auto_prefers_cuda_then_mps(monkeypatch):
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert resolve("auto").type in ("cuda", "mps")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.backends.cuda.is_built", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert resolve("auto") == torch.device("cuda:0")
    assert resolve("cuda:1") == torch.device("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert resolve("cuda") == torch.device("cuda:1")  # one GPU per rank of a machine
    with pytest.raises(InputError, match=r"^device: cuda:2: no such GPU; torch finds 2"):
        resolve("cuda:2")


def test_an_apple_gpu_has_no_double_precision(monkeypatch):
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert resolve("auto", double=True) == torch.device("cpu")
    with pytest.raises(InputError, match="mps does not support double precision"):
        resolve("mps", double=True)


def test_unsupported_devices_are_reported(monkeypatch):
    monkeypatch.setattr("torch.backends.cuda.is_built", lambda: False)
    with pytest.raises(InputError, match=r"^device: cuda:1: this build of torch has no CUDA"):
        resolve("cuda:1")
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(InputError, match=r"^device: mps: .* no Apple GPU"):
        resolve("mps")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cpu:0", "meta", ""])
def test_an_unknown_device(name: str):
    with pytest.raises(InputError, match=r"expected auto, cpu, cuda, cuda:N or mps"):
        resolve(name)
    with pytest.raises(InputError, match=r"^device: got .* expected auto, cpu, cuda"):
        Config.of("dgt").replace(device=name)


def test_seeded_restores_the_previous_random_state():
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    with seeded(1, torch.device("cpu")):
        first = torch.rand(3)
    with seeded(1, torch.device("cpu")):
        assert torch.equal(first, torch.rand(3))
    assert torch.equal(torch.rand(4), expected)


def test_a_device_without_fused_operators_is_named_once(monkeypatch, caplog):
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    say_fallback.cache_clear()
    for _ in range(2):
        assert resolve("mps") == torch.device("mps")
    assert caplog.text.count("device mps: operators have no fused form for it") == 1
    caplog.clear()
    resolve("cpu")
    assert not caplog.text


def test_free_memory(monkeypatch):
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (device.index, 100))
    assert free_memory(torch.device("cuda:3")) == 3
    assert free_memory(torch.device("mps")) is None
    assert free_memory(torch.device("cpu")) > 0
