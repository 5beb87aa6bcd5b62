# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place where errors become fail_json, and where what others said in a result is made printable. Utilities
below never see AnsibleModule.
"""

from __future__ import annotations

import json

from .errors import BadInput, HeteroError
from .printable import printable_data


def utf8(params):
    """`params`, or BadInput for one with bytes that are no UTF-8: Ansible hands them on, and no database takes them."""
    for name, value in params.items():
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadInput("holds bytes that are not UTF-8", name, "write it in UTF-8") from error
    return params


def run(module, work):
    """Run `work(params, check)` and end the module with its result.

    :param module: an AnsibleModule.
    :param work: takes the parameters and whether this is check mode; returns the result dict. A result that holds
        `failed` keeps everything else it holds (per-board results of the boards that did work).
    """
    try:
        result = work(utf8(module.params), module.check_mode)
    except HeteroError as error:
        module.fail_json(**failed(error))
    result = printable_data(result)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


def failed(error: HeteroError) -> dict:
    """An error as the result of a module that failed."""
    return printable_data(dict(failed=True, msg=str(error), failure=error.failure))
