"""The caching allocator."""

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from dgt.ops.memory import LEAST, LINE, POOL, Pool, convert, empty


def test_a_result_has_the_wanted_shape_and_starts_on_a_cache_line() -> None:
    for shape in [(0,), (3, 5), (LEAST, 2)]:
        for dtype in (torch.float32, torch.float64):
            x = empty(shape, dtype)
            assert x.shape == shape
            assert x.dtype == dtype
            assert x.is_contiguous()
            assert x.numel() == 0 or x.data_ptr() % LINE == 0


def test_memory_comes_back_when_the_last_tensor_is_gone() -> None:
    POOL.clear()
    x = empty((LEAST,), torch.float32)
    place, view = x.data_ptr(), x.view(2, -1)[1]
    del x
    held = empty((LEAST,), torch.float32)
    assert held.data_ptr() != place  # a view still holds it
    del view
    assert empty((LEAST,), torch.float32).data_ptr() == place


def test_a_numpy_array_holds_the_memory_too() -> None:
    x = empty((LEAST,), torch.float32)
    place, array = x.data_ptr(), x.numpy()
    del x
    assert empty((LEAST,), torch.float32).data_ptr() != place
    assert array.size == LEAST


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=40))
def test_no_two_tensors_share_memory_and_the_pool_counts_right(actions: list) -> None:
    pool, held = Pool(), []
    for size, give_back in actions:
        if give_back and held:
            held.pop(0)
        else:
            held.append(pool.lend(1000 * size))
        places = sorted((b.ctypes.data, b.size) for b in held)
        assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(places))
        assert pool.lent_bytes == sum(b.size for b in held)
        assert pool.idle_bytes == sum(b.size for buffers in pool.idle.values() for b in buffers)


def test_idle_memory_does_not_pile_up() -> None:
    pool = Pool()
    for size in range(1, 100):
        pool.lend(1000 * size)  # returned at once, never reused
        assert pool.idle_bytes <= 2 * 1000 * size
    pool.clear()
    assert pool.idle_bytes == 0
    assert pool.lent_bytes == 0


def test_a_lazily_negated_view_keeps_its_sign() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.tensor([1.0, -2.0, 3.0], dtype=dtype)
        view = torch._neg_view(-x)
        assert convert(view, torch.float32).tolist() == [1.0, -2.0, 3.0]
