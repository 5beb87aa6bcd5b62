#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders and files of a node, all in one run. The node's role says what is in them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_files
short_description: Keep a set of folders and files
version_added: 0.1.0
description:
  - Brings folders and root-owned files to the given content and mode, all in one run; each file is replaced in one
    step.
  - Used by roles P(hetero.compute.tftp_proxy#role) and P(hetero.compute.gpu_lxc#role). Works in check mode where the
    folders are yet to be made.
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: >-
      Files are shown line by line; a file with O(files[].secret) never, and of what somebody else wrote only how long
      it is.
  idempotent:
    support: full
options:
  folders:
    description: Folders to keep, with their modes as octal text, in the order in which they are to be made.
    type: dict
    default: {}
  files:
    description: Files to keep.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where the file lies; its folder must exist or be one of O(folders).
        type: path
        required: true
      content:
        description: Its text.
        type: str
      source:
        description: A file on the node whose bytes it gets.
        type: path
      secret:
        description: Its text, which is never shown nor logged.
        type: str
      uboot_script:
        description: A script for U-Boot, which is wrapped as U-Boot's C(source) takes it.
        type: str
      keys:
        description:
          - Keys that the one JSON object in it has. Its other keys are another role's, and stay. A key that is none
            here is taken away, and a file without keys is removed.
        type: dict
      mode:
        description: Its mode as octal text.
        type: str
        default: "0644"
      validate:
        description:
          - Command that must accept the new file; C(%s) stands for its name.
          - All files are asked about before the first folder is made and the first file is written.
        type: str
        default: ""
      variables:
        description: Variables that the file is made from. Errors name them to the person who must correct them.
        type: list
        elements: str
        default: []
  first:
    description:
      - The one of the files that tells whether they were ever written, and is written last. Where it is missing, what
        lies at the paths of others without this collection's name in it was put there by hand. It stays beside them,
        as C(PATH.by-hand).
    type: path
  units:
    description: >-
      systemd units that are to run, each with the files that it reads when it starts. They are looked at, not touched.
    type: dict
    default: {}
  units_off:
    description: systemd units that are not to run. They are looked at, not touched.
    type: list
    elements: str
    default: []
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Keep the boot script
  hetero.compute.node_files:
    folders:
      /tftpboot: "0755"
    files:
      - path: /tftpboot/boot.ipxe
        content: "{{ lookup('ansible.builtin.template', 'boot.ipxe.j2') }}"
      - path: /tftpboot/undionly.kpxe
        source: /usr/lib/ipxe/undionly.kpxe
    units:
      xinetd.service: [/etc/xinetd.d/tftp]
"""

RETURN = r"""
paths:
  description: Files and folders that were changed, or in check mode would be.
  returned: success
  type: list
  elements: str
  sample: [/tftpboot/boot.ipxe]
by_hand:
  description: Names under which files stay that were put there by hand before the first set-up; see O(first).
  returned: success
  type: list
  elements: str
  sample: [/tftpboot/tilera_boards.by-hand]
todo:
  description: What is to be done with O(units) and O(units_off).
  returned: success
  type: dict
  contains:
    restart:
      description: Units that run and started before one of their files was written.
      type: list
      elements: str
      sample: [xinetd.service]
    start:
      description: Units that do not run or are not enabled.
      type: list
      elements: str
    stop:
      description: Units of O(units_off) that run or are enabled.
      type: list
      elements: str
    reload:
      description: Whether systemd must read its unit files again first.
      type: bool
seconds:
  description: Seconds for each step.
  returned: success
  type: dict
  sample: {files: 0.012}
"""

import os
from contextlib import nullcontext

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.errors import HeteroError, naming
from ..module_utils._hetero.core.module import failed, run
from ..module_utils._hetero.drivers.boot.uboot_script import script_image
from ..module_utils._hetero.nodes.files import (
    alone_in,
    check_file,
    keep_by_hand,
    keep_file,
    keep_folder,
    no_file,
    source_bytes,
    units_to_do,
    with_keys,
)

FILE = ArgumentSpec(
    dict(
        path=dict(type="path", required=True),
        content=dict(type="str"),
        source=dict(type="path"),
        secret=dict(type="str", no_log=True),
        uboot_script=dict(type="str"),
        keys=dict(type="dict", no_log=False),
        mode=dict(type="str", default="0644"),
        validate=dict(type="str", default=""),
        variables=dict(type="list", elements="str", default=[]),
    ),
    mutually_exclusive=[("content", "source", "secret", "uboot_script", "keys")],
    required_one_of=[("content", "source", "secret", "uboot_script", "keys")],
)
SPEC = ArgumentSpec(
    dict(
        folders=dict(type="dict", default={}),
        files=dict(type="list", elements="dict", default=[], options=FILE.options, **FILE.constraints),
        first=dict(type="path"),
        units=dict(type="dict", default={}),
        units_off=dict(type="list", elements="str", default=[]),
    )
)


def content(file, change):
    """The bytes that a file of `files` is to hold; None where check mode cannot know them, or it is to hold nothing."""
    if file["source"]:
        return source_bytes(file["source"], change)
    if file["uboot_script"] is not None:
        return script_image(file["uboot_script"])
    if file["keys"] is not None:
        return with_keys(file["path"], file["keys"])
    return (file["content"] if file["secret"] is None else file["secret"]).encode()


def one_at_a_time(file, check):
    """A context in which no other set-up writes its own keys into the same file; of other files nobody keeps a part."""
    folder = os.path.dirname(file["path"])
    return nullcontext() if file["keys"] is None or check else alone_in(folder)


def write(params, wanted, change, kept):
    """Write all folders and files. An error says whether something was changed before it.

    :param kept: gets the names under which files stay that were put there by hand.
    """
    done, first = False, params.get("first")
    by_hand = first and not os.path.lexists(first)
    # The one that tells of the others is written when they are, so that what is cut off before is still a first set-up.
    wanted = sorted(wanted, key=lambda one: one[0]["path"] == first)
    try:
        with change.step("folders"):
            for path, mode in params["folders"].items():
                keep_folder(path, mode, change)
                done = change.changed
        with change.step("files"):
            for file, data in wanted:
                with naming(file["path"]), one_at_a_time(file, change.check):
                    if file["keys"] is not None:  # others may have written theirs since they were looked at
                        data = content(file, change)
                    if data is None and file["keys"] is not None:
                        no_file(file["path"], change)
                    elif data is not None:
                        name = keep_by_hand(file["path"], data, change) if by_hand else None
                        kept += [name] if name else []
                        secret = file["secret"] is not None
                        keep_file(file["path"], data, file["mode"], change, secret, theirs=name is not None)
                done = change.changed
    except HeteroError as error:
        return dict(failed(error, params), changed=done)
    return None


def work(params, check):
    change = Change(check)
    with change.step("check"):
        wanted = [(file, content(file, change)) for file in params["files"]]
        for file, data in wanted if not check else ():
            if data is not None:
                check_file(file["path"], data, file["validate"], file["variables"])
    kept = []
    wrong = write(params, wanted, change, kept)
    if wrong:
        return wrong
    paths = [entry["after_header"] for entry in change.diff]
    with change.step("units"):
        todo = units_to_do(params["units"], params["units_off"], paths)
    return dict(change.result, paths=paths, by_hand=kept, todo=todo)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
