"""ringfence: prediction sets of known strength for every new node in a Neo4j graph."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ringfence")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
