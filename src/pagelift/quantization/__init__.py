"""Quantization that is measured with the model itself, on documents.

It runs models, reads documents and makes prompts as the engine `vlm` does, so it stands above all of them; what it decides is written by
`weights.quant`, which knows none of that.
"""
