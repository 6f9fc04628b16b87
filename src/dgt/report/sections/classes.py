"""Metrics by class, the confusion matrix and the calibration."""

import numpy as np

from dgt.report import charts
from dgt.report.display import chart_text, percent, shown
from dgt.report.facts import Facts
from dgt.report.sections.blocks import (
    Block,
    Chart,
    Section,
    Table,
    Text,
    labels_of,
    side_by_side,
)

MATRIX = 25  # classes of a confusion matrix
SHOWN = 40  # classes of a chart
PAIRS = 15


def section(facts: list[Facts]) -> Section:
    blocks: list[Block] = _by_class(facts)
    blocks += side_by_side(facts, [[_confusion(each)] for each in facts])
    blocks.append(_calibration(facts))
    return Section("classes", "Predictions by class", blocks)


def _by_class(facts: list[Facts]) -> list[Block]:
    first = facts[0]
    same = all(each.class_names == first.class_names for each in facts)
    if not same:
        text = "The runs have different classes, so their scores are not in one chart."
        own = side_by_side(facts, [[_scores(each)] for each in facts])
        return [Text(text), *own]
    order = sorted(range(len(first.classes)), key=lambda c: -first.classes[c].nodes)
    order = [c for c in order if any(each.classes[c].f1 is not None for each in facts)]
    listed = order[:SHOWN]
    series = []
    for name, each in zip(labels_of(facts), facts, strict=True):
        points = []
        for row, c in enumerate(listed):
            score = each.classes[c]
            if score.f1 is not None:
                half = score.f1_ci95 or 0.0
                note = f"{score.nodes:,.0f} test nodes"
                points.append((row, score.f1, score.f1 - half, score.f1 + half, note))
        series.append((chart_text(name), points))
    names = [chart_text(first.class_names[c]) for c in listed]
    best, worst = (choose(order, key=lambda c: first.classes[c].f1 or 0.0) for choose in (max, min))
    summary = (
        f"F1 score of each class on test nodes, classes with most nodes first. "
        f"In {labels_of(facts)[0]} it is best for {shown(first.class_names[best])} "
        f"({percent(first.classes[best].f1)}) and worst for {shown(first.class_names[worst])} "
        f"({percent(first.classes[worst].f1)})."
    )
    if any(each.runs > 1 for each in facts):
        summary += " Bars are 95% confidence intervals over runs."
    if len(order) > SHOWN:
        summary += f" The chart shows {SHOWN} of {len(order)} classes, the table shows all."
    chart = charts.intervals(names, series, x="F1 score")
    tables = side_by_side(facts, [[_scores(each)] for each in facts])
    return [Chart(chart, summary, title="F1 score by class"), *tables]


def _scores(facts: Facts) -> Table:
    rows = []
    for name, score in zip(facts.class_names, facts.classes, strict=True):
        f1 = percent(score.f1)
        if score.f1_ci95 is not None:
            f1 += f" ± {percent(score.f1_ci95)}"
        cells = (percent(score.precision), percent(score.recall), f1)
        rows.append([shown(name), f"{score.nodes:,.0f}", *cells])
    means = "" if facts.runs == 1 else f" Means over {facts.runs} runs."
    caption = (
        "Precision: share of the predictions of a class that are right. Recall: share of its nodes "
        f"that are found.{means}"
    )
    columns = ("class", "test nodes", "precision", "recall", "F1")
    return Table(columns, rows, caption=caption, folded=len(rows) > SHOWN)


def _confusion(facts: Facts) -> Block:
    counts, names = facts.confusion, facts.class_names
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]
    pairs = [np.unravel_index(i, counts.shape) for i in order if wrong.flat[i]]
    rows = [[shown(names[r]), shown(names[c]), f"{counts[r, c]:,}"] for r, c in pairs]
    table = Table(
        ("label", "prediction", "nodes"), rows, labels=2, folded=True,
        caption="The most frequent mistakes as a table",
    )  # fmt: skip
    over = "" if facts.runs == 1 else f", summed over {facts.runs} runs"
    text = (
        f"Confusion matrix of the test nodes{over}: {np.trace(counts):,} of {counts.sum():,} are "
        "on the diagonal, that is, right."
    )
    if rows:
        text += f" The most frequent mistake: {rows[0][0]} predicted as {rows[0][1]}."
    if len(names) > MATRIX:
        kept = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MATRIX])
        text += f" Shown are the {MATRIX} most frequent of {len(names)} classes."
        counts, names = counts[np.ix_(kept, kept)], [names[c] for c in kept]
    chart = charts.heatmap([chart_text(name) for name in names], counts)
    return Chart(chart, text, table, title="Confusion matrix")


def _calibration(facts: list[Facts]) -> Chart:
    series, rows, errors = [], [], []
    for name, each in zip(labels_of(facts), facts, strict=True):
        bins, error = each.calibration
        errors.append(percent(error) if len(facts) == 1 else f"{percent(error)} for {name}")
        filled = [
            (b.confidence, b.accuracy, b.nodes)
            for b in bins
            if b.confidence is not None and b.accuracy is not None
        ]
        series.append((chart_text(name), filled))
        rows += [
            [name, f"{b.low:.0%} to {b.high:.0%}", f"{b.nodes:,}", percent(b.confidence),
             percent(b.accuracy)]
            for b in bins if b.nodes
        ]  # fmt: skip
    columns = ("run", "probability", "test nodes", "mean probability", "accuracy")
    summary = (
        "Accuracy of test nodes by the probability of their prediction; larger dots are more "
        "nodes. Below the dotted line the model is too sure of itself. The expected calibration "
        f"error is {', '.join(errors)}."
    )
    table = Table(columns, rows, labels=2, folded=True, caption="Calibration as a table")
    return Chart(charts.calibration(series), summary, table, title="Calibration")
