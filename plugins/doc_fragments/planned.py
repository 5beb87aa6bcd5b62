# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that look at a machine before its set-up: what a role's variables want of it."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  packages:
    description: Debian packages to look for.
    type: list
    elements: str
    default: []
  images:
    description: Images to have in the store, with C(name), and C(src) or C(url).
    type: list
    elements: dict
    default: []
  reap_interval:
    description: How often to look for leases that are over, as a time span of systemd.
    type: str
  settings:
    description:
      - What is to be written as the node's own configuration, C(/etc/hetero/proxy.json) or a section of
        C(/etc/hetero/host.json), as far as it is known before the machine was looked at.
      - It is read as the other modules will read that file.
    type: dict
    default: {}
  mistakes:
    description: Mistakes that were found before, each with C(thing), C(what) and C(remedy), to be said with the others.
    type: list
    elements: dict
    default: []
"""
