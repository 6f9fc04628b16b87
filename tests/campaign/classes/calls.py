"""The methods of NodeClassifier and the functions and modules of the API, with wrong arguments."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tests.campaign.case import Case, Expect
from tests.campaign.classes.attributes import predicted
from tests.campaign.judge import call
from tests.campaign.material import (
    NODES,
    QUICK,
    copy,
    graph,
    place,
    predictions,
    require_answer,
)

Make = Callable[[], Any]


def classifier(run: str = "run") -> Any:
    """Returns the trained classifier of the material."""
    from dgt import NodeClassifier

    return NodeClassifier.load(place() / run)


def _case(
    name: str,
    expect: Expect,
    act: Make,
    names: tuple[str, ...] = (),
    check: Callable[[Any], object] = lambda _: None,
    prepare: Callable[[], object] = lambda: None,
) -> Case:
    return Case(name, expect, call(act), prepare, names, check, name)


def method_cases() -> Iterator[Case]:
    yield from _scores()
    yield from _explanations()
    yield from _graphs()
    yield from _folders()
    yield from _fits()


# Objects of every kind, for arguments of another kind.
OBJECTS: dict[str, Make] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1.5": lambda: 1.5,
    "10**30": lambda: 10**30,
    "NaN": lambda: float("nan"),
    "text": lambda: "no-such-thing",
    "empty text": lambda: "",
    "bytes": lambda: b"n3",
    "a list": lambda: [1],
    "a dict": dict,
    "an object": object,
    "a type": lambda: int,
    "a tensor": lambda: torch.tensor([1.0, 2.0]),
    "an array": lambda: np.arange(3),
    "a function": lambda: len,
}


def _scores() -> Iterator[Case]:
    def score(**arguments: Any) -> float:
        return classifier().score(graph(), **arguments)

    masks: dict[str, Make] = {
        **{f"mask {name}": make for name, make in OBJECTS.items()},
        "mask of integers": lambda: torch.ones(NODES).long(),
        "mask of another length": lambda: torch.ones(5).bool(),
        "mask of two axes": lambda: torch.ones(NODES, 2).bool(),
        "empty mask": lambda: torch.zeros(NODES).bool(),
        "mask of the unlabeled node": lambda: torch.arange(NODES) == NODES - 1,
        "sparse mask": lambda: torch.ones(NODES).bool().to_sparse(),
        "meta mask": lambda: torch.ones(NODES, device="meta").bool(),
        "mask as an array": lambda: np.ones(NODES, dtype=bool),
        "mask as a list": lambda: [True] * NODES,
        "mask of nodes": lambda: torch.arange(NODES),
        "mask 'Test'": lambda: "Test",
        "nested mask": lambda: torch.nested.nested_tensor([torch.ones(NODES).bool()]),
    }
    for name, make in masks.items():
        yield _case(f"score({name})", "refused", lambda m=make: score(mask=m()), ("mask",))
    for name, make in OBJECTS.items():
        if name not in ("None", "empty text", "0"):
            yield _case(
                f"score(metric {name})", "refused", lambda m=make: score(metric=m()), ("metric",)
            )
    for mask in ("train", "val", "test", "all"):
        for metric in ("accuracy", "balanced-accuracy", "macro-f1", "log-loss"):
            check = lambda found, mask=mask, metric=metric: _is_score(found, mask, metric)
            yield _case(
                f"control: score({mask}, {metric})",
                "accepted",
                lambda m=mask, k=metric: score(mask=m, metric=k),
                check=check,
            )
    yield _case("control: score(a mask)", "accepted", lambda: score(mask=torch.arange(NODES) < 9))


def _is_score(found: float, mask: str, metric: str) -> None:
    """Computes the metric again with scikit-learn."""
    import sklearn.metrics as sk

    data, model = graph(), classifier()
    nodes = (data.y >= 0) if mask == "all" else data[f"{mask}_mask"]
    y, shares = data.y[nodes].numpy(), model.predict_proba(data)[nodes].double().numpy()
    guess = shares.argmax(axis=1)
    expected = {
        "accuracy": lambda: sk.accuracy_score(y, guess),
        "balanced-accuracy": lambda: sk.recall_score(
            y, guess, labels=np.unique(y), average="macro"
        ),
        "macro-f1": lambda: sk.f1_score(y, guess, average="macro", zero_division=0.0),
        "log-loss": lambda: sk.log_loss(y, shares / shares.sum(1, keepdims=True), labels=[0, 1, 2]),
    }[metric]()
    assert abs(found - expected) < 1e-6, f"{found} != {expected}"


def _explanations() -> Iterator[Case]:
    def explain(*arguments: Any) -> Any:
        return classifier().explain(*arguments, data=graph())

    for name, make in OBJECTS.items():
        yield _case(f"explain({name})", "refused", lambda m=make: explain(m()), ("node|graph",))
        expect: Expect = "refused"
        if name not in ("10**30", "True"):
            yield _case(f"explain(top {name})", expect, lambda m=make: explain("n3", m()), ("top",))
        else:
            yield _case(
                f"explain(top {name})", "either", lambda m=make: explain("n3", m()), ("top",)
            )
    for node in ("n30", "N3", "3", "n3 ", 3):
        yield _case(f"explain({node!r})", "refused", lambda n=node: explain(n), ("node",))
    yield _case(
        "explain without attention",
        "refused",
        lambda: _fitted(model="gcn").explain("n3"),
        ("attention",),
    )
    for model in ("dgt", "dgt-light", "transformer", "graphormer", "gt-full", "gt-sparse"):
        yield _case(
            f"control: explain with {model}",
            "accepted",
            lambda m=model: _fitted(model=m).explain("n3"),
            check=_is_explanation,
        )
    yield _case(
        "control: explain a single key",
        "accepted",
        lambda: explain("n3", 1),
        check=lambda found: len(found.keys) == 1,
    )
    for name, make in OBJECTS.items():
        yield _case(
            f"same_label_share({name})",
            "refused",
            lambda m=make: classifier().same_label_share(m(), graph()),
            ("mask",),
        )
    short = lambda: classifier().same_label_share(torch.ones(5).bool(), graph())
    yield _case("same_label_share(a short mask)", "refused", short, ("mask",))
    yield _case(
        "same_label_share(unlabeled)",
        "either",
        lambda: classifier().same_label_share(torch.arange(NODES) == NODES - 1, graph()),
        ("mask|label",),
    )
    yield _case(
        "control: same_label_share",
        "accepted",
        lambda: classifier().same_label_share(graph().test_mask, graph()),
        check=_is_share,
    )


def _is_share(found: float) -> None:
    assert 0 <= found <= 1, found


def _is_explanation(found: Any) -> None:
    assert found.id == "n3"
    assert found.keys
    assert abs(sum(key.weight for key in found.keys)) <= 1 + 1e-6


def _fitted(**settings: Any) -> Any:
    from dgt import NodeClassifier

    return NodeClassifier(**QUICK, **settings).fit(graph())


def _graphs() -> Iterator[Case]:
    """Yields graphs that a trained model must refuse."""

    def other(change: Callable[[Data], Any]) -> Data:
        data = graph()
        changed = change(data)
        return data if changed is None else changed

    changes: dict[str, Callable[[Data], Any]] = {
        "fewer features": lambda d: _set(d, x=d.x[:, :3], feature_names=d.feature_names[:3]),
        "more features": lambda d: _set(d, x=torch.cat([d.x, d.x], 1), feature_names=None),
        "other feature names": lambda d: _set(d, feature_names=["a", "b", "c", "d"]),
        "feature names in another order": lambda d: _set(d, feature_names=d.feature_names[::-1]),
        "an edge less": lambda d: _set(d, edge_index=d.edge_index[:, 1:]),
        "an edge more": lambda d: _set(d, edge_index=torch.cat([d.edge_index, _absent(d)], 1)),
        "other ids": lambda d: _set(d, node_ids=[f"m{i}" for i in range(NODES)]),
        "shuffled ids": lambda d: _set(d, node_ids=d.node_ids[::-1]),
        "no ids": lambda d: _set(d, node_ids=None),
        "another graph": lambda d: graph(seed=1),
        "fewer nodes": lambda d: graph(nodes=20),
        "a subgraph": lambda d: Data(x=d.x, edge_index=d.edge_index, y=d.y).subgraph(
            torch.arange(20)
        ),
        "no graph": lambda d: Data(),
        "a HeteroData": lambda d: __import__("torch_geometric").data.HeteroData(),
    }
    for name, change in changes.items():
        for method in ("predict", "predict_proba", "score", "explain", "multiply_adds"):

            def act(change: Any = change, method: str = method) -> Any:
                arguments = {"explain": ("n3",)}.get(method, ())
                return getattr(classifier(), method)(*arguments, data=other(change))

            yield _case(f"{method} on {name}", "refused", act, ("graph|features|nodes|Data",))
    for name, make in OBJECTS.items():
        if name != "None":
            yield _case(
                f"predict({name})",
                "refused",
                lambda m=make: classifier().predict(m()),
                ("graph|Data",),
            )
    yield _case(
        "predict without a graph", "refused", lambda: classifier().predict(), ("graph|data",)
    )
    yield _case(
        "score of an unknown class",
        "refused",
        lambda: classifier().score(other(lambda d: _set(d, class_names=["blue", "green", "pink"]))),
        ("pink",),
    )
    for name in ("predict", "predict_proba", "score", "save", "explain", "multiply_adds"):

        def unfitted(name: str = name) -> Any:
            from dgt import NodeClassifier

            arguments = {"save": ("x",), "explain": (3,)}.get(name, ())
            return getattr(NodeClassifier(), name)(*arguments)

        yield _case(f"{name} before fit", "refused", unfitted, ("fit",))
    yield _case(
        "control: predict on the graph",
        "accepted",
        lambda: predicted(classifier(), graph()),
        check=require_answer,
    )
    yield _case(
        "control: predict without labels",
        "accepted",
        lambda: predicted(classifier(), other(lambda d: _set(d, y=None))),
        check=require_answer,
    )
    yield _case(
        "control: predict on a larger graph",
        "accepted",
        lambda: classifier().predict(_larger()),
        check=lambda y: len(y) == NODES + 1,
    )
    yield _case(
        "control: no encoding, another graph",
        "accepted",
        lambda: classifier("plain").predict(graph(seed=1)),
        check=lambda y: len(y) == NODES,
    )
    yield _case(
        "control: no encoding, fewer nodes",
        "accepted",
        lambda: classifier("plain").predict(graph(nodes=20)),
        check=lambda y: len(y) == 20,
    )


def _set(data: Data, **values: Any) -> None:
    for name, value in values.items():
        data[name] = value


def _absent(data: Data) -> torch.Tensor:
    """Returns an edge that the graph lacks."""
    edges = {tuple(sorted(e)) for e in data.edge_index.t().tolist()}
    found = next((a, b) for a in range(NODES) for b in range(a + 1, NODES) if (a, b) not in edges)
    return torch.tensor(found)[:, None]


def _larger() -> Data:
    """Returns the graph with one node more, which is joined to the first."""
    data = graph()
    _set(
        data,
        x=torch.cat([data.x, data.x[:1]]),
        y=torch.cat([data.y, data.y[-1:]]),
        edge_index=torch.cat([data.edge_index, torch.tensor([[0], [NODES]])], 1),
        node_ids=[*data.node_ids, "new"],
        train_mask=None,
        val_mask=None,
        test_mask=None,
    )
    return data


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
        yield _case(
            f"save to {name}",
            "refused",
            lambda m=make: classifier().save(m()),
            prepare=prepare,
            names=("file|path|null|name|folder|x|.|a",),
        )
        yield _case(
            f"load from {name}",
            "refused",
            lambda m=make: NodeClassifier.load(m()),
            prepare=prepare,
            names=("folder|path|null|run|name",),
        )
        if name != "None":
            fit = lambda m=make: NodeClassifier(**QUICK).fit(graph(), out=m())
            yield _case(
                f"fit out {name}",
                "refused",
                fit,
                prepare=prepare,
                names=("folder|path|null|file|name|out",),
            )
        yield _case(
            f"write_predictions to {name}",
            "refused",
            lambda m=make: classifier().write_predictions(m(), graph()),
            prepare=prepare,
            names=("path|null|csv|file",),
        )
    yield _case(
        "load a run of several",
        "refused",
        lambda: NodeClassifier.load(place() / "two"),
        ("run-00",),
    )
    yield _case(
        "load a search", "refused", lambda: NodeClassifier.load(place() / "search"), ("search",)
    )
    yield _case(
        "load a graph", "refused", lambda: NodeClassifier.load(place() / "graph"), ("graph",)
    )
    yield _case(
        "save over a run",
        "refused",
        lambda: classifier().save("run"),
        ("run",),
        prepare=lambda: copy("run"),
    )
    yield _case(
        "save over another file",
        "refused",
        lambda: classifier().save("."),
        ("config.toml",),
        prepare=lambda: Path("config.toml").write_text("[server]\nport = 1\n"),
    )
    for device in ("gpu", "cuda:99", "", "cpu:0", 3, object(), "meta"):
        yield _case(
            f"load on {device!r}"[:40],
            "refused",
            lambda d=device: NodeClassifier.load(place() / "run", device=d),
            ("device",),
        )
    yield _case("control: save and load", "accepted", _round_trip, check=require_answer)
    yield _case(
        "control: save twice", "accepted", lambda: (classifier().save("m"), classifier().save("m"))
    )
    for suffix in (".csv", ".parquet"):
        yield _case(
            f"control: write_predictions to {suffix}",
            "accepted",
            lambda s=suffix: classifier().write_predictions(f"p{s}", graph()),
            check=lambda _, s=suffix: _written(s),
        )


def _written(suffix: str) -> None:
    if suffix == ".parquet":
        require_answer(predictions("p.parquet"))
    else:
        assert len(Path("p.csv").read_text().splitlines()) == NODES + 1


def _round_trip() -> Any:
    from dgt import NodeClassifier

    classifier().save("model")
    return predicted(NodeClassifier.load("model"), graph())


def _fits() -> Iterator[Case]:
    from dgt import NodeClassifier

    both = lambda: NodeClassifier(**QUICK).fit(graph(), out="r", resume=True, overwrite=True)
    yield _case("fit with resume and overwrite", "either", both, ("resume|overwrite",))
    yield _case(
        "fit into a run",
        "refused",
        lambda: NodeClassifier(**QUICK).fit(graph(), out="run"),
        ("run",),
        prepare=lambda: copy("run"),
    )
    yield _case(
        "resume with other settings",
        "refused",
        lambda: NodeClassifier(**QUICK, lr=0.5).fit(graph(), out="half", resume=True),
        ("lr",),
        prepare=lambda: copy("half"),
    )
    yield _case(
        "overwrite a folder of others",
        "refused",
        lambda: NodeClassifier(**QUICK).fit(graph(), out="graph", overwrite=True),
        ("graph",),
        prepare=lambda: copy("graph"),
    )
    yield _case(
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
            yield _case(f"fit with {name} {kind}", "either", act, (name,))
    diverging = {"lr": 1000.0, "weight_decay": 0.0, "epochs": 50, "gamma": 1e6}
    yield _case(
        "a run that diverges",
        "either",
        lambda: NodeClassifier(**(QUICK | diverging)).fit(graph(), out="new"),
        ("lr|loss",),
    )
    big = lambda: NodeClassifier(**QUICK).fit(_scaled(3e38), out="new")
    yield _case("features of 3e38", "either", big, ("x|feature|loss",))
    for model in ("gcn", "gat", "graphsage", "mlp", "h2gcn", "transformer"):
        act = lambda m=model: NodeClassifier(**QUICK, model=m).fit(_scaled(3e38), out="new")
        yield _case(f"features of 3e38, {model}", "either", act, ("x|feature|loss",))


def _scaled(limit: float) -> Data:
    data = graph()
    data.x = (data.x.double() / data.x.abs().max() * limit).float()
    return data
