"""Where models are saved to, loaded from and trained, and runs that cannot succeed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from tests.campaign.case import Case
from tests.campaign.classes.attributes import predicted
from tests.campaign.classes.calls import OBJECTS, Make, case, classifier
from tests.campaign.material import (
    NODES,
    QUICK,
    copy,
    graph,
    place,
    predictions,
    require_answer,
)


def cases() -> Iterator[Case]:
    yield from _folders()
    yield from _fits()


def _folders() -> Iterator[Case]:
    from dgt import NodeClassifier

    places: dict[str, tuple[Make, Callable[[], object]]] = {
        "a file": (lambda: "file", lambda: Path("file").write_text("x")),
        "below a file": (lambda: "file/x", lambda: Path("file").write_text("x")),
        "a zero byte": (lambda: "a\0b", lambda: None),
        "a long name": (lambda: "x" * 300, lambda: None),
        "a device": (lambda: "/dev/null", lambda: None),
        "nothing": (lambda: "", lambda: None),
        "an object": (object, lambda: None),
        "a number": (lambda: 3, lambda: None),
        "None": (lambda: None, lambda: None),
        "bytes": (lambda: b"folder", lambda: None),
    }
    for name, (make, prepare) in places.items():
        yield case(
            f"save to {name}",
            "refused",
            lambda m=make: classifier().save(m()),
            prepare=prepare,
            names=("file|path|null|name|folder|x|.|a",),
        )
        yield case(
            f"load from {name}",
            "refused",
            lambda m=make: NodeClassifier.load(m()),
            prepare=prepare,
            names=("folder|path|null|run|name",),
        )
        if name != "None":
            fit = lambda m=make: NodeClassifier(**QUICK).fit(graph(), out=m())
            yield case(
                f"fit out {name}",
                "refused",
                fit,
                prepare=prepare,
                names=("folder|path|null|file|name|out",),
            )
        yield case(
            f"write_predictions to {name}",
            "refused",
            lambda m=make: classifier().write_predictions(m(), graph()),
            prepare=prepare,
            names=("path|null|csv|file",),
        )
    yield case(
        "load a run of several",
        "refused",
        lambda: NodeClassifier.load(place() / "two"),
        ("run-00",),
    )
    yield case(
        "load a search", "refused", lambda: NodeClassifier.load(place() / "search"), ("search",)
    )
    yield case(
        "load a graph", "refused", lambda: NodeClassifier.load(place() / "graph"), ("graph",)
    )
    yield case(
        "save over a run",
        "refused",
        lambda: classifier().save("run"),
        ("run",),
        prepare=lambda: copy("run"),
    )
    yield case(
        "save over another file",
        "refused",
        lambda: classifier().save("."),
        ("config.toml",),
        prepare=lambda: Path("config.toml").write_text("[server]\nport = 1\n"),
    )
    for device in ("gpu", "cuda:99", "", "cpu:0", 3, object(), "meta"):
        yield case(
            f"load on {device!r}".split(" at 0x")[0],
            "refused",
            lambda d=device: NodeClassifier.load(place() / "run", device=d),
            ("device",),
        )
    yield case(
        "control: save and load",
        "accepted",
        _round_trip,
        check=lambda found: require_answer(found, "arrays"),
    )
    yield case(
        "control: save twice", "accepted", lambda: (classifier().save("m"), classifier().save("m"))
    )
    for suffix in (".csv", ".parquet"):
        yield case(
            f"control: write_predictions to {suffix}",
            "accepted",
            lambda s=suffix: classifier().write_predictions(f"p{s}", graph()),
            check=lambda _, s=suffix: _written(s),
        )


def _written(suffix: str) -> None:
    if suffix == ".parquet":
        require_answer(predictions("p.parquet"), "arrays")
    else:
        assert len(Path("p.csv").read_text().splitlines()) == NODES + 1


def _round_trip() -> Any:
    from dgt import NodeClassifier

    classifier().save("model")
    return predicted(NodeClassifier.load("model"), graph())


def _fits() -> Iterator[Case]:
    from dgt import NodeClassifier

    both = lambda: NodeClassifier(**QUICK).fit(graph(), out="r", resume=True, overwrite=True)
    yield case("fit with resume and overwrite", "either", both, ("resume|overwrite",))
    yield case(
        "fit into a run",
        "refused",
        lambda: NodeClassifier(**QUICK).fit(graph(), out="run"),
        ("run",),
        prepare=lambda: copy("run"),
    )
    yield case(
        "resume with other settings",
        "refused",
        lambda: NodeClassifier(**QUICK, lr=0.5).fit(graph(), out="half", resume=True),
        ("lr",),
        prepare=lambda: copy("half"),
    )
    yield case(
        "overwrite a folder of others",
        "refused",
        lambda: NodeClassifier(**QUICK).fit(graph(), out="graph", overwrite=True),
        ("graph",),
        prepare=lambda: copy("graph"),
    )
    yield case(
        "resume a folder of others",
        "refused",
        lambda: NodeClassifier(**QUICK).fit(graph(), out="graph", resume=True),
        ("graph",),
        prepare=lambda: copy("graph"),
    )
    for name in ("graph", "progress", "resume", "overwrite"):
        for kind in ("an object", "a list"):
            act = lambda n=name, k=kind: NodeClassifier(**QUICK).fit(
                graph(), out="new", **{n: OBJECTS[k]()}
            )
            yield case(f"fit with {name} {kind}", "either", act, (name,))
    diverging = {"lr": 1000.0, "weight_decay": 0.0, "epochs": 50, "gamma": 1e6}
    yield case(
        "a run that diverges",
        "either",
        lambda: NodeClassifier(**(QUICK | diverging)).fit(graph(), out="new"),
        ("lr|loss",),
    )
    big = lambda: NodeClassifier(**QUICK).fit(_scaled(3e38), out="new")
    yield case("features of 3e38", "either", big, ("x|feature|loss",))
    for model in ("gcn", "gat", "graphsage", "mlp", "h2gcn", "transformer"):
        act = lambda m=model: NodeClassifier(**QUICK, model=m).fit(_scaled(3e38), out="new")
        yield case(f"features of 3e38, {model}", "either", act, ("x|feature|loss",))


def _scaled(limit: float) -> Data:
    data = graph()
    data.x = (data.x.double() / data.x.abs().max() * limit).float()
    return data
