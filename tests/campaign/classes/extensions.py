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

# What a criterion of the user's own may return in place of indices (N, L).
SEQUENCES: dict[str, tuple[Expect, str]] = {
    "control: its own nodes": ("accepted", "torch.arange(N)[:, None]"),
    "control: following nodes": (
        "accepted",
        "(torch.arange(N)[:, None] + torch.arange(length)) % N",
    ),
    "control: an array": ("accepted", "torch.arange(N)[:, None].numpy()"),
    "control: padded": (
        "accepted",
        "torch.cat([torch.arange(N)[:, None], torch.full((N, 1), -1)], 1)",
    ),
    "control: lists": ("either", "[[i] for i in range(N)]"),
    "None": ("refused", "None"),
    "text": ("refused", "'abc'"),
    "a number": ("refused", "3"),
    "an object": ("refused", "object()"),
    "ragged lists": ("refused", "[[0]] + [[1, 2]] * (N - 1)"),
    "fractions": ("refused", "torch.arange(N)[:, None] + 0.5"),
    "whole floats": ("either", "torch.arange(N)[:, None].double()"),
    "NaN": ("refused", "torch.full((N, 1), float('nan'))"),
    "bools": ("refused", "torch.ones(N, 1).bool()"),
    "complex numbers": ("refused", "torch.ones(N, 1).cfloat()"),
    "one axis": ("refused", "torch.arange(N)"),
    "three axes": ("refused", "torch.zeros(1, N, 1).long()"),
    "too few rows": ("refused", "torch.arange(N - 1)[:, None]"),
    "too many rows": ("refused", "torch.arange(N + 1)[:, None]"),
    "no columns": ("refused", "torch.zeros(N, 0).long()"),
    "too many columns": ("either", "torch.stack([torch.randperm(N) for _ in range(N)])"),
    "nodes out of range": ("refused", "torch.full((N, 1), N)"),
    "negative nodes": ("refused", "torch.full((N, 1), -2)"),
    "huge nodes": ("refused", "torch.full((N, 1), 2**40)"),
    "other base nodes": ("refused", "torch.arange(N).flip(0)[:, None]"),
    "a node twice": ("refused", "torch.arange(N)[:, None].expand(N, 2)"),
    "padding first": (
        "refused",
        "torch.cat([torch.full((N, 1), -1), torch.arange(N)[:, None]], 1)",
    ),
    "padding inside": (
        "refused",
        "torch.stack([torch.arange(N), torch.full((N,), -1), (torch.arange(N) + 1) % N], 1)",
    ),
    "a meta tensor": ("refused", "torch.zeros(N, 1, device='meta').long()"),
    "a sparse tensor": ("either", "torch.arange(N)[:, None].to_sparse()"),
    "an exception": ("refused", "1 / 0"),
    "an assertion": ("refused", "[][3]"),
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
    "a nested tensor": ("refused", "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])"),
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
        yield _case(f"criterion record: {title}", expect, act, ("own-record",))
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

        yield _case(f"encoding record: {title}", "refused", encode, ("own-record",))

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
        return torch.arange(data.num_nodes)[:, None]

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
        """A run that its function makes fail leaves nothing in the way of the corrected one."""

        def broken(data: Data, length: int) -> Any:
            raise RuntimeError("not yet")

        with contextlib.suppress(ValueError):
            _train(criteria=[broken])
        assert not Path("run").exists(), f"left: {sorted(p.name for p in Path('run').iterdir())}"
        _train(criteria=[one])

    yield _case("control: corrected after a failing criterion", "accepted", failing)
