"""A page's view of everything, for tests that build pages without a request."""

from ringfence.jobs.dashboard.address import Address
from ringfence.jobs.dashboard.view import View


def whole_view(queries, path="/"):
    """Return the view of an address that asks for nothing in particular."""
    return View(Address(path), queries, queries, queries)
