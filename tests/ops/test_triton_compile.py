"""The Triton kernels of deformable attention, compiled for GPUs that are not present."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton needs Linux")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KERNELS = ("forward", "backward", "backward-deterministic", "gather-parts", "gather")
TARGETS = ("sm_75", "sm_80", "sm_90", "gfx942")
LIMIT = 1.3
"""The most traffic, relative to the least that the computation needs."""


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    assert request.config.cache is not None
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    # Compiled code is kept between test runs.
    monkeypatch.setenv("TRITON_CACHE_DIR", str(request.config.cache.mkdir("triton")))


def check(target: str, **sizes) -> dict:
    """Compiles all kernels, checks what they need, and returns their code."""
    from generated import KERNELS as ALL
    from generated import SHARED_LIMITS, TARGETS, Problem, compiled, launches

    assert ALL == KERNELS
    assert set(TARGETS) == set(SHARED_LIMITS)
    found = {}
    for name, launch in launches(Problem(**sizes)).items():
        code = compiled(launch, target)
        assert code.spills == 0, (name, code.spills)
        assert 0 < code.registers < 255, (name, code.registers)
        assert code.shared <= SHARED_LIMITS[target], (name, code.shared)
        found[name] = launch, code
    return found


def check_traffic(found: dict) -> None:
    """Checks the memory traffic of all kernels but ``gather-parts``, which few nodes need."""
    from traffic import minimum, per_query

    for name, (launch, code) in found.items():
        if name != "gather-parts":
            traffic = per_query(name, launch, code.ttgir)
            assert 1 <= traffic.bytes / minimum(name, launch) <= LIMIT, (name, traffic)


@pytest.mark.parametrize("target", TARGETS)
def test_no_spills_and_little_more_traffic_than_needed(target: str) -> None:
    found = check(target)
    check_traffic(found)
    if target != "gfx942":
        # Rows are read 16 bytes per thread, once: a block of 8 rows of 64 channels by 32 threads.
        assert len(re.findall(r"ld\.global\.v4\.b32", found["forward"][1].assembly)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "sizes",
    [
        {"dtype": torch.bfloat16},
        {"dtype": torch.float16, "bilinear": True},
        {"dtype": torch.float64},
        {"normalize": False, "L": 16},
        {"T": 1, "M": 8, "D": 64, "K": 8, "L": 100, "epsilon": 2.5},
        {"M": 3, "D": 20, "K": 5, "L": 33},
        {"M": 1, "D": 1000, "K": 3, "L": 16},
        {"M": 2, "D": 8, "K": 256, "L": 16},
    ],
    ids=str,
)
def test_other_sizes(target: str, sizes: dict) -> None:
    found = check(target, **sizes)
    if sizes == {"dtype": torch.bfloat16}:
        check_traffic(found)


def test_sizes_of_one() -> None:
    """Triton replaces arguments that are 1 by constants, which are no tensors."""
    from generated import Problem, compiled, launches

    for launch in launches(Problem(T=1, M=1, K=1, D=1, L=1), N=1).values():
        assert compiled(launch, "sm_80").spills == 0


TTGIR = """
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: !tt.ptr<f32>) attributes {noinline = false} {
    %c0_i32 = arith.constant 0 : i32 loc(#loc1)
    %c8_i32 = arith.constant 8 : i32 loc(#loc1)
    %c60_i32 = arith.constant 60 : i32 loc(#loc1)
    %n = tt.load %a : !tt.ptr<i32> loc(#loc2)
    %s = scf.for %i = %c0_i32 to %c60_i32 step %c8_i32 iter_args(%x = %y) -> (f32)  : i32 {
      %v = tt.load %q, %m, %z : tensor<8x4x16x!tt.ptr<f32>, #blocked> loc(#loc3)
      %w = arith.mulf %v, %v : tensor<8x4x16xf32, #blocked> loc(#loc3)
      %r = "tt.reduce"(%w) <{axis = 2 : i32}> ({
      ^bb0(%k: f32 loc(unknown), %l: f32 loc(unknown)):
        %b = arith.addf %k, %l : f32 loc(#loc4)
        tt.reduce.return %b : f32 loc(#loc4)
      }) : (tensor<8x4x16xf32, #blocked>) -> tensor<8x4xf32, #blocked1> loc(#loc4)
      scf.for %e = %n to %t step %c8_i32  : i32 {
        %o = amdg.buffer_load %s[%j], %m, %z : !tt.ptr<i32> -> tensor<64xi32, #blocked>
      } loc(#loc5)
      %g = tt.atomic_rmw fadd, relaxed, gpu, %p, %v, %m : (tensor<8x!tt.ptr<f64>, #b>) -> f64
    } loc(#loc5)
    tt.store %p, %s, %m : tensor<4x16x!tt.ptr<bf16>, #blocked> loc(#loc6)
  }
}
"""


def test_counter() -> None:
    from traffic import count

    traffic = count(TTGIR, rounds=[3])
    assert traffic.loads == 32 + 8 * (8 * 4 * 16 * 4 + 3 * 64 * 4)
    assert traffic.stores == 4 * 16 * 2
    assert traffic.atomics == 8 * 8 * 8
    assert traffic.operations == 8 * (512 + 1 + 512)
    assert traffic.bytes == traffic.loads + traffic.stores + traffic.atomics
    with pytest.raises(ValueError, match="bounds of a loop depend on the data"):
        count(TTGIR)
    with pytest.raises(ValueError, match="fewer loops"):
        count(TTGIR, rounds=[3, 4])
    with pytest.raises(ValueError, match="one warp"):
        count(TTGIR.replace('"ttg.num-warps" = 1', '"ttg.num-warps" = 4'))


def test_double_precision_constants_are_not_rounded_to_single() -> None:
    from generated import Problem, compiled, launches

    launch = launches(Problem(dtype=torch.float64, gamma=0.3))["forward"]
    code = compiled(launch, "sm_80").ttgir
    wanted = -1 / 0.3
    numbers = [float(x) for x in re.findall(r"dense<(-3\.3\d+(?:E\+0+)?)>", code)]
    assert wanted in numbers, numbers


def test_roofline_prints_a_table() -> None:
    command = [sys.executable, str(BENCHMARKS / "roofline.py"), "--length", "16"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert result.returncode == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 2 * 3
    assert "estimate" in result.stdout
