"""A fixed sample of the campaign, and tests that it sees what is wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign.__main__ import begin, table, text
from tests.campaign.case import Verdict
from tests.campaign.classes import CLASSES, KNOWN_WRONG, cases
from tests.campaign.pool import Job, run_all

# Processes of their own take a second or more each, random calls of operators have a test.
SLOW = {"faults": 3, "races": 1, "surroundings": 1, "kills": 3, "operators": 0}
PER_CLASS = 12


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        found = begin(tmp_path_factory.mktemp("campaign"), patch.setenv)
        yield found


def sample() -> list[Job]:
    """Returns cases of each class, evenly spread, and of each at least one control."""
    jobs: list[Job] = []
    for klass in CLASSES:
        found = list(cases(klass).values())
        count = min(SLOW.get(klass, PER_CLASS), len(found))
        chosen = [found[len(found) * i // count] for i in range(count)]
        if not any(case.expect == "accepted" for case in chosen):
            chosen += [case for case in found if case.expect == "accepted"][: min(count, 1)]
        jobs += [(klass, case) for case in chosen]
    return jobs


def test_sample(environment: dict[str, str]) -> None:
    verdicts: list[Verdict] = run_all(sample(), environment, 1)
    wrong = [text(verdict) for verdict in verdicts if verdict.wrong]
    assert not wrong, "\n".join([*wrong, table(verdicts)])
    assert sum(verdict.control for verdict in verdicts) > 20


def test_what_is_wrong_is_seen(environment: dict[str, str]) -> None:
    jobs = [(KNOWN_WRONG, case) for case in cases(KNOWN_WRONG).values()]
    verdicts = run_all(jobs, environment, 1)
    for verdict in verdicts:
        kind = verdict.name.split(":")[0]
        assert (verdict.wrong or "right") == kind, text(verdict)
    assert len(verdicts) == len(jobs)


def test_every_class_has_controls_and_unique_names(environment: dict[str, str]) -> None:
    counts = {klass: len(cases(klass)) for klass in CLASSES}
    controls = {k: sum(c.expect == "accepted" for c in cases(k).values()) for k in CLASSES}
    assert all(counts.values())
    assert all(controls.values()), controls
    inputs = [klass for klass in CLASSES if klass not in SLOW]
    assert sum(counts[klass] for klass in inputs) >= 2000
    assert sum(controls[klass] for klass in inputs) >= 200


def test_the_readme_names_every_class() -> None:
    readme = (Path(__file__).parent / "README.md").read_text()
    assert [klass for klass in CLASSES if f"`{klass}`" not in readme] == []
