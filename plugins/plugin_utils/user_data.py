# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request's data for cloud-init, or what is wrong with their file."""

from __future__ import annotations

import os
import stat
from typing import Any

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.cloud_init import (
    BEGINNINGS,
    MOST,
    must_be_user_data,
)
from ansible_collections.hetero.compute.plugins.plugin_utils.template_trust import hostile


def user_data(file: Any, in_a_job: bool = False) -> dict[str, Any]:
    """Return `text`, marked so that no braces in it are a template to Ansible, and `problem`, in words; "" for none.

    :param file: the name of the file, "" or None for none.
    :param in_a_job: whether a form asks. It names no file, because what runs the job may read the secrets of others.
    """
    if file in ("", None):
        return dict(text="", problem="")
    if in_a_job:
        return dict(text="", problem="user_data is for the command line: a job reads no file that somebody names")
    name = str(file)
    if BEGINNINGS.match(name) or "\n" in name:
        return dict(text="", problem="user_data is the name of a file, and no text: write it to one, and name that")
    text, why = _read(os.path.expanduser(name))
    if not why:
        try:
            must_be_user_data(text)
        except BadInput as error:
            why = f"{error.what}: {error.remedy}"
    shown = name if len(name) <= 200 and name.isprintable() else "its file"
    return dict(text="", problem=f"user_data: {shown} {why}") if why else dict(text=hostile(text), problem="")


def _read(path: str) -> tuple[str, str]:
    """Return (what is in a file, why it cannot be taken)."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "", "is no plain file: give the name of a file on the controller"
        with open(path, "rb") as opened:
            data = opened.read(MOST + 1)
    except ValueError:
        return "", "is no name of a file"
    except OSError as error:
        return "", f"cannot be read ({error.strerror}): give the name of a file on the controller"
    if len(data) > MOST:
        return "", f"has more than {MOST} bytes: let it fetch the rest"
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return "", "is no text in UTF-8: cloud-init takes packed data too, and these are not taken here"
