"""NodeRegressor: numbers of nodes."""

from typing import Any

from dgt.config import Config
from dgt.estimator.model import NodeModel


class NodeRegressor(NodeModel):
    """Predicts a number for each node of a graph, with the models of :class:`NodeClassifier`.

    .. code-block:: python

        regressor = NodeRegressor(epochs=200).fit(data)
        print(regressor.score(), regressor.score(metric="r2"))

    Args:
        config: The settings (default: those of the model).
        **settings: Settings by name. They take precedence over ``config``. In the graph, ``y`` has
            a number for each node, and NaN for nodes without one.

    Attributes:
        model_: The trained model.
        facts_: The features and anchors of the training graph, and the scale of its numbers.
        metrics_: The metrics, the best epoch and other results of training.
        history_: The losses and metrics of each epoch.
    """

    tasks = ("regression",)

    def __init__(self, config: Config | None = None, **settings: Any) -> None:
        super().__init__(config, **{"task": "regression", **settings})
