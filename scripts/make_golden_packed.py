"""Write tests/golden/packed.npz: matrices quantized and dequantized by mlx at every width, group size and float type.

    pip install "mlx[cpu]" && python scripts/make_golden_packed.py

Needs mlx and nothing of pagelift. Keys are `<bits>_<group>_<type>_<part>`; bfloat16 parts are stored as their 16 bits.
"""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np

TARGET = Path(__file__).parent.parent / "tests" / "golden" / "packed.npz"
TYPES = {"f32": mx.float32, "f16": mx.float16, "bf16": mx.bfloat16}


def stored(array: mx.array) -> np.ndarray:
    return np.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array)


def main() -> None:
    mx.random.seed(5)
    arrays = {}
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            for name, kind in TYPES.items():
                weight = mx.random.normal((3, 256)).astype(kind)
                codes, scales, biases = mx.quantize(weight, group_size=group, bits=bits)
                key = f"{bits}_{group}_{name}_"
                exact = mx.dequantize(codes, scales.astype(mx.float32), biases.astype(mx.float32), group_size=group, bits=bits)
                arrays |= {key + "codes": stored(codes), key + "scales": stored(scales), key + "biases": stored(biases)}
                arrays[key + "values"] = stored(exact)
    np.savez_compressed(TARGET, **arrays)


if __name__ == "__main__":
    main()
