# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup `hetero.compute.boards_file`: the text of a boards file on the controller, or why there is none.
site/boards_file.py reads the text.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: boards_file
short_description: Read a boards file on the controller
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Looks for the file where tasks look for files, beside the inventory, and where the play was begun. Reads its text,
    decrypted where it is in a vault.
  - A file that is not there, that cannot be read, or that is in another encoding is no error but has no text, for
    role P(hetero.compute.tftp_proxy#role) says all mistakes at once.
options:
  _terms:
    description: Path of the file.
    required: true
    type: str
  mistakes:
    description: Return what is wrong with the file in place of its text.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ lookup('hetero.compute.boards_file', 'files/boards') }}"
"""

RETURN = r"""
_raw:
  description: The text of each file; with O(mistakes), for each mistake its C(thing), C(what) and C(remedy).
  type: list
  elements: raw
"""

from ansible.plugins.lookup import LookupBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.encoding import foreign_encoding
from ansible_collections.hetero.compute.plugins.plugin_utils.controller_files import look_for

UNSET = "name the boards file on the controller"
REMEDY = "save it as UTF-8"


class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        read = [self._one(str(term), variables or {}) for term in terms]
        if self.get_option("mistakes"):
            return [mistake for _text, mistake in read if mistake]
        return [text for text, _mistake in read]

    def _one(self, path, variables):
        if not path:
            return _answer(path, what="no boards file is named", remedy=UNSET)
        found, missing = look_for(self, variables, path)
        if not found:
            return _answer(path, what=missing, remedy=UNSET)
        try:
            with open(self._loader.get_real_file(found), "rb") as file:
                data = file.read()
        except OSError as error:
            return _answer(path, what=f"cannot be read: {error.strerror}", remedy="correct it on the controller")
        encoding = foreign_encoding(data)
        if encoding:
            return _answer(path, what=f"is in {encoding}", remedy=REMEDY)
        # what is wrong otherwise is looked for all the same
        text = data.decode("utf-8-sig", "replace").replace("\0", "\ufffd").rstrip()
        try:
            at = data.index(0) if 0 in data else None
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start if at is None else min(at, error.start)
        if at is None:
            return _answer(path, text)
        what = f"byte 0x{data[at]:02x} is {'not UTF-8' if data[at] else 'no text'}"
        return _answer(path, text, f"{what} (line {data.count(10, 0, at) + 1})", REMEDY)


def _answer(path, text="", what="", remedy=""):
    """Return (text, mistake or None)."""
    thing = path or "tftp_proxy_boards_file"
    return text, {"thing": thing, "what": what, "remedy": remedy} if what else None
