"""Our own small models: a line-wise BPE tokenizer and a Qwen3 transformer of a few million parameters.

Kernels and prompts of the quickstart repeat whole lines, so a line is one unit for the tokenizer and a frequent line
becomes one token; numbers stand apart, so that a constant is copied into a line of any kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from davinci_kernel.errors import UserError

from ._template import END_OF_TEXT, END_OF_TURN, SMALL_CHAT_TEMPLATE, START_OF_TURN, TEMPLATE_TEXTS, TOOL_MARKS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast, Qwen3ForCausalLM

_NUMBER = r"(?<![A-Za-z_0-9])\d+(\.\d+)?"
_LINE_END = (
    r"\n+|\\n"  # blank lines belong to the line before; the escaped newline ends the lines of code inside JSON strings
)
_BYTES = 256
_LINE_SHARE = 0.25


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer: any text encodes, and decodes to itself.

    A quarter of the learned entries are the most frequent lines and numbers as they are; BPE merges for everything else
    are the rest. Merges alone would spend an entry on every step towards a long line.

    Args:
        texts: message contents, tool schemas, calls; the chat template's own text is added.
        vocab_size: entries at most, bytes and special tokens included.

    Raises:
        UserError: `vocab_size` is too small for the bytes and the special tokens.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = [END_OF_TEXT, START_OF_TURN, END_OF_TURN]
    marks = [AddedToken(mark, normalized=False, special=False) for mark in TOOL_MARKS]
    learned = vocab_size - len(marks) - _BYTES - len(special)
    if learned < 0:
        raise UserError(f"vocab_size: {vocab_size} is less than the {vocab_size - learned} basic tokens")
    pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_NUMBER), behavior="isolated"),
            pre_tokenizers.Split(Regex(_LINE_END), behavior="merged_with_previous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    framed = list(texts)
    framed += TEMPLATE_TEXTS * (1 + len(framed) // 8)

    def trained(model: models.Model, trainer: trainers.Trainer) -> Tokenizer:
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.train_from_iterator(framed, trainer)
        return tokenizer

    units = int(learned * _LINE_SHARE)
    counted = trained(models.WordLevel(), trainers.WordLevelTrainer(vocab_size=units, show_progress=False)).get_vocab()
    pieces = trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=vocab_size - len(marks) - len(counted),
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    bpe = json.loads(pieces.to_str())["model"]
    vocabulary: dict[str, int] = bpe["vocab"]
    for line in sorted(counted, key=counted.__getitem__):
        vocabulary.setdefault(line, len(vocabulary))
    merges = [tuple(merge) for merge in bpe["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens(marks)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[START_OF_TURN],
        chat_template=SMALL_CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )


def small_model(
    tokenizer: PreTrainedTokenizerBase,
    *,
    layers: int = 3,
    width: int = 128,
    heads: int = 4,
    mlp: int = 384,
    max_positions: int = 4096,
    seed: int = 0,
) -> Qwen3ForCausalLM:
    """A freshly initialised Qwen3 model with tied embeddings, float32.

    Raises:
        UserError: `width` does not divide into `heads` heads of even size.
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    if width % (2 * heads):
        raise UserError(f"model.width: {width} must be a multiple of 2 * heads = {2 * heads}")
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=width // heads,
        max_position_embeddings=max_positions,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config)


def save_model(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, path: str | Path) -> None:
    """Write model and tokenizer as an ordinary Hugging Face directory."""
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
