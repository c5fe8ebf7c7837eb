"""What the fork server imports: a worker that has everything loaded.

Each fork runs the imports of the main module once more, and finds them done.
"""

from tests.faults import breaks, case, changes, checker, kinds, proxy, servers  # noqa: F401
from tests.faults.worker import warm

warm()
