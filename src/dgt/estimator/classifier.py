"""NodeClassifier: classes, or several labels, of nodes."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.splits import labeled_nodes
from dgt.estimator.model import NodeModel
from dgt.explain import Explanation, same_label_share


class NodeClassifier(NodeModel):
    """Classifies the nodes of a graph with a Deformable Graph Transformer or another model.

    .. code-block:: python

        classifier = NodeClassifier(epochs=200).fit(data)
        print(classifier.score())

    Args:
        config: The settings (default: those of the model).
        **settings: Settings by name, such as ``lr=0.005``, ``model="gcn"`` or
            ``device="cuda"``. They take precedence over ``config``. With ``task="multilabel"``,
            ``y`` has a column of 0 and 1 for each label, and -1 for nodes without labels.

    Attributes:
        model_: The trained model.
        facts_: The classes, features and anchors of the training graph.
        metrics_: The metrics, the best epoch and other results of training.
        history_: The losses and metrics of each epoch.
    """

    tasks = ("classification", "multilabel")

    def predict(self, data: Data | None = None) -> Tensor:
        """Returns the predicted class of each node, as in ``y`` of the training graph.

        Args:
            data: A graph with the features of the training graph (default: the graph of
                :meth:`fit`). With the Katz encoding, it must contain the training graph, with
                another encoding it must be the training graph, unless the encoding carries over.
        """
        predicted = super().predict(data)
        if self.facts_.task == "multilabel":
            return predicted
        return torch.tensor(self.facts_.classes)[predicted]

    def predict_proba(self, data: Data | None = None) -> Tensor:
        """Returns the probability of each class for each node. Shape: ``(N, classes)``.

        Args:
            data: As in :meth:`predict`.
        """
        logits = self.inspect(data).given_logits
        return self._task.scores(logits)

    def explain(self, node: int | str, top: int = 20, data: Data | None = None) -> Explanation:
        """Explains the prediction for a node by the nodes that it attends to most.

        The attention of the last block is summed over all criteria and heads.

        Args:
            node: Id of the node.
            top: Maximum number of nodes to return.
            data: As in :meth:`predict`.
        """
        return self.inspect(data).explain(node, top)

    def same_label_share(
        self, mask: Tensor, data: Data | None = None, *, itself: bool = True
    ) -> float:
        """Returns the share of attention on nodes with the same label, averaged over some nodes.

        Args:
            mask: Labeled nodes to average over, bool. Shape: ``(N,)``.
            data: As in :meth:`predict`.
            itself: Whether the attention of a node on itself counts. Otherwise, nodes that only
                attend to themselves are left out.
        """
        inside = self.inspect(data)
        nodes = labeled_nodes(inside.data, inside.data.y, mask).nonzero().squeeze(1)
        weights, y = inside.weights(nodes), inside.data.y
        return float(same_label_share(weights, nodes, y, itself=itself).nanmean())
