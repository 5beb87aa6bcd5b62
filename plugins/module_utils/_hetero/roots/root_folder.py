# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person may have laid into a root's folder: it may be another's root, and would go with this one."""

from __future__ import annotations

import re
from typing import Collection

from ..files import strangers

BESIDE = "holds {names}, which is no part of a root and would go with it"
ASIDE = "it is not removed: put that where it belongs, or anywhere out of the roots' folders; then run this again"


def must_hold_only(folder: str, parts: Collection[str]) -> None:
    """Raise Refused where anything else than a root's own parts lies in its folder.

    A file that a killed writer left (whole_file.py) has a part's name with a point before it.
    """
    names = "|".join(map(re.escape, parts))
    strangers.must_hold_only(folder, re.compile(rf"{names}|\.({names})\..*"), BESIDE, ASIDE)
