"""Every flag of every command, with wrong values by kind and, as a control, a valid one.

The flags come from the application itself, so that new ones are covered.
"""

import functools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts.argument import Argument

from dgt.cli.app import app
from dgt.config import FIELDS
from dgt.errors import one_line
from tests.campaign.case import Case, Expect
from tests.campaign.classes.flag_values import COMMANDS, METRIC_TASKS, SPECIAL, WRONG, ZERO
from tests.campaign.judge import command
from tests.campaign.material import TRAIN, copy, require_run, require_task


def cases() -> Iterator[Case]:
    for name in commands():
        for argument in _arguments(name):
            wrong = _wrong(name, argument)
            # A valid explorer serves its page until it is interrupted.
            yield from (case for case in wrong if name != "explore" or case.expect == "refused")
            if argument.name.startswith("--") and name != "explore":
                yield from _controls(name, argument)
        yield from _unknown(name)
    yield from _together()


def commands() -> list[str]:
    """Returns the names of all commands."""
    return [name for name in app if not name.startswith("-")]


def _base(name: str) -> list[str]:
    """Returns a valid call of a command."""
    return COMMANDS.get(name, [name, *("run" for each in _arguments(name) if each.required)])


@functools.cache
def _arguments(name: str) -> list[Argument]:
    found = app[name].assemble_argument_collection()
    # Groups of settings have no flag of their own.
    return [each for each in found if each.name != "*" and not each.children]


def kind(argument: Argument) -> Any:
    """Returns int, float, bool, str, Path or Literal; for several values, that of one."""
    hint: Any = argument.hint
    options = [each for each in get_args(hint) if each is not type(None)]
    if get_origin(hint) is Literal:
        return hint
    if get_origin(hint) in (tuple, list):
        return options[0]
    if options:
        inner = options[0]
        return get_args(inner)[0] if get_origin(inner) in (tuple, list) else inner
    return hint


def _setting(flag: str) -> Any:
    """Returns the field of a setting, or None for other flags."""
    return FIELDS.get(flag.strip("-").replace("-", "_"))


def _case(
    title: str, expect: Expect, tokens: list[str], names: tuple[str, ...] = (), check: Any = None
) -> Case:
    def prepare() -> None:
        copy("graph")
        if tokens[1:2] != ["graph"]:  # the command may need a run
            copy("run")
        if tokens[0] == "reproduce":
            copy("results")
        Path("file").write_text("a file\n")
        Path("own_broken.py").write_text("1 / 0\n")
        Path("own_exits.py").write_text("import sys\nsys.exit(3)\n")

    repeat = f"dgt {shlex.join(tokens)}"
    return Case(
        title, expect, command(*tokens), prepare, names, check or (lambda _: None), repeat[:2000]
    )


def _with(name: str, argument: Argument, value: str) -> list[str]:
    """Returns the command with another value for an argument."""
    tokens = list(_base(name))
    if not argument.name.startswith("--"):
        place = 1 + (argument.index or 0)
        return [*tokens[:place], value, *tokens[place + 1 :]]
    for place, token in enumerate(tokens):
        if token == argument.name:
            return [*tokens[:place], f"{argument.name}={value}", *tokens[place + 2 :]]
        if token.startswith(f"{argument.name}="):
            return [*tokens[:place], f"{argument.name}={value}", *tokens[place + 1 :]]
    return [*tokens, f"{argument.name}={value}"]


def _wrong(name: str, argument: Argument) -> Iterator[Case]:
    flag, type_ = argument.name, kind(argument)
    if get_origin(type_) is Literal:
        values: tuple[str, ...] = ("", "no-such-thing", get_args(type_)[0].upper(), "0", "None")
    else:
        values = SPECIAL.get(flag, WRONG[type_])
    if not flag.startswith("--"):
        values = (*WRONG[str], "/", "file", "file/below", "/dev/null", "missing")
    if name in ("prepare", "tune") and _setting(flag) is not None:
        # Parsed by the same code as those of train: two wrong values each, others for each flag.
        start = sum(flag.encode()) % len(values)
        values = tuple(dict.fromkeys((values[start], values[start // 2])))
    for number, value in enumerate(values):
        expect: Expect = "refused"
        if (flag in ("--out", "--results") and value in (".", "graph", "/")) or (
            name == "prepare" and flag == "--out"
        ):
            # The folder of the cache may be any folder.
            expect = "either" if name in ("prepare", "reproduce") else "refused"
        if value.lower() == "none" and type(None) in get_args(argument.hint):
            if flag == "--trials":
                continue  # a whole search
            expect = "either"  # as if it were not given
        if flag == "--shard" and not value.isascii():
            expect = "either"  # digits in another script, as Python reads them
        shown = value if len(value) < 24 else f"{value[:12]}... ({len(value)})"
        # In a message, what is not printable is escaped.
        words = one_line(value[:40]) or "empty"
        yield _case(
            f"{name} {flag} {shown!r} {number}",
            expect,
            _with(name, argument, value),
            (f"{flag.strip('-').replace('-', '_')}|{flag}|{words}|{name}",),
        )


def _controls(name: str, argument: Argument) -> Iterator[Case]:
    """Yields controls with the default of a setting, its limits, and both forms of a flag."""
    flag, type_ = argument.name, kind(argument)
    check = (lambda _: require_run()) if name == "train" else None
    setting = _setting(flag)
    if setting is None or name != "train":
        if flag in ("--json", "--quiet", "--overwrite") and flag not in _base(name):
            yield _case(f"control: {name} {flag}", "accepted", [*_base(name), flag], check=check)
        if flag == "--threads":
            yield _case(
                f"control: {name} {flag} 2",
                "accepted",
                [*_base(name), "--threads=2"],
                check=check,
            )
        return
    default = setting.default
    if get_origin(type_) is Literal:
        values = list(get_args(type_))
    elif setting.metadata.get("choices"):
        values = list(setting.metadata["choices"])
    elif type_ is bool:
        values = []
        able = ["--model=gcn"] if flag == "--skip" else []
        for form in (flag, f"--no-{flag.strip('-')}"):
            tokens = [*_base(name), form, *able]
            yield _case(f"control: {name} {form}", "accepted", tokens, check=check)
    else:
        values = [str(default)] if default is not None else []
        values += ["0"] if flag in ZERO else []
    for value in dict.fromkeys(values):
        if value in ("published", "cuda") or (flag, value) == ("--device", "auto"):
            continue  # the graph has no published splits
        quick = _with(name, argument, value)
        if flag == "--epochs":
            quick = _with(name, argument, "3")
        task = value if flag == "--task" else METRIC_TASKS.get(value, "classification")
        if task != "classification":
            quick += [] if flag == "--task" else [f"--task={task}"]
            quick += ["--label=f0"] if task == "regression" else []
            check = lambda _, task=task: require_task(task)
        if value.endswith(("-out", "-in")):
            quick += ["--directed"]
        if flag == "--split":  # the graph has one of its own
            quick += ["--splits=random"]
        yield _case(f"control: {name} {flag} {value}", "accepted", quick, check=check)


def _unknown(name: str) -> Iterator[Case]:
    base = _base(name)
    for token in (
        "--no-such-flag",
        "--no-such-flag=1",
        "-x",
        "---quiet",
        "--",
        "--=1",
        "surplus",
        "--help=1",
        "--lrr=0.1",
    ):
        tokens = [*base, token]
        if token == "--" and name == "explore":
            continue
        expect: Expect = "either" if token == "--" else "refused"
        yield _case(f"{name} {token}", expect, tokens, (f"{token}|unknown|unused|argument",))
    for argument in _arguments(name):
        if argument.name.startswith("--") and kind(argument) is not bool:
            repeated = get_origin(argument.hint) in (tuple, list) or "tuple" in str(argument.hint)
            if not repeated:
                yield _case(
                    f"{name} {argument.name} without a value",
                    "refused",
                    [*base, argument.name],
                    (argument.name,),
                )
    yield _case(f"{name} without arguments", "refused", [name], (f"{name}|GRAPH|RUN|TABLE",))


def _together() -> Iterator[Case]:
    """Yields flags that exclude each other, or that do not fit the model or the graph."""
    wrong = {
        "resume and overwrite": ["--resume", "--overwrite"],
        "batch and chunk size": ["--batch-size=4", "--chunk-size=4"],
        "chunks of gcn": ["--model=gcn", "--chunk-size=4"],
        "chunks with batch norm": ["--norm=batch", "--chunk-size=4"],
        "layers of dgt-plus": ["--layers=3"],
        "number of the only split": ["--split=3"],
        "two criteria of dgt-light": ["--model=dgt-light", "--criteria", "bfs", "ppr"],
        "heads do not divide channels": ["--heads=3"],
        "published splits of an own graph": ["--splits=published"],
        "no preset of an own graph": ["--preset"],
        "lr twice": ["--lr=0.1", "--lr=0.2"],
        "huge model": ["--hidden-channels=65536", "--blocks=1000", "--mlp-ratio=100"],
        "more heads than channels": ["--heads=16"],
        "a criterion twice": ["--criteria", "bfs", "bfs", "no-such"],
        "an empty list of criteria": ["--criteria"],
    }
    for title, tokens in wrong.items():
        last = tokens[-1].split("=")[0].strip("-")
        first = tokens[0].split("=")[0].strip("-")
        alternatives = "|".join(
            {last, first, last.replace("-", "_"), first.replace("-", "_"), "memory", "preset"}
        )
        yield _case(f"train: {title}", "refused", [*TRAIN, *tokens], (alternatives,))
    fine = {
        "resume of nothing": ["--resume"],
        "overwrite of nothing": ["--overwrite"],
        "several criteria": ["--criteria", "bfs", "ppr"],
        "random split": ["--splits=random", "--split=5"],
        "chunks": ["--chunk-size=7"],
        "one chunk": ["--chunk-size=1000000"],
        "batches": ["--batch-size=5"],
        "batches of one node": ["--batch-size=1"],
        "two runs": ["--runs=2", "--json"],
        "more positions than nodes": ["--length=100"],
        "few anchors": ["--anchors=3"],
        "more anchors than nodes": ["--anchors=1000"],
        "largest seed": [f"--seed={2**32 - 1}"],
        "double precision": ["--precision=double"],
    }
    for title, tokens in fine.items():
        check = None if "two runs" in title else (lambda _: require_run())
        given = {token.split("=")[0] for token in tokens}
        base = [token for token in TRAIN if token.split("=")[0] not in given]
        yield _case(f"control: train: {title}", "accepted", [*base, *tokens], check=check)
