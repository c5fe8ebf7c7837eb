"""PyG's convolutions and graphs, imported once, without needless warnings and temporary files.

PyG 2.8 compiles a pooling class with ``torch.jit.script`` at import, which newer torch announces as
deprecated. ringfence uses none of it. The names are ``Any`` because PyG leaves hooks unwritten that
a type checker takes for abstract methods.

PyG also writes the code that it generates for each kind of layer into a file in the temporary
folder, imports it, and leaves it there, one per process and kind. Here it is removed after import.
"""

import functools
import linecache
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=".*torch.jit.* is deprecated")
    from torch_geometric import nn
    from torch_geometric.data import data, hetero_data
    from torch_geometric.nn import sequential
    from torch_geometric.nn.conv import message_passing

__all__ = [
    "Data",
    "GATConv",
    "GCNConv",
    "HeteroConv",
    "HeteroData",
    "MessagePassing",
    "Propagation",
    "SAGEConv",
]


def _leave_no_file(generate: Callable[..., ModuleType]) -> Callable[..., ModuleType]:
    """Wrap PyG's module generator so that it leaves no file behind."""

    @functools.wraps(generate)
    def generate_and_remove(*given: Any, **named: Any) -> ModuleType:
        module = generate(*given, **named)
        if module.__spec__ and module.__spec__.origin:
            _remove_source(Path(module.__spec__.origin), module.__spec__.cached)
        return module

    return generate_and_remove


def _remove_source(path: Path, bytecode: str | None) -> None:
    """Remove a generated file; tracebacks and torch.jit find its lines in memory."""
    with suppress(OSError):  # removed before, when the same layer was made first
        text = path.read_text(encoding="utf-8")
        linecache.cache[str(path)] = len(text), None, text.splitlines(keepends=True), str(path)
        path.unlink()
    if bytecode:
        with suppress(OSError):  # none was written, or others have theirs in the folder
            Path(bytecode).unlink()
            Path(bytecode).parent.rmdir()


_USERS: tuple[Any, ...] = (message_passing, sequential)  # both imported the function by its name
for _user in _USERS:
    _user.module_from_template = _leave_no_file(_user.module_from_template)

GCNConv: Any = nn.GCNConv
GATConv: Any = nn.GATConv
SAGEConv: Any = nn.SAGEConv
Propagation: Any = nn.APPNP
HeteroConv: Any = nn.HeteroConv
MessagePassing: Any = nn.MessagePassing
Data: Any = data.Data
HeteroData: Any = hetero_data.HeteroData
