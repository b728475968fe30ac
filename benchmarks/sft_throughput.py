"""Tokens per second of the small model's SFT step, by padded tokens per micro-batch, in one run.

python benchmarks/sft_throughput.py
"""

import time

import torch

from davinci_kernel.config import SFTConfig
from davinci_kernel.llm import conversation_texts, small_model, train_tokenizer
from davinci_kernel.sft import Habits, Mix, build_rows
from davinci_kernel.sft._trainer import _step, batches, encode_rows
from davinci_kernel.tasks import GeneratorSpec, generate_task

STEPS, MICRO_BATCHES = 6, (1024, 4096, 16384)


def main() -> None:
    spec = GeneratorSpec.model_validate({"tails": ["softmax", "rmsnorm", "row_sum"]})
    tasks = [generate_task(0, index, "train", spec) for index in range(300)]
    rows = build_rows(tasks, [], Mix(policy=600, policy_skill=600, selection=100), Habits(), 0, 1000)
    tokenizer = train_tokenizer(conversation_texts(rows), 2048)
    encoded, _ = encode_rows(tokenizer, rows, 2048)
    chosen = batches(encoded, 64, 0, 0)[:STEPS]
    print("| micro-batch tokens | tokens/s |\n|---|---|")
    for tokens in MICRO_BATCHES:
        model = small_model(tokenizer)
        optimizer = torch.optim.AdamW(model.parameters())
        config = SFTConfig(model_path="-", data="-", micro_batch_tokens=tokens)
        started = time.perf_counter()
        for batch in chosen:
            _step(model, optimizer, batch, 1e-3, config, torch.device("cpu"))
        total = sum(len(row.ids) for batch in chosen for row in batch)
        print(f"| {tokens} | {total / (time.perf_counter() - started):.0f} |", flush=True)


if __name__ == "__main__":
    main()
