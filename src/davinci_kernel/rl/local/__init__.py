"""The one-process trainer."""

from ._checkpoint import newest_checkpoint
from ._trainer import train

__all__ = ["newest_checkpoint", "train"]
