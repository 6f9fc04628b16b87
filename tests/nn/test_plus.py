"""ScoredGraphAttention and dgt-plus: the equation, known labels, and the rule for defaults."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from dgt import NodeClassifier, NodeRegressor
from dgt.config import Config
from dgt.errors import InputError
from dgt.nn import DGTPlus, Kernel, ScoredGraphAttention
from dgt.nn.plus_config import rule
from dgt.nn.record import Sizes
from tests.nn.test_model import disturb, sequences_of
from tests.small import QUICK, block_graph

PLUS = QUICK | {"model": "dgt-plus"}


def test_attention_equals_the_equation_written_out():
    C, T, M, K, N, L, Y = 6, 2, 3, 2, 8, 5, 4
    dga = disturb(
        ScoredGraphAttention(C, label_channels=Y, criteria=T, heads=M, keys=K, kernel=Kernel())
    )
    z, y, sequences = torch.randn(N, C), torch.rand(N, Y), sequences_of(N, T, L)
    closeness = torch.randn(T, N, L)
    D = C // M
    expected = torch.zeros(N, C)
    for q in range(N):
        offset, a = dga.query(z[q]).view(2, T, M, K) + dga.start
        probe = dga.probe(z[q]).view(T, M, D + 1)
        for t in range(T):
            nodes = [v for v in sequences[t, q].tolist() if v >= 0][1:]  # without the base node
            if not nodes:
                continue
            p = (len(nodes) - 1) * offset[t].sigmoid()
            for m in range(M):
                rows = slice((t * M + m) * D, (t * M + m + 1) * D)
                values = [dga.values.weight[rows] @ z[v] + dga.labels.weight[rows] @ y[v]
                          for v in nodes]  # fmt: skip
                w = torch.zeros(len(nodes))
                for k in range(K):
                    distance = (p[m, k] - torch.arange(len(nodes))).abs()
                    g = torch.where(distance < 4, torch.exp(-(distance**2) / 4), 0.0)
                    w += a[t].softmax(-1)[m, k] * g / g.sum()
                e = torch.stack([probe[t, m, :-1] @ v for v in values])
                e = e + (probe[t, m, -1] + 1) * closeness[t, q, 1 : len(nodes) + 1]
                w = w * torch.exp(e)
                read = sum(w[i] / w.sum() * value for i, value in enumerate(values))
                expected[q] += dga.out.weight[:, rows] @ read
    torch.testing.assert_close(dga(z, sequences, closeness, y), expected, rtol=1e-4, atol=1e-4)
    some = torch.tensor([5, 2])
    of_some = dga(z, sequences[:, some], closeness[:, some], y, some)
    torch.testing.assert_close(of_some, expected[some], rtol=1e-4, atol=1e-4)


def test_values_without_the_labels_they_were_built_for_are_refused():
    dga = ScoredGraphAttention(4, label_channels=2, criteria=1, heads=1, keys=1)
    with pytest.raises(ValueError, match="built for values with labels"):
        dga(torch.randn(3, 4), sequences_of(3, 1, 2), torch.zeros(1, 3, 2))


@pytest.mark.parametrize("labels", ["none", "read", "hide"])
def test_every_parameter_learns(labels):
    model = disturb(
        DGTPlus(5, 8, 3, label_channels=4, labels=labels, criteria=2, heads=2, keys=2, blocks=2,
                encoding_channels=6)
    )  # fmt: skip
    inputs = (sequences_of(10, 2, 6), torch.randn(2, 10, 6), torch.rand(10, 4), torch.rand(10, 6))
    model(torch.randn(10, 5), *inputs).square().sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name
    groups = model.parameter_groups()
    assert sum(map(len, groups.values())) == len(list(model.parameters()))
    assert len(groups["key_weight_decay"]) == 8


def test_logits_of_some_nodes_are_those_of_all():
    model = disturb(DGTPlus(5, 8, 3, label_channels=4, labels="read", criteria=2, blocks=2, keys=2))
    inputs = (torch.randn(9, 5), sequences_of(9, 2, 6), torch.randn(2, 9, 6), torch.rand(9, 4))
    some = torch.tensor([7, 0, 3])
    torch.testing.assert_close(model(*inputs, nodes=some), model(*inputs)[some])


def test_attention_sums_to_one_and_leaves_out_the_reader_of_labels():
    model = disturb(DGTPlus(5, 8, 3, label_channels=4, labels="read", criteria=2, keys=2, heads=2))
    orders = [[node, *(torch.randperm(8) + node + 1).remainder(9)[:5]] for node in range(18)]
    sequences = torch.tensor(orders).remainder(9).view(2, 9, 6).int()
    sequences[0, 3, 1:] = sequences[1, 4, 3:] = -1
    inputs = (torch.randn(9, 5), sequences, torch.randn(2, 9, 6), torch.rand(9, 4))
    for t, heads in enumerate(model.attention(*inputs)):
        for head in heads:
            assert (head.node != head.key).all()
            sums = torch.zeros(9).index_add(0, head.node, head.weight)
            alone = (sequences[t] >= 0).sum(1) == 1
            torch.testing.assert_close(sums, (~alone).float())


def fitted(labels, task="classification", data=None):
    kind = NodeRegressor if task == "regression" else NodeClassifier
    settings = PLUS | {"labels": labels, "task": task, "blocks": 2, "splits": "random"}
    return kind(**settings).fit(block_graph() if data is None else data)


def logits(model, facts):
    data = block_graph()
    changed = NodeClassifier(model.config_)
    changed.__dict__ |= model.__dict__ | {"facts_": facts}
    return changed.inspect(data).logits


@pytest.mark.parametrize("labels", ["read", "hide"])
def test_no_node_reads_its_own_label(labels):
    model = fitted(labels)
    facts, before = model.facts_, logits(model, model.facts_)
    assert (facts.known >= 0).sum() == (facts.splits == 1).sum()
    others = 0
    for node in (facts.known >= 0).nonzero().squeeze(1)[:10].tolist():
        known = facts.known.clone()
        known[node] = (known[node] + 1) % 3
        after = logits(model, dataclasses.replace(facts, known=known))
        assert torch.equal(after[node], before[node])
        others += int((after != before).any(1).sum())
    assert others > 0


@pytest.mark.parametrize("labels", ["read", "hide"])
def test_labels_of_validation_and_test_nodes_reach_no_prediction(labels):
    data, other = block_graph(), block_graph()
    before = fitted(labels, data=data)
    parts = before.facts_.splits
    # The best epoch depends on validation labels, so the losses of all epochs are compared.
    masks = {f"{name}_mask": parts == number
             for number, name in enumerate(("train", "val", "test"), start=1)}  # fmt: skip
    for graph in (data, other):
        for name, mask in masks.items():
            graph[name] = mask
    other.y = torch.where(parts > 1, (other.y + 1) % 3, other.y)
    settings = PLUS | {"labels": labels, "splits": "given"}
    losses = []
    for graph in (data, other):
        model = NodeClassifier(**settings).fit(graph)
        losses.append([row["train_loss"] for row in model.history_])
        assert bool((model.facts_.known[parts > 1] < 0).all())
    shorter = min(map(len, losses))
    assert losses[0][:shorter] == losses[1][:shorter]


@pytest.mark.parametrize("labels", ["read", "hide"])
def test_a_saved_model_predicts_the_same(labels, tmp_path):
    model = fitted(labels)
    model.save(tmp_path / "run")
    data = block_graph()
    again = NodeClassifier.load(tmp_path / "run")
    assert torch.equal(again.facts_.known, model.facts_.known)
    own = model.inspect().logits
    torch.testing.assert_close(again.inspect(data).logits, own)
    data.y = torch.full_like(data.y, -1)  # labels of the graph are not read, those of the file are
    torch.testing.assert_close(again.inspect(data).logits, own)


@pytest.mark.parametrize("labels", ["none", "read"])
def test_a_file_whose_labels_contradict_its_settings_is_refused(labels, tmp_path):
    fitted(labels).save(tmp_path)
    path = tmp_path / "config.toml"
    other = {"none": "read", "read": "none"}[labels]
    path.write_text(path.read_text().replace(f'labels = "{labels}"', f'labels = "{other}"'))
    with pytest.raises(InputError, match="which contradicts labels ="):
        NodeClassifier.load(tmp_path)


def test_labels_of_other_nodes_in_a_file_are_refused(tmp_path):
    model = fitted("read")
    facts = model.facts_
    test_node = int((facts.splits == 3).nonzero()[0])
    facts.known[test_node] = 0
    model.save(tmp_path)
    with pytest.raises(InputError, match="expected labels of training nodes only"):
        NodeClassifier.load(tmp_path)


def test_other_models_do_not_store_labels():
    model = NodeClassifier(**QUICK, model="gcn").fit(block_graph())
    assert model.facts_.known is None


def test_attention_does_not_depend_on_the_label_of_its_node():
    model = fitted("hide")
    node = int((model.facts_.known >= 0).nonzero()[0])
    before = model.inspect().weights(torch.tensor([node]))
    model._steps.given["labels"][node] = torch.tensor([0.0, 9.0, 0.0, 1.0])
    assert torch.equal(model.inspect().weights(torch.tensor([node])), before)


def test_another_graph_is_refused_if_labels_are_read():
    other = block_graph(seed=1)
    with pytest.raises(InputError, match="reads the labels of its training nodes"):
        fitted("read").predict(other)
    assert len(fitted("none").predict(other)) == other.num_nodes


def test_new_nodes_are_predicted_beside_the_training_graph():
    data, model = block_graph(), fitted("read")
    data.x = torch.cat([data.x, data.x[:2]])
    data.y = torch.cat([data.y, torch.tensor([-1, -1])])
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[90, 91], [0, 1]])], dim=1)
    assert len(model.predict(data)) == 92


def test_numbers_are_read_too():
    data = block_graph()
    data.y = data.y + 0.5 * torch.rand(90)
    model = fitted("read", "regression", data)
    assert np.isfinite(model.score(metric="mae"))
    assert model.facts_.known.isnan().sum() > 0


def test_defaults_follow_the_number_of_features_unless_they_are_set():
    many, few = Sizes(5000, 2000, 900, 500, 5, False), Sizes(5000, 2000, 900, 7, 2, False)
    config = Config.of("dgt-plus")
    directed = rule(many._replace(directed=True))
    assert config.by_rule(directed) == config.replace(encoding="counts")
    assert config.replace(encoding="degree").by_rule(directed) == config
    longer = config.replace(blocks=2, length=64, sharpness=8.0, key_weight_decay=1.0)
    assert config.by_rule(rule(many)).flat() == longer.flat()
    large = config.by_rule(rule(many._replace(nodes=100_000)))
    assert large.sequences.length == 16
    assert large.model.blocks == 1
    little = config.by_rule(rule(many._replace(minority=50)))
    assert little == config.replace(labels="none", average=0.0, select_by="loss")
    assert config.by_rule(rule(few)).model.labels == "hide"
    assert config.by_rule(rule(few._replace(minority=50))).model.labels == "read"
    assert config.by_rule(rule(few)).model.input_dropout == 0
    set_to_default = config.replace(input_dropout=0.7)
    assert set_to_default.by_rule(rule(few)).model.input_dropout == 0.7
    assert set_to_default.by_rule(rule(few)).model.dropout == 0.2
    from_file = Config.from_dict({"model": {"model": "dgt-plus", "blocks": 1}})
    assert from_file.by_rule(rule(few)).model.blocks == 1


def test_a_run_keeps_the_settings_of_the_rule():
    model = NodeClassifier(**PLUS).fit(block_graph())
    assert model.config.model.input_dropout == 0.7
    assert model.config_.model.input_dropout == 0.0
    assert model.config_.model.norm == "batch"
    assert model.config_.criteria == ("neighbors", "ppr")


def test_a_directed_graph_is_sorted_by_out_links():
    data = block_graph()
    model = NodeClassifier(**PLUS, directed=True).fit(data)
    assert model.config_.criteria[0] == "alike-out"


def test_criteria_that_do_not_start_with_the_reader_are_refused():
    with pytest.raises(InputError, match="absolute-bfs: a node is not at the start of its own"):
        NodeClassifier(**PLUS, criteria=["bfs", "absolute-bfs"]).fit(block_graph())
    settings = PLUS | {"criteria": ["absolute-bfs"], "labels": "none"}
    NodeClassifier(**settings).fit(block_graph())


def test_reading_labels_takes_sequences_of_others():
    with pytest.raises(InputError, match="length: got 1"):
        NodeClassifier(**PLUS | {"length": 1}).fit(block_graph())


def test_training_starts_from_the_frequencies_of_classes():
    data = block_graph()
    data.y[:] = 0
    data.y[::10] = 1
    model = NodeClassifier(**PLUS | {"lr": 1e-9}).fit(data)
    y = data.y[model._data.train_mask]
    start = model.model_.head[-1].bias.softmax(0)
    assert start.tolist() == pytest.approx(
        [(int((y == label).sum()) + 1) / (len(y) + 2) for label in (0, 1)], abs=1e-3
    )


def test_a_step_without_a_node_of_the_rare_class_is_no_error():
    """With hidden labels, a step learns from a tenth of the training nodes."""
    data = block_graph()
    data.y[:] = 0
    data.y[::10] = 1
    data.class_names = ["no", "yes"]
    settings = PLUS | {"labels": "hide", "epochs": 8, "metric": "average-precision"}
    rows = NodeClassifier(**settings).fit(data).history_
    assert len(rows) == 8
    assert all(math.isfinite(row["train_average-precision"]) for row in rows)
