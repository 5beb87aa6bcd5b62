# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each module says of its check mode, diff mode, idempotence and action group."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: In C(check_mode) it says what it would change, and changes nothing.
  diff_mode:
    description: In diff mode it shows the fields that change, as they were and as they will be.
  idempotent:
    description: Run again with the same arguments, it changes nothing and reports C(changed=false).
"""

    ACTIONGROUP = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/hetero.compute.proxy) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - hetero.compute.proxy
"""

    ACTIONGROUP_HOST = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/hetero.compute.host) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - hetero.compute.host
"""
