"""Node properties of any kind as float32 columns: one kind, one file; `table` joins them."""

from ringfence.models.encoders.base import Encoder, EncoderRefused
from ringfence.models.encoders.kinds import KindProposal, infer_kind
from ringfence.models.encoders.named_kinds import propose_kind, read_as
from ringfence.models.encoders.registry import ENCODERS, encoder_class
from ringfence.models.encoders.table import ColumnChoice, TableEncoder, fit_table

__all__ = [
    "ENCODERS",
    "ColumnChoice",
    "Encoder",
    "EncoderRefused",
    "KindProposal",
    "TableEncoder",
    "encoder_class",
    "fit_table",
    "infer_kind",
    "propose_kind",
    "read_as",
]
