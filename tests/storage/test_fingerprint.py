import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from dgt.data.matrices import to_torch
from dgt.storage.fingerprint import fingerprint


def test_model_files_hold_these_values() -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    x = to_torch(csr_array([[0.0, 1.5], [0.0, 0.0]]))
    assert fingerprint([edges]) == "d2696ce34a007778e189da9d43ece42d"
    assert fingerprint([edges, None, x]) == "64d6d31c0fdb906838bf824474e13a06"


def test_everything_counts() -> None:
    a = np.arange(6)
    dense = np.array([[0, 1.0], [0, 0]])
    cases = [
        fingerprint([a]),
        fingerprint([a.reshape(2, 3)]),
        fingerprint([a.astype(np.int32)]),
        fingerprint([a + 1]),
        fingerprint([a, None]),
        fingerprint([a], ("bfs", 1)),
        fingerprint([a], ("bfs", 2)),
        fingerprint([], ("bfs", 1)),
        fingerprint([csr_array(dense)]),
        fingerprint([csr_array(dense.T)]),
    ]
    assert len(set(cases)) == len(cases)


@pytest.mark.parametrize("step", [1, 2])
def test_strides_do_not_count(step: int) -> None:
    a = np.arange(12).reshape(3, 4)
    assert fingerprint([a[:, ::step]]) == fingerprint([a[:, ::step].copy()])
    assert fingerprint([torch.from_numpy(a).T]) == fingerprint([torch.from_numpy(a.T.copy())])
