"""The criteria, encodings, models and metrics by name.

Settings and the command line only need the names. The record of a built-in name is imported when it
is first used, so that ``dgt --help`` does not load torch.

To add an entry to the package, write a file with its record and add a line here.
"""

import pickle
import re
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dgt.errors import InputError, nearest

if TYPE_CHECKING:
    from dgt.encodings.encoding import Encoding
    from dgt.evaluate import Metric
    from dgt.nn.record import Model
    from dgt.sequences.criterion import Criterion

Record = TypeVar("Record")

LONGEST_NAME = 100
NAME = re.compile(rf"[\w.-]{{1,{LONGEST_NAME}}}")
RESERVED = ("loss", "std", "ci95")
"""Names with another meaning in the files of a run."""


class Choices(MutableMapping[str, Record], Generic[Record]):
    """A dict of records that users can add to.

    .. code-block:: python

        CRITERIA["age"] = by_age

    Args:
        kind: Kind of the records, for error messages.
        home: Public name of the dict, for error messages.
        built_in: Place of the record of each built-in name, ``"package.module:ATTRIBUTE"``.
        record: Place of the class of the records.
        wrap: Place of a function that makes a record of a name and a user's function. Without it,
            only records can be registered.
        per_table: Whether a name may be followed by that of an edge table, as in ``bfs:follows``.
    """

    def __init__(
        self,
        kind: str,
        home: str,
        built_in: dict[str, str],
        record: str,
        wrap: str | None = None,
        per_table: bool = False,
    ) -> None:
        self.kind = kind
        self.home = home
        self.built_in = tuple(built_in)
        self._places = built_in
        self._entries: dict[str, Any] = dict(built_in)
        self._record = record
        self._wrap = wrap
        self._per_table = per_table

    def __getitem__(self, name: str) -> Record:
        base, _ = self.parts(name)
        entry = self._entries[base]
        if isinstance(entry, str):
            self._entries[base] = entry = _imported(entry)
        return self._wrapped(base, entry)

    def parts(self, name: str) -> tuple[str, str]:
        """Returns the registered name in a name, and that of an edge table or ""."""
        if name in self._entries or not self._per_table:
            return name, ""
        base, _, table = name.partition(":")
        return base, table

    def __setitem__(self, name: str, entry: Record | Callable[..., Any]) -> None:
        # Names become parts of file names.
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(
                f"{self.home}: got the name {name!r}, expected at most {LONGEST_NAME} letters, "
                "digits, hyphens, underscores and dots"
            )
        if name in self.built_in or name in RESERVED:
            raise InputError(f"{self.home}: {name!r} is built in; choose another name")
        function = callable(entry) and self._wrap is not None
        if not function and not isinstance(entry, _imported(self._record)):
            wanted = "the record" if self._wrap is None else "a function or the record"
            raise InputError(
                f"{self.home}[{name!r}]: got {entry!r}, expected {wanted} of a {self.kind}"
            )
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        if name in self.built_in:
            raise InputError(f"{self.home}: {name!r} is built in and cannot be removed")
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:  # without importing the record
        if not isinstance(name, str):
            return False
        base, table = self.parts(name)
        return base in self._entries and (bool(table) or base == name)

    def __repr__(self) -> str:
        return f"{self.home}: {', '.join(self)}"

    def record(self, choice: str | Callable[..., Any]) -> Record:
        """Returns the record of a name or of a user's function."""
        return self[choice] if isinstance(choice, str) else self._wrapped(self.name(choice), choice)

    def place(self, choice: str | Callable[..., Any]) -> str | None:
        """Returns the place of the record of a built-in name, ``"package.module:ATTRIBUTE"``."""
        return self._places.get(self.parts(choice)[0]) if isinstance(choice, str) else None

    def name(self, choice: str | Callable[..., Any]) -> str:
        """Returns the name of a choice in files. For a function, this is the name that it is
        registered under, else its ``__name__``."""
        if isinstance(choice, str):
            return choice
        for name, entry in self._entries.items():
            if entry == choice:  # a bound method is a new object each time
                return name
        return getattr(choice, "__name__", type(choice).__name__)

    def check(self, choice: Any, place: str) -> None:
        """Raises an :class:`~dgt.errors.InputError` unless the choice is a registered name or, if
        allowed, a function."""
        if isinstance(choice, str):
            if choice not in self:
                raise InputError(
                    f"{place}: unknown {self.kind} {choice!r}; {nearest(choice, self)} (register "
                    f"your own first: {self.home}[{choice!r}] = ..., or --import MODULE on the "
                    "command line)"
                )
        elif not callable(choice) or self._wrap is None:
            wanted = "a name" if self._wrap is None else "a name or a function"
            raise InputError(f"{place}: expected {wanted}, got {choice!r}")
        elif (name := self.name(choice)) in self and self._entries[name] != choice:
            # Files only store the name of a function.
            raise InputError(
                f"{place}: the function {name!r} has the name of another {self.kind}; rename it"
            )

    def _wrapped(self, name: str, entry: Any) -> Any:
        if callable(entry) and self._wrap is not None:
            return _imported(self._wrap)(name, entry)
        return entry

    def registered(self) -> dict[str, Any]:
        """Returns the entries that are not built in."""
        return {n: entry for n, entry in self._entries.items() if n not in self.built_in}


CRITERIA: "Choices[Criterion]" = Choices(
    "criterion",
    "dgt.sequences.CRITERIA",
    {
        "bfs": "dgt.sequences.bfs:BFS",
        "ppr": "dgt.sequences.ppr:PPR",
        "similarity": "dgt.sequences.similarity:SIMILARITY",
        "bfs-out": "dgt.sequences.bfs:OUT",
        "bfs-in": "dgt.sequences.bfs:IN",
        "ppr-out": "dgt.sequences.ppr:PPR_OUT",
        "ppr-in": "dgt.sequences.ppr:PPR_IN",
        "alike": "dgt.sequences.alike:ALIKE",
        "alike-out": "dgt.sequences.alike:OUT",
        "alike-in": "dgt.sequences.alike:IN",
        "neighbors": "dgt.sequences.neighbors:NEIGHBORS",
        "absolute-random": "dgt.sequences.absolute:RANDOM",
        "absolute-bfs": "dgt.sequences.absolute:BFS",
        "absolute-ppr": "dgt.sequences.absolute:PPR",
        "absolute-similarity": "dgt.sequences.absolute:SIMILARITY",
    },
    record="dgt.sequences.criterion:Criterion",
    wrap="dgt.sequences.custom:custom_criterion",
    per_table=True,
)

ENCODINGS: "Choices[Encoding]" = Choices(
    "encoding",
    "dgt.encodings.ENCODINGS",
    {
        "katz": "dgt.encodings.katz:KATZ",
        "katz-out": "dgt.encodings.katz:OUT",
        "katz-in": "dgt.encodings.katz:IN",
        "laplacian": "dgt.encodings.laplacian:LAPLACIAN",
        "node2vec": "dgt.encodings.node2vec:NODE2VEC",
        "degree": "dgt.encodings.degree:DEGREE",
        "counts": "dgt.encodings.counts:COUNTS",
        "walks": "dgt.encodings.walks:WALKS",
        "none": "dgt.encodings.encoding:NONE",
    },
    record="dgt.encodings.encoding:Encoding",
    wrap="dgt.encodings.custom:custom_encoding",
)

MODELS: "Choices[Model]" = Choices(
    "model",
    "dgt.models.MODELS",
    {
        "mlp": "dgt.baselines.mlp:MODEL",
        "gcn": "dgt.baselines.gcn:MODEL",
        "gat": "dgt.baselines.gat:MODEL",
        "graphsage": "dgt.baselines.graphsage:MODEL",
        "jknet": "dgt.baselines.jknet:MODEL",
        "sgc": "dgt.baselines.sgc:MODEL",
        "gatv2": "dgt.baselines.gatv2:MODEL",
        "mixhop": "dgt.baselines.mixhop:MODEL",
        "geom-gcn": "dgt.baselines.geom_gcn:MODEL",
        "h2gcn": "dgt.baselines.h2gcn:MODEL",
        "deformable-gcn": "dgt.baselines.deformable_gcn:MODEL",
        "transformer": "dgt.baselines.transformer:MODEL",
        "graphormer": "dgt.baselines.graphormer:MODEL",
        "gt-full": "dgt.baselines.gt:FULL",
        "gt-sparse": "dgt.baselines.gt:SPARSE",
        "dgt-light": "dgt.nn:DGT_LIGHT_MODEL",
        "dgt": "dgt.nn:DGT_MODEL",
        "dgt-plus": "dgt.nn:DGT_PLUS_MODEL",
    },
    record="dgt.nn.record:Model",
)

METRICS: "Choices[Metric]" = Choices(
    "metric",
    "dgt.evaluate.METRICS",
    {
        "accuracy": "dgt.evaluate:ACCURACY",
        "balanced-accuracy": "dgt.evaluate:BALANCED_ACCURACY",
        "f1": "dgt.evaluate:F1",
        "macro-f1": "dgt.evaluate:MACRO_F1",
        "auroc": "dgt.evaluate:AUROC",
        "average-precision": "dgt.evaluate:AVERAGE_PRECISION",
        "log-loss": "dgt.evaluate:LOG_LOSS",
        "mae": "dgt.evaluate:MAE",
        "r2": "dgt.evaluate:R2",
    },
    record="dgt.evaluate.metric:Metric",
    wrap="dgt.evaluate:custom_metric",
)


def described(choices: Choices[Any], text: str) -> dict[str, Any]:
    """Returns the metadata of a setting that takes one or more of the choices."""
    return {"choices": choices, "help": f"{text} Choices: {', '.join(choices)}."}


_ALL: tuple[Choices[Any], ...] = (CRITERIA, ENCODINGS, MODELS, METRICS)


def dump_registered() -> list[bytes]:
    """Serializes what was registered in this process, for :func:`load_registered` in another."""
    dumped = []
    for number, choices in enumerate(_ALL):
        for name, entry in choices.registered().items():
            # A lambda, for instance, cannot be pickled.
            with suppress(pickle.PicklingError, AttributeError, TypeError):
                dumped.append(pickle.dumps((number, name, entry)))
    return dumped


def load_registered(dumped: list[bytes]) -> None:
    """Registers what :func:`dump_registered` has serialized in the parent process."""
    for content in dumped:
        # A function of a notebook cannot be imported here. It raises an error when it is used.
        with suppress(ImportError, AttributeError):
            number, name, entry = pickle.loads(content)
            _ALL[number][name] = entry


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
