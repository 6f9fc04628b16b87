"""Settings in TOML files, of ``--config`` and of a run's folder.

The settings come from the dataclasses, so that new ones are covered.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from dgt.config import FIELDS, TABLES, Config
from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.judge import command
from tests.campaign.material import QUICK, copy, place, predictions, require_answer, require_run

TRAIN = ["train", "graph", "--out", "run", "--quiet", "--config", "settings.toml"]


PREDICT = ["predict", "run", "--quiet", "--out", "p.parquet"]


# TOML values of every kind, for settings of another kind.
TOML = (
    "true",
    "-1",
    "1.5",
    "nan",
    "inf",
    '"text"',
    '""',
    "[]",
    "[1]",
    '["bfs", 1]',
    "{}",
    "{a = 1}",
    "1979-05-27",
    "07:32:00",
    "10000000000000000000000",
    "1e308",
    "[[[]]]",
    '"\\u0000"',
)


def cases() -> Iterator[Case]:
    content = _config().encode()
    for name, changed in [*mutations.damaged(content, "toml", 16), *_texts()]:
        yield _toml(name, "either", changed.decode("latin-1").encode("latin-1"))
    for name in FIELDS:
        for value in _chosen(name, TOML, 6):
            yield _toml(
                f"{name} = {value}", _expect(name, value), _with(name, value).encode(), (name,)
            )
    wrong = {
        "an unknown table": b"[no_such_table]\nx = 1\n",
        "an unknown setting": b"[train]\nno_such_setting = 1\n",
        "a setting in the wrong table": b"[model]\nlr = 0.1\n",
        "a setting without a table": b"lr = 0.1\n",
        "a table that is a number": b"train = 3\n",
        "a list of tables": b"[[train]]\nlr = 0.1\n",
        "a nested table": b"[train.lr]\nx = 1\n",
        "a setting twice": b"[train]\nlr = 0.1\nlr = 0.2\n",
        "a table twice": b"[train]\nlr = 0.1\n[train]\nseed = 1\n",
        "runs a text": b'runs = "many"\n[train]\nlr = 0.1\n[nothing]\n',
    }
    for name, text in wrong.items():
        yield _toml(name, "refused", text)
    yield from _run_config(content)
    yield _toml(
        "control: all settings",
        "accepted",
        content,
        check=lambda _: _same("run/predictions.parquet"),
    )
    yield _toml(
        "control: CRLF",
        "accepted",
        content.replace(b"\n", b"\r\n"),
        check=lambda _: _same("run/predictions.parquet"),
    )
    yield _toml(
        "control: comments",
        "accepted",
        b"# mine\n" + content + b"# end\n",
        check=lambda _: _same("run/predictions.parquet"),
    )
    short = "\n".join(
        f"[{t}]\n" + "\n".join(f"{n} = {_value(v)}" for n, v in QUICK.items() if TABLES[n] == t)
        for t in {TABLES[n] for n in QUICK}
    )
    yield _toml(
        "control: few settings",
        "accepted",
        short.encode(),
        check=lambda _: _same("run/predictions.parquet"),
    )


def _value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _same(path: str) -> None:
    require_answer(predictions(path))


def _config() -> str:
    return Config().replace(**QUICK).to_toml()


def _with(name: str, value: str) -> str:
    """Returns the settings with another value for one, also if it is unset by default."""
    lines = [line for line in _config().splitlines() if not line.startswith(f"{name} =")]
    return "\n".join(
        f"{line}\n{name} = {value}" if line == f"[{TABLES[name]}]" else line for line in lines
    )


def _chosen(name: str, values: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Returns some of the values, others for each setting."""
    start = sum(name.encode())
    return tuple(dict.fromkeys(values[(start + 5 * i) % len(values)] for i in range(count)))


def _expect(name: str, value: str) -> Expect:
    kind: Any = FIELDS[name].type
    options = get_args(kind) or (kind,)
    if bool in options:
        return "accepted" if value == "true" else "refused"
    number = float in options or int in options
    try:
        float(value)
    except ValueError:
        return "refused"
    # A number for a setting that is a number: its limits decide.
    return "either" if number else "refused"


def _toml(
    name: str,
    expect: Expect,
    content: bytes,
    names: tuple[str, ...] = (),
    check: Any = lambda _: require_run(),
) -> Case:
    def prepare() -> None:
        copy("graph")
        Path("settings.toml").write_bytes(content)

    return Case(
        name,
        expect,
        command(*TRAIN),
        prepare,
        (f"settings.toml|{'|'.join(names) or 'settings.toml'}",),
        check,
        f"dgt {shlex.join(TRAIN)}",
    )


def _texts() -> Iterator[tuple[str, bytes]]:
    yield "deep nesting", b"x = " + mutations.nested().encode()
    yield "deep tables", b"[" + b".".join([b"a"] * 5000) + b"]\n"
    yield "deep inline tables", b"x = " + b"{a=" * 20_000 + b"1" + b"}" * 20_000
    yield "a number of 10,000 digits", b"[train]\nseed = " + b"9" * 10_000
    yield "not UTF-8", b'[train]\ndevice = "\xff"\n'
    yield "UTF-16", _config().encode("utf-16")
    yield "a zero byte", b"[train]\nlr = 0.1\x00\n"


def _run_config(content: bytes) -> Iterator[Case]:
    """Yields runs whose config.toml was changed, and that are used to predict."""
    changes = dict(mutations.damaged((place() / "run" / "config.toml").read_bytes(), "run", 10))
    own = (place() / "run" / "config.toml").read_text()
    for name, value in {
        "graph": ("3", "[]", '""', '"missing"', '"../.."', "{}"),
        "runs": ('"2"', "0", "-1", "1.5", "true", "[]", "10000000000000000000000"),
    }.items():
        for each in value:
            lines = [line for line in own.splitlines() if not line.startswith(f"{name} =")]
            changes[f"{name} = {each}"] = "\n".join([f"{name} = {each}", *lines]).encode()
    for name in ("hidden_channels", "heads", "criteria", "model", "encoding", "length", "keys"):
        other = {
            "hidden_channels": "16",
            "heads": "4",
            "criteria": '["bfs"]',
            "model": '"gcn"',
            "encoding": '"none"',
            "length": "5",
            "keys": "3",
        }[name]
        lines = [line for line in own.splitlines() if not line.startswith(f"{name} =")]
        changes[f"{name} of another model"] = "\n".join(
            f"{line}\n{name} = {other}" if line == f"[{TABLES[name]}]" else line for line in lines
        ).encode()
    changes["missing"] = b""
    for name, changed in changes.items():

        def prepare(changed: bytes = changed, name: str = name) -> None:
            copy("run")
            Path("run/config.toml").write_bytes(changed)
            if name == "missing":
                Path("run/config.toml").unlink()

        yield Case(
            f"run: {name}",
            "either",
            command(*PREDICT),
            prepare,
            ("config.toml|model.safetensors|run|missing|../..|graph",),
            _predicted,
            f"dgt {shlex.join(PREDICT)}",
        )


def _predicted(_: Any) -> None:
    """A changed file of settings may change the answer, but not its form."""
    found = predictions("p.parquet")
    assert len(found) == 30
    assert all(0 < share <= 1 for _, share in found.values())
