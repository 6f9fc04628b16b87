"""Every failure is one line on stderr and an exit code; tracebacks go to a file."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from cyclopts import CycloptsError

from dgt import __version__
from dgt.cli import app, failure, main
from dgt.errors import InputError, MemoryNeeded, RankError
from tests.small import block_graph, flags, write_folder

try:
    import resource
except ImportError:  # not on Windows
    resource = None


def fail(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """Runs a command line whose command raises an exception."""

    def raising(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(app, "app", raising)
    return main(["info", "cora"])


@pytest.fixture(autouse=True)
def _reports_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure.tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(failure.DEBUG, raising=False)


def one_line(capsys) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("a  b: got 1, expected 2"), 2, "error: a  b: got 1, expected 2\n"),
        (MemoryNeeded("needs 1 TB"), 2, "error: needs 1 TB\n"),
        (CycloptsError(msg="no\n  such flag"), 2, "error: no such flag\n"),
        (OSError(28, "No space left on device"), 1, "error: [Errno 28] No space left on device\n"),
        (PermissionError(), 1, "error: PermissionError\n"),
        (RankError("rank 1 has ended"), 1, "error: rank 1 has ended\n"),
        (InputError("two\nlines"), 2, "error: two\\nlines\n"),
    ],
)
def test_known_failures(monkeypatch, capsys, tmp_path, error, code, message):
    assert fail(monkeypatch, error) == code
    assert one_line(capsys) == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (MemoryError(), ""),
        (RuntimeError("[enforce] DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                      "4000000000000 bytes. Error code 12 (Cannot allocate memory)"),
         "could not allocate 4.0 TB; "),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ..."),
         "could not allocate 2.1 GB; "),
        (np._core._exceptions._ArrayMemoryError((10**7, 10**6), np.dtype(np.float64)),
         "could not allocate 80.0 TB; "),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), ""),
    ],
)  # fmt: skip
def test_a_lack_of_memory(monkeypatch, capsys, tmp_path, error, asked):
    assert fail(monkeypatch, error) == 1
    message = one_line(capsys)
    assert message.startswith(f"error: out of memory: {asked}this machine has ")
    assert message.endswith(" available\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [KeyError("surprise"), RecursionError("too deep"), AssertionError(), TypeError("a\nb"),
     UnicodeEncodeError("utf-8", "\udc80", 0, 1, "surrogates")],
)  # fmt: skip
def test_unexpected_errors_name_a_file_with_the_traceback(monkeypatch, capsys, tmp_path, error):
    monkeypatch.setattr(sys, "argv", ["dgt", "train", "a graph"])
    assert fail(monkeypatch, error) == 70
    message = one_line(capsys)
    assert f"unexpected {type(error).__name__}" in message
    assert "report" in message
    (file,) = tmp_path.iterdir()
    assert message.rstrip().endswith(str(file))
    report = file.read_text()
    assert f"dgt: {__version__}\n" in report
    assert "command: dgt train 'a graph'\n" in report
    for fact in ("platform", "python", "torch"):
        assert f"\n{fact}: " in report
    assert "Traceback (most recent call last)" in report
    assert "in raising\n" in report


def test_without_a_place_for_the_file(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(failure.tempfile, "tempdir", str(tmp_path / "missing"))
    assert fail(monkeypatch, KeyError("surprise")) == 70
    assert "set DGT_DEBUG=1 to print the traceback" in one_line(capsys)


def test_debug_prints_the_traceback(monkeypatch, capsys):
    monkeypatch.setenv("DGT_DEBUG", "1")
    assert fail(monkeypatch, InputError("wrong")) == 2
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert err.endswith("error: wrong\n")


def test_ctrl_c_and_exits_are_no_failures(monkeypatch, capsys):
    assert fail(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""
    with pytest.raises(SystemExit):
        fail(monkeypatch, SystemExit(3))


OWN = """
from dgt.sequences import CRITERIA
from dgt.sequences.criterion import Criterion
from dgt.encodings import ENCODINGS
from dgt.evaluate import METRICS
from dgt.models import MODELS, Model

def divide(*_):
    return 1 / 0

CRITERIA["own-function"] = divide
CRITERIA["own-record"] = Criterion(begin=divide)
ENCODINGS["own-function"] = divide
METRICS["own-metric"] = divide
MODELS["own-model"] = Model(build=divide, inputs=("x",))
"""


@pytest.mark.parametrize(
    "option",
    [
        "--criteria=own-function",
        "--criteria=own-record",
        "--encoding=own-function",
        "--metric=own-metric",
        "--model=own-model",
    ],
)
def test_a_failing_function_of_the_user_is_named(option, tmp_path, monkeypatch, capsys, request):
    module = f"failing_{abs(hash(option))}"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{module}.py").write_text(OWN)
    from dgt.config.choices import CRITERIA, ENCODINGS, METRICS, MODELS
    from dgt.system import plugins

    for choices in (CRITERIA, ENCODINGS, METRICS, MODELS):
        monkeypatch.setattr(choices, "_entries", dict(choices._entries))
    monkeypatch.setattr(plugins, "_loaded", {})
    graph = write_folder(tmp_path / "graph", block_graph())
    tokens = ["train", str(graph), "--import", module, option, "--quiet", *flags(epochs=2)]
    assert main(tokens) == 2
    message = one_line(capsys)
    file = tmp_path / f"{module}.py"
    kind, _, name = option.removeprefix("--").replace("criteria", "criterion").partition("=")
    assert message.startswith(f"error: {kind} ")
    assert f"{name}" in message
    assert f": failed in divide, {file}, line 9: ZeroDivisionError" in message
    (report,) = tmp_path.glob("dgt-error-*.txt")
    assert message.rstrip().endswith(f"traceback: {report}")
    assert "return 1 / 0" in report.read_text()


def limited(tokens: list[str], limit: int) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process with a limited address space, as after ``ulimit -v``."""
    return subprocess.run(
        [sys.executable, "-m", "dgt", *tokens],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not enforce RLIMIT_AS")
def test_under_a_limited_address_space():
    """Python starts, but torch would not."""
    done = limited(["info", "cora"], 10**9)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "error: dgt needs 2.0 GB of address space to start, but this process is limited to 1.0 "
        "GB; raise the limit with ulimit -v\n"
    )
    assert limited(["--version"], 10**9).returncode == 0
    done = limited(["info", "synthetic:nodes=100000,edges=400000,features=9000"], 4 * 10**9)
    assert done.returncode == 2
    assert "nodes needs 3.6 GB of memory" in done.stderr
    assert done.stderr.count("\n") == 1
