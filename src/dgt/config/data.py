"""The settings for the user's own tables."""

from dataclasses import dataclass
from typing import Literal

from dgt.config.checks import check_types, require, within
from dgt.errors import InputError

COLUMN_KINDS = (
    "number",
    "boolean",
    "category",
    "date",
    "date:dmy",
    "date:mdy",
    "date:ymd",
    "time",
    "text",
    "list",
    "ignore",
)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The user's own tables: which column means what, and how columns become features."""

    id: str | None = None
    """Column of the node table with the ids. Unset: id, node_id, node, user_id, user, account_id or
    account."""
    label: str | None = None
    """Column of the node table with the classes. Unset: label, class or y."""
    split_column: str | None = None
    """Column of the node table with train, val or test. Unset: split."""
    source: str | None = None
    """Column of an edge table with the first node. Unset: source, src, from or similar."""
    target: str | None = None
    """Column of an edge table with the second node. Unset: target, dst, to or similar."""
    weight: str | None = None
    """Column of an edge table with a positive weight. Unset: weight, if there is such a column."""
    directed: bool | None = None
    """Whether edges lead from source to target, which criteria such as bfs-out and encodings such
    as katz-out need. Unset: where the graph says so, as some benchmarks do."""
    unknown_nodes: Literal["error", "drop", "add"] = "error"
    """What to do with edges to nodes that the node table lacks. drop: leave the edges out. add: add
    the nodes, with missing cells and without a label."""
    columns: tuple[str, ...] | None = None
    """Kinds of columns of the node table, such as age=number city=category note=text raw=ignore.
    Kinds: number, boolean, category, date (also date:dmy, date:mdy), time, text, list and ignore.
    Unset: inferred from the values."""
    ignore: tuple[str, ...] | None = None
    """Columns of the node table that are not used."""
    standardize: bool = True
    """Scale columns of numbers to mean 0 and standard deviation 1 on the training nodes; columns
    that are mostly 0 to at most 1."""
    text_columns: int = 256
    """Number of columns that the words of a column of text are hashed into."""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("id", "label", "split_column", "source", "target", "weight"):
            require(name, getattr(self, name), getattr(self, name) != "", "the name of a column")
        within(self, {"text_columns": (1, 2**20)})
        self.kinds()

    def kinds(self) -> dict[str, str]:
        """Returns the kinds that are set, by column."""
        kinds = dict.fromkeys(self.ignore or (), "ignore")
        for each in self.columns or ():
            name, equals, kind = each.rpartition("=")
            if not equals or not name:
                raise InputError(f"columns: got {each!r}, expected NAME=KIND, such as age=number")
            require("columns", each, kind in COLUMN_KINDS, f"one of {', '.join(COLUMN_KINDS)}")
            if kinds.get(name, kind) != kind:
                raise InputError(f"columns: {name!r} has two kinds, {kinds[name]} and {kind}")
            kinds[name] = kind
        return kinds
