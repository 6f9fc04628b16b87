"""Several processes started by torchrun give the results of a single one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor

from dgt.cli import main
from dgt.config import Config
from dgt.errors import InputError
from dgt.training import distributed
from dgt.training import loop as train
from tests.small import block_graph, flags, write_folder

# Two blocks and all kinds of dropout.
# A batch norm, which dgt-plus chooses for few features, needs all nodes in one process.
SETTINGS = flags(epochs=20, patience=20, blocks=2, dropout=0.3, norm="layer")

# A command that saves a checkpoint in every epoch and kills rank 1 once, in the 8th epoch.
KILLED = """
import os, signal, sys
import dgt.training.loop
from dgt.cli import main
dgt.training.loop.CHECKPOINT_SECONDS = 0
tally, left = dgt.training.loop.evaluate, 8
def counted(*arguments):
    global left
    left -= 1
    if left == 0 and os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    return tally(*arguments)
dgt.training.loop.evaluate = counted
sys.exit(main(sys.argv[1:]))
"""


def torchrun(ranks: int, *command: str, restarts: int = 0) -> subprocess.CompletedProcess[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launch += [f"--nproc-per-node={ranks}", f"--max-restarts={restarts}", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(launch, env=environment, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph(nodes=91))


@pytest.fixture(scope="module")
def alone(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    assert main(["train", str(graph), "--out", str(out), "--quiet", *SETTINGS]) == 0
    return out


def require_same(out: Path, alone: Path) -> None:
    rows, expected = (
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (out, alone)
    )
    assert len(rows) == 20
    for row, wanted in zip(rows, expected, strict=True):
        assert row == pytest.approx(wanted, abs=1e-5)
    tables = [pq.read_table(folder / "predictions.parquet") for folder in (out, alone)]
    assert tables[0]["prediction"] == tables[1]["prediction"]
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in alone.iterdir())


def test_two_ranks_resume_the_run_of_one(graph, alone, tmp_path, monkeypatch):
    out = tmp_path / "run"
    command = ["train", str(graph), "--out", str(out), "--json", *SETTINGS]
    evaluate, left = train.evaluate, iter(range(8))

    def stopped(*arguments: Any) -> Tensor:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(train, "evaluate", stopped)
    assert main([*command, "--quiet"]) == 130
    done = torchrun(2, "-m", "dgt", *command, "--resume")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 20  # one rank prints
    require_same(out, alone)


def test_a_killed_rank_is_reported_and_the_job_restarts(graph, alone, tmp_path):
    script, out = tmp_path / "killed.py", tmp_path / "run"
    script.write_text(KILLED)
    command = [str(script), "train", str(graph), "--out", str(out), "--quiet", *SETTINGS]
    done = torchrun(2, *command, restarts=1)
    assert done.returncode == 0, done.stderr
    # On a busy machine, torchrun may end rank 0 before it can report this.
    reported = "error: rank 0 of 2 has lost another rank" in done.stderr
    assert reported or "closing signal SIGTERM" in done.stderr
    assert "-9" in done.stderr  # torchrun's own report of the rank that was killed
    require_same(out, alone)


def test_losses_in_double_precision_agree_to_the_last_digits(graph, tmp_path):
    losses = []
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        command = ["train", str(graph), "--out", str(out), "--precision", "double", *SETTINGS]
        done = torchrun(ranks, "-m", "dgt", *command)
        assert done.returncode == 0, done.stderr
        lines = (out / "metrics.jsonl").read_text().splitlines()
        losses.append([json.loads(line)["train_loss"] for line in lines])
    assert losses[0] != losses[1]  # two ranks sum in another order
    assert losses[0] == pytest.approx(losses[1], abs=1e-13)


# Small blocks of nodes, so that a small graph has several; it writes the weights of each epoch.
BLOCKS = """
import os, sys, torch
import dgt.training.loop as loop
from dgt.cli import main
from dgt.ops import sums
sums.BLOCK = 16
step, weights = loop.step, []
def recorded(model, *arguments):
    weights.append(torch.cat([w.detach().flatten() for w in model.parameters()]))
    return step(model, *arguments)
loop.step = recorded
code = main(sys.argv[2:])
if os.environ.get("RANK", "0") == "0":
    torch.save(torch.stack(weights), sys.argv[1])
sys.exit(code)
"""


@pytest.mark.parametrize("model", ["dgt", "dgt-plus"])
def test_weights_in_single_precision_are_those_of_one_process(model, graph, tmp_path):
    script = tmp_path / "blocks.py"
    script.write_text(BLOCKS)
    for ranks in (1, 2):
        command = [str(script), str(tmp_path / f"{ranks}.pt"), "train", str(graph), "--quiet"]
        command += ["--model", model, "--out", str(tmp_path / f"{model}-{ranks}"), *SETTINGS]
        done = torchrun(ranks, *command)
        assert done.returncode == 0, done.stderr
    one, two = (torch.load(tmp_path / f"{ranks}.pt") for ranks in (1, 2))
    assert len(one) == 20
    assert torch.equal(one, two)


def test_two_ranks_in_bfloat16(graph, tmp_path):
    command = ["train", str(graph), "--precision", "bfloat16", "--quiet", *SETTINGS]
    assert main([*command, "--out", str(tmp_path / "1")]) == 0
    done = torchrun(2, "-m", "dgt", *command, "--out", str(tmp_path / "2"))
    assert done.returncode == 0, done.stderr
    logs = [(tmp_path / n / "metrics.jsonl").read_text().splitlines() for n in ("1", "2")]
    one, two = ([json.loads(line)["train_loss"] for line in log] for log in logs)
    assert two[:3] == pytest.approx(one[:3], rel=0.02)
    assert two[-1] < 0.8 * two[0]


def test_settings_that_do_not_support_several_processes(monkeypatch):
    monkeypatch.setattr(distributed, "size", lambda: 2)
    with pytest.raises(InputError, match="batch_size: not supported with several processes"):
        distributed.require_possible(Config.of("dgt").replace(batch_size=8))
    with pytest.raises(InputError, match="norm: a batch norm needs all nodes in one process"):
        distributed.require_possible(Config.of("dgt").replace(norm="batch"))


def test_the_backend_follows_the_device(monkeypatch):
    assert distributed.choose_backend() == "gloo"
    chosen = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.set_device", chosen.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert distributed.choose_backend() == "cpu:gloo,cuda:nccl"
    assert chosen == [1]  # one GPU per rank
