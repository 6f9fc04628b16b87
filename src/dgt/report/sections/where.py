"""The accuracy in different places of the graph."""

from dgt.report import charts
from dgt.report.display import chart_text, count, percent
from dgt.report.facts import Facts
from dgt.report.sections.blocks import Block, Chart, Section, Table, Text, labels_of

MEANINGS = {
    "degree": "the number of neighbors",
    "local homophily": "the share of a node's labeled neighbors that have its label",
    "hops to the nearest training node": "the length of the shortest path to a training node",
}
FEWEST = 10  # nodes of a group that the summary names


def section(facts: list[Facts]) -> Section:
    blocks: list[Block] = [
        Text(
            "Accuracy of the test nodes, grouped by where they lie in the graph. Bars are 95% "
            "Wilson intervals: the fewer nodes in a group, the longer. Runs in one folder are "
            "pooled."
        )
    ]
    blocks += [_chart(facts, title) for title in facts[0].groups]
    return Section("graph", "Where in the graph", blocks)


def _chart(facts: list[Facts], title: str) -> Chart:
    names = list(dict.fromkeys(b.name for each in facts for b in each.groups[title]))
    names.sort(key=_order)
    series, rows, extremes = [], [], []
    for name, each in zip(labels_of(facts), facts, strict=True):
        bins = each.groups[title]
        points = [
            (names.index(b.name), b.accuracy or 0.0, b.low or 0.0, b.high or 0.0,
             f"{b.nodes:,} test nodes")
            for b in bins
        ]  # fmt: skip
        series.append((chart_text(name), points))
        rows += [
            [name, b.name, f"{b.nodes:,}", percent(b.accuracy),
             f"{percent(b.low)} to {percent(b.high)}"]
            for b in bins
        ]  # fmt: skip
        largest = max(bins, key=lambda b: b.nodes)
        enough = [b for b in bins if b.nodes >= FEWEST] or bins
        lowest = min(enough, key=lambda b: b.accuracy or 0.0)
        among = "" if enough == bins else f" among groups of at least {FEWEST} nodes"
        extremes.append(
            f"{name}: {percent(largest.accuracy)} in the largest group ({largest.name}); "
            f"lowest{among}: {percent(lowest.accuracy)} ({lowest.name}; "
            f"{count(lowest.nodes, 'node')})."
        )
    summary = f"Accuracy by {title}: {MEANINGS[title]}. {' '.join(extremes)}"
    chart = charts.intervals(names, series, x="accuracy", whole=True)
    table = Table(
        ("run", title, "test nodes", "accuracy", "95% interval"), rows, labels=2, folded=True,
        caption="As a table",
    )  # fmt: skip
    return Chart(chart, summary, table, title=f"By {title}")


def _order(name: str) -> tuple[float, str]:
    """Sorts groups by the number that they start with, and those without one last."""
    digits = "".join(c for c in name.split()[0] if c.isdigit())
    return float(digits) if digits else float("inf"), name
