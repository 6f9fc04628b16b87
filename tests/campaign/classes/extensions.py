"""The user's own criteria, encodings, models and metrics, in Python and with ``--import``."""

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from tests.campaign.case import Case, Expect
from tests.campaign.judge import call, command
from tests.campaign.material import NODES, QUICK, TRAIN, copy, graph, require_run

# What a criterion of the user's own may return. ``first`` is valid: each node alone in its row.
SEQUENCES: dict[str, tuple[Expect, str]] = {
    "control: its own nodes": ("accepted", "first"),
    "control: following nodes": ("accepted", "(first[:, :1] + torch.arange(length)) % N"),
    "control: an array": ("accepted", "first.numpy()"),
    "control: int32": ("accepted", "first.int()"),
    "lists": ("either", "first.tolist()"),
    "whole floats": ("either", "first.double()"),
    "a sparse tensor": ("either", "first.to_sparse()"),
    "None": ("refused", "None"),
    "text": ("refused", "'abc'"),
    "a number": ("refused", "3"),
    "an object": ("refused", "object()"),
    "ragged lists": ("refused", "[[0]] + [[1, 2]] * (N - 1)"),
    "fractions": ("refused", "first + 0.5"),
    "NaN": ("refused", "first * float('nan')"),
    "bools": ("refused", "first.bool()"),
    "complex numbers": ("refused", "first.cfloat()"),
    "one axis": ("refused", "first[:, 0]"),
    "three axes": ("refused", "first[None]"),
    "too few rows": ("refused", "first[1:]"),
    "too many rows": ("refused", "torch.cat([first, first[:1]])"),
    "no columns": ("refused", "first[:, :0]"),
    "too few columns": ("refused", "first[:, :1]"),
    "too many columns": ("refused", "torch.cat([first, first[:, 1:]], 1)"),
    "nodes out of range": ("refused", "first.where(first >= 0, N)"),
    "negative nodes": ("refused", "first.where(first >= 0, -2)"),
    "huge nodes": ("refused", "first.where(first >= 0, 2**40)"),
    "other base nodes": ("refused", "first.flip(0)"),
    "a node twice": ("refused", "first[:, :1].expand(N, length)"),
    "padding first": ("refused", "first.flip(1)"),
    "a meta tensor": ("refused", "first.to('meta')"),
    "an exception": ("refused", "1 / 0"),
    "another exception": ("refused", "[][3]"),
}
# What an encoding may return in place of numbers (N, columns).
COLUMNS: dict[str, tuple[Expect, str]] = {
    "control: a column": ("accepted", "torch.ones(N, 1)"),
    "control: integers": ("accepted", "torch.arange(N)[:, None]"),
    "control: sparse": ("accepted", "torch.eye(N).to_sparse()"),
    "control: double": ("accepted", "torch.rand(N, 3).double()"),
    "control: an array": ("accepted", "torch.rand(N, 3).numpy()"),
    "None": ("refused", "None"),
    "text": ("refused", "'abc'"),
    "an object": ("refused", "object()"),
    "one axis": ("refused", "torch.ones(N)"),
    "three axes": ("refused", "torch.ones(N, 1, 1)"),
    "too few rows": ("refused", "torch.ones(N - 1, 1)"),
    "no columns": ("refused", "torch.ones(N, 0)"),
    "NaN": ("refused", "torch.full((N, 1), float('nan'))"),
    "infinite": ("refused", "torch.full((N, 1), float('inf'))"),
    "above float32": ("refused", "torch.full((N, 1), 1e300, dtype=torch.float64)"),
    "complex numbers": ("refused", "torch.ones(N, 1).cfloat()"),
    "dates": ("refused", "__import__('numpy').zeros((N, 1), dtype='datetime64[D]')"),
    "ragged lists": ("refused", "[[0]] + [[1, 2]] * (N - 1)"),
    "a meta tensor": ("refused", "torch.ones(N, 1, device='meta')"),
    "quantized": ("either", "torch.quantize_per_tensor(torch.ones(N, 1), 1.0, 0, torch.qint8)"),
    "a nested tensor": (
        "refused",
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)",
    ),
    "an exception": ("refused", "1 / 0"),
}
# What a metric may return in place of a number.
VALUES: dict[str, tuple[Expect, str]] = {
    "control: a number": ("accepted", "0.5"),
    "control: a tensor": ("accepted", "(scores.argmax(1) == labels).float().mean()"),
    "control: negative": ("accepted", "-3"),
    "control: an integer": ("accepted", "1"),
    "NaN": ("refused", "float('nan')"),
    "infinite": ("refused", "float('-inf')"),
    "None": ("refused", "None"),
    "text": ("refused", "'high'"),
    "a vector": ("refused", "scores"),
    "complex": ("refused", "1j"),
    "a dict": ("refused", "{}"),
    "an exception": ("refused", "1 / 0"),
}


FIRST = """\
    first = torch.full((N, length), -1)
    first[:, 0] = torch.arange(N)
"""


def cases() -> Iterator[Case]:
    yield from _kinds(
        "criterion", SEQUENCES, "def own(data, length):", "CRITERIA", "dgt.sequences", "--criteria"
    )
    yield from _kinds(
        "encoding", COLUMNS, "def own(data):", "ENCODINGS", "dgt.encodings", "--encoding"
    )
    yield from _kinds(
        "metric", VALUES, "def own(scores, labels):", "METRICS", "dgt.evaluate", "--metric"
    )
    yield from _records()
    yield from _names()


def _kinds(
    kind: str,
    table: dict[str, tuple[Expect, str]],
    head: str,
    choices: str,
    module: str,
    flag: str,
) -> Iterator[Case]:
    """Yields each return value: from ``--import``, and from Python."""
    for title, (expect, code) in table.items():
        nodes = "    N = data.num_nodes\n" if "data" in head else ""
        nodes += FIRST if kind == "criterion" else ""
        text = (
            f"import torch\nfrom {module} import {choices}\n\n\n"
            f"{head}\n{nodes}    return {code}\n\n\n"
            f'{choices}["own"] = own\n'
        )
        tokens = [*TRAIN, "--import", "own_module", f"{flag}=own"]

        def prepare(text: str = text) -> None:
            copy("graph")
            Path("own_module.py").write_text(text)

        check = lambda _: require_run()
        repeat = f"dgt {shlex.join(tokens)}  # own: return {code}"
        yield Case(f"{kind}: {title}", expect, command(*tokens), prepare, ("own",), check, repeat)
        if kind != "metric":
            name = {"criterion": "criteria", "encoding": "encoding"}[kind]
            act = lambda text=text, name=name: _fit(text, name)
            yield Case(
                f"{kind}: {title}, in Python", expect, call(act), names=("own",), repeat=repeat
            )


def _fit(text: str, name: str) -> None:
    from dgt import NodeClassifier

    scope: dict[str, Any] = {}
    exec(text.rsplit("\n\n\n", 1)[0], scope)
    value = [scope["own"]] if name == "criteria" else scope["own"]
    NodeClassifier(**QUICK, **{name: value}).fit(graph(), out="run")


def _records() -> Iterator[Case]:
    """Yields records with wrong fields."""
    from dgt.encodings import ENCODINGS
    from dgt.encodings.encoding import Encoding
    from dgt.evaluate import METRICS, Metric
    from dgt.sequences import CRITERIA
    from dgt.sequences.criterion import Criterion

    def constant(value: Callable[[range], Any]) -> Any:
        return lambda graph, settings, folder: lambda bases, advance: value(bases)

    begins: dict[str, Any] = {
        "float sequences": constant(lambda b: (torch.zeros(len(b), 4).numpy(), None)),
        "out of range": constant(lambda b: (torch.full((len(b), 4), NODES).int().numpy(), None)),
        "negative": constant(lambda b: (torch.full((len(b), 4), -5).int().numpy(), None)),
        "too few rows": constant(lambda b: (torch.zeros(1, 4).int().numpy(), None)),
        "another length": constant(lambda b: (torch.zeros(len(b), 9).int().numpy(), None)),
        "no tuple": constant(lambda b: torch.zeros(len(b), 4).int().numpy()),
        "None": constant(lambda b: None),
        "NaN scores": constant(lambda b: (_own(b), torch.full((len(b), 4), float("nan")).numpy())),
        "no function": 3,
    }
    for title, begin in begins.items():

        def act(begin: Any = begin) -> None:
            CRITERIA["own-record"] = Criterion(begin=begin, reads=("edge_index",))
            _train(criteria=["own-record"], spacing="score")

        expect: Expect = "either" if title == "NaN scores" else "refused"
        # A record without a function cannot even be made, and thus has no name yet.
        yield _case(f"criterion record: {title}", expect, act, ("own-record|Criterion: begin",))
    columns: dict[str, Any] = {
        "NaN": lambda *_: torch.full((NODES, 2), float("nan")),
        "too few rows": lambda *_: torch.ones(3, 2),
        "one axis": lambda *_: torch.ones(NODES),
        "None": lambda *_: None,
        "text": lambda *_: "abc",
        "no function": 3,
    }
    for title, function in columns.items():

        def encode(function: Any = function) -> None:
            ENCODINGS["own-record"] = Encoding(columns=function)
            _train(encoding="own-record")

        # None means that there is no encoding.
        expect = "accepted" if title == "None" else "refused"
        yield _case(f"encoding record: {title}", expect, encode, ("own-record|Encoding: columns",))

    def misspelled() -> None:
        ENCODINGS["own-record"] = Encoding(
            columns=lambda *_: torch.ones(NODES, 1), carries_over="allways"
        )  # type: ignore[arg-type]
        _train(encoding="own-record")

    yield _case(
        "encoding record: carries_over misspelled",
        "refused",
        misspelled,
        ("carries_over|own-record",),
    )
    for title, value in {"a number": 3, "None": None, "text": "accuracy", "a class": int}.items():
        for choices, name in ((CRITERIA, "criteria"), (ENCODINGS, "encoding"), (METRICS, "metric")):

            def register(choices: Any = choices, name: str = name, value: Any = value) -> None:
                choices["own-value"] = value
                _train(**{name: ["own-value"] if name == "criteria" else "own-value"})

            yield _case(f"{name} registered as {title}", "refused", register, ("own-value",))

    def metric(function: Any) -> None:
        METRICS["own-record"] = Metric(function)
        _train(metric="own-record")

    yield _case("metric record: no function", "refused", lambda: metric(3), ("own-record",))
    yield _case(
        "metric record: two values", "refused", lambda: metric(lambda s, y: (1, 2)), ("own-record",)
    )


def _own(bases: range) -> Any:
    rows = torch.full((len(bases), 4), -1)
    rows[:, 0] = torch.tensor(list(bases))
    return rows.int().numpy()


def _case(name: str, expect: Expect, act: Callable[[], Any], names: tuple[str, ...] = ()) -> Case:
    return Case(name, expect, call(act), names=names, repeat=name)


def _train(**settings: Any) -> None:
    from dgt import NodeClassifier

    NodeClassifier(**QUICK, **settings).fit(graph(), out="run")


def _names() -> Iterator[Case]:
    from dgt.encodings import ENCODINGS
    from dgt.evaluate import METRICS
    from dgt.models import MODELS
    from dgt.sequences import CRITERIA

    def one(data: Data, length: int) -> torch.Tensor:
        rows = torch.full((data.num_nodes, length), -1)
        rows[:, 0] = torch.arange(data.num_nodes)
        return rows

    for choices, kind in (
        (CRITERIA, "criteria"),
        (ENCODINGS, "encoding"),
        (METRICS, "metric"),
        (MODELS, "model"),
    ):
        for name in ("", "two words", "a/b", "a\nb", "ä" * 300, 3, None, next(iter(choices))):

            def register(choices: Any = choices, name: Any = name) -> None:
                choices[name] = one

            yield _case(
                f"{kind} named {name!r}"[:60],
                "refused",
                register,
                ("name|taken|register|built|choose|word|exist|expected",),
            )

    def twice() -> None:
        def first(data: Data, length: int) -> torch.Tensor:
            return one(data, length)

        def second(data: Data, length: int) -> torch.Tensor:
            return one(data, length)

        second.__name__ = "first"
        _train(criteria=[first, second])

    yield _case("two criteria of one name", "refused", twice, ("first|name",))
    yield _case("control: two criteria", "accepted", lambda: _train(criteria=["bfs", one]))

    def failing() -> None:
        def broken(data: Data, length: int) -> Any:
            raise RuntimeError("not yet")

        with contextlib.suppress(ValueError):
            _train(criteria=[broken])
        assert not Path("run").exists(), f"left: {sorted(p.name for p in Path('run').iterdir())}"
        _train(criteria=[one])

    yield _case("control: corrected after a failing criterion", "accepted", failing)
