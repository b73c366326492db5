"""What an answer may look like, and how it is drawn: schema to grammar to masks, forced tokens, drafts, sampling."""

from pagelift.decoding.constraint import Allowed, Constraint, unpack_mask
from pagelift.decoding.drafts import Codec, Drafter, Proposal
from pagelift.decoding.grammar import Grammar, compile_grammar
from pagelift.decoding.partial import Partial, parse_partial
from pagelift.decoding.regeneration import Finished, Generate, finish_answer
from pagelift.decoding.sampling import Sampling, Token, sample
from pagelift.decoding.style import GrammarLimits, JsonStyle
from pagelift.decoding.vocabulary import TextTokenizer, Vocabulary

__all__ = [
    "Allowed",
    "Codec",
    "Constraint",
    "Drafter",
    "Finished",
    "Generate",
    "Grammar",
    "GrammarLimits",
    "JsonStyle",
    "Partial",
    "Proposal",
    "Sampling",
    "TextTokenizer",
    "Token",
    "Vocabulary",
    "compile_grammar",
    "finish_answer",
    "parse_partial",
    "sample",
    "unpack_mask",
]
