"""What the fork server imports: a worker that has everything loaded."""

from tests.faults.worker import warm

warm()
