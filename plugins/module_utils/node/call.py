# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module run from the copy on its node that this very file is in, as Ansible's wrapper runs one that it has sent.

A program: `python3 -I call.py`. plugin_utils/short_calls.py calls it.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from importlib.util import find_spec

#: The line that it says before the module runs: from then on the call was made.
BEGUN = "hetero.compute: begun"


def main():
    """Run what standard input asks for: a `module`, its `arguments` as JSON text, the `profile` of that JSON.

    The module prints its result and ends the process.
    """
    request = json.load(sys.stdin)
    module = f"hetero.modules.{request['module']}"
    if find_spec(module) is None:
        sys.stderr.write(f"no module {request['module']} here\n")
        return
    from ansible.module_utils import basic

    basic._ANSIBLE_ARGS = request["arguments"].encode()
    basic._ANSIBLE_PROFILE = request["profile"]
    sys.stdout.write(f"{BEGUN}\n")
    sys.stdout.flush()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.insert(0, os.path.realpath(__file__).rsplit(os.sep, 4)[0])
    main()
