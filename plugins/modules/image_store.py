#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of this node: import, list, remove, collect. Arguments and result only; nodes/images.py does it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: image_store
short_description: Import, list, remove and collect the images of a proxy node or a compute host
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Requests for instances give an image by its name in the store of the node that serves them. This is for operators,
    who decide what these names stand for.
  - An image is checked, and kept under its hash. What lies where tenants' files are kept, or what their
    machines said (roots, containers, guests' disks, the TFTP tree, the state folder, console logs), is not imported,
    nor by a link or mount that leads there.
  - An image that is in use is not removed, and the error says who uses it.
  - >-
    An image is imported from one of these forms, as a file (also compressed by gzip, xz, bzip2 or zstd) or as a folder.
    B(Its own form) is a tar or folder with C(image.json) (C({"arch": "x86_64", "cmdline": "quiet"})), C(kernel),
    C(initrd) if there is one, and C(root/). In place of C(root/) it may hold C(disk), which is read as the next form.
    Beside C(kernel), or in its place, it may have kernels for a boot source (C(nfs), C(disk); C(ram) in a RAM image),
    which C(image.json) names (C({"kernels": {"disk": PATH}, "initrds": {"disk": PATH}})), and kernels of boards, in
    files C(kernel.d/N) or, for one boot source, C(kernel.d/N.disk), N being the board's id.
    B(The image of a disk) is raw or qcow2, with a partition table or without, and its one root file system (ext2 to
    ext4, XFS, btrfs, squashfs, EROFS, as the node's kernel knows them) becomes the root. Lines of its C(/etc/fstab)
    that name parts of a disk become comments, but for those with C(nofail) or C(noauto).
    B(The image of a container) is an OCI image layout, or what C(docker save) writes; its layers become the root, and
    what a container would start is not used.
  - >-
    Disks and containers have no C(image.json). The architecture is what a container's configuration says, and of a disk
    O(arch). The kernel is the one in the root's C(/boot) with its initrd, or that of O(kernel_of). It must know roots
    by NFS.
  - >-
    Links, names and numbers that lead out of the image are refused. Device nodes, named pipes and sockets of disks and
    containers are left out, as a board makes its own, and those of the own form are refused. Extended attributes (file
    capabilities, access control lists) are not kept.
  - A qcow2 is read by C(qemu-img) (package C(qemu-utils)), a partition table by C(sfdisk) (C(fdisk)), zstd by C(zstd)
    (C(zstd)). Roles C(tftp_proxy), C(gpu_lxc) and C(kvm_guests) install them.
options:
  node:
    description: Whether this is a proxy node or a host of containers or guests.
    type: str
    choices: [proxy, host]
    required: true
  config:
    description: The node's configuration. The default is C(/etc/hetero/proxy.json) or C(/etc/hetero/host.json).
    type: path
  name:
    description:
      - The image's name in the store. Without a name nothing is changed, and all images are returned.
      - With O(state=absent), also the hash of an image that has no name any more.
    type: str
  source:
    description:
      - Where it is imported from. The path of a file or folder on the node, or a URL (http, https, file) of a file.
        Without it nothing is imported.
    type: str
  checksum:
    description: C(sha256:) and the sum of the file. A URL needs it.
    type: str
  arch:
    description:
      - Architecture of an imported image, in place of the one in its C(image.json).
      - A container's image must be for it; of several it takes that one. The image of a disk needs it, or O(kernel_of).
    type: str
  kernel_of:
    description:
      - Name of an image in the store whose kernels, initrds, command line and architecture the imported image gets.
      - Drivers that the root is to load must fit that kernel.
    type: str
  replace:
    description:
      - Whether a name that stands for another image may stand for this one from now on. Instances that are there keep
        what they have until they are rebuilt; they are named in the result.
    type: bool
    default: false
  defaults:
    description: Names that the inventory has requests take. These images are not removed either.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds for an import or a removal.
    type: float
    default: 1800
  state:
    description:
      - V(present) has it in the store.
      - V(absent) takes the name out of it, and the image where no other name stands for it.
      - V(collected) removes all images that no name stands for and no instance was made from, and what was packed of
        them for disks. None is removed while the root of an instance is yet to be made, which may be being made of it,
        nor where a record of a claim or a root does not say whose it is.
    type: str
    choices: [present, absent, collected]
    default: present
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: hetero.compute.board_image
"""

EXAMPLES = r"""
- name: Import an image for containers
  hetero.compute.image_store:
    node: host
    name: debian-12-container
    source: /srv/images/debian-12-container.tar

- name: Have a name stand for another image from now on
  hetero.compute.image_store:
    node: proxy
    name: tile-linux
    source: https://images.example.com/tile-linux-4.3.tar.gz
    checksum: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    replace: true

- name: Import the image of a disk, with its own kernel
  hetero.compute.image_store:
    node: proxy
    name: debian-13
    source: https://images.example.com/debian-13-generic-arm64.qcow2
    checksum: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    arch: aarch64

- name: Import what docker save wrote, with the kernel of another image
  hetero.compute.image_store:
    node: proxy
    name: builder
    source: /srv/images/builder.tar
    kernel_of: debian-13

- name: Remove what no name and no instance uses any more
  hetero.compute.image_store:
    node: proxy
    state: collected

- name: Remove one that nobody uses
  hetero.compute.image_store:
    node: proxy
    name: debian-11
    state: absent
"""

RETURN = r"""
images:
  description: The images of the store, by name; those that no name stands for any more come last.
  returned: always
  type: list
  elements: dict
  contains:
    name: {description: 'Name, or none.', type: str, sample: debian-12}
    hash: {description: The sum under which it is kept., type: str}
    arch: {description: Architecture., type: str, sample: x86_64}
    ram: {description: Whether it is a RAM image., type: bool}
    kernels:
      description: Its kernels. C(default) is for all boards; others are named by boot source, board, or both.
      type: list
      elements: str
      sample: [default, disk, '0', 1.disk]
    bytes: {description: What it takes on the disk., type: int, sample: 212000000}
    used_by: {description: Instances and whatever else uses it., type: list, elements: str, sample: [default, jackie]}
    older:
      description: Those of them that run what the name stood for before, and the hash of that.
      type: dict
      sample: {}
freed:
  description: Bytes that were collected; in check mode, that would be.
  returned: always
  type: int
  sample: 212000000
table:
  description: The same for people.
  returned: always
  type: list
  elements: str
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {import: 2.1}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.nodes.images import work

SPEC = ArgumentSpec(
    dict(
        node=dict(type="str", choices=["proxy", "host"], required=True),
        config=dict(type="path"),
        name=dict(type="str"),
        source=dict(type="str"),
        checksum=dict(type="str"),
        arch=dict(type="str"),
        kernel_of=dict(type="str"),
        replace=dict(type="bool", default=False),
        defaults=dict(type="list", elements="str", default=[]),
        timeout=dict(type="float", default=1800),
        state=dict(type="str", choices=["present", "absent", "collected"], default="present"),
    ),
    required_if=[("state", "absent", ("name",))],
    required_by=dict(source=("name",), checksum=("source",), arch=("source",), kernel_of=("source",)),
)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
