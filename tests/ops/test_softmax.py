"""Softmax, its gradient, and its bits for any number of threads."""

import torch

from dgt.ops.softmax import softmax


def test_softmax_and_its_gradient() -> None:
    x = torch.randn(2, 5, 7, dtype=torch.float64, requires_grad=True)
    assert torch.equal(softmax(x), x.softmax(-1))
    assert torch.autograd.gradcheck(softmax, (x,))


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    x, weight = torch.randn(300, 701, requires_grad=True), torch.randn(300, 701)
    before, grads = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            grads += torch.autograd.grad((softmax(x) * weight).sum(), x)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*grads)
