"""Packing of matrices in MLX affine format: grids, rounding, which matrix gets how many bits, and the files.

    formats         Format (bits, group size), Sizes of a checkpoint, what an allocation costs
    affine          round to nearest as MLX does; codes, grids, packed words
    least_squares   scale and offset of each group by weighted least squares
    gptq            rounding with compensation of the error
    allocations     uniform, random, and the plan of oQ at a byte budget
    knapsack        the exact best allocation for known errors
    writer          shards, index, config and the files that go with them

Nothing here runs a model: what is measured with one comes from `pagelift.quantization`.
"""
