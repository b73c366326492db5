"""The matrices of one part, rounded in the ways that are asked for; each is made once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

import numpy as np

from pagelift.backends.tensors import Dense, FloatType, HostTensor, Matrix, Packed
from pagelift.quantization.moments import Moments
from pagelift.quantization.recording import LARGE
from pagelift.quantization.stream import Source
from pagelift.quantization.work import Kind, Progress, Rounding, Unwatched, factor_work, rounding_work, together
from pagelift.weights.quant.affine import Rounded, joined, joined_packed, round_to_nearest
from pagelift.weights.quant.formats import FORMATS, Format, Module
from pagelift.weights.quant.gptq import Compensation, compensation, output_error, round_with_compensation
from pagelift.weights.quant.layout import Part
from pagelift.weights.quant.least_squares import round_by_least_squares

SAMPLED_ROWS, ROWS_UP_TO = 128, 4096
"""Rows whose output error is computed for every format, and inputs up to which there are so many; of longer rows there are fewer."""
CHUNK = 1 << 26
"""Weights that are rounded together; rows do not depend on each other."""


Choice: TypeAlias = tuple[str, Format, Rounding]
"""A module, and how it is rounded."""


def sampled_rows(module: Module) -> int:
    """How many rows of a module stand for all of them."""
    return min(module.out_features, SAMPLED_ROWS * ROWS_UP_TO // max(ROWS_UP_TO, module.in_features))


def error_work(module: Module) -> float:
    """The output errors of a module in all formats, in multiply-adds."""
    return float(len(FORMATS) * sampled_rows(module) * module.in_features**2)


def choices_work(source: Source, part: Part, choices: Collection[Choice], shown: bool) -> dict[Kind, float]:
    """Rounding matrices of a part, each once. shown: documents with pictures are run, so that the vision tower's inputs are known."""
    heard = set() if part.name == "embeddings" or (part.name == "vision" and not shown) else set(part.modules)
    works = [rounding_work(source.sizes.by_name[name], rounding, name in heard) for name, _, rounding in choices]
    inputs = {source.sizes.by_name[name].in_features for name, _, rounding in choices if rounding == "gptq" and name in heard}
    return together([*works, {"gptq": sum(map(factor_work, inputs))}])


class Rounder:
    """Rounds matrices by the moments of their inputs. Modules without moments are rounded by least squares, all features alike.

    progress: told of what is rounded and what errors are computed.
    """

    def __init__(self, source: Source, moments: Moments, progress: Progress | None = None) -> None:
        self._source = source
        self._moments = moments
        self._progress = progress or Unwatched()
        self._made: dict[Choice, Rounded] = {}
        self._large: dict[Choice, Packed] = {}
        self._kept: dict[Choice, Matrix] = {}
        self._compensations: dict[str, Compensation] = {}

    def keep(self, choices: Collection[Choice]) -> None:
        """Have the values of some matrices in memory until others are named: they are asked for again and again."""
        self._kept = {choice: self.matrix(*choice) for choice in choices}

    def matrix(self, module: str, form: Format, rounding: Rounding) -> Matrix:
        """The values of a rounded matrix, as the original would hold them; of large ones, codes and grids."""
        if (module, form, rounding) in self._kept:
            return self._kept[module, form, rounding]
        if self._is_large(module):
            return self.packed(module, form, rounding)
        return Dense(HostTensor(self.rounded(module, form, rounding).values(), "f32"))

    def packed(self, module: str, form: Format, rounding: Rounding) -> Packed:
        """A rounded matrix as it lies in a file. Of large ones never more than some rows are held in another form."""
        if not self._is_large(module):
            return self.rounded(module, form, rounding).packed(self._kind(module))
        key = (module, form, rounding)
        if key not in self._large:
            self._large[key] = joined_packed([part.packed(self._kind(module)) for part in self._parts(*key)])
        return self._large[key]

    def rounded(self, module: str, form: Format, rounding: Rounding) -> Rounded:
        """A rounded matrix; what compensation needs is kept for modules with the same input."""
        key = (module, form, rounding)
        if key not in self._made:
            self._made[key] = joined(list(self._parts(*key)))
        return self._made[key]

    def errors(self, module: Module) -> dict[Format, float]:
        """Mean squared error of a module's output, summed over its features, for each format; from some of its rows.

        Rounded to nearest, which is fast: the better ways lower the errors of all formats by similar shares.
        """
        rows = np.linspace(0, module.out_features - 1, sampled_rows(module)).astype(int)
        weight = self._source.weight(module.name, rows)
        moments = self._moments.of(module.name)
        result = {}
        for form in FORMATS:
            if form.fits(module.in_features):
                values = round_to_nearest(weight, form, self._kind(module.name)).values()
                error = float(np.square(weight - values).sum()) if moments is None else output_error(weight, values, moments)
                result[form] = error * module.out_features / len(rows)
        self._progress.advance("errors", error_work(module))
        return result

    def _parts(self, module: str, form: Format, rounding: Rounding) -> Iterator[Rounded]:
        """A rounded matrix, some rows at a time."""
        moments, kind = self._moments.of(module), self._kind(module)
        importance = None if moments is None else np.diag(moments)
        if rounding == "gptq" and moments is not None and self._moments.key(module) not in self._compensations:
            self._compensations[self._moments.key(module)] = compensation(moments)
            known = any(len(other.costs) == len(moments) for key, other in self._compensations.items() if key != self._moments.key(module))
            self._progress.advance("gptq", 0 if known else factor_work(len(moments)))
        shape = self._source.sizes.by_name[module]
        step = max(1, CHUNK // shape.in_features)
        for k in range(0, shape.out_features, step):
            weight = self._source.weight(module, np.arange(k, min(k + step, shape.out_features)))
            if rounding == "nearest":
                yield round_to_nearest(weight, form, kind)
            elif rounding == "least_squares" or moments is None:
                yield round_by_least_squares(weight, form, importance, kind)
            else:
                yield round_with_compensation(weight, form, self._compensations[self._moments.key(module)], kind)
            for kind_of_work, amount in rounding_work(shape, rounding, moments is not None).items():
                self._progress.advance(kind_of_work, amount * len(weight) / shape.out_features)

    def _is_large(self, module: str) -> bool:
        return self._source.sizes.by_name[module].parameters > LARGE

    def _kind(self, module: str) -> FloatType:
        dtype = self._source.checkpoint.tensors[f"{module}.weight"].dtype
        return "f16" if dtype == "f16" else "bf16"
