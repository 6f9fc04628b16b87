"""The paper's figure on attention: which nodes our models and Graphormer attend to on Chameleon,
and how much of the attention is on nodes with the same label."""

from dataclasses import asdict
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch_geometric.data import Data

from dgt.config.documents import require
from dgt.data import load
from dgt.data.matrices import adjacency
from dgt.data.splits import choose
from dgt.estimator import NodeClassifier
from dgt.evaluate import summarize
from dgt.experiments.accuracy import NOTHING, interval, run_count
from dgt.experiments.marks import code_counts, code_marks, code_notes
from dgt.experiments.paper import ATTENTION
from dgt.experiments.table import Line, Run, Setup, Table
from dgt.experiments.table1 import found
from dgt.explain import Explanation
from dgt.report.attention_figure import attention
from dgt.report.sheet import Sheet

NAME = "attention"
DATASET = "chameleon"
MODELS = {"graphormer": "Graphormer", "dgt": "DGT", "dgt-plus": "dgt-plus"}
TOP = 20
TITLE = "Attention on nodes with the query's label, on Chameleon"
NOTES = (
    "Share: attention on nodes with the query's label, in percent of its attention on all nodes; "
    "mean over all validation nodes with 95% confidence interval over runs. Others: the same "
    "without the query's attention on itself.",
    "Query: share of the node in the figure, in the first run. Its keys: how many of its "
    f"{TOP} most important keys (or all, if it has fewer) have its label. The paper's query is "
    "another node.",
)
MEASURED = {"share": float, "others": float, "query": Explanation}
# The paper's query node has seven neighbors; six of them have another label.
NEIGHBORS, OTHERS = 7, 6


def setups() -> list[Setup]:
    return [Setup(DATASET, model, found(DATASET, model)) for model in MODELS]


def query_node(data: Data) -> int:
    """Returns the validation node whose neighborhood is most similar to that of the paper's query.

    Similarity is measured by the number of neighbors and the number of neighbors with another
    label. Ties are broken by id.
    """
    A = adjacency(data.edge_index, data.num_nodes)
    y = data.y.numpy()
    row = np.repeat(np.arange(data.num_nodes), np.diff(A.indptr))
    others = np.bincount(row, y[row] != y[A.indices], minlength=data.num_nodes)
    unlike = abs(np.diff(A.indptr) - NEIGHBORS) + abs(others - OTHERS)
    return int(np.where(data.val_mask.numpy(), unlike, np.inf).argmin())


def measure(run: Run, classifier: NodeClassifier) -> dict[str, Any]:
    """Returns the mean share over the validation nodes, and the keys of one of them."""
    data, _ = choose(load(run.dataset, "published"), "published", run.config.train.split_index)
    return {
        "share": classifier.same_label_share(data.val_mask),
        "others": classifier.same_label_share(data.val_mask, itself=False),
        "query": asdict(classifier.explain(query_node(data), TOP)),
    }


def lay_out(lines: list[Line]) -> Sheet:
    numbers = [_numbers(line) for line in lines]
    columns = ("model", "share", "others", "runs", "query", "its keys", "paper's query")
    rows = [_text(row, mark) for row, mark in zip(numbers, code_marks(numbers), strict=True)]
    return Sheet(TITLE, columns, rows, (*NOTES, *code_notes(numbers)), numbers, labels=1)


def draw(lines: list[Line]) -> Figure | None:
    panels = {
        MODELS[line.setup.variant]: Explanation.from_dict(first["query"])
        for line in lines
        for first in _measured(line)[:1]
    }
    return attention(panels) if panels else None


def _measured(line: Line) -> list[dict[str, Any]]:
    found = [record.measures[NAME] for record in line.records if NAME in record.measures]
    for each in found:
        require(each, MEASURED, f"recorded run of {line.setup.variant}: measures: {NAME}")
    return found


def _numbers(line: Line) -> dict[str, Any]:
    measured = _measured(line)
    row: dict[str, Any] = {
        "dataset": line.setup.dataset,
        "model": line.setup.variant,
        "asked": line.asked,
        **code_counts(line),
        "runs": len(measured),
        "share": None,
        "share_ci95": None,
        "others": None,
        "others_ci95": None,
        "query": None,
        "query_share": None,
        "query_same_label": None,
        "query_keys": None,
        "paper_query_share": ATTENTION.get(line.setup.variant),
    }
    if measured:
        share = summarize([m["share"] for m in measured])
        others = summarize([m["others"] for m in measured])
        query = measured[0]["query"]
        row |= {
            "share": share["mean"],
            "share_ci95": share["ci95"],
            "others": others["mean"],
            "others_ci95": others["ci95"],
            "query": query["id"],
            "query_share": query["same_label"],
            "query_same_label": sum(key["label"] == query["label"] for key in query["keys"]),
            "query_keys": len(query["keys"]),
        }
    return row


def _text(row: dict[str, Any], mark: str) -> tuple[str, ...]:
    def percent(name: str) -> str:
        mean, ci95 = row[name], row[f"{name}_ci95"]
        return interval(mean and 100 * mean, ci95 and 100 * ci95)

    return (
        row["model"],
        percent("share") + mark,
        percent("others"),
        run_count(row),
        NOTHING if row["query"] is None else f"{100 * row['query_share']:.0f}",
        NOTHING if row["query"] is None else f"{row['query_same_label']} of {row['query_keys']}",
        NOTHING if row["paper_query_share"] is None else f"{100 * row['paper_query_share']:.0f}",
    )


TABLE = Table(NAME, setups, lay_out, measure=measure, draw=draw)
