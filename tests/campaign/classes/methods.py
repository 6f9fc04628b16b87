"""``score`` and ``explain`` of NodeClassifier with arguments of every kind."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tests.campaign.case import Case, Expect
from tests.campaign.classes.calls import OBJECTS, Make, case, classifier, fitted
from tests.campaign.material import (
    NODES,
    graph,
)


def cases() -> Iterator[Case]:
    yield from _scores()
    yield from _explanations()


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
        yield case(f"score({name})", "refused", lambda m=make: score(mask=m()), ("mask",))
    for name, make in OBJECTS.items():
        if name not in ("None", "empty text", "0"):
            yield case(
                f"score(metric {name})", "refused", lambda m=make: score(metric=m()), ("metric",)
            )
    for mask in ("train", "val", "test", "all"):
        for metric in ("accuracy", "balanced-accuracy", "macro-f1", "log-loss"):
            check = lambda found, mask=mask, metric=metric: _is_score(found, mask, metric)
            yield case(
                f"control: score({mask}, {metric})",
                "accepted",
                lambda m=mask, k=metric: score(mask=m, metric=k),
                check=check,
            )
    yield case("control: score(a mask)", "accepted", lambda: score(mask=torch.arange(NODES) < 9))


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
        yield case(f"explain({name})", "refused", lambda m=make: explain(m()), ("node|graph",))
        expect: Expect = "refused"
        if name not in ("10**30", "True"):
            yield case(f"explain(top {name})", expect, lambda m=make: explain("n3", m()), ("top",))
        else:
            yield case(
                f"explain(top {name})", "either", lambda m=make: explain("n3", m()), ("top",)
            )
    for node in ("n30", "N3", "3", "n3 ", 3):
        yield case(f"explain({node!r})", "refused", lambda n=node: explain(n), ("node",))
    yield case(
        "explain without attention",
        "refused",
        lambda: fitted(model="gcn").explain("n3"),
        ("attention",),
    )
    for model in ("dgt", "dgt-light", "transformer", "graphormer", "gt-full", "gt-sparse"):
        yield case(
            f"control: explain with {model}",
            "accepted",
            lambda m=model: fitted(model=m).explain("n3"),
            check=_is_explanation,
        )
    yield case(
        "control: explain a single key",
        "accepted",
        lambda: explain("n3", 1),
        check=lambda found: len(found.keys) == 1,
    )
    for name, make in OBJECTS.items():
        yield case(
            f"same_label_share({name})",
            "refused",
            lambda m=make: classifier().same_label_share(m(), graph()),
            ("mask",),
        )
    short = lambda: classifier().same_label_share(torch.ones(5).bool(), graph())
    yield case("same_label_share(a short mask)", "refused", short, ("mask",))
    yield case(
        "same_label_share(unlabeled)",
        "either",
        lambda: classifier().same_label_share(torch.arange(NODES) == NODES - 1, graph()),
        ("mask|label",),
    )
    yield case(
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
