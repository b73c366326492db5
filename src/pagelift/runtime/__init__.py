"""From prompts to answers: requests, the generation loop, and a checkpoint loaded with all that belongs to it."""

from pagelift.decoding import Sampling, Token
from pagelift.runtime.generation import Generation, Piece
from pagelift.runtime.loaded import LoadedModel, best_backend, load_model
from pagelift.runtime.runner import Counters, Runner
from pagelift.runtime.sequences import FinishReason, Request, Sequence
from pagelift.runtime.service import Load, Service
from pagelift.runtime.settings import RuntimeSettings

__all__ = [
    "Counters",
    "FinishReason",
    "Generation",
    "Load",
    "LoadedModel",
    "Piece",
    "Request",
    "Runner",
    "RuntimeSettings",
    "Sampling",
    "Sequence",
    "Service",
    "Token",
    "best_backend",
    "load_model",
]
