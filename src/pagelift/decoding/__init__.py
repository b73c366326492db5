"""What an answer may look like, and how it is drawn: schema to grammar to masks, forced tokens, drafts, sampling."""

from pagelift.decoding.constraint import Allowed, Constraint
from pagelift.decoding.drafts import Codec, Drafter, Proposal
from pagelift.decoding.partial import Partial, parse_partial
from pagelift.decoding.sampling import Sampling, Token, sample

__all__ = ["Allowed", "Codec", "Constraint", "Drafter", "Partial", "Proposal", "Sampling", "Token", "parse_partial", "sample"]
