"""The text decoder's forward pass over whole sequences: the function of transformers' qwen3_5, about twice as fast in training.

The parameters are those of transformers' modules; `check_forward` of the tests compares the two. Sequences are padded at the end, which
a causal model does not see. x: (B, T, hidden) float32 residual stream; matrix products run in the dtype of autocast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 64


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads that are taught where to look: in a layer with full attention, one of each group with common keys and values, since what is
    copied has to pass through their few features. number: of the head in its group."""

    layer: int
    number: int


@dataclass(slots=True)
class Pointing:
    """Attention logits of taught heads, and hidden states on the way.

    rows: by heads, (N,) indices into B * T of the tokens that look, ascending. logits: filled in by the forward pass, (N, T) of each group.
    layers: whose output is wanted. hidden: filled in, normed as before the head, (B, T, hidden).
    """

    rows: Mapping[Heads, Tensor]
    logits: dict[Heads, list[Tensor]] = field(default_factory=dict)
    layers: tuple[int, ...] = ()
    hidden: dict[int, Tensor] = field(default_factory=dict)


def decode(model: Any, x: Tensor, rotary: tuple[Tensor, Tensor], pointing: Pointing | None = None) -> Tensor:
    """Hidden states after the last norm. model: Qwen3_5TextModel. rotary: cos and sin, (B or 1, T, rotary_dim)."""
    for index, layer in enumerate(model.layers):
        x = _layer(layer, model.config.layer_types[index], x, rotary, pointing, index)
        if pointing and index in pointing.layers:
            pointing.hidden[index] = rms_norm(model.norm, x)
    return rms_norm(model.norm, x)


def _layer(layer: Any, kind: str, x: Tensor, rotary: tuple[Tensor, Tensor], pointing: Pointing | None, index: int) -> Tensor:
    h = for_products(rms_norm(layer.input_layernorm, x))
    x = x + (delta_net(layer.linear_attn, h) if kind == "linear_attention" else attention(layer.self_attn, h, rotary, pointing, index))
    h = for_products(rms_norm(layer.post_attention_layernorm, x))
    return x + layer.mlp.down_proj(F.silu(layer.mlp.gate_proj(h)) * layer.mlp.up_proj(h))


def for_products(x: Tensor) -> Tensor:
    """x as autocast wants it, once for all products with it."""
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x


def rms_norm(norm: Any, x: Tensor) -> Tensor:
    return F.rms_norm(x.float(), x.shape[-1:], 1 + norm.weight, norm.eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of the first features. x: (B, H, T, head_dim); cos, sin: (B or 1, 1, T, rotary_dim)."""
    turned, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    half = cos.shape[-1] // 2
    swapped = torch.cat((-turned[..., half:], turned[..., :half]), -1)
    return torch.cat((turned * cos + swapped * sin, rest), -1)


def attention(module: Any, x: Tensor, rotary: tuple[Tensor, Tensor], pointing: Pointing | None, index: int) -> Tensor:
    """Causal attention with normalised queries and keys and an output gate."""
    batch, length, _ = x.shape
    head_dim = module.head_dim
    q, gate = module.q_proj(x).view(batch, length, -1, 2 * head_dim).chunk(2, -1)
    k = module.k_proj(x).view(batch, length, -1, head_dim)
    v = module.v_proj(x).view(batch, length, -1, head_dim).transpose(1, 2)
    cos, sin = rotary[0].unsqueeze(1), rotary[1].unsqueeze(1)
    q = rotate(rms_norm(module.q_norm, q).transpose(1, 2), cos, sin).to(v.dtype)
    k = rotate(rms_norm(module.k_norm, k).transpose(1, 2), cos, sin).to(v.dtype)
    groups = q.shape[1] // k.shape[1]
    for heads, rows in pointing.rows.items() if pointing else ():
        if heads.layer == index:
            looking = q[:, heads.number :: groups].unbind(1)
            pointing.logits[heads] = [_pointing_logits(*pair, rows) * module.scaling for pair in zip(looking, k.unbind(1), strict=True)]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=module.scaling).transpose(1, 2)
    return module.o_proj((out * torch.sigmoid(gate)).reshape(batch, length, -1))


def _pointing_logits(q: Tensor, k: Tensor, rows: Tensor) -> Tensor:
    """What some tokens think of all tokens of their sequence. q, k: (B, T, head_dim). rows: (N,), ascending.

    Returns (N, T) float32; the future is -inf.
    """
    batch, length, _ = k.shape
    asking = q.flatten(0, 1)[rows].split(torch.bincount(rows // length, minlength=batch).tolist())
    logits = torch.cat([some @ keys.T for some, keys in zip(asking, k, strict=True)]).float()
    future = torch.arange(length, device=q.device) > (rows % length)[:, None]
    return logits.masked_fill(future, float("-inf"))


def delta_net(module: Any, x: Tensor) -> Tensor:
    """Gated DeltaNet: short convolution, delta rule in chunks, gated norm."""
    batch, length, _ = x.shape
    z = module.in_proj_z(x).view(batch, length, -1, module.head_v_dim)
    mixed = module.in_proj_qkv(x)
    weight = module.conv1d.weight.squeeze(1).to(mixed.dtype).T.contiguous()  # (kernel, C)
    padded = F.pad(mixed, (0, 0, len(weight) - 1, 0))
    mixed = F.silu(sum(padded[:, k : k + length] * row for k, row in enumerate(weight.unbind())))
    q, k, v = (
        part.view(batch, length, -1, width)
        for part, width in zip(
            mixed.split((module.key_dim, module.key_dim, module.value_dim), -1),
            (module.head_k_dim, module.head_k_dim, module.head_v_dim),
            strict=True,
        )
    )
    beta = module.in_proj_b(x).float().sigmoid()
    decay = -module.A_log.float().exp() * F.softplus(module.in_proj_a(x).float() + module.dt_bias)
    out = delta_rule(q, k, v, decay, beta)
    out = F.rms_norm(out, out.shape[-1:], module.norm.weight.float(), module.layer_norm_epsilon) * F.silu(z.float())
    return module.out_proj(out.reshape(batch, length, -1))


def unit(x: Tensor) -> Tensor:
    """Vectors of length one; the small number is the architecture's."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def delta_rule(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
    """The gated delta rule in chunks (Yang et al. 2024, Gated Delta Networks). q, k, v: (B, T, H, dim); decay, beta: (B, T, H).

    Within a chunk the updates are solved as one triangular system; the state goes from chunk to chunk. Returns (B, T, H, dim) float32.
    """
    with torch.autocast(q.device.type, enabled=False):
        batch, length, heads, width = q.shape
        pad = -length % CHUNK
        count = (length + pad) // CHUNK

        def chunks(x: Tensor) -> Tensor:
            x = F.pad(x.float(), (0, 0) * (x.dim() - 2) + (0, pad))
            return x.view(batch, count, CHUNK, heads, -1).permute(0, 3, 1, 2, 4).contiguous()

        q, k, v = chunks(unit(q.float()) * width**-0.5), chunks(unit(k.float())), chunks(v)
        total = chunks(decay.unsqueeze(-1)).squeeze(-1).cumsum(-1)
        beta = chunks(beta.unsqueeze(-1))
        later = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).triu(1)
        fade = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(later, float("-inf")).exp()
        faded = total.exp().unsqueeze(-1)
        weights = (q @ k.transpose(-1, -2)) * fade
        system = ((k * beta) @ k.transpose(-1, -2)) * fade
        solved = torch.linalg.solve_triangular(system, torch.cat((v * beta, k * beta * faded), -1), upper=False, unitriangular=True)
        fresh, against = solved.split((v.shape[-1], width), -1)
        asked = q * faded
        kept = (k * (total[..., -1:] - total).exp().unsqueeze(-1)).transpose(-1, -2)
        end = total[..., -1].exp()[..., None, None]
        state = q.new_zeros(batch, heads, width, v.shape[-1])
        out = []
        # the gradient of unbind is one stack, where that of an index fills a tensor of all chunks for each of them
        steps = (x.unbind(2) for x in (fresh, against, asked, weights, kept, end))
        for own, old, asking, weight, keeping, fading in zip(*steps, strict=True):
            new = own - old @ state
            out.append(asking @ state + weight @ new)
            state = state * fading + keeping @ new
        return torch.stack(out, 2).reshape(batch, heads, count * CHUNK, -1)[:, :, :length].transpose(1, 2)
