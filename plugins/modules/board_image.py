#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boards boot from: images into the proxy's store, and each board's root, keys, export and boot files.

Arguments to plan and result only; images/ does it. Power and the boot itself are tilera_boot's.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_image
short_description: Make ready, or remove, what boards boot from
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - >-
    Imports an image into the proxy node's image store, where it is kept read-only under its hash, and makes ready what
    each board needs to boot from it. This is a private root with the user's key and fresh host keys, an NFS export of
    that root for the board's address alone, and kernel and initrd in the board's own TFTP folder.
  - The instance, which becomes the host name, is the one that has claimed the board.
  - The kernel is the image's for that board, or for its boot source, where the image has one. An image for which the
    board would get no kernel, or would not get the arguments that it has for the kernel (C(cmdline)), is refused before
    anything is made.
  - What is in place stays as it is; what is missing is restored. A root that was made for another claim is made anew.
options:
  boards:
    description: Ids of the boards. Without boards the image is imported only.
    type: list
    elements: int
    default: []
  image:
    description:
      - >-
        Name of an image in the store. Without O(boards) it may also be where one comes from, to import it. That is a
        text with a slash, either the path of a file or folder on the proxy node, or a URL (http, https, file) of a
        file.
      - >-
        What lies where tenants' files are kept, or what their boards said (roots, the TFTP tree, the state folder,
        console logs), is not imported, nor by a link or mount that leads there. Module M(hetero.compute.image_store)
        lists and removes images.
      - Module M(hetero.compute.image_store) says which forms an image may have.
      - The default is the image that the board's claim names.
    type: str
  name:
    description: Name for an image that is imported. The default is its file's name without suffixes.
    type: str
  checksum:
    description: C(sha256:) and the sum of the archive. A URL needs it.
    type: str
  arch:
    description: Architecture of an imported image, in place of the one in its C(image.json).
    type: str
  replace:
    description:
      - Whether a name that stands for another image in the store may stand for this one from now on. Without it such an
        import is refused.
    type: bool
    default: false
  instance:
    description:
      - The instance or request that must have the boards. A board that was given to another one since it was looked up
        is refused and not touched. A board that nobody claims is not refused.
      - An empty name refuses every board that is claimed.
    type: str
  boot_source:
    description:
      - What the boards boot from. V(nfs) is a root on the proxy node. V(disk) is the board's own disk, to which module
        M(hetero.compute.tilera_boot) brings the archive that is made here.
      - The default is what the board's claim says; another one is refused.
    type: str
    choices: [nfs, disk]
  ssh_public_key:
    description: OpenSSH public keys, one a line, that may log in as root. The default is the key that the claim names.
    type: str
  flavor:
    description:
      - The flavor of boards that are not claimed yet.
      - Only check mode needs it, to know how large their roots are to be.
    type: dict
  rebuilt:
    description:
      - Ids of boards whose claims are taken to be as M(hetero.compute.board_rebuild) leaves them, with O(image) and
        O(ssh_public_key) if these are given.
      - Only check mode uses it, in which that module left the claims as they were.
    type: list
    elements: int
    default: []
  never_ran:
    description:
      - A board on which its instance ever ran is refused and not touched. Somebody else may have started the instance
        since it was looked at.
      - Only O(state=absent) uses it.
    type: bool
    default: false
  timeout:
    description: Seconds for the import, and for waiting until another verb lets go of a board.
    type: float
    default: 1800
  state:
    description:
      - V(present) makes ready what the boards boot from.
      - V(absent) removes root, export and files of the boards, whatever is left of them. Images stay in the store.
    type: str
    choices: [present, absent]
    default: present
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.created
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
    details:
      - With O(state=absent) it says what would go of a board that runs, too, as the task that stops the board did
        nothing in check mode either.
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: hetero.compute.board_claim
  - module: hetero.compute.tilera_boot
"""

EXAMPLES = r"""
- name: Import an image that lies on the proxy node
  hetero.compute.board_image:
    image: /srv/images/debian12.tar.xz

- name: Import an image from a web server under a name of its own
  hetero.compute.board_image:
    image: https://images.example.com/tile-linux-4.2.tar.gz
    checksum: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    name: tile-linux
    arch: tilepro64

- name: Make two claimed boards ready to boot
  hetero.compute.board_image:
    boards: [0, 1]

- name: Remove what a board booted from
  hetero.compute.board_image:
    boards: [0]
    state: absent
"""

RETURN = r"""
boards:
  description: One entry a board, in the order asked for.
  returned: always
  type: list
  elements: dict
  contains:
    board:
      description: Id of the board.
      type: int
      sample: 0
    name:
      description: Name of the board.
      type: str
      sample: board0
    instance:
      description: The instance that has claimed the board, if any.
      type: str
      sample: jackie
    changed:
      description: Whether anything of this board was changed.
      type: bool
    restored:
      description: With O(state=present), what was missing.
      type: list
      elements: str
      sample: [export]
    removed:
      description: With O(state=absent), what there was.
      type: list
      elements: str
      sample: [folder /var/lib/hetero/roots/fs_0]
    root:
      description: The board's private root on the proxy node.
      type: str
      sample: /var/lib/hetero/roots/fs_0/root
    export:
      description: Id of the NFS export.
      type: int
      sample: 1
    pseudo:
      description: The name that the board mounts.
      type: str
      sample: /tftpboot/fs_0
    client:
      description: The one address that may mount it.
      type: str
      sample: 10.0.2.1
    archive:
      description: With boot source disk, C(sha256) and C(bytes) of the archive of the image's root.
      type: dict
    files:
      description: Kernel and initrd in the board's TFTP folder.
      type: list
      elements: str
      sample: [/tftpboot/10.0.2.1/vmlinux_0, /tftpboot/10.0.2.1/initrd_0]
    host_key:
      description: Public ssh host key in the root. Missing in check mode where there is no root yet.
      type: str
      sample: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI
    known_hosts:
      description: The same as a line of a known_hosts file.
      type: str
      sample: 10.0.2.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI
    failed:
      description: Whether this board failed; the others are done all the same.
      type: bool
    error:
      description: What went wrong, and what to do.
      type: str
image:
  description: The image that O(image) names, as it is in the store.
  returned: when O(image) is given and the image is in the store
  type: dict
  contains:
    name:
      description: Name in the store.
      type: str
      sample: debian12
    hash:
      description: The sum under which it is kept.
      type: str
    arch:
      description: Architecture.
      type: str
      sample: tilepro64
    cmdline:
      description: Kernel command line of the image.
      type: str
    kernels:
      description: Names of its kernels, as M(hetero.compute.image_store) returns them.
      type: list
      elements: str
      sample: [default]
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: board0, phase: image, text: "root ready, exported to 10.0.2.1 only", seconds: 0.1}
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {root: 0.05, export: 0.01, files: 0.001}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.image.board_images import ImageRequest, Source, absent, present, take_in
from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work.each_board import Tenant
from ..module_utils._hetero.core.argument_spec import PROXY_CLAIMS, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.site.image_names import valid_image

SPEC = PROXY_CLAIMS + ArgumentSpec(
    dict(
        boards=dict(type="list", elements="int", default=[]),
        image=dict(type="str"),
        name=dict(type="str"),
        checksum=dict(type="str"),
        arch=dict(type="str"),
        replace=dict(type="bool", default=False),
        instance=dict(type="str"),
        boot_source=dict(type="str", choices=["nfs", "disk"]),
        ssh_public_key=dict(type="str", no_log=False),
        flavor=dict(type="dict"),
        rebuilt=dict(type="list", elements="int", default=[]),
        never_ran=dict(type="bool", default=False),
        timeout=dict(type="float", default=1800),
        state=dict(type="str", choices=["present", "absent"], default="present"),
    ),
    required_by=dict(name=("image",), checksum=("image",), arch=("image",)),
)


def work(params, check):
    change = Change(check)
    deadline = Deadline(params["timeout"])
    tenant = Tenant(params["instance"], params["created"])
    with Proxy(params, create=not check) as proxy:
        if params["state"] == "absent":
            return absent(proxy, params["boards"], change, deadline, tenant, params["never_ran"])
        source = Source(**{name: params[name] for name in ("image", "name", "checksum", "arch", "replace")})
        if params["boards"] and params["image"] is not None:
            valid_image(params["image"])
        image, lines = take_in(proxy, source, change, deadline)
        given = {name: params[name] for name in ("boot_source", "flavor", "rebuilt")}
        request = ImageRequest(image, params["ssh_public_key"], **given)
        result = present(proxy, params["boards"], request, change, deadline, tenant)
        return dict(result, lines=lines + result["lines"])


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
