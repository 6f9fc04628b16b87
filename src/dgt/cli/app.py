"""The command-line application: its commands, its errors and its exit codes."""

import gc
import logging
import os
import sys
from contextlib import nullcontext

from cyclopts import App, Parameter

from dgt import __version__
from dgt.cli import failure
from dgt.cli.evaluate import evaluate
from dgt.cli.explain import explain
from dgt.cli.explore import explore
from dgt.cli.info import info
from dgt.cli.predict import predict
from dgt.cli.prepare import prepare
from dgt.cli.report import report
from dgt.cli.reproduce import reproduce
from dgt.cli.settings import fill_in
from dgt.cli.train import train
from dgt.cli.tune import tune
from dgt.errors import Terminated
from dgt.system import signals
from dgt.system.deferred import defer_imports
from dgt.system.notes import NOTE

EXAMPLES = """\
Examples:

    dgt train cora
    dgt train chameleon --model dgt --runs 10
    dgt train cora --model gcn
    dgt train my-graph --out my-run      (a folder with nodes.csv and edges.csv)
    dgt predict my-run --out predictions.csv
    dgt evaluate my-run
    dgt explain my-run NODE --out keys.png
    dgt explore my-run                   (shows its attention in the browser)
    dgt report my-run --out report.html
    dgt info my-graph
    dgt prepare my-graph --shard 0/4     (precomputes a part of a large graph)
    dgt tune my-graph --hours 2
    dgt reproduce table1 --datasets chameleon

Exit codes: 0 success, 2 invalid input, 1 failure of the system, such as a full disk or too little
memory, or a run that --verify cannot reproduce, 70 bug in dgt. Errors are one line; set DGT_DEBUG=1
to print the traceback as well.
"""

app = App(
    name="dgt",
    help="Node classification with the Deformable Graph Transformer.",
    help_epilogue=EXAMPLES,
    version=__version__,
    config=fill_in,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
    default_parameter=Parameter(negative_iterable=(), consume_multiple=True),
)
app["--help"].group = app["--version"].group = "Other"
for command in (
    train, prepare, predict, evaluate, explain, explore, report, info, tune, reproduce
):  # fmt: skip
    app.command(command)


def main(tokens: list[str] | None = None) -> int:
    """Runs the command line.

    Args:
        tokens: Arguments (default: those of the process).

    Returns:
        The exit code: 0 on success or what the command returns, 2 for invalid user input, 1 for a
        failure of the system (such as a full disk or too little memory), 70 for a bug in dgt, 130
        after Ctrl-C, 143 after SIGTERM, 141 if the reader of stdout has closed it.
    """
    # Must be set before torch is loaded. Threads then sleep while they wait for each other; by
    # default they spin, which slows training down many times on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    defer_imports()
    # By default, a tenth of the time until a command starts goes into searches for garbage among
    # objects that imports create and that stay.
    gc.set_threshold(20_000)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before the process was started
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    logging.addLevelName(logging.WARNING, "warning")
    logging.addLevelName(NOTE, "note")
    logging.getLogger("dgt").setLevel(NOTE)
    try:
        # A rank that waits for others could not react; torchrun ends it in its own way.
        with nullcontext() if "TORCHELASTIC_RUN_ID" in os.environ else signals.raised():
            code = app(tokens, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except Terminated as error:
        return 128 + error.signal
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The flush at exit would raise the same error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        return failure.report(error)
    return code if isinstance(code, int) else 0
