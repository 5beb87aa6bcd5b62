# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Option of the modules that change or end what a claim has."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  created:
    description:
      - When the claims were made that are meant, as C(created) of a claim says it (M(hetero.compute.board_info),
        M(hetero.compute.host_info)).
      - What was claimed at another time was given back and claimed anew since it was looked up, by whomever. It is
        refused and not touched.
      - Without it, any claim is meant.
    type: list
    elements: float
    default: []
"""
