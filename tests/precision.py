"""How far the logits of the small random models of tests/golden may be from float32, by backend.

`cpu` multiplies in 8 bits or bf16. Each of its products is right within 1e-2 (tests/backends/test_precision.py); models of random
weights amplify that, as they do when the reference rounds to bf16. Measured at worst, as a share of the root mean square of the logits:
7.0% with rows in 8 bits (portable and AVX2, whose integers are the same), 4% with prompts in bf16 (AMX). Exactly: differences of
1.4e-4 (AVX2) and 1.7e-4 (portable).
"""

import numpy as np

EXACT = 3e-4
FAST = 0.08
FAST_BACKENDS = {"cpu"}


def close(found: np.ndarray, expected: np.ndarray, backend: str) -> bool:
    difference = found - expected
    if backend in FAST_BACKENDS:
        return bool(np.sqrt((difference**2).mean()) < FAST * np.sqrt((expected**2).mean()))
    return bool(np.abs(difference).max() < EXACT)


def same_tokens(found: list[int], expected: list[int], backend: str) -> bool:
    """Whether greedy tokens are the same; with rounded products two logits that are nearly equal may change places."""
    return len(found) == len(expected) if backend in FAST_BACKENDS else found == expected
