# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a mistake in a power driver of a site's own to the PDUs that name it: what it raises, or answers, beside what a
driver may becomes the error of such a PDU. Boards of other PDUs go on, and no board is at fault.

Each session has a process of its own (driver_process.py), so that a driver which never returns is ended.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping

from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Lost, TimedOut
from .drawn import Drawn
from .driver import Answer, PowerDriver
from .driver_process import Apart, packed, unpacked

#: Seconds for a look at a PDU's settings.
LOOK = 10.0
#: What a session tells of itself, beside its answers.
TOLD = ("dialect", "window", "stuck")
GONE = "its driver broke off (it ended its process)"


class Guarded(PowerDriver):
    """Stands before a site's own class in what `guarded` makes. The site's driver itself is made in the process of its
    session; in this one runs nothing of it but what it computes as a class.
    """

    #: The site's class, and its file, for the errors.
    _of_site: tuple[type[PowerDriver], str]

    def __init__(self, name: str, settings: dict[str, Any], secrets: Mapping[str, Any], deadline: Deadline) -> None:
        PowerDriver.__init__(self, name, settings, secrets, deadline)
        self._apart: Apart | None = None

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        driver, path = cls._of_site
        return _wrong(driver, path, name, settings)

    def login(self) -> None:
        if self._apart is None:
            made = _Made(*self._of_site, (self.name, self.settings, self.secrets))
            self._apart = Apart(made.call, f"pdu-{self.name.replace('/', '_')}")
        self._ask("login")

    def logout(self) -> None:
        if self._apart is not None:
            try:
                self._ask("logout")
            finally:
                apart, self._apart = self._apart, None
                if apart is not None:
                    apart.end()

    def status(self) -> dict[str, str]:
        return dict(self._ask("status"))

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        answers = self._ask("switch", outlets, state)
        return {outlet: _answer(*answers[outlet]) for outlet in outlets}

    def drawn(self, outlets: list[str]) -> dict[str, Drawn]:
        return {outlet: Drawn(*one) for outlet, one in self._ask("drawn", outlets).items()}

    def _ask(self, call: str, *words: Any) -> Any:
        _driver, path = self._of_site
        if self._apart is None:
            raise Lost("its session is over, as its driver did not return", self.name, f"correct {path}")
        try:
            answer, told = self._apart.ask(call, list(words), self.deadline.left)
        except TimeoutError as error:
            self._apart = None
            remedy = f"correct {path}: each of its waits ends at self.deadline"
            what = f"its driver did not return from {call} in time, and was ended"
            raise Lost(what, self.name, remedy) from error
        except EOFError as error:
            self._apart = None
            raise BadInput(GONE, self.name, f"correct {path}") from error
        for key, value in zip(TOLD, told):
            setattr(self, key, value)
        return answer


def guarded(driver: type[PowerDriver], path: str) -> type[PowerDriver]:
    """Return a driver that is the given one, and raises nothing but HeteroErrors.

    :param path: its file, for the errors.
    """

    class OwnDriver(Guarded, driver):  # type: ignore[misc,valid-type]
        _of_site = (driver, path)

    for key in TOLD:  # of a driver that computes it, only its session knows
        if not isinstance(getattr(driver, key), (str, int, float, type(None))):
            setattr(OwnDriver, key, getattr(PowerDriver, key))
    OwnDriver.__name__ = driver.__name__
    return OwnDriver


def _wrong(
    driver: type[PowerDriver], path: str, name: str, settings: Mapping[str, Any]
) -> Iterator[tuple[str, HeteroError]]:
    """Yield what a site's class finds wrong with a PDU's settings, looked at in a process of its own."""

    def look() -> list[Any]:
        try:
            with _broken(name, path):
                return [(str(key), packed(error)) for key, error in driver.wrong(name, settings)]
        except HeteroError as error:
            return [("driver", packed(error))]

    try:
        found = in_child(look, Deadline(LOOK), name, f"correct {path}")
    except HeteroError as error:  # it never returned, or it ended its process
        what = f"its driver looks at its settings for {LOOK:g} s" if isinstance(error, TimedOut) else GONE
        found = [("driver", packed(BadInput(what, name, f"correct {path}")))]
    for key, said in found:
        yield key, unpacked(said)


class _Made:
    """A driver in the process of its session.

    :param given: its name, settings and secrets.
    """

    def __init__(self, driver: type[PowerDriver], path: str, given: tuple[str, Any, Mapping[str, Any]]) -> None:
        self._driver, self._path, self._given = driver, path, given
        self._made: PowerDriver | None = None

    def call(self, call: str, words: list[Any], left: float) -> Any:
        """Do what is asked, and return the answer with TOLD."""
        (name, settings, secrets), path = self._given, self._path
        if self._made is None:
            with _broken(name, path):
                self._made = self._driver(name, settings, secrets, Deadline(left))
        self._made.deadline = Deadline(left)
        with _broken(name, path, self._made):
            answer, window = CALLS[call](self._made, *words), self._made.window
            told = (self._made.dialect, None if window is None else float(window), self._made.stuck)
            return answer, [one if isinstance(one, (float, type(None))) else str(one) for one in told]


def _status(driver: PowerDriver) -> dict[str, str]:
    status = driver.status()
    if not isinstance(status, Mapping):
        raise TypeError("status returns no {outlet: state}")
    return {str(outlet): str(state) for outlet, state in status.items()}


def _switch(driver: PowerDriver, outlets: list[str], state: str) -> dict[str, Any]:
    answers = driver.switch(outlets, state)
    if not all(isinstance(answers[outlet], Answer) for outlet in outlets):
        raise TypeError("switch returns no {outlet: Answer}")
    said = {outlet: answers[outlet] for outlet in outlets}
    return {key: [bool(one.accepted), str(one.words), one.error and packed(one.error)] for key, one in said.items()}


def _answer(accepted: bool, words: str, error: list[Any] | None) -> Answer:
    return Answer(accepted, words, unpacked(error) if error else None)


def _drawn(driver: PowerDriver, outlets: list[str]) -> dict[str, Any]:
    return {str(outlet): list(one) for outlet, one in driver.drawn(outlets).items()}


#: What a session is asked → how its driver is.
CALLS: dict[str, Callable[..., Any]] = {
    "login": lambda driver: driver.login(),
    "logout": lambda driver: driver.logout(),
    "status": _status,
    "switch": _switch,
    "drawn": _drawn,
}


@contextmanager
def _broken(name: str, path: str, driver: PowerDriver | None = None) -> Iterator[None]:
    """Turn what a driver raises beside HeteroErrors into one that names its file, without the PDU's secrets."""
    try:
        yield
    except HeteroError:
        raise
    except (Exception, SystemExit) as error:
        told = f"{type(error).__name__}: {error}"
        text = driver.masked(told) if driver else type(error).__name__
        raise BadInput(f"its driver broke off ({text})", name, f"correct {path}") from error
