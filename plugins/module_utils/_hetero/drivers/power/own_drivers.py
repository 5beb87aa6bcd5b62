# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a mistake in a power driver of a site's own to the PDUs that name it: what it raises, or answers, beside what a
driver may becomes the error of such a PDU. Boards of other PDUs go on, and no board is at fault.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Mapping

from ...core.errors import BadInput, HeteroError
from .driver import Answer, PowerDriver


def guarded(driver: type[PowerDriver], path: str) -> type[PowerDriver]:
    """Return a driver that is the given one, and raises nothing but HeteroErrors.

    :param path: its file, for the errors.
    """

    class Guarded(driver):  # type: ignore[misc,valid-type]
        def __init__(self, name: str, *others: Any) -> None:
            with _broken(name, path):
                super().__init__(name, *others)

        @classmethod
        def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
            try:
                with _broken(name, path):
                    found = list(super().wrong(name, settings))
            except HeteroError as error:
                found = [("driver", error)]
            yield from found

        def login(self) -> None:
            with _broken(self.name, path, self):
                super().login()

        def logout(self) -> None:
            with _broken(self.name, path, self):
                super().logout()

        def status(self) -> dict[str, str]:
            with _broken(self.name, path, self):
                status = super().status()
                if not isinstance(status, Mapping):
                    raise TypeError("status returns no {outlet: state}")
                return {str(outlet): str(state) for outlet, state in status.items()}

        def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
            with _broken(self.name, path, self):
                answers = super().switch(outlets, state)
                if not all(isinstance(answers[outlet], Answer) for outlet in outlets):
                    raise TypeError("switch returns no {outlet: Answer}")
                return {outlet: answers[outlet] for outlet in outlets}

    Guarded.__name__ = driver.__name__
    return Guarded


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
