"""python tiny_gguf.py FILE: a llama of one layer and random weights, with a vocabulary of bytes.

Run in an environment that has the package `gguf`; nothing else imports this.
"""

from __future__ import annotations

import sys

import gguf
import numpy

WIDTH, HEADS, INNER, CONTEXT = 64, 2, 128, 512
VOCABULARY = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256))]


def main(path: str) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_block_count(1)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    kinds = gguf.TokenType
    writer.add_tokenizer_model("llama")
    writer.add_token_list(VOCABULARY)
    writer.add_token_scores([0.0] * len(VOCABULARY))
    special = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL]
    writer.add_token_types([*special, *[kinds.BYTE] * 256])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    random = numpy.random.default_rng(0)
    shapes = {
        "token_embd": (len(VOCABULARY), WIDTH),
        "output": (len(VOCABULARY), WIDTH),
        "output_norm": (WIDTH,),
        "blk.0.attn_norm": (WIDTH,),
        "blk.0.attn_q": (WIDTH, WIDTH),
        "blk.0.attn_k": (WIDTH, WIDTH),
        "blk.0.attn_v": (WIDTH, WIDTH),
        "blk.0.attn_output": (WIDTH, WIDTH),
        "blk.0.ffn_norm": (WIDTH,),
        "blk.0.ffn_gate": (INNER, WIDTH),
        "blk.0.ffn_up": (INNER, WIDTH),
        "blk.0.ffn_down": (WIDTH, INNER),
    }
    for name, shape in shapes.items():
        weights = random.standard_normal(shape, dtype=numpy.float32) * 0.1
        writer.add_tensor(f"{name}.weight", weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
