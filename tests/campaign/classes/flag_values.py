"""The commands, and wrong values for flags of each kind."""

from pathlib import Path

from tests.campaign.material import FLAGS, TRAIN

# What commands are called with, unless a run is enough. Flags are added at the end.
COMMANDS: dict[str, list[str]] = {
    "train": TRAIN,
    "prepare": ["prepare", "graph", "--quiet", "--out", "cache", *FLAGS],
    "predict": ["predict", "run", "--quiet", "--out", "predictions.csv"],
    "explain": ["explain", "run", "n3"],
    "explore": ["explore", "run", "--no-browser", "--port=0"],
    "report": ["report", "run", "--quiet", "--out", "report.html"],
    "info": ["info", "graph"],
    "tune": ["tune", "graph", "--quiet", "--out", "search", "--trials=1", "--runs=1", *FLAGS],
    "reproduce": ["reproduce", "table1", "--show", "--datasets=cora", "--models=gcn"],
}


WRONG: dict[type, tuple[str, ...]] = {
    int: (
        "",
        " ",
        "x",
        "1.5",
        "nan",
        "inf",
        "-1",
        "1e400",
        "9" * 30,
        "0x",
        "1,000",
        "½",
        "None",
        "--",
        "1 2",
        "-0.5",
        "1" + "0" * 5000,
    ),
    float: (
        "",
        "x",
        "nan",
        "inf",
        "-inf",
        "-1",
        "1e999",
        "1,5",
        "0..1",
        "%",
        "None",
        "1/2",
        "1j",
        "9" * 400,
    ),
    bool: ("maybe", "2", "", "none"),
    str: ("", "no-such-thing", "x" * 5000, "a\nb", "../..", "\u202e"),
    Path: (
        "",
        "/",
        ".",
        "missing/\0x",
        "x" * 300,
        "file/below",
        "/dev/null",
        "/proc/none/x",
        "graph",
    ),
}


# Flags whose meaning is a path or a text of its own: what is wrong for them.
SPECIAL: dict[str, tuple[str, ...]] = {
    "--shard": (
        "",
        "1",
        "1/1",
        "2/1",
        "0/0",
        "-1/2",
        "a/b",
        "0/",
        "/2",
        "0/2/3",
        "1.0/2",
        "0/10000000",
        "٠/٢",
    ),
    "--device": ("gpu", "cuda:99", "cuda:-1", "CPU", "cpu:1", "meta", "xla", "cuda", "mps"),
    "--import": (
        "",
        "no_such_module",
        "os.nothing",
        "../x",
        "graph/nodes.csv",
        "..",
        "a b",
        "own_broken",
        "own_exits",
    ),
    "--start": ("missing.toml", "graph", "graph/nodes.csv", ""),
    "--config": ("missing.toml", "graph", "graph/nodes.csv", "", "/dev/null/x"),
    "--readme": ("missing.md", "graph", "graph/nodes.csv", "", "/"),
    "--results": ("graph/nodes.csv", "graph/nodes.csv/x", "missing\0", "x" * 300),
    "--datasets": ("", "no-such-thing", "Cora", "graph"),
    "--models": ("", "no-such-thing", "GCN"),
}


# Integers that may be 0, and numbers that may be any.
ZERO = (
    "--seed",
    "--split",
    "--weight-decay",
    "--feature-weight-decay",
    "--encoding-weight-decay",
    "--key-weight-decay",
    "--average",
    "--dropout",
    "--input-dropout",
    "--encoding-dropout",
    "--node-dropout",
    "--value-dropout",
)


# Metrics that are not defined for the classes of the graph, and a task that has them.
METRIC_TASKS = {"f1": "multilabel", "mae": "regression", "r2": "regression"}
