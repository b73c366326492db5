"""From prompts to answers: requests, the generation loop, and a checkpoint loaded with all that belongs to it."""

from pagelift.decoding import Sampling, Token, sample
from pagelift.runtime.loaded import Generation, LoadedModel, Piece, best_backend, load_model
from pagelift.runtime.runner import Counters, Runner
from pagelift.runtime.schedule import Work
from pagelift.runtime.sequences import FinishReason, Request, Sequence

__all__ = [
    "Counters",
    "FinishReason",
    "Generation",
    "LoadedModel",
    "Piece",
    "Request",
    "Runner",
    "Sampling",
    "Sequence",
    "Token",
    "Work",
    "best_backend",
    "load_model",
    "sample",
]
