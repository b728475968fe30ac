"""A GGUF checkpoint, written by llama.cpp's own library, gives the model that it was made from."""

import json

import gguf
import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from davinci_kernel.errors import UserError
from davinci_kernel.llm import TransformersLLM


@pytest.fixture(scope="module")
def qwen3(tokenizer):
    torch.manual_seed(2)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "tie_word_embeddings": True}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 128}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), max_position_embeddings=256, **shape, **heads))


@pytest.fixture(scope="module")
def checkpoint(qwen3, tokenizer, tmp_path_factory):
    path, config = tmp_path_factory.mktemp("gguf") / "tiny.gguf", qwen3.config
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_tokenizer_model("gpt2")
    vocabulary = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    writer.add_token_list(vocabulary)
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    kinds = gguf.TokenType
    writer.add_token_types([kinds.CONTROL if i in special else kinds.NORMAL for i in range(len(vocabulary))])
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_chat_template(tokenizer.chat_template)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config.num_hidden_layers)
    for name, weight in qwen3.state_dict().items():
        stem, _, kind = name.rpartition(".")
        if stem != "lm_head":  # tied
            writer.add_tensor(f"{names.get_name(stem)}.{kind}", weight.detach().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


async def test_weights_and_template_are_read(checkpoint, qwen3, tokenizer):
    llm = TransformersLLM.load(checkpoint, device="cpu")
    ids = torch.arange(20, 60)[None]
    with torch.no_grad():
        torch.testing.assert_close(llm.model(ids).logits, qwen3(ids).logits)
    assert llm.tokenizer.chat_template == tokenizer.chat_template
    assert llm.model.dtype == torch.float32
    await llm.close()


async def test_a_dtype_is_respected_on_the_cpu(checkpoint):
    llm = TransformersLLM.load(checkpoint, device="cpu", dtype="bfloat16")
    assert {p.dtype for p in llm.model.parameters()} == {torch.bfloat16}
    await llm.close()


def test_what_gguf_needs_is_named(checkpoint, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs gguf and accelerate; pip install 'davinci-kernel\[gguf\]'"):
        TransformersLLM.load(checkpoint)


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "no.gguf"
    path.write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(UserError, match=r"no\.gguf"):
        TransformersLLM.load(path)
