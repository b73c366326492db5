"""What an answer may look like: schema to grammar to masks, forced tokens, drafts."""

from pagelift.decoding.constraint import Allowed, Constraint

__all__ = ["Allowed", "Constraint"]
