"""Settings as keywords of NodeClassifier, each with objects of every kind.

The settings come from the dataclasses, so that new ones are covered.
"""

import decimal
import fractions
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from dgt.config import FIELDS, Config, to_toml
from tests.campaign.case import Case, Expect
from tests.campaign.judge import call


def cases() -> Iterator[Case]:
    """Yields keywords of NodeClassifier, each with objects of every kind."""
    for name, field in FIELDS.items():
        for number, (title, value) in enumerate(OBJECTS.items()):
            if (sum(name.encode()) + number) % 3:  # a third of them for each setting
                continue
            yield _keyword(f"{name} is {title}", _expect_object(field, value), {name: value}, name)
        yield _keyword(f"control: {name} is its default", "accepted", {name: field.default}, name)
    for title, arguments in {
        "a dict": ({"lr": 1},),
        "text": ("dgt",),
        "a class": (Config,),
    }.items():
        yield Case(
            f"config is {title}",
            "refused",
            call(lambda a=arguments: _construct(*a)),
            names=("config|settings",),
            repeat=f"NodeClassifier(*{arguments!r})",
        )
    for name in ("lrr", "epoch", "", "model_", "self2"):
        yield _keyword(f"unknown setting {name!r}", "refused", {name: 1}, "setting")


# Settings that take the name of any column.
COLUMNS = ("id", "label", "split_column", "source", "target", "weight")

OBJECTS: dict[str, Any] = {
    "None": None,
    "True": True,
    "minus one": -1,
    "zero": 0,
    "a fraction": 1.5,
    "10**30": 10**30,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "text": "no-such-thing",
    "empty text": "",
    "a number as text": "3",
    "bytes": b"3",
    "a list": [1],
    "an empty list": [],
    "an empty tuple": (),
    "a dict": {},
    "an object": object(),
    "a type": int,
    "a tensor": torch.tensor(3),
    "an array": np.array([1, 2]),
    "numpy.int64": np.int64(3),
    "numpy.float32": np.float32(0.5),
    "a complex number": 1j,
    "a Decimal": decimal.Decimal("0.5"),
    "a Fraction": fractions.Fraction(1, 2),
    "a set": {1},
    "a generator": iter(()),
    "a Path": Path("x"),
    "a list of None": [None],
    "a list of lists": [["bfs"]],
}


def _expect_object(field: Any, value: Any) -> Expect:
    kind: Any = field.type
    options = get_args(kind) or (kind,)
    if value is None:
        return "accepted" if type(None) in options else "refused"
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        # The limits of the setting decide, and whether numbers of NumPy are numbers.
        return "either" if int in options or float in options else "refused"
    if isinstance(value, (torch.Tensor, decimal.Decimal, fractions.Fraction)):
        return "either" if int in options or float in options else "refused"
    if isinstance(value, bool):
        return "accepted" if bool in options else "refused"
    if isinstance(value, str) and str in options and not field.metadata.get("choices"):
        return "accepted" if value and field.name in COLUMNS else "refused"
    return "refused"


def _keyword(title: str, expect: Expect, settings: dict[str, Any], name: str) -> Case:
    return Case(
        title,
        expect,
        call(lambda: _construct(**settings)),
        names=(name,),
        repeat=f"NodeClassifier(**{settings!r})"[:300],
    )


def _construct(*arguments: Any, **settings: Any) -> Any:
    from dgt import NodeClassifier

    # What is accepted must be written and read back as it is.
    made = NodeClassifier(*arguments, **settings)
    Path("settings.toml").write_text(to_toml(made.config.to_dict()))
    from dgt.config import read_toml

    again = Config.from_dict(read_toml(Path("settings.toml")))
    Path("settings.toml").unlink()
    assert again == made.config, f"{again} != {made.config}"
    return made
