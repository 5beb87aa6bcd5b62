# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that a wipe uses; verbs/lifecycle.py defines them."""

from __future__ import annotations

from typing import Protocol

from ..boot.boot_options import BootOptions


class WipeOptions(BootOptions, Protocol):
    """Options of booting boards for a wipe, and of whose the boards are to be."""

    @property
    def driver(self) -> str: ...
    @property
    def instance(self) -> str | None: ...
    @property
    def created(self) -> tuple[float, ...]: ...
    @property
    def never_ran(self) -> bool: ...
    @property
    def limit(self) -> float: ...
