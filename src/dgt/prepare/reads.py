"""What the inputs of a model depend on, and on which graphs they are valid."""

from torch_geometric.data import Data

from dgt.config import CRITERIA, Config
from dgt.data.direction import DIRECTED, require_direction
from dgt.encodings import make
from dgt.encodings.encoding import CarriesOver

# Inputs with signs and axes that are arbitrary, and thus other ones on another graph.
ONE_GRAPH = {"laplacian", "latent_relations"}


def carries_over(config: Config) -> CarriesOver:
    """Returns what another graph must share so that a trained model can use its inputs, apart from
    known labels."""
    if not ONE_GRAPH.isdisjoint(config.record.inputs):
        return "edges"
    return make.carries_over(config.encoding) if "encoding" in config.record.inputs else "always"


def reads_direction(config: Config, data: Data) -> bool:
    """Returns whether the inputs of the model depend on the direction of a graph's edges. Raises an
    error if they need it and it is not known."""
    inputs, read = config.record.inputs, False
    if "sequences" in inputs:
        for choice in config.criteria:
            if DIRECTED in CRITERIA.record(choice).reads:
                require_direction(data, f"criterion {CRITERIA.name(choice)}")
                read = True
    if "encoding" in inputs:
        make.require_directed(data, config.encoding)
        read = read or make.reads_direction(data, config.encoding)
    return read


def reads_labels(config: Config) -> bool:
    """Returns whether the labels of training nodes are an input of the model."""
    return "labels" in config.record.inputs and config.model.labels != "none"
