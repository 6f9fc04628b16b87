"""The files of a search (``dgt tune``) and the recorded runs of ``dgt reproduce``."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.judge import command
from tests.campaign.material import FLAGS, copy, place

RECORDS = ["reproduce", "table1", "--show", "--datasets=cora", "--models=gcn"]


def cases() -> Iterator[Case]:
    yield from _search()
    yield from _study()
    yield from _trials()
    yield from _records()


def _tune() -> list[str]:
    # The trials are complete already, so that nothing is trained.
    given = [str(place() / "graph"), "--quiet", *FLAGS, "--trials=2", "--runs=1", "--workers=1"]
    return ["tune", *given, "--final-runs=0", "--out", "search", "--json"]


def _case(
    name: str,
    expect: Expect,
    file: str,
    change: Callable[[Path], object],
    check: Callable[[Any], object] = lambda _: None,
) -> Case:
    folder = file.split("/")[0]
    tokens = RECORDS if folder == "results" else _tune()

    def prepare() -> None:
        copy(folder)
        change(Path(file))

    repeat = shlex.join(tokens).replace(str(place()), ".")
    act, shown = command(*tokens), f"dgt {repeat}"
    # A study that has lost trials trains them again, in a process of its own.
    return Case(name, expect, act, prepare, (folder,), check, shown, seconds=240)


def _same_best(out: Any) -> None:
    """The best settings must be those of the unchanged search."""
    lines = (place() / "search" / "trials.jsonl").read_text().splitlines()
    best = max(json.loads(line)["val_accuracy"] for line in lines)
    assert json.loads(out)["val_accuracy"] == best


def _search() -> Iterator[Case]:
    content = (place() / "search" / "search.json").read_bytes()
    for name, changed in [*mutations.damaged(content, "search", 4), *mutations.texts()]:
        write = lambda p, c=changed: p.write_bytes(c)
        yield _case(
            f"search.json {name}",
            "refused" if "flipped" not in name and "byte" not in name else "either",
            "search/search.json",
            write,
            _same_best,
        )
    for name, document in mutations.documents(json.loads(content), 1, "search", 20):
        write = lambda p, d=document: p.write_text(json.dumps(d))
        yield _case(f"search.json {name}", "either", "search/search.json", write, _same_best)


def _study() -> Iterator[Case]:
    path = place() / "search" / "study.log"
    content = path.read_bytes()
    for name, changed in [*mutations.damaged(content, "study", 20), *mutations.texts()]:
        write = lambda p, c=changed: p.write_bytes(c)
        yield _case(f"study.log {name}", "either", "search/study.log", write)
    lines = content.decode().splitlines()
    for number, line in enumerate(lines):
        # Every kind of entry occurs; the first of each kind is changed in many ways.
        code = json.loads(line)["op_code"]
        if any(json.loads(other)["op_code"] == code for other in lines[:number]):
            continue
        for name, document in mutations.documents(json.loads(line), 1, f"study {number}", 12):
            changed_lines = [*lines[:number], json.dumps(document), *lines[number + 1 :]]
            write = lambda p, c=changed_lines: p.write_text("\n".join(c) + "\n")
            yield _case(f"study.log line {number + 1} {name}", "either", "search/study.log", write)
    yield _case(
        "study.log reversed",
        "either",
        "search/study.log",
        lambda p: p.write_text("\n".join(lines[::-1]) + "\n"),
    )
    yield _case(
        "control: study.log with a cut line at its end",
        "accepted",
        "search/study.log",
        lambda p: p.write_bytes(content + b'{"op_code": 4, "wor'),
        _same_best,
    )
    yield _case(
        "control: search unchanged", "accepted", "search/study.log", lambda p: None, _same_best
    )


def _trials() -> Iterator[Case]:
    """Yields damaged results, which are written anew from the study."""
    content = (place() / "search" / "trials.jsonl").read_bytes()
    for name, changed in mutations.damaged(content, "trials", 2):
        write = lambda p, c=changed: p.write_bytes(c)
        check = lambda out: _rewritten(out, content)
        yield _case(
            f"control: trials.jsonl {name}", "accepted", "search/trials.jsonl", write, check
        )


def _rewritten(out: Any, content: bytes) -> None:
    _same_best(out)
    assert Path("search/trials.jsonl").read_bytes() == content


def _records() -> Iterator[Case]:
    path = place() / "results" / "runs.jsonl"
    content = path.read_bytes()
    for name, changed in [*mutations.damaged(content, "records", 16), *mutations.texts()]:
        write = lambda p, c=changed: p.write_bytes(c + b"\n")
        yield _case(f"runs.jsonl {name}", "either", "results/runs.jsonl", write)
    first, *rest = content.decode().splitlines()
    record = json.loads(first)
    record["settings"] = dict(list(record["settings"].items())[:2])
    for name, document in mutations.documents(record, 2, "record"):
        lines = [json.dumps(document), *rest]
        write = lambda p, c=lines: p.write_text("\n".join(c) + "\n")
        yield _case(f"runs.jsonl {name}", "either", "results/runs.jsonl", write)
    yield _case("runs.jsonl is a folder", "refused", "results/runs.jsonl", _folder)
    yield _case(
        "control: runs.jsonl unchanged",
        "accepted",
        "results/runs.jsonl",
        lambda p: None,
        _has_table,
    )
    yield _case(
        "control: runs.jsonl with a cut last line",
        "accepted",
        "results/runs.jsonl",
        lambda p: p.write_bytes(content + b'{"table": "ta'),
        _has_table,
    )
    yield _case(
        "control: runs.jsonl without its last line break",
        "accepted",
        "results/runs.jsonl",
        lambda p: p.write_bytes(content[:-1]),
        _has_table,
    )
    yield _case(
        "control: runs.jsonl with a run twice",
        "accepted",
        "results/runs.jsonl",
        lambda p: p.write_bytes(content + first.encode() + b"\n"),
        _has_table,
    )


def _has_table(_: Any) -> None:
    numbers = json.loads(Path("results/table1.json").read_text())
    assert "gcn" in json.dumps(numbers)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
