"""The free memory of the machine, with and without containers."""

from dgt.system import machine


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    (tmp_path / "limit").write_text("3000000\n")
    (tmp_path / "usage").write_text("1000000\n")
    files = [str(tmp_path / name) for name in ("limit", "usage")]
    monkeypatch.setattr(machine, "CGROUPS", [files])
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert machine.available() == 2_000_000
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # ranks of this machine share it
    assert machine.available() == 1_000_000
    (tmp_path / "limit").write_text("max\n")
    assert machine.available() > 2_000_000


def test_without_cgroups_and_glibc(tmp_path, monkeypatch):
    """As on macOS."""
    monkeypatch.setattr(machine, "CGROUPS", [[str(tmp_path / "a"), str(tmp_path / "b")]])
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda name: object())
    assert machine.available() > 0
    machine.trim(from_now_on=True)
