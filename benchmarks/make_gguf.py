"""Write a GGUF file of architecture `qwen35` with random weights at 4 bits, for llama.cpp to run beside our checkpoint of that shape.

    python benchmarks/make_gguf.py OUT.gguf --shape 9b|4b|2b|0.8b

All matrices are Q4_K: 4.5 bits a weight, as many bytes as our 4 bits in groups of 64 with a scale and an offset in bfloat16. There is no
vision tower and no vocabulary in it. Needs `gguf`, and llama.cpp with `qwen35` (llama-cpp-python 0.3.36 has it).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
from shapes import CONV_KERNEL, SHAPES, VOCABULARY, Shape

BLOCK, BLOCK_BYTES = 256, 144  # weights of a Q4_K block, and its bytes: scale and minimum (f16), 12 bytes of 6-bit factors, codes
FACTORS = bytes([160] * 8 + [0] * 4)  # 32 for the scale and for the minimum of each of the 8 groups
CHUNK_ROWS = 1 << 14


def matrices(shape: Shape) -> Iterator[tuple[str, int, int]]:
    """Name, rows and columns of everything that is packed."""
    hidden, values = shape.hidden, shape.linear_value_heads * shape.linear_dim
    yield "token_embd.weight", VOCABULARY, hidden
    if not shape.tied:
        yield "output.weight", VOCABULARY, hidden
    for index, kind in enumerate(shape.layer_types):
        layer = f"blk.{index}"
        if kind == "full_attention":
            q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
            yield f"{layer}.attn_q.weight", 2 * q, hidden
            yield f"{layer}.attn_k.weight", kv, hidden
            yield f"{layer}.attn_v.weight", kv, hidden
            yield f"{layer}.attn_output.weight", hidden, q
        else:
            yield f"{layer}.attn_qkv.weight", shape.channels, hidden
            yield f"{layer}.attn_gate.weight", values, hidden
            yield f"{layer}.ssm_alpha.weight", shape.linear_value_heads, hidden
            yield f"{layer}.ssm_beta.weight", shape.linear_value_heads, hidden
            yield f"{layer}.ssm_out.weight", hidden, values
        yield f"{layer}.ffn_gate.weight", shape.inner, hidden
        yield f"{layer}.ffn_up.weight", shape.inner, hidden
        yield f"{layer}.ffn_down.weight", hidden, shape.inner


def small(shape: Shape) -> Iterator[tuple[str, np.ndarray]]:
    """Norms, convolutions and gates, in float32."""
    ones, heads = np.ones, shape.linear_value_heads
    yield "output_norm.weight", ones(shape.hidden, np.float32)
    for index, kind in enumerate(shape.layer_types):
        layer = f"blk.{index}"
        yield f"{layer}.attn_norm.weight", ones(shape.hidden, np.float32)
        yield f"{layer}.post_attention_norm.weight", ones(shape.hidden, np.float32)
        if kind == "full_attention":
            yield f"{layer}.attn_q_norm.weight", ones(shape.head_dim, np.float32)
            yield f"{layer}.attn_k_norm.weight", ones(shape.head_dim, np.float32)
        else:
            yield f"{layer}.ssm_conv1d.weight", np.full((shape.channels, CONV_KERNEL), 1 / CONV_KERNEL, np.float32)
            yield f"{layer}.ssm_dt.bias", np.zeros(heads, np.float32)
            yield f"{layer}.ssm_a", np.full(heads, -4, np.float32)
            yield f"{layer}.ssm_norm.weight", ones(shape.linear_dim, np.float32)


def packed_rows(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of random Q4_K blocks, centred, with a deviation of about columns ** -0.5: (rows, bytes)."""
    blocks = rng.integers(0, 256, (rows, columns // BLOCK, BLOCK_BYTES), np.uint8)
    scale = math.sqrt(12 / columns) / 16 / 32
    blocks[:, :, :4] = np.array([scale, scale * 7.5], np.float16).view(np.uint8)
    blocks[:, :, 4:16] = np.frombuffer(FACTORS, np.uint8)
    return blocks.reshape(rows, -1)


def settings(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_block_count(shape.layers)
    writer.add_context_length(262_144)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(shape.head_dim // 4)
    writer.add_rope_dimension_sections([11, 11, 10, 0])
    writer.add_rope_freq_base(10_000_000)
    writer.add_ssm_conv_kernel(CONV_KERNEL)
    writer.add_ssm_inner_size(shape.linear_value_heads * shape.linear_dim)
    writer.add_ssm_state_size(shape.linear_dim)
    writer.add_ssm_time_step_rank(shape.linear_value_heads)
    writer.add_ssm_group_count(shape.linear_key_heads)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("none")


def write(path: Path, shape: Shape) -> None:
    """The whole file, tensor by tensor."""
    rng = np.random.Generator(np.random.SFC64(0))
    writer = gguf.GGUFWriter(path, "qwen35")
    settings(writer, shape)
    for name, rows, columns in matrices(shape):
        width = columns // BLOCK * BLOCK_BYTES
        writer.add_tensor_info(name, (rows, width), np.dtype(np.uint8), rows * width, gguf.GGMLQuantizationType.Q4_K)
    for name, values in small(shape):
        writer.add_tensor_info(name, values.shape, values.dtype, values.nbytes)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _, rows, columns in matrices(shape):
        writer.write_tensor_data(packed_rows(min(rows, CHUNK_ROWS), columns, rng)[np.arange(rows) % CHUNK_ROWS])
    for _, values in small(shape):
        writer.write_tensor_data(values)
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a GGUF file with random weights at 4 bits.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", choices=[name for name in SHAPES if name != "tiny"], default="9b")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write(options.out, SHAPES[options.shape])


if __name__ == "__main__":
    main()
