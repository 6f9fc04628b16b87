"""Which split and seed each of several runs has."""

import pytest
import torch

from dgt import Config, InputError
from dgt.experiments.table import Setup
from dgt.runs.plan import plan, plan_on
from tests.small import block_graph


def pairs(configs: list[Config]) -> list[tuple[int | None, int]]:
    return [(config.train.split, config.train.seed) for config in configs]


def test_published_splits_come_one_after_the_other_then_with_the_next_seed():
    assert pairs(plan(Config.of("dgt"), 5, published=3)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    assert pairs(plan(Config.of("dgt").replace(seed=4), 4, published=3))[-1] == (0, 5)


def test_random_splits_follow_the_seed():
    for config in (Config.of("dgt"), Config.of("dgt").replace(splits="random")):
        assert pairs(plan(config.replace(seed=2), 3)) == [(2, 2), (3, 3), (4, 4)]
    assert pairs(plan(Config.of("dgt").replace(splits="random"), 2, published=10)) == [
        (0, 0),
        (1, 1),
    ]


def test_a_split_that_is_set_stays():
    assert pairs(plan(Config.of("dgt").replace(split=7), 3, published=10)) == [
        (7, 0),
        (7, 1),
        (7, 2),
    ]


def test_a_graph_tells_its_number_of_published_splits():
    data = block_graph()
    part = torch.stack([torch.arange(90).roll(s) % 5 % 3 for s in range(4)], dim=1)  # (N, S)
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    assert pairs(plan_on(data, Config.of("dgt"), 5)) == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)]
    assert pairs(plan_on(block_graph(), Config.of("dgt"), 2)) == [(0, 0), (1, 1)]
    with pytest.raises(InputError, match="got 'published', expected auto or random"):
        plan_on(block_graph(), Config.of("dgt").replace(splits="published"), 2)


def test_tables_plan_by_the_same_rule():
    runs = Setup("cora", "dgt", Config.of("dgt")).plan("table1", 12)
    expected = plan(Config.of("dgt").replace(splits="published"), 12, published=10)
    assert [run.config for run in runs] == expected
    given = Setup("ogbn-arxiv", "dgt", Config.of("dgt")).plan("table1", 3)
    assert pairs([run.config for run in given]) == [(0, 0), (0, 1), (0, 2)]
    assert {run.config.train.splits for run in given} == {"given"}
