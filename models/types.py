"""What crosses the borders between rooms: frozen, slotted, named with the paper's words."""

from __future__ import annotations
