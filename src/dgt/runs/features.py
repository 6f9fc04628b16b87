"""The features of a graph for a trained model."""

from torch_geometric.data import Data

from dgt.data.recipe import Recipe, sorted_by_id, without_table
from dgt.data.targets import normalize_for
from dgt.errors import InputError
from dgt.runs.facts import Facts


def with_features(data: Data, facts: Facts, directed: bool | None = None) -> Data:
    """Returns a checked graph with the features that a model was trained with.

    With a recipe, the nodes are sorted by id, and columns become features by their names.

    Args:
        data: The graph.
        facts: What the model stores about its training graph.
        directed: Whether the edges are directed, if that is set.
    """
    if facts.recipe is not None and isinstance(data, Data):
        recipe = Recipe(tuple(facts.recipe))
        data = recipe.apply(normalize_for(sorted_by_id(data), facts.task, directed), warn=True)
    else:
        data = without_table(normalize_for(data, facts.task, directed))
        if data.get("x") is None:
            raise InputError(
                f"{data.name}: has columns that are not numbers or not complete, but the model was "
                f"trained with {facts.in_channels} numbers per node"
            )
    facts.require_features(data)
    return data
