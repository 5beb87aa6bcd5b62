# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that boots and stops use; verbs/lifecycle.py defines them."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Protocol


class BootOptions(Protocol):
    """Options of booting and stopping boards; a frozen dataclass."""

    __dataclass_fields__: ClassVar[Dict[str, Any]]

    @property
    def timeout(self) -> float: ...
    @property
    def retries(self) -> int: ...
    @property
    def wait(self) -> bool: ...
    @property
    def check(self) -> bool: ...
    @property
    def keep(self) -> bool: ...
    @property
    def ends(self) -> bool: ...
    @property
    def by_guess(self) -> bool: ...
    @property
    def only_looks(self) -> bool: ...
    @property
    def how(self) -> str: ...
    @property
    def soft_timeout(self) -> float: ...
