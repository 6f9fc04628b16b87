"""The application answers with checked values, to its own page only."""

import json
import socket
from collections.abc import Iterator

import pytest

from dgt.explore.app import MOST_BYTES, STATIC
from dgt.explore.attention import view
from dgt.explore.facts import node_facts
from dgt.explore.session import Session
from tests.explore.runs import train
from tests.explore.server import Client, serving


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Session]:
    folder = tmp_path_factory.mktemp("explore")
    first = train(folder, "first", keep_checkpoints=4)
    graph = folder / "graph.pt"
    return [Session(first), Session(train(folder, "second", graph, blocks=2, seed=1))]


@pytest.fixture(scope="module")
def client(runs: list[Session]) -> Iterator[Client]:
    with serving(runs) as address:
        yield Client(address)


def test_the_runs_are_described(client: Client, runs: list[Session]):
    status, found = client.get("runs")
    assert status == 200
    assert [run["name"] for run in found] == ["first", "second"]
    assert found[0]["classes"] == runs[0].inside.facts.class_names
    assert found[0]["criteria"] == ["bfs", "ppr", "similarity"]
    assert found[0]["epochs"] == [0, 4, 8, 12]
    assert found[1]["epochs"] == []
    assert [run["blocks"] for run in found] == [1, 2]


def test_a_node_has_the_numbers_of_the_classifier(client: Client, runs: list[Session]):
    for run in (0, 1):
        status, found = client.get("node", run=run, node=12)
        assert status == 200
        facts = json.loads(json.dumps(node_facts(runs[run], 12)))
        assert {name: found[name] for name in facts} == facts
        seen = json.loads(json.dumps(view(runs[run], 12, runs[run].blocks - 1)))
        assert found["view"] == seen
        probabilities = runs[run].classifier.inspect(runs[run].inside.data).probabilities[12]
        assert found["probabilities"] == probabilities.tolist()


def test_epochs_show_keys_on_their_way(client: Client, runs: list[Session]):
    def keys(epoch: int | None) -> list:
        asked = {} if epoch is None else {"epoch": epoch}
        _, found = client.get("node", node=12, **asked)
        return [row["keys"] for row in found["view"]["ribbons"]]

    start = keys(0)
    # Before training, the keys are spread evenly and have the same attention.
    for row in start:
        positions = sorted(key["position"] for head in row for key in head)
        assert positions == pytest.approx([7 * (i + 0.5) / 16 for i in range(16)], abs=1e-4)
        assert all(key["attention"] == pytest.approx(0.25) for head in row for key in head)
    assert keys(4) != start
    best = runs[0].classifier.metrics_["best_epoch"]
    if best in (4, 8, 12):
        assert keys(best) == keys(None)
    status, found = client.get("node", node=12, epoch=5)
    assert status == 400
    assert "expected one of the kept epochs: 0, 4, 8, 12" in found["error"]


def test_what_if_is_answered(client: Client):
    _, around = client.get("around", node=12)
    other = next(b if a == 12 else a for a, b in around["edges"] if 12 in (a, b))
    status, found = client.post(
        "what-if", {"node": 12, "edits": [{"kind": "edge", "a": 12, "b": other}]}
    )
    assert status == 200
    assert sum(found["after"]["probabilities"]) == pytest.approx(1, abs=1e-4)
    assert found["after"] != found["before"]


@pytest.mark.parametrize(
    ("name", "query", "expected"),
    [
        ("node", {}, "node: got nothing, expected an integer from 0 to 89"),
        ("node", {"node": 90}, "node: got '90', expected an integer from 0 to 89"),
        ("node", {"node": -1}, "from 0 to 89"),
        ("node", {"node": "1e1"}, "from 0 to 89"),
        ("node", {"node": "9" * 5000}, "from 0 to 89"),
        ("node", {"node": 1, "run": 2}, "run: got '2', expected an integer from 0 to 1"),
        ("node", {"node": 1, "block": 1}, "block: got '1', expected an integer from 0 to 0"),
        ("node", {"node": 1, "epoch": "x"}, "epoch"),
        ("node", {"node": 1, "color": "red"}, "unknown name 'color'"),
        ("around", {"node": 1, "hops": 5}, "hops: got '5', expected an integer from 1 to 4"),
        ("search", {"label": 3}, "label: got '3', expected an integer from -1 to 2"),
        ("search", {"part": "all"}, "part"),
        ("search", {"text": "x" * 1001}, "text"),
        ("search", {"attribute": "f0"}, "value: got nothing"),
        ("search", {"attribute": "f0", "value": "nan"}, "value: got 'nan'"),
        ("search", {"attribute": "nope", "value": 1}, "expected degree or a column, such as 'f0'"),
        ("search", {"attribute": "f0", "value": 1, "comparison": "~"}, "comparison"),
        ("search", {"order": "x"}, "order"),
        ("locate", {"id": "<script>"}, "id: got '<script>'"),
        ("columns", {"node": 1, "text": "x" * 1001}, "text"),
    ],
)
def test_bad_questions_are_refused(client: Client, name: str, query: dict, expected: str):
    status, found = client.get(name, **query)
    assert status == 400
    assert expected in found["error"]
    assert len(found["error"]) < 400


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (b"", 400, "not JSON"),
        (b"[]", 400, "expected a JSON object"),
        (b"[" * 50_000, 400, "not JSON"),
        (b'{"node": 1, "edits": 5}', 400, "a list of at most 50 objects"),
        (b'{"node": 1, "edits": [5]}', 400, "a list of at most 50 objects"),
        (b'{"node": 1, "edits": [' + b"{}," * 50 + b"{}]}", 400, "a list of at most 50 objects"),
        (b'{"node": 1, "edits": [{}]}', 400, "kind: got nothing"),
        (b'{"node": "1; DROP", "edits": []}', 400, "node"),
        (b'{"node": 1, "x": 1}', 400, "unknown name 'x'"),
        (b" " * (MOST_BYTES + 1), 413, "more than"),
    ],
)
def test_bad_changes_are_refused(client: Client, body: bytes, status: int, expected: str):
    found = client.ask("/api/what-if", "POST", body, content_type="application/json")
    assert found[0] == status
    assert expected in found[1]["error"]


def test_a_name_must_not_be_given_twice(client: Client):
    status, found, _ = client.ask("/api/node?node=1&node=2")
    assert (status, found["error"]) == (400, "a name is given twice")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_other_hosts_and_sites_are_refused(client: Client, headers: dict[str, str]):
    for path in ("/", "/api/runs", "/static/main.js"):
        status, content, _ = client.ask(path, **headers)
        assert status == 403
        assert b"first" not in content


def test_the_page_may_ask(client: Client):
    port = client.host.split(":")[1]
    for host in (client.host, f"localhost:{port}"):
        status, *_ = client.ask(
            "/api/runs", Host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin"
        )
        assert status == 200


def test_changes_must_be_json(client: Client):
    """A form of another site could send other types without asking."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        status, found, _ = client.ask("/api/what-if", "POST", b"{}", content_type=kind)
        assert (status, found["error"]) == (415, "content-type: expected application/json")
    assert client.ask("/api/what-if")[0] == 405
    assert client.ask("/api/node?node=1", "POST", b"{}")[0] == 405


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/node?node=x", "/static/main.js", "/no"])
def test_every_answer_has_security_headers(client: Client, path: str):
    _, _, headers = client.ask(path)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"],
)
def test_no_other_file_is_served(client: Client, path: str):
    assert client.ask(path)[0] == 404


def test_only_this_machine_can_connect(client: Client):
    """The server listens at the loopback address, and not at all addresses."""
    port = int(client.host.split(":")[1])
    with socket.socket() as other:
        other.bind(("127.0.0.2", port))  # fails if another socket listens at all addresses


def test_the_page_contains_no_code_from_elsewhere():
    for path in STATIC.iterdir():
        text = path.read_text()
        assert "http://" not in text.replace("http://www.w3.org/", ""), path.name
        assert "https://" not in text, path.name
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "new Function"):
            assert forbidden not in text, f"{path.name}: {forbidden}"
        assert len(text.splitlines()) <= 300, path.name
