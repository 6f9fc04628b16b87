"""What attention rests on, how far keys moved, and what each criterion and head carries."""

import numpy as np

from dgt.report import charts
from dgt.report import colors as palette
from dgt.report.attending import AGREEMENT, HOPS, Attending
from dgt.report.display import chart_text, count, percent, points, shown
from dgt.report.facts import Facts
from dgt.report.keys import Keys
from dgt.report.sections.blocks import (
    Block,
    Chart,
    Section,
    Table,
    Text,
    of_first_run,
    side_by_side,
)


def section(facts: list[Facts]) -> Section:
    blocks = side_by_side(facts, [_blocks(each) for each in facts])
    return Section("attention", "What attention rests on", blocks)


def _blocks(facts: Facts) -> list[Block]:
    found = facts.attending
    if found is None:
        return [Text(f"{facts.metrics['model']} has no attention over nodes.")]
    blocks: list[Block] = [
        Text(
            f"Attention of the last block, averaged over {count(found.queries, 'test node')}"
            f"{'' if found.queries == facts.sizes['test'] else ' drawn at random'}."
            f"{of_first_run(facts)}"
        ),
        _shares(found, found.agreement, AGREEMENT, palette.KIND_COLORS, "label"),
        _shares(found, found.hops, HOPS, palette.HOP_COLORS, "distance"),
    ]
    if facts.keys is None:
        return blocks
    return [*blocks, *_moved(facts.keys, found.criteria), _carried(facts, facts.keys, found)]


def _shares(
    found: Attending,
    shares: np.ndarray,
    parts: tuple[str, ...],
    colors: tuple[str, ...],
    what: str,
) -> Chart:
    """Attention by label or distance, for each criterion and head."""
    T, M = found.mass.shape
    names, rows = [], []
    for t in range(T):
        own = found.mass[t] / found.mass[t].sum()
        names.append(shown(found.criteria[t]))
        rows.append((own[:, None] * shares[t]).sum(axis=0))
        if M > 1:
            names += [f"{shown(found.criteria[t])}, head {m + 1}" for m in range(M)]
            rows += list(shares[t])
    all_of = (found.mass[:, :, None] * shares).sum(axis=(0, 1))
    largest = int(all_of.argmax())
    summary = (
        f"Attention by the {what} of the node that it falls on, for each criterion and head. Over "
        f"all of them, most falls on “{parts[largest]}” ({percent(all_of[largest])})."
    )
    used = [p for p in range(len(parts)) if max(row[p] for row in rows) > 0]
    table = Table(
        ("attention of", *(parts[p] for p in used)),
        [
            [name, *(percent(row[p]) for p in used)]
            for name, row in zip(["all", *names], [all_of, *rows], strict=True)
        ],
        folded=True,
        caption="As a table",
    )
    chart = charts.stacked(
        [chart_text(name) for name in names],
        [parts[p] for p in used],
        np.stack(rows)[:, used],
        [colors[p] for p in used],
        "share of attention",
    )
    return Chart(chart, summary, table, title=f"By {what}")


def _moved(keys: Keys, criteria: list[str]) -> list[Block]:
    moved = keys.moved
    blocks: list[Block] = [
        Text(
            "Where the keys of each head lie: 0% is the node itself, 100% the end of its sequence. "
            f"Training moved keys by {moved.mean():.1f} positions on average, "
            f"{percent((moved > 1).mean(), 0)} of them by more than one position."
        )
    ]
    _, M, K = keys.start.shape
    for t, criterion in enumerate(criteria):
        names = [f"head {m + 1}, key {k + 1}" for m in range(M) for k in range(K)]
        own = keys.now[:, t].reshape(len(keys.now), M * K)
        start, mean = keys.start[t].ravel(), own.mean(axis=0)
        low, high = np.quantile(own, (0.1, 0.9), axis=0)
        by = moved[:, t].reshape(len(moved), M * K).mean(axis=0)
        weight = keys.attention[:, t].reshape(len(own), M * K).mean(axis=0)
        rows = [
            [name, percent(start[i], 0), percent(mean[i], 0),
             f"{percent(low[i], 0)} to {percent(high[i], 0)}", f"{by[i]:.1f}", percent(weight[i])]
            for i, name in enumerate(names)
        ]  # fmt: skip
        columns = ("key", "before", "after, mean", "80% of nodes", "moved", "attention")
        summary = (
            f"Keys in the sequences by {shown(criterion)}: they moved by {by.mean():.1f} positions "
            f"on average, {names[int(by.argmax())]} by most ({by.max():.1f}). Mean length of the "
            f"sequences: {keys.lengths[t].mean():.1f}."
        )
        chart = charts.moved(names, start, mean, low, high)
        table = Table(columns, rows, folded=True, caption="As a table")
        blocks.append(Chart(chart, summary, table, title=f"Keys: {shown(criterion)}"))
    return blocks


def _carried(facts: Facts, keys: Keys, found: Attending) -> Chart:
    """The accuracy that is lost without a criterion or head, and its share of the output."""
    whole = _accuracy(facts)
    names, losses, rows = [], [], []
    for part in facts.left_out:
        if part.criterion is None:
            name, carried, mass = "all attention", keys.carried.sum(), found.mass.sum()
        else:
            heads = slice(None) if part.head is None else slice(part.head, part.head + 1)
            carried = keys.carried[part.criterion, heads].sum()
            mass = found.mass[part.criterion, heads].sum()
            name = shown(found.criteria[part.criterion])
            name += "" if part.head is None else f", head {part.head + 1}"
        names.append(name)
        losses.append(whole - part.accuracy)
        rows.append([name, percent(part.accuracy), points(part.accuracy - whole), percent(mass),
                     percent(carried)])  # fmt: skip
    summary = (
        "Accuracy lost on test nodes when a part of the attention is left out, in percentage "
        f"points of the {percent(whole, 2)} with all of it. Nothing is trained again. Without any "
        f"attention it is {percent(facts.left_out[0].accuracy)}."
    )
    single = [i for i, part in enumerate(facts.left_out) if part.criterion is not None]
    if single:
        most = max(single, key=lambda i: losses[i])
        summary += (
            f" The single part that costs most is {names[most]} ({100 * losses[most]:.1f} points)."
        )
    caption = (
        "Attention: share of all weights; heads share it evenly by construction if the kernel is "
        "normalized. Output: share of the length of all heads' outputs, which is what a head "
        "actually adds."
    )
    columns = ("left out", "accuracy", "change, points", "attention", "output")
    chart = charts.bars(
        [chart_text(name) for name in names], [100 * loss for loss in losses],
        "percentage points lost", form="0.0",
    )  # fmt: skip
    return Chart(
        chart, summary, Table(columns, rows, caption=caption), title="What each part carries"
    )


def _accuracy(facts: Facts) -> float:
    """Returns the accuracy on test nodes of the first run."""
    metrics = facts.metrics if facts.runs == 1 else facts.metrics["runs"][0]
    return metrics["test"]["accuracy"]
