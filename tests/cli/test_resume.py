"""A run that is killed at any time resumes to the result of an uninterrupted run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dgt.cli import main
from dgt.training import loop as train
from tests.small import block_graph, flags, write_folder

RESULTS = ("config.toml", "metrics.jsonl", "model.safetensors", "predictions.parquet")
SETTINGS = flags(epochs=40, patience=40)

# A command that kills itself right before it renames its n-th file.
KILLED = """
import os, signal, sys
import dgt.training.loop
from dgt.cli import main
dgt.training.loop.CHECKPOINT_SECONDS = 0
replace, left = os.replace, int(sys.argv[1])
def counted(source, target):
    global left
    if "run" in os.path.basename(os.path.dirname(target)):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = counted
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture(scope="module", autouse=True)
def _threads() -> Iterator[None]:
    """Restores the number of threads, which --threads changes for the whole process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph())


@pytest.fixture(scope="module")
def whole(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main(["train", str(graph), "--out", str(out), "--quiet", "--threads=1", *SETTINGS]) == 0
    return out


def require_same(out: Path, whole: Path) -> None:
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in whole.iterdir())
    for name in RESULTS:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    metrics = [json.loads((folder / "metrics.json").read_text()) for folder in (out, whole)]
    for each in metrics:
        each.pop("seconds")
    assert metrics[0] == metrics[1]


def tokens(graph: Path, out: Path) -> list[str]:
    return ["train", str(graph), "--out", str(out), "--quiet", "--resume", "--threads=1", *SETTINGS]


class Stopped(BaseException):
    pass


@pytest.mark.parametrize("every", ["epoch", "never"])
def test_stopped_before_each_of_its_writes(
    graph: Path, whole: Path, tmp_path: Path, monkeypatch, every: str
):
    """Stops at the first write, resumes and stops at the second, and so on, and leaves an
    incomplete file each time."""
    out = tmp_path / "run"
    out.mkdir()
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 0 if every == "epoch" else 1e9)
    replace, stops = os.replace, 0
    for stop_at in [1, 2, 3, 4, 5, 9, 30, 44]:
        left = stop_at

        def counted(source: Path, target: Path) -> None:
            nonlocal left
            if Path(target).parent == out:
                left -= 1
                if left == 0:
                    rest = Path(source).with_name(f".rest-{stop_at}.part.json")  # noqa: B023
                    replace(source, rest)
                    raise Stopped
            replace(source, target)

        monkeypatch.setattr(os, "replace", counted)
        try:
            assert main(tokens(graph, out)) == 0
            break
        except Stopped:
            stops += 1
    monkeypatch.setattr(os, "replace", replace)
    assert stops >= (6 if every == "epoch" else 4)
    assert main(tokens(graph, out)) == 0
    require_same(out, whole)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_while_it_writes(graph: Path, whole: Path, tmp_path: Path):
    out = tmp_path / "run"
    # While it writes its settings, a checkpoint and, after resuming, its metrics.
    for n in ("1", "8", "38"):
        killed = subprocess.run([sys.executable, "-c", KILLED, n, *tokens(graph, out)], timeout=120)
        assert killed.returncode == -signal.SIGKILL
    assert any(out.glob("checkpoint.safetensors"))
    assert any(out.glob(".*.part*"))
    assert main(tokens(graph, out)) == 0
    require_same(out, whole)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_while_it_trains(graph: Path, tmp_path: Path):
    settings = ["--threads=1", *flags(epochs=600, patience=600)]
    code = "import sys, dgt.training.loop; dgt.training.loop.CHECKPOINT_SECONDS = 0.05\n"
    code += "from dgt.cli import main; sys.exit(main(sys.argv[1:]))"

    def command(out: Path) -> list[str]:
        return ["train", str(graph), "--out", str(out), "--quiet", "--resume", *settings]

    out, epochs = tmp_path / "run", 0
    log, checkpoint = out / "metrics.jsonl", out / "checkpoint.safetensors"
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", code, *command(out)])
        deadline = time.monotonic() + 120
        while not (checkpoint.exists() and log.read_bytes().count(b"\n") > epochs + 20):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        epochs = log.read_bytes().count(b"\n")
        assert 0 < epochs < 600
    assert main(command(out)) == 0
    assert main(command(tmp_path / "whole")) == 0
    require_same(out, tmp_path / "whole")


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_says_how_to_continue(
    graph: Path, tmp_path: Path, sent: signal.Signals, code: int, kept: bool
):
    """Without a checkpoint, there is nothing to continue, and nothing is left."""
    out = tmp_path / "runs" / "run"
    command = ["train", graph, "--out", out, *flags(epochs=100000, patience=100000)]
    start = f"import dgt.training.loop as loop; loop.CHECKPOINT_SECONDS = {0 if kept else 1e9}"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{start}\nimport dgt.__main__", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
        # Background jobs of a shell, which these tests may be, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not (out / ("checkpoint.safetensors" if kept else "metrics.jsonl")).exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == code
    said = [line for line in err.splitlines() if line and not line.startswith("note: ")]
    assert len(said) == 1
    if kept:
        assert f"to continue: dgt train {graph} --out {out} --resume" in err
        names = {"config.toml", "metrics.jsonl", "checkpoint.safetensors"}
        assert {path.name for path in out.iterdir()} == names
    else:
        assert "interrupted before the first checkpoint; nothing was kept" in err
        assert not (tmp_path / "runs").exists()


def test_a_complete_run_is_left_as_it_is(graph: Path, whole: Path, capsys):
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in whole.iterdir()}
    # The settings come from the run and need not be repeated.
    for given in ([], SETTINGS):
        assert main(["train", str(graph), "--out", str(whole), "--resume", *given]) == 0
        shown = capsys.readouterr()
        assert "already complete" in shown.err
        assert "test" in shown.out
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in whole.iterdir()} == before


def test_resume_with_other_settings_is_refused(graph: Path, whole: Path, tmp_path: Path, capsys):
    for given, message in [
        (["--lr", "0.5"], "lr was 0.01, now 0.5"),
        (["--runs", "2"], "runs was 1, now 2"),
        (["--criteria", "bfs"], "criteria was ('neighbors', 'ppr'), now ('bfs',)"),
    ]:
        assert main(["train", str(graph), "--out", str(whole), "--resume", *given]) == 2
        assert message in capsys.readouterr().err
    other = write_folder(tmp_path / "other", block_graph(seed=1))
    assert main(["train", str(other), "--out", str(whole), "--resume"]) == 2
    assert "graph was" in capsys.readouterr().err


def test_resume_where_nothing_was_begun_starts_a_run(graph: Path, whole: Path, tmp_path: Path):
    assert main(tokens(graph, tmp_path / "run")) == 0
    require_same(tmp_path / "run", whole)


@pytest.mark.parametrize("model", ["dgt", "dgt-plus"])
def test_several_runs_go_on_with_the_one_that_was_stopped(
    graph: Path, tmp_path: Path, monkeypatch, model: str
):
    """dgt-plus chooses settings for the graph in each run, also in those that are resumed."""

    def command(out: Path) -> list[str]:
        return ["train", str(graph), "--out", str(out), "--runs=3", "--quiet", "--resume",
                *flags(epochs=4, model=model)]  # fmt: skip

    assert main(command(tmp_path / "whole")) == 0
    out = tmp_path / "run"
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 0)
    replace = os.replace

    def stopping(source: Path, target: Path) -> None:
        if Path(target) == out / "run-01" / "model.safetensors":
            raise Stopped
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stopping)
        with pytest.raises(Stopped):
            main(command(out))
    first = (out / "run-00" / "metrics.json").stat().st_mtime_ns
    assert main(command(out)) == 0
    assert (out / "run-00" / "metrics.json").stat().st_mtime_ns == first
    for r in range(3):
        require_same(out / f"run-0{r}", tmp_path / "whole" / f"run-0{r}")
