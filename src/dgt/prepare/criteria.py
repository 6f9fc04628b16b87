"""The default criteria for a graph."""

from collections.abc import Sequence

from torch_geometric.data import Data

from dgt.config import CRITERIA, Config, CriterionChoice
from dgt.data.direction import is_directed
from dgt.data.edge_tables import table_names


def with_default_criteria(
    config: Config, data: Data, criteria: Sequence[CriterionChoice] = ()
) -> Config:
    """Returns the settings with the default criteria for a graph, unless criteria are set: a model
    may have other criteria for directed edges, and with several edge tables, a model that takes
    several criteria sorts by each table.

    Args:
        config: The settings.
        data: The graph.
        criteria: Criteria to use in place of the model's defaults.
    """
    names, record = table_names(data), config.record
    several = "sequences" in record.inputs and not record.single_criterion
    if not several or config.sequences.criteria is not None:
        return config
    if not criteria and record.directed_criteria and is_directed(data):
        criteria = record.directed_criteria
    if criteria:
        config = config.replace(criteria=tuple(criteria))
    if not names:
        return config
    by_table: list[CriterionChoice] = []
    for choice in config.criteria:
        by_edges = "edge_index" in CRITERIA.record(choice).reads
        own = [f"{CRITERIA.name(choice)}:{name}" for name in names]
        by_table += own if by_edges else [choice]
    return config.replace(criteria=by_table)
