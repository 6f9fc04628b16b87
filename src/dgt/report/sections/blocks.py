"""What a section of a report consists of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dgt.report.display import shown
from dgt.report.facts import Facts


@dataclass(frozen=True)
class Cell:
    """A cell of a table with more than its text."""

    text: str
    metric: str | None = None
    """Place of the number in ``metrics.json``, such as ``test.accuracy``."""
    value: float | None = None
    """The number before it was formatted."""
    mark: bool = False
    """Whether the cell is emphasized."""
    lines: Sequence[str] = ()
    """The text as a list, one line each."""


@dataclass(frozen=True)
class Table:
    """A table. The first ``labels`` columns are text, all others numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    labels: int = 1
    caption: str = ""
    folded: bool = False
    """Whether the reader has to open it."""


@dataclass(frozen=True)
class Chart:
    """A chart, a sentence that says what it shows, and its numbers."""

    figure: Any
    summary: str
    table: Table | None = None
    title: str = ""
    legends: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """For a map, the names and colors of each way to color it."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class Columns:
    """Blocks side by side, one column per run."""

    blocks: Sequence[Sequence["Block"]]


Block = Table | Chart | Text | Columns


@dataclass(frozen=True)
class Section:
    """A section with a title and an anchor."""

    name: str
    title: str
    blocks: Sequence[Block]


def labels_of(facts: list[Facts]) -> list[str]:
    """Returns a name for each run folder, all different."""
    names = [shown(each.name, 30) for each in facts]
    return [
        f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names, start=1)
    ]


def side_by_side(facts: list[Facts], blocks: list[list[Block]]) -> list[Block]:
    """Returns the blocks of a single run as they are, those of several runs in columns."""
    if len(facts) == 1:
        return blocks[0]
    titled = [[Text(name), *own] for name, own in zip(labels_of(facts), blocks, strict=True)]
    return [Columns(titled)]


def of_first_run(facts: Facts) -> str:
    """Says which of several runs is shown."""
    return "" if facts.runs == 1 else " Shown is the first run, run-00."
