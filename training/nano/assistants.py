"""Further processes that compute gradients on the CPU, as far as its cores are free.

An assistant takes the weights as they are, computes the gradient of a batch of its own documents, and adds it to a sum that the next step
takes along; so nobody waits for anybody, and a gradient is at most some steps late. Two processes of one thread each do more than one of
two threads, which wait for each other at every product.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess

import torch
from torch import Tensor, nn

NICE = 5
"""Assistants give way to others by so much."""


class Shared:
    """Weights and the sum of gradients in memory that processes share. parameters: of a model, in an order that all use."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        count = sum(parameter.numel() for parameter in parameters)
        self._weights, self._sums = (torch.zeros(count).share_memory_() for _ in range(2))
        self._touched = torch.zeros(len(parameters), dtype=torch.bool).share_memory_()
        self._counts = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._lock = multiprocessing.get_context("fork").Lock()
        self.give(parameters)

    @torch.no_grad()
    def give(self, parameters: Sequence[nn.Parameter]) -> None:
        """Show the weights to the assistants."""
        for parameter, weights in zip(parameters, self._parts(self._weights, parameters), strict=True):
            weights.copy_(parameter)

    @torch.no_grad()
    def take(self, parameters: Sequence[nn.Parameter]) -> tuple[int, int]:
        """Add the gradients that have come together; returns of how many batches and tokens they are."""
        with self._lock:
            batches, tokens = self._counts.tolist()
            for parameter, sums, touched in zip(parameters, self._parts(self._sums, parameters), self._touched.tolist(), strict=True):
                if touched:
                    parameter.grad = sums.clone() if parameter.grad is None else parameter.grad.add_(sums)
            for tensor in (self._sums, self._touched, self._counts):
                tensor.zero_()
        return batches, tokens

    @torch.no_grad()
    def fetch(self, parameters: Sequence[nn.Parameter]) -> None:
        """An assistant: take the weights as they are."""
        for parameter, weights in zip(parameters, self._parts(self._weights, parameters), strict=True):
            parameter.copy_(weights)
            parameter.grad = None

    @torch.no_grad()
    def add(self, parameters: Sequence[nn.Parameter], tokens: int) -> None:
        """An assistant: add the gradients of a batch of so many tokens."""
        with self._lock:
            for index, (parameter, sums) in enumerate(zip(parameters, self._parts(self._sums, parameters), strict=True)):
                if parameter.grad is not None:
                    sums.add_(parameter.grad)
                    self._touched[index] = True
            self._counts += torch.tensor([1, tokens])

    @staticmethod
    def _parts(flat: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
        parts = flat.split([parameter.numel() for parameter in parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, parameters, strict=True)]


def start(count: int, work: Callable[[int], None]) -> list[BaseProcess]:
    """So many assistants. work: what the one with a number does, from 0; it should end when `left_alone` by this process."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_work, args=(work, number), daemon=True) for number in range(count)]
    for process in processes:
        process.start()
    return list(processes)


def left_alone(parent: int) -> bool:
    """Whether the process that started this one is gone."""
    return os.getppid() != parent


def _work(work: Callable[[int], None], number: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(NICE)
    torch.set_num_threads(1)
    work(number)
