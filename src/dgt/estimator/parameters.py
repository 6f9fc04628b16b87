"""The parameters of an estimator, as scikit-learn reads, changes and copies them."""

from typing import Any, ClassVar, Self

from dgt.config import DEFAULT_MODEL, Config, complaints
from dgt.data.targets import TaskKind
from dgt.errors import InputError
from dgt.system.notes import warn_once


class Parameters:
    """An estimator that is made of settings.

    Args:
        config: The settings (default: those of the model).
        **settings: Settings by name. They take precedence over ``config``.
    """

    tasks: ClassVar[tuple[TaskKind, ...]]
    """The tasks that the class is for."""

    def __init__(self, config: Config | None = None, **settings: Any) -> None:
        made = Config.given(config, **settings)
        if made.train.task not in self.tasks:
            raise InputError(
                f"{type(self).__name__} got settings for {made.train.task}, expected "
                f"{' or '.join(self.tasks)}; use NodeRegressor for numbers, and NodeClassifier for "
                "classes and labels"
            )
        self.config, self._given, self._by_name = made, config, settings
        # A warning, since programs often give several models the same settings.
        for complaint in complaints(made, settings):
            warn_once(complaint)

    def __repr__(self) -> str:
        own = self.config.flat()
        default = Config.of(self.config.model.model).flat() | {"model": DEFAULT_MODEL}
        changed = (f"{name}={own[name]!r}" for name in own if own[name] != default[name])
        return f"{type(self).__name__}({', '.join(changed)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns ``config`` and the settings that were given by name, as scikit-learn's ``clone``
        needs them. Others are left out, since they may follow from the graph; the attribute
        ``config`` has all.

        Args:
            deep: Without effect, since no parameter is an estimator.
        """
        return {"config": self._given, **self._by_name}

    def set_params(self, **params: Any) -> Self:
        """Changes settings by name, or ``config``. Those that were given before are kept. What was
        fitted stays as it is until the next :meth:`fit`."""
        Parameters.__init__(self, **self.get_params() | params)
        return self
