"""The most confident mistakes, and the keys that they rest on."""

from dgt.report.display import count, percent, shown
from dgt.report.facts import KEYS, Facts, Mistake
from dgt.report.sections.blocks import Block, Cell, Section, Table, Text, labels_of, of_first_run


def section(facts: list[Facts]) -> Section:
    # One below the other, since the keys need the width of the page.
    blocks: list[Block] = []
    for name, each in zip(labels_of(facts), facts, strict=True):
        blocks += [Text(f"{name}:")] if len(facts) > 1 else []
        blocks += _blocks(each)
    return Section("mistakes", "Most confident mistakes", blocks)


def _blocks(facts: Facts) -> list[Block]:
    if not facts.mistakes:
        return [Text(f"All test nodes are predicted correctly.{of_first_run(facts)}")]
    some = "all of them" if facts.wrong == len(facts.mistakes) else f"{len(facts.mistakes)} of them"
    text = (
        f"{count(facts.wrong, 'test node')} have a wrong prediction. These are {some}, the most "
        f"confident first.{of_first_run(facts)}"
    )
    if facts.mistakes[0].explanation is None:
        text += f" {facts.metrics['model']} has no attention over nodes, so no keys are shown."
    else:
        text += (
            f" Keys: the {KEYS} nodes with most attention, with weight, distance and label. Own "
            "label: share of all attention on nodes that have the label of the node."
        )
    return [Text(text), _table(facts.mistakes)]


def _table(mistakes: list[Mistake]) -> Table:
    explained = mistakes[0].explanation is not None
    rows = []
    for each in mistakes:
        row: list[str | Cell] = [*map(shown, (each.id, each.label, each.prediction))]
        row.append(percent(each.probability))
        if each.explanation is not None:
            row += [percent(each.explanation.same_label), _keys(each)]
        rows.append(row)
    columns = ["node", "label", "prediction", "probability"]
    return Table(columns + (["own label", "keys"] if explained else []), rows, labels=3)


def _keys(mistake: Mistake) -> Cell:
    assert mistake.explanation is not None
    texts = []
    for key in mistake.explanation.keys:
        itself = key.id == mistake.id
        hops = "no path" if key.hops is None else "itself" if itself else count(key.hops, "hop")
        label = "no label" if key.label is None else shown(key.label)
        texts.append(f"{shown(key.id)} ({percent(key.weight)}, {hops}, {label})")
    return Cell("; ".join(texts), lines=texts)
