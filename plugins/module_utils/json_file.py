# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration file that is one JSON object. What it may hold is its reader's business."""

from __future__ import annotations

import json

from .errors import BadInput


def read_object(path, remedy):
    """The object in the file; BadInput where it is missing or none."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path, remedy) from error
    except ValueError as error:
        raise BadInput(f"is not JSON ({error})", path, remedy) from error
    if not isinstance(data, dict):
        raise BadInput("is not a JSON object", path, remedy)
    return data
