# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Combine the results of a verb's steps into the one result of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from ...core.end_requests import BEING_ENDED

if TYPE_CHECKING:
    from ...core.errors import HeteroError

#: Fields of a failed step's result that the verb's result has, too, beside the message.
TOLD = ("failure", "errors", "rejected", "rejected_lines")
#: Key of a failure where the request itself is what is wrong: {option: what the instance has, where it gives another}.
AS_IT_IS = "as_it_is"


class Steps:
    """The results of the steps so far.

    :ivar boards: the last step's result for each board.
    :ivar blame: whose fault the last step's failure was; None where it did not fail, or where that is not known.
    :ivar failure: the fields about the step that failed; empty where none did.
    """

    def __init__(self) -> None:
        self.boards: list[dict[str, Any]] = []
        self.blame: str | None = None
        self.failure: dict[str, Any] = {}
        self._lines: list[dict[str, Any]] = []
        self._diff: list[dict[str, Any]] = []
        self._seconds: dict[str, float] = {}
        self._changed = False

    def took(self, result: Mapping[str, Any], name: str) -> bool:
        """Add a step's result; return True where it did not fail.

        :param name: the step's name, for the message of a failure.
        """
        self._lines += result.get("lines", ())
        self._diff += result.get("diff", ())
        self._changed = self._changed or bool(result.get("changed"))
        for step, seconds in result.get("seconds", {}).items():
            self._seconds[step] = round(self._seconds.get(step, 0.0) + seconds, 3)
        self.boards, self.blame = result["boards"], result.get("blame")
        if result.get("failed"):
            told = {key: result[key] for key in TOLD if key in result}
            return self.fail(dict(told, failed=True, msg=result["msg"], blame=self.blame, step=name))
        return True

    def say(self, lines: list[dict[str, Any]]) -> None:
        """Add lines for people."""
        self._lines += lines

    def fail(self, failure: dict[str, Any]) -> bool:
        """Add a failure to the verb's, after earlier ones; return False. What was said already is not said again."""
        first = self.failure
        if first:
            also = "" if failure["msg"] == first["msg"] else f"; and then: {failure['msg']}"
            failure = {**failure, **first, "msg": f"{first['msg']}{also}"}
        self.failure = failure
        return False

    def broke_off(self, error: HeteroError) -> None:
        """Let the verb fail by an error of the proxy or of the whole request; keep the results until then."""
        self.fail(dict(failed=True, msg=str(error), failure=error.failure, blame=None))

    def add(self, text: str) -> None:
        """Add a text to the message of the failure."""
        self.failure = dict(self.failure, msg=f"{self.failure['msg']}; {text}")

    def mend(self) -> None:
        """Forget the failure, for the verb tries another way."""
        self.failure = {}

    @property
    def as_it_is(self) -> dict[str, Any] | None:
        """Return {option: what the instance has} where the request is what is wrong; None where something else is."""
        found: dict[str, Any] | None = self.failure.get("failure", {}).get(AS_IT_IS)
        return found

    @property
    def being_ended(self) -> set[int]:
        """Return the boards whose instances somebody is ending, so that the last step let go of them."""
        return {board["board"] for board in self.boards if (board.get("evidence") or {}).get(BEING_ENDED)}

    @property
    def way_on(self) -> str:
        """Return how to ask again after the failure."""
        if self.as_it_is is None:
            return "again once that is mended"
        words = " ".join(f"-e {option}={value}" for option, value in self.as_it_is.items())
        return f"as it is: {words}" if words else "again with that corrected"

    @property
    def result(self) -> dict[str, Any]:
        """Return the module's result."""
        done = dict(changed=self._changed, diff=self._diff, seconds=self._seconds, lines=self._lines, blame=self.blame)
        return dict(done, instances=self.boards, **self.failure)
