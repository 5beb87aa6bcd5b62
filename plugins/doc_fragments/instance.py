# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that provide instances, whatever these are."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  owner:
    description:
      - Who asks, in at most 255 characters that can be seen. Needed to claim.
      - Where given with other states, another owner's instance is refused.
    type: str
  ssh_public_key:
    description: The OpenSSH public key that may log in as root, or several, one a line and 65536 bytes at most. Needed
      to claim.
    type: str
  user_data:
    description:
      - Data for cloud-init in at most 65536 bytes, which begin with C(#cloud-config), C(#!) or a MIME header. The root
        gets them as a seed of NoCloud when it is made, for root alone to read. They are in no record and no message.
      - An image without cloud-init is refused, before anything is claimed. A root that is there is left as it is, which
        a line says; with O(state=rebuilt) and O(fresh) it is made anew, and without O(user_data) it then has none.
      - A board that had no power yet gets those of the last request with a O(flavor), or none where that gives none.
    type: str
  count:
    description: How many. With more than one the instances are C(NAME-1) to C(NAME-N).
    type: int
    default: 1
  numbers:
    description: Which of C(NAME-1) to C(NAME-N) are meant, where other nodes have the rest. By default all.
    type: list
    elements: int
    default: []
  partial:
    description: Take fewer than O(count) where there is not enough. Otherwise it is all or nothing.
    type: bool
    default: false
  lease_hours:
    description:
      - Hours until the claim expires. Without it, or with V(0), the claim stays until it is ended. A claim that exists
        keeps its time; where that is another one, a line says so.
      - With O(state=extended), hours from now, and V(0) for no end.
    type: float
  how:
    description: With O(state=rebooted), and with O(state=stopped) of containers and guests, whether its own init ends
      it (V(soft)), or its outlet or host by force (V(hard)), or the second where the first fails (V(auto)).
    type: str
    choices: [auto, soft, hard]
    default: auto
  soft_timeout:
    description: Seconds that its init has to end, 1 to 600.
    type: float
    default: 30
  fresh:
    description: With O(state=rebuilt), make it anew although neither image nor key is another.
    type: bool
    default: false
  timeout:
    description: Seconds for each instance, until ssh answers.
    type: float
    default: 300
  background:
    description: Return at once with what is needed to follow the work. The action plugin of this module sets it.
    type: bool
    default: false
"""
