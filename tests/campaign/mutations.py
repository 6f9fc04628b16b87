"""Systematic changes of bytes, of JSON documents, and of nested values."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

# What a value in a document is replaced by: every kind of JSON value, and odd ones of each kind.
REPLACEMENTS: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "text",
    "\u0000",
    "x" * 10_000,
    [],
    [1, 2],
    {},
    {"a": 1},
    [[[]]],
)


def nested(depth: int = 100_000) -> str:
    """Returns JSON that is too deep for a recursive parser."""
    return "[" * depth + "]" * depth


def cuts(content: bytes, count: int = 8) -> Iterator[tuple[str, bytes]]:
    """Yields prefixes."""
    for part in range(count):
        yield f"cut at {part}/{count}", content[: len(content) * part // count]
    yield "without the last byte", content[:-1]


def flips(content: bytes, count: int, seed: str) -> Iterator[tuple[str, bytes]]:
    """Yields copies with one bit changed, spread over the whole."""
    rng = random.Random(seed)
    for number in range(count):
        low, high = (len(content) * n // count for n in (number, number + 1))
        place = rng.randrange(low, max(low + 1, high))
        bit = rng.randrange(8)
        changed = bytes([content[place] ^ (1 << bit)])
        yield f"bit {bit} of byte {place} flipped", content[:place] + changed + content[place + 1 :]


def noise(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields contents that are no such file at all."""
    rng = random.Random(0)
    yield "empty", b""
    yield "one byte", b"\x00"
    yield "zeros", bytes(len(content))
    yield "random bytes", rng.randbytes(len(content))
    yield "text", b"hello\n" * 20
    yield "HTML", b"<!DOCTYPE html><html><body>404 not found</body></html>"
    yield "a pickle of nothing", b"\x80\x04N."
    yield "an empty zip", b"PK\x05\x06" + bytes(18)
    yield "JSON", b"{}"
    yield "twice", content + content
    yield "with bytes before", b"\xff\xff" + content
    yield "with bytes after", content + b"\x00" * 9
    middle = len(content) // 2
    yield "a hole of zeros", content[:middle] + bytes(min(64, middle)) + content[middle + 64 :]


def damaged(content: bytes, seed: str, flipped: int = 12) -> Iterator[tuple[str, bytes]]:
    """Yields all of the above."""
    yield from noise(content)
    yield from cuts(content)
    yield from flips(content, flipped, seed)


def paths(document: Any, limit: int = 3) -> Iterator[tuple[Any, ...]]:
    """Yields the path of each value in a document, of lists only the first few values."""
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document[:limit])
    for key, value in items:
        yield (key,)
        yield from ((key, *rest) for rest in paths(value, limit))


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Returns a copy with another value at a path."""
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def without(document: Any, path: tuple[Any, ...]) -> Any:
    """Returns a copy without the value at a path."""
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def shown(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 24 else f"{text[:12]}... ({len(text)})"


def documents(document: Any, each: int, seed: str, most: int = 1000) -> Iterator[tuple[str, Any]]:
    """Yields copies with a value removed or replaced by one of another kind.

    Args:
        document: A JSON document.
        each: Number of replacements for each value, drawn from all of them.
        seed: Seed of the draws.
        most: Number of values to change at most, drawn from all of them.
    """
    rng = random.Random(seed)
    places = list(paths(document))
    for path in places if len(places) <= most else rng.sample(places, most):
        yield f"without {shown(path)}", without(document, path)
        for value in rng.sample(REPLACEMENTS, each):
            yield f"{shown(path)} is {short(value)}", put(document, path, value)
    for value in REPLACEMENTS:
        yield f"is {short(value)}", value
    yield "with a key more", {**document, "no_such_key": 1} if isinstance(document, dict) else 1


def texts(write: Callable[[Any], str] = json.dumps) -> Iterator[tuple[str, bytes]]:
    """Yields texts that are not JSON, or only almost."""
    yield "deep nesting", nested().encode()
    yield "deep nesting of dicts", b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield "single quotes", b"{'a': 1}"
    yield "a trailing comma", b'{"a": 1,}'
    yield "two documents", b'{"a": 1}{"a": 1}'
    yield "a comment", b'// x\n{"a": 1}'
    yield "UTF-16", '{"a": 1}'.encode("utf-16")
    yield "not UTF-8", b'{"a": "\xff"}'
    yield "a number of 10,000 digits", b'{"a": ' + b"9" * 10_000 + b"}"
    yield "a lone surrogate", b'{"a": "\\ud800"}'
    yield "a key twice", b'{"a": 1, "a": 2}'
