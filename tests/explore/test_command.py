"""``dgt explore`` on the command line."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dgt.cli import main
from tests.explore.runs import train
from tests.explore.server import Client


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return train(tmp_path_factory.mktemp("explore"))


def refused(capsys, *tokens: str) -> str:
    assert main(["explore", *tokens]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


def test_ctrl_c_ends_it_quietly(run: Path):
    command = [sys.executable, "-m", "dgt", "explore", str(run), "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.endswith("/  (Ctrl-C to stop)\n")
    client = Client(line.split()[0])
    assert client.get("runs")[0] == 200  # waits until the run is loaded
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (0, "", "")


def test_a_port_in_use(run: Path, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        error = refused(capsys, str(run), "--no-browser", "--port", port)
    assert f"--port: cannot use port {port}: address already in use" in error


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_bad_ports(run: Path, capsys, port: str):
    assert "port" in refused(capsys, str(run), f"--port={port}").lower()


def test_the_extra_is_missing(run: Path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    error = refused(capsys, str(run), "--no-browser")
    assert "pip install 'deformable-graph-transformer[explore]'" in error


def test_other_tasks_and_several_runs_before_the_browser_opens(tmp_path: Path, capsys):
    (tmp_path / "model.safetensors").write_bytes(b"x")
    for task in ("regression", "multilabel"):
        (tmp_path / "config.toml").write_text(f'[train]\ntask = "{task}"\n')
        assert f"the model predicts {task}; only classes" in refused(capsys, str(tmp_path))
    (tmp_path / "run-00").mkdir()
    error = refused(capsys, str(tmp_path))
    assert f"holds several runs; choose one, such as {tmp_path / 'run-00'}" in error


def test_bad_runs(run: Path, tmp_path: Path, capsys):
    assert "expected 1 to 8 folders" in refused(capsys, "--no-browser")
    assert "got 9 runs" in refused(capsys, *[str(run)] * 9, "--no-browser")
    nowhere = refused(capsys, str(tmp_path / "nowhere"), "--no-browser")
    assert "not the folder of a finished run" in nowhere
    (tmp_path / "model.safetensors").write_bytes(b"x")
    damaged = refused(capsys, str(tmp_path), "--no-browser", "--port=0")
    assert "config.toml" in damaged
    wrong = refused(capsys, str(run), "--no-browser", "--port=0", "--graph", "no-such-graph")
    assert "no-such-graph" in wrong
