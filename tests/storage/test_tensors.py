"""safetensors files: every flipped bit is found."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dgt.errors import InputError
from dgt.storage.tensors import read_tensors, write_tensors

TENSORS = {
    "weight": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    "double": torch.tensor([1.5, -2.0], dtype=torch.float64),
    "step": torch.tensor(7),
    "state": torch.arange(5, dtype=torch.uint8),
    "half": torch.ones(2, dtype=torch.bfloat16),
    "empty": torch.empty(0, 3),
}
METADATA = {"dgt": '{"classes": ["ä", "b"]}', "other": ""}


def same(tensors: dict[str, torch.Tensor]) -> bool:
    return tensors.keys() >= TENSORS.keys() and all(
        tensors[n].dtype == t.dtype and torch.equal(tensors[n], t) for n, t in TENSORS.items()
    )


def test_tensors_and_metadata_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    write_tensors(path, TENSORS, METADATA)
    tensors, metadata = read_tensors(path)
    assert same(tensors)
    assert tensors.keys() == TENSORS.keys()
    assert metadata == METADATA
    assert same(load_file(path))  # a plain safetensors file


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    write_tensors(path, TENSORS, METADATA)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            tensors, metadata = read_tensors(path)
        except InputError:
            continue
        # Only the name of the digest itself and padding may change, which harms nothing.
        assert same(tensors)
        assert metadata == METADATA


def test_equal_content_has_equal_bytes(tmp_path: Path) -> None:
    for i in range(20):
        write_tensors(tmp_path / str(i), TENSORS, {"dgt": "{}"})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_tensors_that_share_memory_are_written(tmp_path: Path) -> None:
    whole = torch.arange(6.0).view(2, 3)
    tensors = {"tied": whole, "same": whole, "row": whole[1], "transposed": whole.t()}
    write_tensors(tmp_path / "t", tensors, {})
    read = read_tensors(tmp_path / "t")[0]
    assert {name: value.tolist() for name, value in read.items()} == {
        name: value.tolist() for name, value in tensors.items()
    }


def test_a_file_without_a_digest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    save_file(TENSORS, path, METADATA)
    assert read_tensors(path)[1] == METADATA


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    write_tensors(path, TENSORS, METADATA)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"t\.safetensors: damaged: its content does not match"):
        read_tensors(path)
