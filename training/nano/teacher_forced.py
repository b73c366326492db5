"""How many values the model gets right when it is given everything before each token.

A value counts if every token of it is right. Given a right beginning, greedy decoding with forced keys gives the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from nano.examples import Example, in_array
from nano.model import Batch, Nano


@dataclass(slots=True)
class Tally:
    """Counts of values, right and all: flat or in arrays; nulls apart, whose wrong ones are false fills; and of marks of lines."""

    flat_right: int = 0
    flat: int = 0
    array_right: int = 0
    array: int = 0
    null_right: int = 0
    null: int = 0
    mark_right: int = 0
    mark: int = 0

    def include(self, other: Tally) -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def shares(self) -> dict[str, float]:
        """values: of all that are not null."""

        def share(right: int, all_of: int) -> float:
            return round(right / all_of, 4) if all_of else 0.0

        return {
            "values": share(self.flat_right + self.array_right, self.flat + self.array),
            "flat": share(self.flat_right, self.flat),
            "array": share(self.array_right, self.array),
            "nulls": share(self.null_right, self.null),
            "lines": share(self.mark_right, self.mark),
            "n": self.flat + self.array,
        }


def tally(model: Nano, batch: Batch, examples: list[Example], null: int, digits: Sequence[int]) -> Tally:
    """Count the values of a batch. null: the token of null. digits: those with which a number could go on where it ends; what follows
    it instead is the grammar's to say."""
    outcome = model(batch, 0.0)
    asked = batch.chosen[:, 1:].cpu().numpy()
    wrong = np.zeros(tuple(batch.tokens.shape), bool)
    wrong[:, 1:][asked] = ~outcome.right.cpu().numpy()
    goes_on = np.zeros(wrong.shape, bool)
    goes_on[:, 1:][asked] = np.isin(outcome.best.cpu().numpy(), digits)
    total = Tally()
    for row, example in enumerate(examples):
        for pointer, (first, last) in example.values.items():
            right = not wrong[row, first:last].any() and not (example.chosen[last] and goes_on[row, last])
            kind = "null" if example.tokens[first] == null else "array" if in_array(pointer) else "flat"
            setattr(total, kind, getattr(total, kind) + 1)
            setattr(total, f"{kind}_right", getattr(total, f"{kind}_right") + right)
        total.mark += len(example.marks)
        total.mark_right += len(example.marks) - int(wrong[row, list(example.marks.values())].sum())
    return total
