# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board for a CI job, as a container is one elsewhere: taken, used, given back. Only Python's own library is needed.

The playbooks do the work. This package knows what CIs call their jobs, when a job is over, and what a failure means.
"""
