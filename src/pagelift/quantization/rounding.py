"""The matrices of one part, rounded in the ways that are asked for; each is made once."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pagelift.backends.tensors import Dense, Floats, FloatType, HostTensor, Matrix, Packed
from pagelift.quantization.moments import Moments
from pagelift.quantization.recording import LARGE
from pagelift.quantization.stream import Source
from pagelift.weights.quant.affine import Rounded, joined, round_to_nearest
from pagelift.weights.quant.formats import FORMATS, Format, Module
from pagelift.weights.quant.gptq import compensation, output_error, round_with_compensation
from pagelift.weights.quant.least_squares import round_by_least_squares

Rounding = Literal["nearest", "least_squares", "gptq"]
ROUNDINGS: tuple[Rounding, ...] = ("nearest", "least_squares", "gptq")
SAMPLED_ROWS = 128
CHUNK = 1 << 26
"""Weights that are rounded together; rows do not depend on each other."""


class Rounder:
    """Rounds matrices by the moments of their inputs. Modules without moments are rounded by least squares, all features alike."""

    def __init__(self, source: Source, moments: Moments) -> None:
        self._source = source
        self._moments = moments
        self._made: dict[tuple[str, Format, Rounding], Rounded] = {}
        self._uppers: dict[str, Floats] = {}

    def matrix(self, module: str, form: Format, rounding: Rounding) -> Matrix:
        """The values of a rounded matrix, as the original would hold them; of large ones, codes and grids."""
        if self._source.sizes.by_name[module].parameters > LARGE:
            return self.packed(module, form, rounding)
        return Dense(HostTensor(self.rounded(module, form, rounding).values(), "f32"))

    def packed(self, module: str, form: Format, rounding: Rounding) -> Packed:
        """A rounded matrix as it lies in a file."""
        return self.rounded(module, form, rounding).packed(self._kind(module))

    def rounded(self, module: str, form: Format, rounding: Rounding) -> Rounded:
        """A rounded matrix; what compensation needs is kept for modules with the same input."""
        key = (module, form, rounding)
        if key not in self._made:
            self._made[key] = self._round(module, form, rounding, self._kind(module))
        return self._made[key]

    def errors(self, module: Module) -> dict[Format, float]:
        """Mean squared error of a module's output, summed over its features, for each format; from some of its rows.

        Rounded to nearest, which is fast: the better ways lower the errors of all formats by similar shares.
        """
        rows = np.linspace(0, module.out_features - 1, min(SAMPLED_ROWS, module.out_features)).astype(int)
        weight = self._source.weight(module.name, rows)
        moments = self._moments.of(module.name)
        result = {}
        for form in FORMATS:
            if form.fits(module.in_features):
                values = round_to_nearest(weight, form, self._kind(module.name)).values()
                error = float(np.square(weight - values).sum()) if moments is None else output_error(weight, values, moments)
                result[form] = error * module.out_features / len(rows)
        return result

    def _round(self, module: str, form: Format, rounding: Rounding, kind: FloatType) -> Rounded:
        moments = self._moments.of(module)
        importance = None if moments is None else np.diag(moments)
        if rounding == "gptq" and moments is not None and self._moments.key(module) not in self._uppers:
            self._uppers[self._moments.key(module)] = compensation(moments)
        parts = []
        shape = self._source.sizes.by_name[module]
        step = max(1, CHUNK // shape.in_features)
        for k in range(0, shape.out_features, step):
            weight = self._source.weight(module, np.arange(k, min(k + step, shape.out_features)))
            if rounding == "nearest":
                parts.append(round_to_nearest(weight, form, kind))
            elif rounding == "least_squares" or moments is None:
                parts.append(round_by_least_squares(weight, form, importance, kind))
            else:
                parts.append(round_with_compensation(weight, form, self._uppers[self._moments.key(module)], kind))
        return joined(parts)

    def _kind(self, module: str) -> FloatType:
        dtype = self._source.checkpoint.tensors[f"{module}.weight"].dtype
        return "f16" if dtype == "f16" else "bf16"
